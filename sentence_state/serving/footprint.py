"""Settings of the libraries below PyTorch for a process that runs for months, to be made before the first product."""

from __future__ import annotations

import ctypes
import os

KERNELS = "64"  # that oneDNN keeps, one for each number of rows it meets; its own limit of 1024 is hundreds of MB
ARENAS = 2  # heaps of glibc, which opens eight for each core and seldom gives back what lies in them
M_ARENA_MAX = -8  # <malloc.h>


def bound_memory() -> None:
    """Keep the caches of oneDNN and of malloc small; what the environment says comes first."""
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", KERNELS)
    if "MALLOC_ARENA_MAX" not in os.environ:
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
        if mallopt is not None:
            mallopt(M_ARENA_MAX, ARENAS)
