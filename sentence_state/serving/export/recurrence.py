"""Section 3.2 as an ONNX graph: T steps of Eq. 2 and Eq. 3, without what is known before they begin.

In the first step all states are equal: the product W xi meets one number a neighbour, and the sentence nodes reach a
state that does not depend on the sentence. In the last step only what is read afterwards is updated.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from ...encoders import SentenceStateLSTM
from ...ops.equations import Weights
from ...ops.recurrence import initial_state, input_term
from ...ops.recurrence import step as reference_step
from .graph import MOST, Graph, Value
from .products import FloatProducts, Products


def array(weight: torch.Tensor) -> np.ndarray:
    return weight.detach().cpu().float().numpy()


def arrays(weights: Weights) -> Any:
    """The same fields with numpy arrays in them."""
    return Weights._make(map(array, weights))


class Encoded(NamedTuple):
    """What an encoder leaves in the graph; a field that was not asked for is not to be read."""

    words: Value  # (B, N, H), zero at padding
    sentence: Value  # (B, H)


class States(NamedTuple):
    h: Value  # (B, N, H), zero at padding
    c: Value  # (B, N, H), zero at padding
    g: Value  # (B, kH), or (1, kH) while it is the same for all sentences
    c_g: Value  # (B, k, H) or (1, k, H)


class Sizes(NamedTuple):
    H: int
    k: int  # sentence nodes
    window: int

    @property
    def mixed(self) -> int:
        """Gates that sum to one: i, the neighbours, s."""
        return 2 * self.window + 2 + self.k


def recurrence(
    op: Graph,
    encoder: SentenceStateLSTM,
    x: Value,
    lengths: Value,
    need_words: bool,
    need_sentence: bool,
    products: Products,
    every_step: bool = False,
) -> Encoded:
    """x: (B, N, D), anything at padding; lengths: (B,). every_step: the sentence after each step, (B, T, H)."""
    weights = encoder._prepare(torch.zeros(1))[1]
    sizes = Sizes(encoder.hidden_size, encoder.sentence_nodes, encoder.window)
    W = arrays(weights)
    mask = op.unsqueeze(op("Cast", op.length_mask(lengths, x), to=1), 2)  # (B, N, 1)
    share = op("Reciprocal", op.unsqueeze(op("Cast", lengths, to=1), 1))  # (B, 1): of each word in the mean
    x_term = x @ np.ascontiguousarray(W.U.T) + W.b  # (B, N, A H)
    need_words = need_words or sizes.k == 0
    state = first_step(op, x_term, mask, weights, W, sizes, encoder.gates)
    reached = [state]
    for t in range(1, encoder.num_steps):
        more = t < encoder.num_steps - 1
        state = step(
            op, state, x_term, mask, share, W, sizes, encoder.gates, products, need_words or more, need_sentence or more
        )
        reached.append(state)
    if sizes.k == 0:
        return Encoded(state.h, op.sum(state.h, 1) * share)
    batch = op.concat([op.size(x, 0), op.value(np.array([sizes.H]))], 0)
    nodes = [op("Expand", op.slice(one.g, 0, sizes.H, 1), batch) for one in (reached if every_step else [state])]
    return Encoded(state.h, op.concat([op.unsqueeze(node, 1) for node in nodes], 1) if every_step else nodes[0])


def first_step(op: Graph, x_term: Value, mask: Value, weights: Weights, W: Any, sizes: Sizes, kind: str) -> States:
    """The states after step 1; those of the sentence are constants."""
    k, window = sizes.k, sizes.window
    from_h = np.stack([block @ W.h_0 for block in np.split(W.W, 2 * window + 1, axis=1)])  # (2w+1, A H)
    from_h[window] += W.V @ np.tile(W.h_0, k)  # the word itself is always there
    gates = x_term + neighbours(op, mask, window) @ from_h
    cells = mask * W.c_0
    h, c = word_update(op, gates, cells, op.value(np.tile(W.c_0, (1, k, 1))), mask, sizes, kind)
    with torch.no_grad():
        one_word = torch.zeros(1, 1, weights.U.shape[1])  # any sentence will do
        of_sentence = reference_step(
            initial_state(one_word, None, weights), input_term(one_word, weights), None, weights, kind, first=True
        ).state
    return States(h, c, op.value(array(of_sentence.g.flatten(1))), op.value(array(of_sentence.c_g)))


def step(
    op: Graph,
    state: States,
    x_term: Value,
    mask: Value,
    share: Value,
    W: Any,
    sizes: Sizes,
    kind: str,
    products: Products,
    need_words: bool,
    need_sentence: bool,
) -> States:
    H, k, window = sizes
    h, c, nodes, c_g = state
    h_read = products.read(op, state.h)
    for_words = for_sentence = None
    if k:  # one product for both updates, in the last step too, so that the weights stand in the file once
        product = products.product(op, products.read(op, state.g), np.concatenate([W.V, W.sentence_W]))
        for_words, for_sentence = op.split(product, [len(W.V), len(W.sentence_W)], axis=1)
    if need_words:
        gates = products.product(op, neighbours(op, h_read, window, products), W.W) + x_term
        if for_words is not None:
            gates = gates + op.unsqueeze(for_words, 1)
        h, c = word_update(op, gates, state.c, state.c_g, mask, sizes, kind)
    if need_sentence and for_sentence is not None:
        mean = products.read(op, op.sum(state.h, 1) * share)  # (B, H)
        f_term = op.reshape(products.product(op, h_read, W.sentence_U_f), 0, 0, k, H)
        h_term = products.product(op, mean, W.sentence_U)
        nodes, c_g = sentence_update(op, state, for_sentence + W.sentence_b, h_term, f_term, mask, sizes, kind)
    return States(h, c, nodes, c_g)


def neighbours(op: Graph, states: Value, window: int, products: Products | None = None) -> Value:
    """(B, N, S) -> (B, N, (2w+1) S): those of words i-w .. i+w side by side, zero outside the sentence."""
    return op.concat(shifted(op, states, window, products), 2)


def shifted(op: Graph, states: Value, window: int, products: Products | None = None) -> list[Value]:
    padded = (products or FloatProducts()).pad_words(op, states, window)
    ends = [place - 2 * window or MOST for place in range(2 * window + 1)]
    return [op.slice(padded, place, end, 1) for place, end in enumerate(ends)]


def word_update(
    op: Graph, gates: Value, c: Value, c_g: Value, mask: Value, sizes: Sizes, kind: str
) -> tuple[Value, Value]:
    """Eq. 2 after its products: gates (B, N, A H), c (B, N, H), c_g (B or 1, k, H) -> new h and c."""
    H, k, window = sizes
    mixed, o, u = op.split(gates, [sizes.mixed * H, H, H], axis=2)
    weights = exponentials(op, mixed, sizes, kind)
    sources = [op("Tanh", u), *shifted(op, c, window)]
    if k:
        of_nodes = op.reshape(c_g, 0, 1, k * H)
        like = op.concat([op("Slice", op("Shape", c), np.array([0]), np.array([2])), op.value(np.array([k * H]))], 0)
        sources.append(op("Expand", of_nodes, like))
    shares = op.reshape(weights * op.concat(sources, 2), 0, 0, sizes.mixed, H)
    total = op.sum(op.reshape(weights, 0, 0, sizes.mixed, H), 2)
    c = op.sum(shares, 2) / total * mask
    return op("Sigmoid", o) * op("Tanh", c), c


def exponentials(op: Graph, mixed: Value, sizes: Sizes, kind: str) -> Value:
    """The softmax over the gates of a word without its division: (B, N, gates H)."""
    if kind == "paper":
        return op("Exp", op("Sigmoid", mixed))  # between 1 and e: nothing can overflow
    apart = op.reshape(mixed, 0, 0, sizes.mixed, sizes.H)
    return op.reshape(op("Exp", apart - op("ReduceMax", apart, axes=[2], keepdims=1)), 0, 0, sizes.mixed * sizes.H)


def sentence_update(
    op: Graph, state: States, g_term: Value, h_term: Value, f_term: Value, mask: Value, sizes: Sizes, kind: str
) -> tuple[Value, Value]:
    """Eq. 3 after its products: g_term (B, k (k+2) H), h_term (B, k (k+1) H), f_term (B, N, k, H) -> new g (B, kH) and
    c_g (B, k, H)."""
    H, k, _ = sizes
    of_nodes, of_words = op.split(op.reshape(g_term, 0, k, k + 2, H), [k + 1, 1], axis=2)
    f_nodes, o = op.split(of_nodes + op.reshape(h_term, 0, k, k + 1, H), [k, 1], axis=2)
    f_nodes = op("Transpose", f_nodes, perm=[0, 2, 1, 3])  # (B, k, k, H): node that is read, node that reads
    f_words = f_term + op("Transpose", of_words, perm=[0, 2, 1, 3])  # (B, N, k, H)
    if kind == "paper":
        f_nodes, f_words = op("Sigmoid", f_nodes), op("Sigmoid", f_words)
    else:  # the greatest is subtracted; those of padding may be greater still, they are only no word
        padding = op.unsqueeze((1 - mask) * 1e30, 2)
        greatest = op(
            "Max",
            op("ReduceMax", f_words - padding, axes=[1], keepdims=1),
            op("ReduceMax", f_nodes, axes=[1], keepdims=1),
        )
        f_nodes, f_words = f_nodes - greatest, f_words - padding - greatest
    nodes, words = op("Exp", f_nodes), op("Exp", f_words) * op.unsqueeze(mask, 3)
    total = op.sum(words, 1) + op.sum(nodes, 1)  # (B, k, H)
    taken = op.sum(words * op.unsqueeze(state.c, 2), 1) + op.sum(nodes * op.unsqueeze(state.c_g, 2), 1)
    c_g = taken / total
    return op.reshape(op("Sigmoid", op.squeeze(o, 2)) * op("Tanh", c_g), 0, k * H), c_g
