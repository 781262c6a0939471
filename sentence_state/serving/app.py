"""The HTTP interface: predictions, traces, models, health, metrics and the page. OpenAPI is at /openapi.json."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from .. import __version__
from .batcher import Closed, QueueFull
from .body import read_json, shortened
from .front import Front
from .limits import Limits
from .metrics import Metrics
from .page import page_files
from .schemas import (
    ModelDescription,
    ModelsAnswer,
    PredictAnswer,
    PredictRequest,
    Refusal,
    Status,
    TraceAnswer,
    TraceRequest,
)
from .service import Service, TextError

MOST_TRACED = 128  # words: what a page can show
SHORT = 2000  # characters of a request's texts
REASONS = {
    401: "The token is missing or wrong.",
    404: "No such model.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "The body is not what is expected; the message says what is wrong.",
    429: "Too many sentences wait; try again after the seconds of Retry-After.",
    500: "The model failed.",
    503: "The server is stopping, or has more clients than it takes.",
}


def create_app(services: Sequence[Service], limits: Limits, metrics: Metrics, token: str | None = None) -> FastAPI:
    """An application that serves `services`, the first of them where a request names none."""
    app = FastAPI(
        title="sentence-state",
        version=__version__,
        summary="Labels and spans of sentences by Sentence-State LSTMs",
        docs_url=None,  # these pages load their scripts from another host
        redoc_url=None,
        redirect_slashes=False,  # to an address made of what the client calls this host, without its https
    )
    app.state.services = services
    app.state.busy = Front(answer_busy, metrics)  # what PatientProtocol gives a client who is one too many
    app.add_middleware(Front, metrics=metrics)
    app.add_exception_handler(QueueFull, answer_full)
    app.add_exception_handler(Closed, answer_closed)
    named = {service.name: service for service in services}
    guarded = [Depends(bearer(token))] if token else []
    unauthorized = (401,) if token else ()

    def service_named(name: str | None) -> Service:
        if name is None:
            return services[0]
        if name not in named:
            raise HTTPException(404, f"no model {shortened(name, 80)!r}; there are: {', '.join(named)}")
        return named[name]

    @app.post(
        "/v1/predict",
        response_model=PredictAnswer,
        responses=refusals(*unauthorized, 404, 408, 413, 415, 422, 429, 500, 503),
        openapi_extra=body_of(PredictRequest),
        dependencies=guarded,
    )
    async def predict(request: Request) -> Response:
        """Label or tag texts."""
        asked = await read_json(request, PredictRequest, limits.max_body)
        if len(asked.texts) > limits.max_texts:
            raise HTTPException(422, f"{len(asked.texts)} texts, at most {limits.max_texts} in one request")
        service = service_named(asked.model)
        service.batcher.refuse_when_full(len(asked.texts))  # before it costs anything
        examples = await read_texts(service, asked.texts)
        predictions = await result_of(service.predict(examples))
        return as_json({"model": service.name, "predictions": predictions})

    @app.post(
        "/v1/trace",
        response_model=TraceAnswer,
        responses=refusals(*unauthorized, 404, 408, 413, 415, 422, 429, 500, 503),
        openapi_extra=body_of(TraceRequest),
        dependencies=guarded,
    )
    async def trace(request: Request) -> Response:
        """The exchange of states: for every step what each word took from its neighbours, itself, the sentence and its
        input, what the sentence read from each word, and what the model would say if it stopped there."""
        asked = await read_json(request, TraceRequest, limits.max_body)
        service = service_named(asked.model)
        if not service.description["trace"]:
            if service.description["runtime"] == "onnx":
                raise HTTPException(422, f"{service.name} is an exported graph, which keeps no states to show")
            encoder = service.description["encoder"]
            raise HTTPException(422, f"{service.name} is a {encoder}: only an S-LSTM's words exchange their states")
        (example,) = await read_texts(service, [asked.text])
        if len(example.words) > MOST_TRACED:
            raise HTTPException(422, f"the text has {len(example.words)} words, at most {MOST_TRACED} are traced")
        found = await result_of(service.trace(example))
        return as_json({"model": service.name, "text": example.located()[0], **found})

    @app.get("/v1/models", responses=refusals(*unauthorized), dependencies=guarded)
    async def models() -> ModelsAnswer:
        """The models, the first being the one that answers where none is named, and the limits of requests."""
        return ModelsAnswer(models=[ModelDescription(**s.description) for s in services], limits=asdict(limits))

    @app.get("/health")
    async def health() -> Status:
        """Whether the process answers."""
        return Status(status="ok")

    @app.get("/ready", responses={503: {"model": Status, "description": "Stopping, or the queue is full."}})
    async def ready(response: Response) -> Status:
        """Whether requests would be taken on now."""
        if not all(service.batcher.alive for service in services):
            response.status_code = 503
            return Status(status="stopping")
        if any(service.batcher.depth >= limits.max_queue for service in services):
            response.status_code = 503
            return Status(status="the queue is full")
        return Status(status="ready")

    text: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}

    @app.get("/metrics", response_class=Response, responses=text | refusals(*unauthorized), dependencies=guarded)
    async def prometheus() -> Response:
        """Counts and times in the text format of Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    for path, (content, kind) in page_files().items():
        app.add_api_route(path, static(content, kind), include_in_schema=False)
    return app


def bearer(token: str) -> Any:
    """A dependency that lets nobody pass without the token."""

    async def check(
        given: Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))],
    ) -> None:
        presented = given.credentials.encode("latin-1") if given else b""  # the bytes of the header
        if not hmac.compare_digest(presented, token.encode()):
            raise HTTPException(401, "send the token as Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})

    return check


async def read_texts(service: Service, texts: Sequence[str | Sequence[str]]) -> Any:
    """Long texts beside the event loop: a megabyte takes a while to be cut into words."""
    try:
        if sum(map(len, texts)) <= SHORT:
            return service.read(texts)
        return await asyncio.to_thread(service.read, texts)
    except TextError as error:
        raise HTTPException(422, str(error)) from None


async def result_of(future: Future[Any]) -> Any:
    """What comes out of the model's thread."""
    try:
        return await asyncio.wrap_future(future)
    except Closed:
        raise
    except Exception:  # its traceback is in the log of the model's thread
        raise HTTPException(500, "the model failed on this request") from None


async def answer_busy(scope: Scope, receive: Receive, send: Send) -> None:
    headers = {"Retry-After": "5", "Connection": "close"}
    await JSONResponse({"detail": "the server has as many clients as it takes"}, 503, headers)(scope, receive, send)


async def answer_full(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 429, {"Retry-After": "1"})


async def answer_closed(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 503, {"Retry-After": "5"})


def as_json(content: dict[str, Any]) -> JSONResponse:
    try:
        return JSONResponse(content)
    except ValueError:  # weights so large that a sum of them is infinite
        raise HTTPException(500, "the model's answer is not a finite number") from None


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Refusal, "description": REASONS[status]} for status in statuses}


def body_of(shape: type[BaseModel]) -> dict[str, Any]:
    schema = shape.model_json_schema()
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def static(content: bytes, kind: str) -> Any:
    async def file() -> Response:
        return Response(content, media_type=kind)

    return file
