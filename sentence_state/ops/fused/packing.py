"""Padding the weights, cutting their gradients, rows of neighbours: a launch each, for many small copies cost more."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..equations import Weights
from .layout import BLOCKS, NODE_BLOCKS, VECTORS, Packed, padded
from .plan import Launch, Launches, parts_of, power_of_2

ROWS = 8  # of a program; Hp is a multiple of it
SIDES = 4 * BLOCKS + 2 * NODE_BLOCKS + 1  # the last one for the vectors


@triton.jit
def copy_rows(
    plain,
    plain_row,
    packed,
    packed_row,
    first,
    real,
    total,
    columns,
    Cp,
    rest,
    PACK: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """ROWS rows between their plain and their padded places, in either direction, from row `first` on. The plain matrix
    has `real` rows of `columns`, the padded one `total` of Cp. On the way back `rest` is added."""
    rows, at = (first + tl.arange(0, ROWS))[:, None], tl.arange(0, WIDTH)[None, :]
    here, there = plain + rows * plain_row + at, packed + rows * packed_row + at
    known = (rows < real) & (at < columns)
    if PACK:
        values = tl.load(here, mask=known, other=0.0).to(packed.dtype.element_ty)
        tl.store(there, values, mask=(rows < total) & (at < Cp))
    else:
        values = tl.load(there, mask=known, other=0.0).to(tl.float32) + rest
        tl.store(here, values.to(plain.dtype.element_ty), mask=known)


@triton.jit
def copy_weights(
    W,
    U,
    V,
    b,
    sentence_W,
    sentence_U,
    sentence_U_f,
    sentence_b,
    h_0,
    c_0,
    words,
    sentence,
    vectors,
    d_first,  # (3, 8 Hp) float32: on the way back W and U_f also receive that of their rows times `start`
    start,  # (Hp,): h_0
    H: tl.constexpr,
    Hp: tl.constexpr,
    D: tl.constexpr,
    Dp: tl.constexpr,
    PACK: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """A program for every ROWS rows of Hp or Dp columns: of words (8 blocks, 4 sides), of sentence (10, 2), of vectors.
    Sizes are constants, so that a thread reads several columns at once."""
    side, first = tl.program_id(0), tl.program_id(1) * ROWS
    width: tl.constexpr = 3 * Hp + Dp
    if side < 32:
        block, side = side // 4, side % 4
        of_word = words + block * Hp * width + side * Hp
        if PACK:
            rest = 0.0
        else:
            row, column = first + tl.arange(0, ROWS), tl.arange(0, WIDTH)
            d = tl.load(d_first + (side * 8 + block) * Hp + row, mask=(row < Hp) & (side < 3), other=0.0)
            rest = d[:, None] * tl.load(start + column, mask=column < Hp, other=0.0).to(tl.float32)[None, :]
        if side == 3:
            real = tl.where(block < 7, H, 0)
            copy_rows(U + block * H * D, D, of_word, width, first, real, Hp, D, Dp, 0.0, PACK, ROWS, WIDTH)
        elif block < 7:
            of_W = W + block * H * 3 * H + side * H
            copy_rows(of_W, 3 * H, of_word, width, first, H, Hp, H, Hp, rest, PACK, ROWS, WIDTH)
        else:
            real = tl.where(side == 1, H, 0)
            copy_rows(sentence_U_f, H, of_word, width, first, real, Hp, H, Hp, rest, PACK, ROWS, WIDTH)
    elif side < 52:
        block, side = (side - 32) // 2, side % 2
        of_node = sentence + block * Hp * 2 * Hp + side * Hp
        if block < 7:
            real = tl.where(side == 0, H, 0)
            copy_rows(V + block * H * H, H, of_node, 2 * Hp, first, real, Hp, H, Hp, 0.0, PACK, ROWS, WIDTH)
        elif side == 0:
            of_W = sentence_W + (block - 7) * H * H
            copy_rows(of_W, H, of_node, 2 * Hp, first, H, Hp, H, Hp, 0.0, PACK, ROWS, WIDTH)
        else:
            real = tl.where(block < 9, H, 0)
            of_U = sentence_U + (block - 7) * H * H
            copy_rows(of_U, H, of_node, 2 * Hp, first, real, Hp, H, Hp, 0.0, PACK, ROWS, WIDTH)
    elif first == 0:
        copy_rows(b, H, vectors, Hp, 0, 7, 7, H, Hp, 0.0, PACK, ROWS, WIDTH)
        copy_rows(sentence_b, H, vectors + 7 * Hp, Hp, 0, 3, 3, H, Hp, 0.0, PACK, ROWS, WIDTH)
        copy_rows(h_0, H, vectors + 10 * Hp, Hp, 0, 1, 1, H, Hp, 0.0, PACK, ROWS, WIDTH)
        copy_rows(c_0, H, vectors + 11 * Hp, Hp, 0, 1, 1, H, Hp, 0.0, PACK, ROWS, WIDTH)


def copying(weights: Weights, into_packed: bool) -> Launch:
    H, D = weights.h_0.shape[0], weights.U.shape[1]
    sizes = {"H": H, "Hp": padded(H), "D": D, "Dp": padded(D)}
    grid = SIDES, padded(H) // ROWS, 1
    return Launch(copy_weights, grid, **sizes, PACK=into_packed, **tile(max(padded(H), padded(D))))


def tile(columns: int) -> dict[str, int]:
    """Of a program: up to 32 numbers a thread, more where a row has more than 2,048."""
    width = power_of_2(columns)
    return {"ROWS": ROWS, "WIDTH": width, "num_warps": min(16, max(4, ROWS * width // 1024))}


@triton.jit(do_not_specialize=["M", "copies"])
def copy_columns(
    x,  # (M, D)
    rows,  # (copies, M, row) out: x in the columns from `start` on, then zeros up to the padded size
    M,
    copies,
    start: tl.constexpr,
    row: tl.constexpr,
    D: tl.constexpr,
    Dp: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    m, at = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None], tl.arange(0, WIDTH)[None, :]
    values = tl.load(x + m.to(tl.int64) * D + at, mask=(m < M) & (at < D), other=0.0)
    place = rows + m.to(tl.int64) * row + start + at
    for _ in range(copies):
        tl.store(place, values, mask=(m < M) & (at < Dp))
        place += M.to(tl.int64) * row


@triton.jit(do_not_specialize=["N", "B"])
def gather_neighbours(h, xi, lengths, N, B, Hp, xi_row, RAGGED: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr):
    """h (steps, M, Hp) -> the rows [h_left, h, h_right, ..] of xi (steps, M, xi_row), zero outside each sentence."""
    tile, unit_block, place = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    n = N
    if RAGGED:
        n = tl.load(lengths + place % B).to(tl.int32)
    rows = tile * ROWS + tl.arange(0, ROWS)
    units = unit_block * UNITS + tl.arange(0, UNITS)
    m = place.to(tl.int64) * N + rows
    unit_in = (units < Hp)[None, :]
    at = h + m[:, None] * Hp + units[None, :]
    out = xi + m[:, None] * xi_row + units[None, :]
    there = (rows < N)[:, None] & unit_in
    inside = (rows < n)[:, None] & unit_in
    tl.store(out, tl.load(at - Hp, mask=inside & (rows > 0)[:, None], other=0.0), mask=there)
    tl.store(out + Hp, tl.load(at, mask=inside, other=0.0), mask=there)
    tl.store(out + 2 * Hp, tl.load(at + Hp, mask=(rows + 1 < n)[:, None] & unit_in, other=0.0), mask=there)


def put_padded(x: Tensor, rows: Tensor, start: int, launches: Launches, place: int) -> None:
    """x (M, D) -> rows (copies, M, R), in each of them the columns from `start` on, zero up to the padded size. place:
    of x in the batch."""
    (copies, M, row), D = rows.shape, x.shape[1]

    def launch() -> Launch:
        sizes = {"start": start, "row": row, "D": D, "Dp": padded(D)}
        return Launch(copy_columns, (parts_of(M, ROWS), 1, 1), **sizes, **tile(padded(D)))

    launches.of(("x", place), launch)(x, rows, M, copies)


def pad_columns(x: Tensor, launches: Launches, place: int) -> Tensor:
    """(M, D) -> (M, Dp), zero in the new columns."""
    if padded(x.shape[1]) == x.shape[1]:
        return x
    rows = x.new_empty(1, len(x), padded(x.shape[1]))
    put_padded(x, rows, 0, launches, place)
    return rows[0]


def pack(weights: Weights, dtype: torch.dtype, launches: Launches) -> Packed:
    """The weights in the layout and type of the recurrence."""
    Hp, Dp = padded(weights.h_0.shape[0]), padded(weights.U.shape[1])

    def empty(*shape: int) -> Tensor:
        return weights.W.new_empty(shape, dtype=dtype)

    packed = Packed(empty(BLOCKS * Hp, 3 * Hp + Dp), empty(NODE_BLOCKS * Hp, 2 * Hp), empty(VECTORS, Hp))
    unread = packed.words, packed.words  # d_first, start
    launches.of("pack", lambda: copying(weights, into_packed=True))(*weights, *packed, *unread)
    return packed


def unpack(
    gradients: Packed, d_first: Tensor, h_0: Tensor, H: int, D: int, dtype: torch.dtype, launches: Launches
) -> Weights:
    """The gradients of `Packed` as those of the weights; W also receives d_first h_0, of the first step."""

    def empty(*shape: int) -> Tensor:
        return gradients.words.new_empty(shape, dtype=dtype)

    weights = Weights(
        W=empty(7 * H, 3 * H),
        U=empty(7 * H, D),
        V=empty(7 * H, H),
        b=empty(7 * H),
        sentence_W=empty(3 * H, H),
        sentence_U=empty(2 * H, H),
        sentence_U_f=empty(H, H),
        sentence_b=empty(3 * H),
        h_0=empty(H),
        c_0=empty(H),
    )
    launches.of("unpack", lambda: copying(weights, into_packed=False))(*weights, *gradients, d_first, h_0)
    return weights
