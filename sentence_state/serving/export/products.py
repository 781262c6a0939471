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
    the other sentences of its batch, as it would with a scale measured on the batch, nor on the processor."""

    def read(self, op: Graph, states: Value) -> Value:
        return op("QuantizeLinear", states, np.float32(1 / 127), np.uint8(MIDDLE))

    def product(self, op: Graph, states: Value, weight: np.ndarray) -> Value:
        scale = row_scales(weight)
        rounded = np.rint(weight / scale[:, None]).astype(np.int8)
        whole = op("MatMulInteger", states, np.ascontiguousarray(rounded.T), np.uint8(MIDDLE))
        return op("Mul", op("Cast", whole, to=1), (scale / 127).astype(np.float32))

    def pad_words(self, op: Graph, states: Value, window: int) -> Value:
        return op("Pad", states, np.array([0, window, 0, 0, window, 0]), np.uint8(MIDDLE))


def row_scales(weight: np.ndarray) -> np.ndarray:
    """The scale of each row of int8 weights (out, in), such that no processor's sums saturate: (out,).

    One without VNNI adds the products of two neighbours in 16 bits. A state is at most 255, so two neighbours of one
    sign may be 128 together; 127 leaves room for rounding. That takes 0.4 bits of normally distributed weights, where
    weights of 7 bits would take one.
    """
    pairs = np.pad(weight, ((0, 0), (0, weight.shape[1] % 2))).reshape(len(weight), -1, 2)
    together = np.maximum(pairs.clip(min=0).sum(axis=2), (-pairs).clip(min=0).sum(axis=2))  # (out, in / 2)
    scale: np.ndarray = together.max(axis=1).clip(1e-12) / 127
    return scale
