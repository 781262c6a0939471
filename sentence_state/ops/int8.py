"""x W^T + b with 8-bit integers, for inference on a CPU: a quarter of the weights' bytes, whole-number products."""

from __future__ import annotations

import torch
from torch import Tensor

from .products import linear

# Fast ones: without VNNI they take up to 40 times as long as float32's.
HAS_PRODUCTS = getattr(torch.cpu, "_is_vnni_supported", lambda: False)()


class Int8Matrix:
    """A matrix (O, I) rounded to int8 with a scale for each row; in `ops.products.linear` it takes the place of W.

    What it meets is rounded to int8 with a scale for each of its rows too, so that a word's result does not depend on
    the others. The matrix itself stays beside it for the one product of a first step that is done in float32. Where a
    processor has no fast products of int8, float32 holds and multiplies the same whole numbers: as exactly up to 1,040
    columns, whose sum of products of 7 bits fits into its 24, and beyond but for its rounding.
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight.detach()
        self.scale = self.weight.abs().amax(dim=1).clamp(min=1e-12) / 127  # (O,)
        self.rounded = (self.weight / self.scale[:, None]).round()  # (O, I)
        if HAS_PRODUCTS:
            self.rounded = self.rounded.to(torch.int8).t().contiguous()  # (I, O)

    @property
    def shape(self) -> torch.Size:
        return self.weight.shape

    def __len__(self) -> int:
        return len(self.weight)

    def reshape(self, *shape: int) -> Tensor:
        return self.weight.reshape(*shape)

    def to(self, dtype: torch.dtype) -> Int8Matrix:
        """The same: there is one type of it."""
        return self

    def product(self, x: Tensor, b: Tensor | None) -> Tensor:
        """(..., I) -> (..., O), in float32."""
        rows = x.reshape(-1, x.shape[-1])
        scale = rows.abs().amax(dim=1, keepdim=True).clamp_(min=1e-12) / 127
        whole = (rows / scale).round_()
        if self.rounded.dtype == torch.int8:
            y = torch._int_mm(whole.to(torch.int8), self.rounded).float()  # (rows, O)
        else:
            y = linear(whole, self.rounded)
        y = y.mul_(scale).mul_(self.scale)
        y = y if b is None else y.add_(b)
        return y.view(*x.shape[:-1], len(self))
