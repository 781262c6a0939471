"""What both passes share: their options, what is kept between them, and how the work is cut into groups and tiles."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
import triton
from torch import Tensor
from torch.nn import functional as F

# Sentences never meet: while training they are taken in groups of about this many rows, and the buffers of a step are
# as large as one group. The second number is for little memory.
GROUP_ROWS = (16384, 2560)


class Options(NamedTuple):
    num_steps: int
    sharp: bool
    need_words: bool
    need_sentence: bool
    keep: int  # h and c of every keep-th step are kept for the backward pass, 1 or 2; 0: nothing is

    @property
    def kept_steps(self) -> int:
        """Steps 0, keep, 2 keep, .. of all but the last."""
        return -(-(self.num_steps - 1) // self.keep) if self.keep else 0


class Saved(NamedTuple):
    """What the backward pass reads besides x."""

    first: Tensor  # (8 Hp, 3)
    h: Tensor  # (kept steps M, Hp): for every group of sentences, the steps that are kept
    c: Tensor  # the same
    c_g: Tensor  # (T+1, B, Hp) float32
    gh: Tensor  # (T+1, B, 2 Hp)
    Q: Tensor  # (T, B, 10 Hp)
    log_z: Tensor  # (T, B, Hp) float32
    words: Tensor  # the packed weights
    sentence: Tensor
    vectors: Tensor


class Tiling(NamedTuple):
    """How a sentence and its units are cut into programs. Eight rows of 32 units are one warp's work: sums over them
    need no shared memory, and each thread reads 16 bytes at a time."""

    rows: int
    tiles: int
    unit_blocks: int

    @classmethod
    def of(cls, N: int, Hp: int, rows: int) -> Tiling:
        rows = min(rows, triton.next_power_of_2(N))
        return cls(rows, triton.cdiv(N, rows), triton.cdiv(Hp, 32))

    def launch(self) -> dict[str, int]:
        close = next((size for size in (4, 64) if self.tiles <= size), triton.next_power_of_2(self.tiles))
        return {"ROWS": self.rows, "UNITS": 32, "CLOSE": close, "num_warps": max(1, self.rows // 8)}


class Beside:
    """Runs small products beside large ones while a graph is captured; in order otherwise, where launches cost more
    than they would save."""

    def __init__(self, x: Tensor) -> None:
        capturing = x.is_cuda and torch.cuda.is_current_stream_capturing()
        self.stream = torch.cuda.Stream() if capturing else None

    def __call__(self) -> AbstractContextManager[object]:
        if self.stream is None:
            return nullcontext()
        self.stream.wait_stream(torch.cuda.current_stream())
        return torch.cuda.stream(self.stream)

    def join(self) -> None:
        if self.stream is not None:
            torch.cuda.current_stream().wait_stream(self.stream)


def rows_of_dropout(mask: Tensor | None, Hp: int, x: Tensor) -> Tensor:
    """A dropout mask as rows of Hp; x stands in for a missing one, and is not read."""
    return x if mask is None else F.pad(mask.flatten(0, -2), (0, Hp - mask.shape[-1]))


def blank(x: Tensor, lengths: Tensor | None) -> Callable[..., Tensor]:
    """Kernels do not write at padding: buffers in which it could be read start at zero."""
    return x.new_empty if lengths is None else x.new_zeros


def groups(B: int, N: int, keep: int) -> list[slice]:
    """Slices of the batch, of nearly equal size; all of it where nothing is kept."""
    number = round(B * N / GROUP_ROWS[keep - 1]) if keep else 1
    size = -(-B // min(B, max(1, number)))
    return [slice(start, min(B, start + size)) for start in range(0, B, size)]


def of_group(
    group: slice, rows: slice, lengths: Tensor | None, drops: tuple[Tensor, Tensor], x: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The lengths and dropout masks of one group; x stands in where there are none, and is not read."""
    drop_h, drop_g = drops
    return x if lengths is None else lengths[group], (x, x) if drop_h is x else (drop_h[rows], drop_g[group])
