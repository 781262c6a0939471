"""uvicorn's HTTP/1.1 with better manners: it waits for ever neither for the head of a request nor for the rest of one
that is answered already, answers who has asked and says no more, and a client who is one too many in JSON."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 20.0  # from a connection, or the first byte of a request, to the end of its head
# states of a client whose request has come whole
WHOLE = (h11.DONE, h11.MUST_CLOSE, h11.MIGHT_SWITCH_PROTOCOL)  # type: ignore[attr-defined]


class PatientProtocol(H11Protocol):
    """Patient, not endless: clients that connect and say nothing would use up `limit_concurrency`."""

    timer: asyncio.TimerHandle | None = None
    ended = False  # the client says no more

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        most, self.limit_concurrency = self.limit_concurrency, None  # uvicorn's own answer is plain text
        if most is not None and sum(not one.waits_only for one in self.connections) > most:  # type: ignore[union-attr]
            self.app = self.config.app.state.busy  # type: ignore[union-attr]
        self.timer = self.loop.call_later(SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        answered_early = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        if self.conn.their_state is not h11.IDLE and not answered_early:
            self.stop_timer()
        elif self.timer is None:
            self.timer = self.loop.call_later(SECONDS, self.transport.close)

    def eof_received(self) -> bool:  # type: ignore[override]
        """A client may close its side behind a request (`nc -N`): what came whole is answered, anything else not."""
        self.ended = True
        return self.owes_answer  # False: asyncio closes the connection

    def on_response_complete(self) -> None:
        super().on_response_complete()  # which begins with a request that came behind the one that is answered now
        if self.ended and not self.owes_answer:
            self.transport.close()

    @property
    def owes_answer(self) -> bool:
        came_whole = self.conn.their_state in WHOLE
        return came_whole and not self.cycle.response_complete

    @property
    def waits_only(self) -> bool:
        """For an answer, its own side closed: it may have left, and what waits has a limit of its own."""
        return self.ended and self.owes_answer

    def connection_lost(self, exc: Exception | None) -> None:
        self.stop_timer()
        super().connection_lost(exc)

    def _unsupported_upgrade_warning(self) -> None:
        """There are no WebSockets here: advice to install them would fill the log at any client's wish."""

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
