"""Eq. 2 and Eq. 3 of the paper, one step: the reference that every kernel must equal.

B sentences, N words, H hidden size, w words of window on each side, k sentence nodes. The gates of a word stand in the
order i, then one for each neighbour from i-w to i+w (with w = 1: l, f, r), then one s for each sentence node, then o
and u: A = 2w + k + 4 blocks of H. The gates of a sentence node stand in the order: one for each node's cell (Eq. 3's
f_g when k = 1), o, and f, which meets the words: k + 2 blocks of H.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from .products import is_transformed, linear


class Weights(NamedTuple):
    """All parameters of Eq. 2 and Eq. 3; with k = 0 those that meet a sentence node are empty."""

    W: Tensor  # (A H, (2w+1) H)  meets xi
    U: Tensor  # (A H, D)         meets x
    V: Tensor  # (A H, k H)       meets g
    b: Tensor  # (A H,)
    sentence_W: Tensor  # (k (k+2) H, k H)  meets g
    sentence_U: Tensor  # (k (k+1) H, H)    meets the mean word: every block but f
    sentence_U_f: Tensor  # (k H, H)        meets each word: the f blocks
    sentence_b: Tensor  # (k (k+2) H,)
    h_0: Tensor  # (H,)
    c_0: Tensor  # (H,)

    def to(self, dtype: torch.dtype) -> Weights:
        return Weights(*(weight.to(dtype) for weight in self))


class State(NamedTuple):
    """H^t of Section 3.2: a hidden vector and a cell for every word and every sentence node."""

    h: Tensor  # (B, N, H), zero at padding
    c: Tensor  # (B, N, H), zero at padding
    g: Tensor  # (B, k, H)
    c_g: Tensor  # (B, k, H)


class WordGates(NamedTuple):
    mixed: Tensor  # (B, N, 2w+2+k, H)  i, neighbours from left to right, s: they sum to one
    o: Tensor  # (B, N, H)
    u: Tensor  # (B, N, H)


class SentenceGates(NamedTuple):
    words: Tensor  # (B, N, k, H)  f_0 .. f_{n+1} of each node; with `nodes` they sum to one
    nodes: Tensor  # (B, k, k, H)  what node j (third dimension) takes from node i (second)
    o: Tensor  # (B, k, H)


def length_mask(lengths: Tensor, size: int) -> Tensor:
    """(B,) lengths -> (B, size) booleans, True at a word."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def squash(gates: Tensor, kind: str) -> Tensor:
    """What stands inside the softmax: the paper's sigmoid, or with "sharp" gates nothing."""
    return gates.sigmoid() if kind == "paper" else gates


def neighbours(state: Tensor, window: int) -> Tensor:
    """(B, N, H) -> (B, N, 2w+1, H): the states of words i-w .. i+w, zero outside the sentence."""
    return F.pad(state, (0, 0, window, window)).unfold(1, 2 * window + 1, 1).transpose(2, 3)


def word_gates(xi: Tensor, W: Tensor, x_term: Tensor, g: Tensor, V: Tensor, kind: str) -> WordGates:
    """Eq. 2, its products and gates. xi: (B, N, .), W: (A H, .), x_term = U x + b: (B, N, A, H), g: (B, k, H)."""
    gates = linear(xi.reshape(-1, W.shape[1]), W).view(x_term.shape)  # (B, N, A, H)
    add = Tensor.add if is_transformed() else Tensor.add_  # in place: no second copy of the widest tensor
    gates = add(gates, x_term)
    gates = add(gates, linear(g.flatten(1), V).view(-1, 1, *x_term.shape[2:]))
    mixed = squash(gates[:, :, :-2], kind).softmax(dim=2)
    return WordGates(mixed, gates[:, :, -2].sigmoid(), gates[:, :, -1].tanh())


def word_update(gates: WordGates, sources: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Eq. 2 after the gates: new h and c, both (B, N, H). sources: the cells that the gates after i meet, in order."""
    i, *shares = gates.mixed.unbind(dim=2)
    c = i * gates.u
    add_product = Tensor.addcmul if is_transformed() else Tensor.addcmul_
    for share, source in zip(shares, sources, strict=True):
        c = add_product(c, share, source)
    return gates.o * c.tanh(), c


def sentence_gates(
    f_term: Tensor, h_mean: Tensor, g: Tensor, weights: Weights, mask: Tensor | None, kind: str
) -> SentenceGates:
    """Eq. 3, its products and gates. f_term = U_f h_i: (B, N, k, H), h_mean: (B, H), g: (B, k, H), mask: (B, N)."""
    k, H = g.shape[1:]
    g_term = linear(g.flatten(1), weights.sentence_W, weights.sentence_b).view(-1, k, k + 2, H)
    h_term = linear(h_mean, weights.sentence_U).view(-1, k, k + 1, H)
    f_nodes, o = (g_term[:, :, :-1] + h_term).split([k, 1], dim=2)
    f_nodes = squash(f_nodes, kind).transpose(1, 2)  # (B, k, k, H): node that is read, node that reads
    f_words = squash(f_term + g_term[:, None, :, -1], kind)  # (B, N, k, H)
    if mask is not None:
        f_words = f_words.masked_fill(~mask[:, :, None, None], -torch.inf)  # padding gives nothing to c_g
    words, nodes = torch.cat([f_words, f_nodes], dim=1).softmax(dim=1).split([f_words.shape[1], k], dim=1)
    return SentenceGates(words, nodes, o.squeeze(2).sigmoid())


def sentence_update(gates: SentenceGates, c: Tensor, c_g: Tensor) -> tuple[Tensor, Tensor]:
    """Eq. 3 after the gates: new g and c_g, both (B, k, H)."""
    c_g = (gates.nodes * c_g[:, :, None]).sum(dim=1) + (gates.words * c[:, :, None]).sum(dim=1)
    return gates.o * c_g.tanh(), c_g
