"""The products of the sentence node, Q = [g, mean h] sentence^T + b, and their gradient, where there are few words.

There a product of cuBLAS beside that of the words would wait for it, or take longer: its programs fill a multiprocessor
each, and the words' leave few of them free. These are small, and leave the empty blocks of `sentence` out."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .layout import NODE_BLOCKS, PARTS
from .plan import Launch, Launches, parts_of

FEW_WORDS = 2048
FEW_SENTENCES = 16  # of one program
COLUMNS, DEPTH = 32, 64  # its units, and how many of the others it adds up at once


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
