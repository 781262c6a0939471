"""One step of Adam as one kernel, for the rows of a matrix that have a gradient: a batch has few words of many."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .plan import power_of_2


@triton.jit
def adam_of_row(
    weights,  # (rows, columns)
    gradient,  # the same, as the others
    mean,
    square,
    size,  # () of a step, with what makes the means unbiased
    new_of_mean,  # share of the gradient in the new means
    new_of_square,
    least,  # what is added to the root
    columns: tl.constexpr,
    WIDTH: tl.constexpr,
):
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, WIDTH)
    at, inside = row * columns + column, column < columns
    g = tl.load(gradient + at, mask=inside, other=0.0)
    if tl.max((g != 0).to(tl.int32), axis=0) > 0:  # what is no number counts, and shows
        m = tl.load(mean + at, mask=inside, other=0.0)
        s = tl.load(square + at, mask=inside, other=0.0)
        m += (g - m) * new_of_mean
        s += (g * g - s) * new_of_square
        w = tl.load(weights + at, mask=inside, other=0.0) - tl.load(size) * m / (tl.sqrt(s) + least)
        tl.store(mean + at, m, mask=inside)
        tl.store(square + at, s, mask=inside)
        tl.store(weights + at, w, mask=inside)


def update_rows(
    weights: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    size: Tensor,
    betas: tuple[float, float],
    least: float,
) -> None:
    """All contiguous matrices of float32; size: of the step, a tensor of one number."""
    rows, columns = weights.shape
    shares = 1 - betas[0], 1 - betas[1]
    sizes = {"columns": columns, "WIDTH": power_of_2(columns)}
    with torch.cuda.device_of(weights):  # which need not be the current one
        adam_of_row[(rows,)](weights, gradient, mean, square, size, *shares, least, **sizes, num_warps=2)
