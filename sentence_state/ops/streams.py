"""Small work beside large work on one GPU."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache

import torch


class Beside:
    """Runs what stands in `with beside():` beside what follows while a graph is captured; in order otherwise, where
    launches cost more than they would save."""

    def __init__(self, device: torch.device) -> None:
        capturing = device.type == "cuda" and torch.cuda.is_current_stream_capturing()
        self.stream = another_stream(device) if capturing else None

    def __call__(self) -> AbstractContextManager[object]:
        if self.stream is None:
            return nullcontext()
        self.stream.wait_stream(torch.cuda.current_stream())
        return torch.cuda.stream(self.stream)

    def join(self) -> None:
        """Wait for it. There must have been some: a graph cannot wait for a stream that it has not met."""
        if self.stream is not None:
            torch.cuda.current_stream().wait_stream(self.stream)


def another_stream(device: torch.device) -> torch.cuda.Stream:
    """Than the one that is captured. Of few in all: PyTorch keeps 32 MiB for cuBLAS on every stream that met it."""
    one, other = two_streams(device, threading.get_ident())
    return other if one == torch.cuda.current_stream(device) else one


@lru_cache(maxsize=64)
def two_streams(device: torch.device, thread: int) -> tuple[torch.cuda.Stream, torch.cuda.Stream]:
    """PyTorch has 32 of them, which it gives to everyone in turn, so that one of these may be captured. Threads that
    capture at once must not share any."""
    return torch.cuda.Stream(device), torch.cuda.Stream(device)
