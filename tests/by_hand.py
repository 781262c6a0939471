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


def lstm(words: list[list[float]], W: dict, U: dict, b: dict, h: list[float], c: list[float]) -> list[list[float]]:
    """Eq. 1 from left to right: n words of D numbers -> n states of H. For each gate of "ifou" a list of H: rows of W
    (D numbers) and U (H numbers), one number of b. h and c: the initial states."""
    states = []
    for x in words:
        new_h, new_c = [], []
        for unit in range(len(h)):
            total = {gate: dot(W[gate][unit], x) + dot(U[gate][unit], h) + b[gate][unit] for gate in "ifou"}
            i, f = softmax([sigmoid(total["i"]), sigmoid(total["f"])])
            o, u = sigmoid(total["o"]), math.tanh(total["u"])
            new_c.append(c[unit] * f + u * i)
            new_h.append(o * math.tanh(new_c[unit]))
        h, c = new_h, new_c
        states.append(h)
    return states


def bilstm(words: list[list[float]], layers: list[tuple[dict, dict]]) -> tuple[list[list[float]], list[float]]:
    """Section 3.1, stacked: for each layer the arguments of `lstm` forward and backward -> n vectors of 2H, and g."""
    for forward_weights, backward_weights in layers:
        forward = lstm(words, **forward_weights)
        backward = lstm(words[::-1], **backward_weights)[::-1]
        words = [left + right for left, right in zip(forward, backward, strict=True)]
    return words, forward[-1] + backward[0]


# ---- Eq. 2 and Eq. 3: S-LSTM --------------------------------------------------------------------


# ---- Section 3.3: external attention ------------------------------------------------------------


# ---- Section 3.3: external CRF ------------------------------------------------------------------
