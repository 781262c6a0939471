"""What all words and sentences begin with: the products of h_0 and the state before the first step, and their gradient.
One launch each way, where plain PyTorch would take a dozen."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from .layout import BLOCKS, Packed
from .plan import Launch, Launches, power_of_2

ROWS, SENTENCES = 16, 32  # of W for one program; read at once


@triton.jit(do_not_specialize=["B"])
def begin(
    W,  # (8 Hp, width): its first three sides of Hp columns meet h_0
    h_0,  # (Hp,)
    c_0,  # (Hp,)
    first,  # (3, 8 Hp) out: W h_0 of every side
    gh,  # (B, 2, Hp) out: h_0 twice
    c_g,  # (B, Hp) float32 out: c_0
    B,
    Hp,
    width,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """A program for every ROWS of W and one for every sentence, together."""
    program = tl.program_id(0).to(tl.int64)
    units = tl.arange(0, COLUMNS)
    unit_in = units < Hp
    h = tl.load(h_0 + units, mask=unit_in, other=0.0)
    if program * ROWS < 8 * Hp:
        rows = program * ROWS + tl.arange(0, ROWS)
        for side in tl.static_range(3):
            at = W + rows[:, None] * width + side * Hp + units[None, :]
            weights = tl.load(at, mask=unit_in[None, :], other=0.0).to(tl.float32)
            tl.store(first + side * 8 * Hp + rows, tl.sum(weights * h[None, :].to(tl.float32), axis=1))
    if program < B:
        tl.store(gh + program * 2 * Hp + units, h, mask=unit_in)
        tl.store(gh + (program * 2 + 1) * Hp + units, h, mask=unit_in)
        tl.store(c_g + program * Hp + units, tl.load(c_0 + units, mask=unit_in, other=0.0), mask=unit_in)


@triton.jit(do_not_specialize=["N", "B"])
def begin_gradient(
    dP,  # (M, 8, Hp) of the first step
    dQ,  # (B, 10, Hp) of the first step
    W,  # (8 Hp, width)
    d_first,  # (3, 8 Hp) float32 out, or if AGAIN added to: the gradient of W h_0 of every side
    d_h_0,  # (programs, Hp) float32 out: what the rows of each program give
    lengths,  # (B,)
    N,
    B,
    Hp,
    width,
    AGAIN: tl.constexpr,
    RAGGED: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    SENTENCES: tl.constexpr,
):
    """Every word received W h_0 of its own side, all but the first of a sentence that of the left, all but the last
    that of the right. The sums over all words are in dQ already."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    block = rows // Hp
    in_node = (tl.where(block == 7, 9, block) * Hp + rows % Hp)[None, :]
    own = tl.zeros([ROWS], tl.float32)
    at_start = tl.zeros([ROWS], tl.float32)
    at_end = tl.zeros([ROWS], tl.float32)
    for start in range(0, B, SENTENCES):
        b = start + tl.arange(0, SENTENCES)
        there = (b < B)[:, None]
        n = tl.full([SENTENCES], 0, tl.int64) + N
        if RAGGED:
            n = tl.maximum(tl.load(lengths + b, mask=b < B, other=1).to(tl.int64), 1)
        word = dP + (b.to(tl.int64) * N)[:, None] * (8 * Hp) + rows[None, :]
        own += tl.sum(tl.load(dQ + b[:, None] * 10 * Hp + in_node, mask=there, other=0.0).to(tl.float32), axis=0)
        at_start += tl.sum(tl.load(word, mask=there, other=0.0).to(tl.float32), axis=0)
        last = word + ((n - 1) * 8 * Hp)[:, None]
        at_end += tl.sum(tl.load(last, mask=there, other=0.0).to(tl.float32), axis=0)
    units = tl.arange(0, COLUMNS)
    unit_in = units < Hp
    given = tl.zeros([COLUMNS], tl.float32)
    for side in tl.static_range(3):
        d = own
        if side == 0:
            d = own - at_start
        if side == 2:
            d = own - at_end
        at = W + rows[:, None] * width + side * Hp + units[None, :]
        weights = tl.load(at, mask=unit_in[None, :], other=0.0).to(tl.float32)
        given += tl.sum(weights * d[:, None], axis=0)
        place = d_first + side * 8 * Hp + rows
        if AGAIN:
            d += tl.load(place)
        tl.store(place, d)
    tl.store(d_h_0 + tl.program_id(0) * Hp + units, given, mask=unit_in)


def start(packed: Packed, first: Tensor, gh: Tensor, c_g: Tensor, launches: Launches) -> None:
    """Fills gh (B, 2 Hp) and c_g (B, Hp) with the state before the first step, first (3, 8 Hp) with W h_0 of the three
    sides."""
    Hp, width = packed.vectors.shape[1], packed.words.shape[1]

    def launch() -> Launch:
        programs = max(BLOCKS * Hp // ROWS, gh.shape[0])
        return Launch(begin, (programs, 1, 1), ROWS=ROWS, COLUMNS=power_of_2(Hp))

    launches.of("start", launch)(packed.words, packed.h_0, packed.c_0, first, gh, c_g, gh.shape[0], Hp, width)


def start_programs(Hp: int) -> int:
    """Those of `start_gradient`, each of which gives a part of the gradient of h_0."""
    return BLOCKS * Hp // ROWS


def start_gradient(
    dP: Tensor,
    dQ: Tensor,
    packed: Packed,
    d_first: Tensor,
    d_h_0: Tensor,
    N: int,
    lengths: Tensor | None,
    group: int,
    launches: Launches,
) -> None:
    """From the gradients of the first step's products dP (M, 8 Hp) and dQ (B, 10 Hp) those of W h_0, d_first (3, 8 Hp),
    which all groups but the first add to, and of h_0 in parts, d_h_0 (programs, Hp)."""
    Hp, width = packed.vectors.shape[1], packed.words.shape[1]
    of_lengths = dP if lengths is None else lengths

    def launch() -> Launch:
        constants = {"AGAIN": group > 0, "RAGGED": lengths is not None, "ROWS": ROWS}
        constants |= {"COLUMNS": power_of_2(Hp), "SENTENCES": SENTENCES}
        return Launch(begin_gradient, (start_programs(Hp), 1, 1), **constants)

    launches.of(("start", group), launch)(dP, dQ, packed.words, d_first, d_h_0, of_lengths, N, dQ.shape[0], Hp, width)
