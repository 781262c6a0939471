"""uvicorn's HTTP/1.1 with better manners: it waits for ever neither for the head of a request nor for the rest of one
that is answered already, and answers a client who is one too many in JSON."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 20.0  # from a connection, or the first byte of a request, to the end of its head


class PatientProtocol(H11Protocol):
    """Patient, not endless: clients that connect and say nothing would use up `limit_concurrency`."""

    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        most, self.limit_concurrency = self.limit_concurrency, None  # uvicorn's own answer is plain text
        if most is not None and len(self.connections) > most:
            self.app = self.config.app.state.busy  # type: ignore[union-attr]
        self.timer = self.loop.call_later(SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        answered_early = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        if self.conn.their_state is not h11.IDLE and not answered_early:
            self.stop_timer()
        elif self.timer is None:
            self.timer = self.loop.call_later(SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self.stop_timer()
        super().connection_lost(exc)

    def _unsupported_upgrade_warning(self) -> None:
        """There are no WebSockets here: advice to install them would fill the log at any client's wish."""

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
