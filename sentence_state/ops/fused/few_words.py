"""Products where there are few words: those of the sentence node, Q = [g, mean h] sentence^T + b, and their gradient,
which leave the empty blocks of `sentence` out; and for some numbers of words their own, P = [h_left, h, h_right] W^T,
and their gradient.

The two run beside each other, and a program of cuBLAS fills a multiprocessor. The node's would wait for the words'
then, or take longer; and the words' of cuBLAS may leave none to the node."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .card import HOPPER, generation
from .layout import NODE_BLOCKS, PARTS, Packed
from .plan import Launch, Launches, parts_of

FEW_WORDS = 2048
FEW_SENTENCES = 16  # of one program
COLUMNS, DEPTH = 32, 64  # its units, and how many of the others it adds up at once
# The same for the words, whose programs of 128 columns have so much memory that no two of them share a multiprocessor;
# two of 64 columns may. How many programs there are where they are faster than cuBLAS: fewer leave it room enough, more
# too little here as well.
WORD_ROWS, WORD_COLUMNS, WORD_PROGRAMS = 64, 128, range(64, 115)
GRADIENT_PROGRAMS = {64: range(1, 97), 128: range(80, 97)}  # by columns
STAGES = {64: 7, 128: 5}  # of the loads ahead of their use
GRADIENT_PARTS, ROWS_IN_PARTS = 2, 576  # the gradient in sums of so many, on cuBLAS up to so many rows


@triton.jit
def block_of_part(part):
    """Parts 10 and 11 are what blocks 7 and 8, f_g and o, have to do with the mean h; and where that begins."""
    return tl.where(part < 10, part, part - 3), part // 10


@triton.jit(do_not_specialize=["B"])
def node_products(
    gh,  # (B, 2, Hp)
    sentence,  # (10, Hp, 2, Hp)
    bias,  # (10, Hp)
    Q,  # (B, 12, Hp) out
    B,
    Hp: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    part = tl.program_id(1)
    block, side = block_of_part(part)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    b = tl.arange(0, ROWS)
    there = (b < B)[:, None]
    place = block * Hp + columns
    unit_in = columns < Hp
    gh += side * Hp
    sentence += side * Hp
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, Hp, DEPTH):
        at = start + tl.arange(0, DEPTH)
        left = tl.load(gh + b[:, None] * (2 * Hp) + at[None, :], mask=there & (at < Hp)[None, :], other=0.0)
        within = (at < Hp)[:, None] & unit_in[None, :]
        right = tl.load(sentence + place[None, :] * (2 * Hp) + at[:, None], mask=within, other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    total += tl.load(bias + place, mask=unit_in & (part < 10), other=0.0).to(tl.float32)[None, :]
    tl.store(Q + (b[:, None] * 12 + part) * Hp + columns[None, :], total, mask=there & unit_in[None, :])


@triton.jit(do_not_specialize=["B"])
def node_products_gradient(
    dQ,  # (B, 10, Hp)
    sentence,  # (10, Hp, 2, Hp)
    dgh,  # (B, 12, Hp) float32 out, in parts that are not added up
    B,
    Hp: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    part = tl.program_id(1)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    b = tl.arange(0, ROWS)
    there = (b < B)[:, None]
    unit_in = (columns < Hp)[None, :]
    block, side = block_of_part(part)
    sentence += side * Hp
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, Hp, DEPTH):
        at = start + tl.arange(0, DEPTH)
        place = block * Hp + at
        left = tl.load(dQ + b[:, None] * (10 * Hp) + place[None, :], mask=there & (at < Hp)[None, :], other=0.0)
        within = (at < Hp)[:, None] & unit_in
        right = tl.load(sentence + place[:, None] * (2 * Hp) + columns[None, :], mask=within, other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(dgh + (b[:, None] * 12 + part) * Hp + columns[None, :], total, mask=there & unit_in)


@triton.jit(do_not_specialize=["M"])
def word_products(
    xi,  # (M, row): [h_left, h, h_right] in the first columns
    words,  # (8 Hp, width): W and U_f in the same columns
    P,  # (M, 8 Hp) out
    M,
    row: tl.constexpr,
    width: tl.constexpr,
    Hp: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    m = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    at = tl.arange(0, DEPTH)
    left = xi + (m % M)[:, None] * row + at[None, :]  # outside: anything that is there
    right = words + (column % (8 * Hp))[None, :] * width + at[:, None]
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, 3 * Hp, DEPTH):
        there = start + at < 3 * Hp
        of_xi = tl.load(left + start, mask=there[None, :], other=0.0)
        of_words = tl.load(right + start, mask=there[:, None], other=0.0)
        total = tl.dot(of_xi, of_words, total, input_precision="ieee")
    inside = (m < M)[:, None] & (column < 8 * Hp)[None, :]
    tl.store(P + m[:, None] * (8 * Hp) + column[None, :], total, mask=inside)


@triton.jit(do_not_specialize=["M"])
def word_products_gradient(
    dP,  # (M, 8 Hp)
    words,  # (8 Hp, width)
    dxi,  # (2, M, 3 Hp) out, in two parts that are not added up
    M,
    width: tl.constexpr,
    Hp: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    part = tl.program_id(2)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    m = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    at = part * 4 * Hp + tl.arange(0, DEPTH)
    of_words = tl.max_contiguous(tl.multiple_of(column % (3 * Hp), 16), 16)
    left = dP + (m % M)[:, None] * (8 * Hp) + at[None, :]
    right = words + at[:, None] * width + of_words[None, :]
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for _ in range(0, 4 * Hp, DEPTH):
        total = tl.dot(tl.load(left), tl.load(right), total, input_precision="ieee")
        left += DEPTH
        right += DEPTH * width
    inside = (m < M)[:, None] & (column < 3 * Hp)[None, :]
    tl.store(dxi + (part * M + m[:, None]) * (3 * Hp) + column[None, :], total, mask=inside)


def own_products(device: torch.device) -> bool:
    """Whether the words' are for this card: others than Hopper's have less shared memory, or other numbers of
    multiprocessors."""
    return device.type != "cuda" or generation(device.index) == HOPPER


def tile_of_words(columns: int) -> dict[str, int]:
    return {"ROWS": WORD_ROWS, "COLUMNS": columns, "DEPTH": DEPTH, "num_warps": 4, "num_stages": STAGES[columns]}


def multiply_words(xi: Tensor, packed: Packed, P: Tensor, launches: Launches) -> None:
    """P (M, 8 Hp) = [h_left, h, h_right] W^T, from the first columns of xi (M, ..)."""
    (M, row), (columns, width), Hp = xi.shape, packed.words.shape, packed.vectors.shape[1]
    grid = parts_of(columns, WORD_COLUMNS), parts_of(M, WORD_ROWS), 1

    def launch() -> Launch:
        return Launch(word_products, grid, row=row, width=width, Hp=Hp, **tile_of_words(WORD_COLUMNS))

    if grid[0] * grid[1] in WORD_PROGRAMS and own_products(xi.device):
        launches.of(("words", M), launch)(xi, packed.words, P, M)
    else:
        torch.mm(xi[:, : 3 * Hp], packed.W.t(), out=P)


def gradient_grid(M: int, Hp: int, columns: int) -> tuple[int, int, int]:
    return parts_of(3 * Hp, columns), parts_of(M, WORD_ROWS), GRADIENT_PARTS


def gradient_columns(M: int, Hp: int, device: torch.device) -> int:
    """Of a program of `word_products_gradient`; 0 where cuBLAS is faster."""
    if not own_products(device):
        return 0
    fitting = (
        columns for columns, number in GRADIENT_PROGRAMS.items() if prod(gradient_grid(M, Hp, columns)) in number
    )
    return next(fitting, 0)


def gradient_parts(M: int, Hp: int, device: torch.device) -> int:
    """What `multiply_gradient` gives, to be added up: a product for few words would leave much of the card empty."""
    return GRADIENT_PARTS if gradient_columns(M, Hp, device) or M <= ROWS_IN_PARTS else 1


def multiply_gradient(dP: Tensor, packed: Packed, dxi: Tensor, launches: Launches) -> None:
    """dxi (parts, M, 3 Hp) = dP W, from dP (M, 8 Hp)."""
    (parts, M, _), width, Hp = dxi.shape, packed.words.shape[1], packed.vectors.shape[1]
    columns = gradient_columns(M, Hp, dP.device)

    def launch() -> Launch:
        grid = gradient_grid(M, Hp, columns)
        return Launch(word_products_gradient, grid, width=width, Hp=Hp, **tile_of_words(columns))

    if columns:
        launches.of(("words", M), launch)(dP, packed.words, dxi, M)
    else:
        torch.bmm(dP.view(M, parts, -1).transpose(0, 1), packed.W.unflatten(0, (parts, -1)), out=dxi)


def has_few_words(x: Tensor) -> bool:
    """So few that the kernels above are the faster ones; not in float32, which cuBLAS multiplies as PyTorch is told."""
    B, N, _ = x.shape
    return x.element_size() == 2 and B <= FEW_SENTENCES and B * N <= FEW_WORDS


class Node:
    """The products of all steps, for x (B, N, D)."""

    def __init__(self, x: Tensor, sentence: Tensor, bias: Tensor, launches: Launches) -> None:
        self.sentence, self.bias, self.Hp, self.launches = sentence, bias, sentence.shape[1] // 2, launches
        self.in_parts = has_few_words(x)

    def launch(self, kernel: Any) -> Launch:
        def launch() -> Launch:
            tile = {"ROWS": FEW_SENTENCES, "COLUMNS": COLUMNS, "DEPTH": DEPTH, "num_warps": 1, "num_stages": 3}
            return Launch(kernel, (parts_of(self.Hp, COLUMNS), PARTS, 1), Hp=self.Hp, **tile)

        return self.launches.of("node", launch)

    def products(self, gh: Tensor, Q: Tensor) -> None:
        """Q (B, 12 Hp): a row for every block, and if it is in parts two for what f_g and o have of the mean h."""
        if self.in_parts:
            self.launch(node_products)(gh, self.sentence, self.bias, Q, gh.shape[0])
        else:
            torch.addmm(self.bias, gh, self.sentence.t(), out=Q[:, : NODE_BLOCKS * self.Hp])

    def new_gradient(self, x: Tensor) -> Tensor:
        """Memory for that of [g, mean h], two rows for every sentence, or more that are still to be added up."""
        if self.in_parts:
            return x.new_empty(x.shape[0], PARTS * self.Hp, dtype=torch.float32)
        return x.new_empty(x.shape[0], 2 * self.Hp)

    def products_gradient(self, dQ: Tensor, dgh: Tensor) -> None:
        if self.in_parts:
            self.launch(node_products_gradient)(dQ, self.sentence, dgh, dQ.shape[0])
        else:
            torch.mm(dQ, self.sentence, out=dgh)
