"""Products with the weights of a recurrence, in float32 or in int8: states lie in [-1, 1], so their scale is known."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .graph import Graph, Value

MIDDLE = 128  # the uint8 that stands for 0


class Products(Protocol):
    """How states meet weights. `read` prepares states once for all products with them."""

    def read(self, op: Graph, states: Value) -> Value: ...
    def product(self, op: Graph, states: Value, weight: np.ndarray) -> Value: ...
    def pad_words(self, op: Graph, states: Value, window: int) -> Value: ...


class FloatProducts:
    def read(self, op: Graph, states: Value) -> Value:
        return states

    def product(self, op: Graph, states: Value, weight: np.ndarray) -> Value:
        """weight: (out, in), as nn.Linear keeps it."""
        return states @ np.ascontiguousarray(weight.T)

    def pad_words(self, op: Graph, states: Value, window: int) -> Value:
        """`window` zeros before the first and after the last word of (B, N, .)."""
        return op("Pad", states, np.array([0, window, 0, 0, window, 0]), np.float32(0))


class Int8Products:
    """States as uint8 with the scale 1/127, weights as int8 with a scale for each row: an answer does not depend on
    the other sentences of its batch, as it would with a scale measured on the batch."""

    def read(self, op: Graph, states: Value) -> Value:
        return op("QuantizeLinear", states, np.float32(1 / 127), np.uint8(MIDDLE))

    def product(self, op: Graph, states: Value, weight: np.ndarray) -> Value:
        scale = np.abs(weight).max(axis=1).clip(1e-12) / 127  # (out,)
        rounded = np.rint(weight / scale[:, None]).astype(np.int8)
        whole = op("MatMulInteger", states, np.ascontiguousarray(rounded.T), np.uint8(MIDDLE))
        return op("Mul", op("Cast", whole, to=1), (scale / 127).astype(np.float32))

    def pad_words(self, op: Graph, states: Value, window: int) -> Value:
        return op("Pad", states, np.array([0, window, 0, 0, window, 0]), np.uint8(MIDDLE))
