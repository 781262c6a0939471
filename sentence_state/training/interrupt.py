"""Ctrl-C as a request: a training step is finished before the loop stops, so that no state is half-updated."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """True once Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.made = False

    def __bool__(self) -> bool:
        return self.made


@contextmanager
def ctrl_c_requests_stop(only_once: bool = False) -> Iterator[StopRequest]:
    """The first Ctrl-C makes the request; the second does what Ctrl-C did before, or with `only_once` nothing: a
    process of torchrun hears of the same Ctrl-C twice. In the main thread only."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = signal.getsignal(signal.SIGINT)

    def on_signal(number: int, frame: FrameType | None) -> None:
        request.made = True
        if not only_once:
            signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, on_signal)
    try:
        yield request
    finally:
        signal.signal(signal.SIGINT, before)
