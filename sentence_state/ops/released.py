"""What the authors' released classifier computes, where it differs from Eq. 2 and Eq. 3.

The input term is a gate times the raw embedding (no u), words start from their embeddings and the sentence from their
mean, the neighbours on one side of a wider window are summed into one, and the sentence is read out as the mean of all
words and g. Six word blocks: i, l, f, r, s, o. The released code divides its means by the padded length of the batch;
here they are means over the words, which is the same for a batch without padding and does not depend on the batch.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from .equations import State, Weights, WordGates, neighbours, sentence_gates, sentence_update, squash, word_update
from .recurrence import Step, drop, input_term, mean_word, zero_padding


def released_recurrence(
    x: Tensor,
    mask: Tensor | None,
    weights: Weights,
    num_steps: int,
    kind: str,
    window: int,
    dropout: tuple[Tensor, Tensor] | None = None,
) -> State:
    """The state after `num_steps` steps. x: (B, N, H), zero at padding; the rest as in `recurrence`."""
    x_term = input_term(x, weights)
    state = released_initial_state(x, mask)
    for t in range(num_steps):
        state = released_step(state, x, x_term, mask, weights, kind, window).state
        if t < num_steps - 1:
            state = drop(state, dropout)
    return state


def released_step(
    state: State, x: Tensor, x_term: Tensor, mask: Tensor | None, weights: Weights, kind: str, window: int
) -> Step:
    xi = summed_sides(state.h, window).flatten(2)
    g_term = F.linear(state.g, weights.V).view(-1, 1, *x_term.shape[2:])
    gates = x_term + F.linear(xi, weights.W).view_as(x_term) + g_term  # (B, N, 6, H)
    from_words = WordGates(squash(gates[:, :, :-1], kind).softmax(dim=2), gates[:, :, -1].sigmoid(), x)
    sources = [*summed_sides(state.c, window).unbind(dim=2), state.c_g]
    h, c = (zero_padding(tensor, mask) for tensor in word_update(from_words, sources))
    f_term = F.linear(state.h, weights.sentence_U_f)[:, :, None]
    from_sentence = sentence_gates(f_term, mean_word(state.h, mask), state.g, weights, mask, kind)
    g, c_g = sentence_update(from_sentence, state.c, state.c_g)
    return Step(State(h, c, g, c_g), from_words, from_sentence)


def released_initial_state(x: Tensor, mask: Tensor | None) -> State:
    g = mean_word(x, mask)[:, None]
    return State(x, x, g, g)


def summed_sides(state: Tensor, window: int) -> Tensor:
    """(B, N, H) -> (B, N, 3, H): the sum of w words to the left, the word, the sum of w words to the right."""
    left, own, right = neighbours(state, window).split([window, 1, window], dim=2)
    return torch.cat([left.sum(dim=2, keepdim=True), own, right.sum(dim=2, keepdim=True)], dim=2)


def released_sentence(state: State, mask: Tensor | None) -> Tensor:
    """The released sentence vector, the mean of all words and g: (B, H)."""
    words = state.h.shape[1] if mask is None else mask.sum(dim=1, keepdim=True)
    return (state.h.sum(dim=1) + state.g[:, 0]) / (words + 1)
