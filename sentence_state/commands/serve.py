"""sentence-state serve: trained models behind HTTP, and a page to look at them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..runtime import EXPORT, RuntimeModel
from .console import make_console
from .flags import Serve, UsageError
from .load import load_model

if TYPE_CHECKING:
    from ..serving.service import Served

TOKEN = "SENTENCE_STATE_TOKEN"  # environment variable
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(flags: Serve) -> int:
    try:
        from ..serving.footprint import bound_memory
        from ..serving.server import build_app, listen, run, threads_each
    except ImportError as error:
        missing = f'serve needs the extra "serve": pip install "sentence-state[serve]" ({error})'
        raise UsageError(missing) from None
    check(flags)
    bound_memory()
    token = read_token(flags.token_file)
    console = make_console(stderr=True)
    try:
        listening = listen(flags.host, flags.port)  # first: a port that is taken should not cost a load
    except OSError as error:
        raise UsageError(f"cannot listen on {flags.host}:{flags.port}: {error.strerror or error}") from None
    with listening:
        threads = flags.threads or threads_each(len(flags.runs))
        models = [load(folder, flags, threads) for folder in flags.runs]
        app = build_app(flags.runs, models, flags.limits, token, threads)
        try:
            host, port = listening.getsockname()[:2]
            if host not in LOOPBACK and token is None:
                console.print(f"anybody who reaches {host}:{port} can use the models: set {TOKEN} or --token-file")
            address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
            run(app, listening, flags.limits.max_connections, lambda: console.print(greeting(flags, address)))
        finally:
            for service in app.state.services:
                service.close()
    console.print("stopped")
    return 0


def load(folder: Path, flags: Serve, threads: int) -> Served:
    """A trained model, or one that `sentence-state export --format onnx` wrote."""
    if not (folder / EXPORT).exists():
        return load_model(folder, flags.device, flags.limits.max_batch)
    try:
        return RuntimeModel.from_pretrained(folder, threads)
    except ImportError as error:
        raise UsageError(str(error)) from None


def check(flags: Serve) -> None:
    if not flags.runs:
        raise UsageError("give the folder of a trained model, such as runs/reviews")
    places = [folder.resolve() for folder in flags.runs]
    for folder, place in zip(flags.runs, places, strict=True):
        if places.count(place) > 1:
            raise UsageError(f"{folder} is given twice")
    if flags.threads is not None and flags.threads < 1:
        raise UsageError(f"--threads must be 1 or more, got {flags.threads}")
    if not 0 <= flags.port <= 65535:
        raise UsageError(f"--port must lie between 0 and 65535, got {flags.port}")
    try:
        flags.limits.check()
    except ValueError as error:
        raise UsageError(str(error)) from None


def read_token(path: Path | None) -> str | None:
    """The token of a file, or of the environment: a command line can be read by everybody on the machine."""
    try:
        given = os.environ.get(TOKEN) if path is None else path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: the token is not UTF-8") from None
    if given is None:
        return None
    token = given.strip()
    if not token:
        raise UsageError(f"{path or TOKEN}: the token is empty")
    if not token.isprintable():  # no header holds it; bytes of the environment that are not UTF-8 count as such too
        raise UsageError(f"{path or TOKEN}: the token has characters that cannot be printed")
    return token


def greeting(flags: Serve, address: str) -> str:
    names = ", ".join(str(run_folder) for run_folder in flags.runs)
    return f"serving {names} at {address}  (Ctrl-C stops)"
