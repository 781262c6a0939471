"""Ctrl-C while modules are imported: a module that is cut off in the middle cannot be used, nor imported again."""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 130  # what a shell says of a command that Ctrl-C ended


def begin() -> None:
    """From now on Ctrl-C ends the process at once, unless somebody treats it already."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop_at_once)


def end() -> None:
    """All is imported: from now on Ctrl-C is a KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is stop_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def stop_at_once(number: int, frame: FrameType | None) -> None:
    os.write(2, b"\nstopped\n")
    os._exit(INTERRUPTED)
