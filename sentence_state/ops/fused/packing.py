"""Padding the weights, and cutting their gradients: one launch each, since many small copies would cost more."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..equations import Weights
from .layout import BLOCKS, NODE_BLOCKS, VECTORS, Packed, padded
from .plan import Launch, power_of_2


@triton.jit
def copy_row(plain, packed, columns, Cp, there, PACK: tl.constexpr, WIDTH: tl.constexpr):
    """One row between its plain and its padded place, in either direction; rows that are not `there` are padding."""
    at = tl.arange(0, WIDTH)
    real = (at < columns) & there
    if PACK:
        tl.store(packed + at, tl.load(plain + at, mask=real, other=0.0).to(packed.dtype.element_ty), mask=at < Cp)
    else:
        tl.store(plain + at, tl.load(packed + at, mask=real, other=0.0).to(plain.dtype.element_ty), mask=real)


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
    H,
    Hp,
    D,
    Dp,
    PACK: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """One program a row of Hp or Dp columns: words (8 Hp x 4 sides), sentence (10 Hp x 2 sides), vectors."""
    row = tl.program_id(0)
    if row < 32 * Hp:
        block, unit, side = row // (4 * Hp), row // 4 % Hp, row % 4
        there = unit < H
        of_word = words + (row // 4) * (3 * Hp + Dp) + side * Hp
        if side == 3:
            copy_row(U + (block * H + unit) * D, of_word, D, Dp, there & (block < 7), PACK, WIDTH)
        elif block < 7:
            copy_row(W + ((block * H + unit) * 3 + side) * H, of_word, H, Hp, there, PACK, WIDTH)
        else:
            copy_row(sentence_U_f + unit * H, of_word, H, Hp, there & (side == 1), PACK, WIDTH)
    elif row < 52 * Hp:
        row -= 32 * Hp
        block, unit, side = row // (2 * Hp), row // 2 % Hp, row % 2
        there = unit < H
        of_node = sentence + row * Hp
        if block < 7:
            copy_row(V + (block * H + unit) * H, of_node, H, Hp, there & (side == 0), PACK, WIDTH)
        elif side == 0:
            copy_row(sentence_W + ((block - 7) * H + unit) * H, of_node, H, Hp, there, PACK, WIDTH)
        else:
            copy_row(sentence_U + ((block - 7) * H + unit) * H, of_node, H, Hp, there & (block < 9), PACK, WIDTH)
    else:
        row -= 52 * Hp
        vector = vectors + row * Hp
        if row < 7:
            copy_row(b + row * H, vector, H, Hp, True, PACK, WIDTH)
        elif row < 10:
            copy_row(sentence_b + (row - 7) * H, vector, H, Hp, True, PACK, WIDTH)
        elif row == 10:
            copy_row(h_0, vector, H, Hp, True, PACK, WIDTH)
        else:
            copy_row(c_0, vector, H, Hp, True, PACK, WIDTH)


def copy(weights: Weights, packed: Packed, into_packed: bool) -> None:
    H, D = weights.h_0.shape[0], weights.U.shape[1]
    Hp, Dp = padded(H), padded(D)
    width = power_of_2(max(Hp, Dp))
    launch = Launch(copy_weights, (52 * Hp + VECTORS, 1, 1), PACK=into_packed, WIDTH=width, num_warps=2)
    launch(*weights, *packed, H, Hp, D, Dp)


def pack(weights: Weights, dtype: torch.dtype) -> Packed:
    """The weights in the layout and type of the recurrence."""
    Hp, Dp = padded(weights.h_0.shape[0]), padded(weights.U.shape[1])

    def empty(*shape: int) -> Tensor:
        return weights.W.new_empty(shape, dtype=dtype)

    packed = Packed(empty(BLOCKS * Hp, 3 * Hp + Dp), empty(NODE_BLOCKS * Hp, 2 * Hp), empty(VECTORS, Hp))
    copy(weights, packed, into_packed=True)
    return packed


def unpack(gradients: Packed, H: int, D: int, dtype: torch.dtype) -> Weights:
    """The gradients of `Packed` as those of the weights."""

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
    copy(weights, gradients, into_packed=False)
    return weights
