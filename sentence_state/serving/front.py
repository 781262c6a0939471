"""What every answer passes: the browser's orders, and the clock."""

from __future__ import annotations

import time

from h11 import LocalProtocolError
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .metrics import Metrics

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
PATHS = ("/", "/v1/predict", "/v1/trace", "/v1/models", "/health", "/ready", "/metrics", "/openapi.json")


class Front:
    """Adds HEADERS and tells `metrics` of every answer; answers HEAD as GET, whose content the server leaves out."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        start, status = time.monotonic(), 500
        asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        try:
            await self.app(asked, receive, send_with_headers)
        except LocalProtocolError:
            status = 400  # the body broke off in a way that is no HTTP: uvicorn has said so and hung up
        finally:
            path = scope["path"] if scope["path"] in PATHS else "other"  # a label for each path tried would have no end
            self.metrics.request(path, status, time.monotonic() - start)
