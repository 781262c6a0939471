"""Models out of folders, and the process that serves them until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import uvicorn
from fastapi import FastAPI

from .app import create_app
from .limits import Limits
from .metrics import Metrics
from .protocol import PatientProtocol
from .service import Served, Service, names_of

DRAIN_SECONDS = 30  # for what was accepted to be answered after SIGTERM or Ctrl-C


def build_app(
    folders: Sequence[Path],
    models: Sequence[Served],
    limits: Limits | None = None,
    token: str | None = None,
    threads: int | None = None,
) -> FastAPI:
    """The application for loaded models, which share the cores unless `threads` says how many each takes."""
    limits, metrics = limits or Limits(), Metrics()
    threads = threads or threads_each(len(models))
    services = [
        Service(name, folder, model, limits, threads, metrics.watch(name))
        for name, folder, model in zip(names_of(folders), folders, models, strict=True)
    ]
    metrics.watch_queues(services)
    return create_app(services, limits, metrics, token)


def threads_each(models: int) -> int:
    return max(1, torch.get_num_threads() // models)


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections; an OSError says why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only where the protocol is named does asyncio send at once: else an answer's second part waits 40 ms for the
    # client to confirm the first.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
    except BaseException:
        listening.close()
        raise
    return listening


def run(app: FastAPI, listening: socket.socket, max_connections: int, started: Callable[[], None]) -> None:
    """Serve until SIGTERM or Ctrl-C, then answer what was accepted."""
    before = {number: signal.signal(number, ignore) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        asyncio.run(serve(uvicorn_server(app, max_connections), listening, started))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def uvicorn_server(app: FastAPI, max_connections: int) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="on",
        http=PatientProtocol,
        ws="none",
        limit_concurrency=max_connections,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        server_header=False,
    )
    return uvicorn.Server(config)


async def serve(server: uvicorn.Server, listening: socket.socket, started: Callable[[], None]) -> None:
    task = asyncio.create_task(server.serve([listening]))
    while not server.started and not task.done():
        await asyncio.sleep(0.01)
    if server.started:
        started()
    await task


def ignore(number: int, frame: object) -> None:
    """uvicorn raises the signal again once it has stopped: by then there is nothing left to do."""
