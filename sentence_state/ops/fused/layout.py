"""How weights and states lie in memory while the fused recurrence runs.

H is padded to Hp, a multiple of 16, so that rows start where the fast matrix kernels and wide loads want them. Padded
columns of all weights are zero; then the padded units of every state and gradient stay zero by themselves. The word
gates stand in blocks i, l, f, r, s, o, u as in `equations`; an eighth block holds Eq. 3's U_f h, so that one product
[h_left, h, h_right, x] @ words.T gives all that a step needs of the words. The products of the sentence node are one
too: [g, mean h] @ sentence.T gives V g in seven blocks, then the node's own gates f_g, o, f.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

BLOCKS = 8  # i l f r s o u and U_f h
NODE_BLOCKS = 10  # V g for the seven word blocks, then f_g, o, f of the node
PARTS = NODE_BLOCKS + 2  # what each block has to do with g, then what f_g and o have to do with the mean h
VECTORS = 12  # a bias for every node block, h_0, c_0


class Packed(NamedTuple):
    words: Tensor  # (8 Hp, 3 Hp + Dp): W and U_f, then U
    sentence: Tensor  # (10 Hp, 2 Hp)
    vectors: Tensor  # (VECTORS, Hp)

    @property
    def W(self) -> Tensor:
        """(8 Hp, 3 Hp): what meets [h_left, h, h_right]; a view, as the others are."""
        return self.words[:, : 3 * self.vectors.shape[1]]

    @property
    def U(self) -> Tensor:
        """(7 Hp, Dp): what meets x in the word gates."""
        Hp = self.vectors.shape[1]
        return self.words[: 7 * Hp, 3 * Hp :]

    @property
    def U_f(self) -> Tensor:
        """(Hp, Hp)"""
        Hp = self.vectors.shape[1]
        return self.words[7 * Hp :, Hp : 2 * Hp]

    @property
    def b(self) -> Tensor:
        """(10 Hp,): b for the word gates, where it joins V g, then the node's own."""
        return self.vectors[:NODE_BLOCKS].view(-1)

    @property
    def h_0(self) -> Tensor:
        return self.vectors[10]

    @property
    def c_0(self) -> Tensor:
        return self.vectors[11]


def padded(size: int) -> int:
    return (size + 15) // 16 * 16


def put_columns(rows: Tensor, columns: Tensor, start: int = 0) -> None:
    """columns (M, C) -> C columns of rows (.., M, R), eight bytes at a time if all of them begin and end there."""
    size = 8 // columns.element_size()
    places = start | columns.shape[-1] | rows.shape[-1] | int(rows.storage_offset())
    places |= int(columns.storage_offset())
    for stride in (*rows.stride()[:-1], *columns.stride()[:-1]):
        places |= stride
    if places % size == 0:  # all of them are: it is a power of two
        rows, columns, start = rows.view(torch.int64), columns.view(torch.int64), start // size
    rows[..., start : start + columns.shape[-1]] = columns
