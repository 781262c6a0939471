"""The oracle: the paper's equations one scalar at a time, in Python floats and loops. No tensors, no shortcuts."""

from __future__ import annotations

import math


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def softmax(values: list[float]) -> list[float]:
    exponentials = [math.exp(value) for value in values]
    total = sum(exponentials)
    return [value / total for value in exponentials]


def dot(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


# ---- Eq. 1: the baseline's cell -----------------------------------------------------------------


# ---- Eq. 2 and Eq. 3: S-LSTM --------------------------------------------------------------------


# ---- Section 3.3: external attention ------------------------------------------------------------


# ---- Section 3.3: external CRF ------------------------------------------------------------------
