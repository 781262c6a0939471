"""Ctrl-C and SIGTERM as a request: a step is finished before the loop stops, so that no state is half-updated."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """True once Ctrl-C was pressed, or SIGTERM came."""

    def __init__(self) -> None:
        self.made = False

    def __bool__(self) -> bool:
        return self.made


@contextmanager
def signals_request_stop(together: bool = False) -> Iterator[StopRequest]:
    """The first signal makes the request. A second Ctrl-C does what Ctrl-C did before, or in a process of torchrun
    (`together`), which hears of the same one twice, nothing; nor does a second SIGTERM: timeout(1) sends two.
    In the main thread only."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    numbers = [signal.SIGINT, *([signal.SIGTERM] if may_take_sigterm(together) else [])]
    before = {number: signal.getsignal(number) for number in numbers}

    def on_signal(number: int, frame: FrameType | None) -> None:
        request.made = True
        if not together:
            signal.signal(signal.SIGINT, before[signal.SIGINT])

    for number in numbers:
        signal.signal(number, on_signal)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def may_take_sigterm(together: bool) -> bool:
    """Whether it would end this process, and nobody waits for that: torchrun and multiprocessing end their processes by
    it, torchrun also where another one has died, whose part of the next sum would never come."""
    ends = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    return ends and not together and multiprocessing.parent_process() is None
