"""Sums that the backward pass needs beside its products: over the steps, and over sentences."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["M", "steps"])
def add_steps(dP, total, M, steps, Hp: tl.constexpr, AGAIN: tl.constexpr, BLOCK: tl.constexpr):
    """The sum over steps of the gates' gradients dP (steps, M, 8, Hp) in total (M, 7, Hp); if AGAIN, added to it."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < M * (7 * Hp)
    place = dP + (at // (7 * Hp)) * (8 * Hp) + at % (7 * Hp)
    value = tl.zeros([BLOCK], tl.float32)
    if AGAIN:
        value += tl.load(total + at, mask=inside, other=0.0).to(tl.float32)
    for _ in range(steps):
        value += tl.load(place, mask=inside, other=0.0).to(tl.float32)
        place += M.to(tl.int64) * (8 * Hp)
    tl.store(total + at, value, mask=inside)


@triton.jit
def sum_of_rows(matrix, number, row, units, Hp, ROWS: tl.constexpr):
    total = tl.zeros(units.shape, tl.float32)
    for start in range(0, number, ROWS):
        at = start + tl.arange(0, ROWS)
        place = matrix + at.to(tl.int64)[:, None] * row + units[None, :]
        there = (at < number)[:, None] & (units < Hp)[None, :]
        total += tl.sum(tl.load(place, mask=there, other=0.0).to(tl.float32), axis=0)
    return total


@triton.jit(do_not_specialize=["of_steps", "of_words", "of_node", "B"])
def add_vectors(
    dQ,  # (of_steps, 10, Hp): of every step and sentence
    d_h_0,  # (of_words, Hp) float32: by way of the words
    dgh,  # (of_node, Hp): by way of the node, whose g and mean h are h_0 too
    dcg,  # (B, Hp) float32
    total,  # (12, Hp) float32 out: the gradients of ten biases, of h_0 and of c_0
    of_steps,
    of_words,
    of_node,
    B,
    Hp: tl.constexpr,
    ROWS: tl.constexpr,
    UNITS: tl.constexpr,
):
    k = tl.program_id(1)
    units = tl.program_id(0) * UNITS + tl.arange(0, UNITS)
    if k < 10:
        found = sum_of_rows(dQ + k * Hp, of_steps, 10 * Hp, units, Hp, ROWS)
    elif k == 10:
        found = sum_of_rows(d_h_0, of_words, Hp, units, Hp, ROWS) + sum_of_rows(dgh, of_node, Hp, units, Hp, ROWS)
    else:
        found = sum_of_rows(dcg, B, Hp, units, Hp, ROWS)
    tl.store(total + k * Hp + units, found, mask=units < Hp)
