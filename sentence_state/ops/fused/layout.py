"""How weights and states lie in memory while the fused recurrence runs.

H is padded to Hp, a multiple of 16, so that rows start where the fast matrix kernels and wide loads want them. Padded
columns of all weights are zero; then the padded units of every state and gradient stay zero by themselves. The word
gates stand in blocks i, l, f, r, s, o, u as in `equations`; an eighth block holds Eq. 3's U_f h, so that one product
[h_left, h, h_right] @ words.T gives all that a step needs of the words. The products of the sentence node are one too:
[g, mean h] @ sentence.T gives V g in seven blocks, then the node's own gates f_g, o, f.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F

BLOCKS = 8  # i l f r s o u and U_f h
NODE_BLOCKS = 10  # V g for the seven word blocks, then f_g, o, f of the node
VECTORS = 19  # b, then one a node block (zeros for V g), h_0, c_0


class Packed(NamedTuple):
    words: Tensor  # (8 Hp, 3 Hp)
    inputs: Tensor  # (7 Hp, Dp)
    sentence: Tensor  # (10 Hp, 2 Hp)
    vectors: Tensor  # (VECTORS, Hp)

    @property
    def inputs_b(self) -> Tensor:
        return self.vectors[:7].view(-1)

    @property
    def sentence_b(self) -> Tensor:
        return self.vectors[7:17].view(-1)

    @property
    def h_0(self) -> Tensor:
        return self.vectors[17]

    @property
    def c_0(self) -> Tensor:
        return self.vectors[18]

    @property
    def U_f(self) -> Tensor:
        """(Hp, Hp), a view into `words`."""
        Hp = self.vectors.shape[1]
        return self.words.view(BLOCKS, Hp, 3, Hp)[7, :, 1]


def padded(size: int) -> int:
    return (size + 15) // 16 * 16


def pad_columns(x: Tensor) -> Tensor:
    """(M, D) -> (M, Dp), zero in the new columns."""
    return F.pad(x, (0, padded(x.shape[1]) - x.shape[1]))
