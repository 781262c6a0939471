"""Python's search for objects that know each other in circles, put off."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

lock = threading.Lock()
depth = 0  # of all threads: the search begins again when the last of them has left
was_enabled = False


@contextmanager
def no_collection() -> Iterator[None]:
    """Where objects are made by the hundred thousand and none is thrown away, it takes a quarter of the time."""
    global depth, was_enabled
    with lock:
        if depth == 0:
            was_enabled = gc.isenabled()
            gc.disable()
        depth += 1
    try:
        yield
    finally:
        with lock:
            depth -= 1
            if depth == 0 and was_enabled:
                gc.enable()
