"""Models out of folders, and the process that serves them until it is told to stop."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import time
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

DRAIN_SECONDS = 30.0  # for what was accepted to be answered after SIGTERM or Ctrl-C
LAST_SECONDS = 1.0  # for the last answers to go out


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
    services: list[Service] = []
    try:
        for name, folder, model in zip(names_of(folders), folders, models, strict=True):
            services.append(Service(name, folder, model, limits, threads, metrics.watch(name)))
        metrics.watch_queues(services)
        return create_app(services, limits, metrics, token)
    except BaseException:  # Ctrl-C too: a thread that computes while the interpreter ends aborts the process
        for service in services:
            service.close()
        raise


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
    """Serve until SIGTERM or Ctrl-C, then answer what was accepted. No thread of a model is left behind: one that
    computes while the interpreter ends would abort the process."""
    server = uvicorn_server(app, max_connections)

    def end(number: int, frame: object) -> None:
        """Before uvicorn listens to signals, and when it raises them again at its end, where nothing is left to do."""
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        asyncio.run(serve(server, listening, started))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def uvicorn_server(app: FastAPI, max_connections: int) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",  # its end is left out after a second Ctrl-C: `serve` closes the services
        http=PatientProtocol,
        ws="none",
        limit_concurrency=max_connections,
        timeout_keep_alive=30,
        server_header=False,
    )
    return uvicorn.Server(config)


async def serve(server: uvicorn.Server, listening: socket.socket, started: Callable[[], None]) -> None:
    """Until SIGTERM or Ctrl-C; then what was accepted is answered for DRAIN_SECONDS, or until another Ctrl-C."""
    task = asyncio.create_task(server.serve([listening]))
    try:
        await until(lambda: server.started or task.done())
        if server.started:
            started()
        await until(lambda: server.should_exit or task.done())
        await until(lambda: server.force_exit or task.done(), DRAIN_SECONDS)
    finally:
        server.should_exit = True
        await stop(server)
        await task


async def stop(server: uvicorn.Server) -> None:
    """503 for all who still wait, and an end for clients that are slow to ask or to read."""
    services: Sequence[Service] = server.config.app.state.services  # type: ignore[union-attr]
    await asyncio.gather(*(asyncio.to_thread(service.close) for service in services))
    state = server.server_state
    await until(lambda: not state.connections, LAST_SECONDS)
    for connection in list(state.connections):
        connection.transport.abort()
    await until(lambda: not state.tasks)


async def until(condition: Callable[[], bool], seconds: float = math.inf) -> None:
    """uvicorn tells nobody how far it is: one has to look."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        await asyncio.sleep(0.05)
