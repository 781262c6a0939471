"""uvicorn's HTTP/1.1 with better manners: it does not wait for ever for the head of a request, and answers a client who
is one too many in JSON."""

from __future__ import annotations

import asyncio

import h11
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 20.0  # from a connection, or the first byte of a request, to the end of its head


class PatientProtocol(H11Protocol):
    """Patient, not endless: clients that connect and say nothing would use up `limit_concurrency`."""

    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        most, self.limit_concurrency = self.limit_concurrency, None  # uvicorn's own answer is plain text
        if most is not None and len(self.connections) > most:
            self.app = answer_busy
        self.timer = self.loop.call_later(SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self.stop_timer()
        elif self.timer is None:
            self.timer = self.loop.call_later(SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self.stop_timer()
        super().connection_lost(exc)

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


async def answer_busy(scope: Scope, receive: Receive, send: Send) -> None:
    headers = {"Retry-After": "5", "Connection": "close"}
    await JSONResponse({"detail": "the server has as many clients as it takes"}, 503, headers)(scope, receive, send)
