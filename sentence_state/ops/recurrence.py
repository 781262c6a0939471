"""T steps of Eq. 2 and Eq. 3, from inputs and weights to the last state. Here the backend is picked."""

from __future__ import annotations

import importlib.util
import os
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .equations import (
    SentenceGates,
    State,
    Weights,
    WordGates,
    length_mask,
    neighbours,
    sentence_gates,
    sentence_update,
    word_gates,
    word_update,
)
from .products import is_transformed, linear

MEMORY = ("auto", "low", "normal", "high")
BACKENDS = ("auto", "reference", "triton")
MOST_NUMBERS = 2**31  # of one sentence in a buffer of the kernels, which count with 32 bits
WIDEST = 2**16  # numbers of a state or a word that one program of theirs can hold
TRITON_IS_INSTALLED = importlib.util.find_spec("triton") is not None

# Sentences never meet, so a CPU takes them in groups of about this many words: the gates of a group stay in its cache.
GROUP_WORDS = 512

# glibc hands freed memory back to the system above a threshold that starts low, and then every step would fetch its
# pages anew (7,000 page faults a forward pass at 10 x 24 words, a sixth of its time). The threshold follows the largest
# block ever freed: freeing one that was never touched costs nothing and raises it.
torch.empty(24 * 2**20, dtype=torch.uint8)


class Step(NamedTuple):
    """The state that a step reached and the gates that led there, None where an update was left out."""

    state: State
    word_gates: WordGates | None
    sentence_gates: SentenceGates | None


def recurrence(
    x: Tensor,
    lengths: Tensor | None,
    weights: Weights,
    num_steps: int,
    kind: str,
    dropout: tuple[Tensor, Tensor] | None = None,
    need_words: bool = True,
    need_sentence: bool = True,
    backend: str = "auto",
    memory: str = "auto",
) -> State:
    """The state after `num_steps` steps, in the type of x; words or sentence that are not needed are not to be read.

    x: (B, N, D), zero at padding; lengths: (B,) or None; kind: "paper" or "sharp" gates;
    dropout: masks (B, N, H) and (B, k, H) on the h and g that the next step reads.
    memory: what is kept for the backward pass, which computes the rest again: "low", "normal", "high"; "auto": "high"
        up to a quarter of the card's memory, then "normal".
    """
    if can_fuse(x, weights, backend):
        from .fused import fused_recurrence  # here, so that Triton is needed only where it can run

        return fused_recurrence(x, lengths, weights, num_steps, kind, dropout, need_words, need_sentence, memory)
    mask = None if lengths is None else length_mask(lengths, x.shape[1])
    return reference_recurrence(
        x, mask, weights.to(x.dtype), num_steps, kind, dropout, need_words, need_sentence, memory
    )


def has_kernels(tensor: Tensor) -> bool:
    """Whether Triton is there, and the tensor on a card for which it compiles the kernels of `ops/fused`."""
    if not (tensor.is_cuda and TRITON_IS_INSTALLED):
        return False
    from .fused.card import AMPERE, generation  # here, so that Triton is needed only where it can run

    return bool(generation(tensor.device.index) >= AMPERE)


def can_count(N: int, H: int, D: int) -> bool:
    """Whether the kernels can count the numbers of a sentence and of the weights, and one program hold a state."""
    row = max(8 * (H + 15), 3 * (H + 15) + D + 15)
    weights = 8 * (H + 15) * (3 * (H + 15) + D + 15)
    return max(N * row, weights) <= MOST_NUMBERS and max(H, D) <= WIDEST


def can_fuse(x: Tensor, weights: Weights, backend: str) -> bool:
    """Whether the fused kernels take it: window 1, one sentence node, a CUDA tensor of at most 32 bits, on a card that
    Triton compiles for, sentences that they can count; nothing that is empty or transformed by torch.func, and no
    derivatives forwards."""
    transformed = is_transformed() or forward_ad._current_level >= 0
    if backend == "reference" or (backend == "auto" and (not x.is_cuda or transformed)) or x.shape[0] == 0:
        return False
    H = len(weights.h_0)
    shape_fits = weights.W.shape == (7 * H, 3 * H) and len(weights.sentence_U_f) == H
    type_fits = x.dtype in (torch.float32, torch.bfloat16, torch.float16)
    _, N, D = x.shape
    # a length that is traced would be bounded by the question; the operator asks again when it runs
    size_fits = can_count(1 if torch.compiler.is_compiling() else N, H, D)
    if backend == "auto":
        return shape_fits and type_fits and size_fits and has_kernels(x)
    if not x.is_cuda and "TRITON_INTERPRET" not in os.environ:
        raise RuntimeError(f'backend="triton" needs a CUDA tensor, got {x.device.type}; use backend="auto"')
    if not TRITON_IS_INSTALLED:
        raise RuntimeError('backend="triton" needs the package triton, which is not installed; use backend="auto"')
    if x.is_cuda and not has_kernels(x):
        raise RuntimeError('backend="triton" has kernels for NVIDIA\'s cards since Ampere; use backend="auto"')
    if not shape_fits:
        raise RuntimeError('backend="triton" has kernels for window=1 and sentence_nodes=1; use backend="auto"')
    if not size_fits:
        raise RuntimeError(f'backend="triton" cannot count {N} words of {max(H, D)} numbers; use backend="auto"')
    if transformed:
        raise RuntimeError('backend="triton" cannot be transformed by torch.func; use backend="auto"')
    if not type_fits:
        raise RuntimeError(f'backend="triton" takes float32, bfloat16 and float16, got {x.dtype}; use backend="auto"')
    return True


def reference_recurrence(
    x: Tensor,
    mask: Tensor | None,
    weights: Weights,
    num_steps: int,
    kind: str,
    dropout: tuple[Tensor, Tensor] | None = None,
    need_words: bool = True,
    need_sentence: bool = True,
    memory: str = "auto",
) -> State:
    """`recurrence` in PyTorch's own operations; words or sentence that are not needed stay one step behind."""
    group = max(1, GROUP_WORDS // x.shape[1]) if x.device.type == "cpu" and not torch.compiler.is_compiling() else 0
    if group and group < x.shape[0]:
        masks = [None] * x.shape[0] if mask is None else mask.split(group)
        drops = [None] * x.shape[0] if dropout is None else zip(*(d.split(group) for d in dropout), strict=True)
        options = (weights, num_steps, kind)
        parts = [
            reference_recurrence(x, mask, *options, dropout, need_words, need_sentence, memory)
            for x, mask, dropout in zip(x.split(group), masks, drops, strict=False)
        ]
        return State(*map(torch.cat, zip(*parts, strict=True)))
    x_term = input_term(x, weights)
    state = initial_state(x, mask, weights)
    for t in range(num_steps):
        more = t < num_steps - 1
        take = light_step if memory == "low" and not is_transformed() else step
        state = take(state, x_term, mask, weights, kind, t == 0, need_words or more, need_sentence or more).state
        if more:
            state = drop(state, dropout)
    return state


def step(
    state: State,
    x_term: Tensor,
    mask: Tensor | None,
    weights: Weights,
    kind: str,
    first: bool,
    need_words: bool = True,
    need_sentence: bool = True,
) -> Step:
    """H^{t-1} -> H^t: Eq. 2 and Eq. 3, both from the states of step t-1.

    In the first step all h are equal, so the product W xi meets one number a neighbour, whether it exists, instead of
    H, and U_f h is one vector.
    """
    h, c, g, c_g = state
    k, H = g.shape[1:]
    window = weights.W.shape[1] // H // 2
    from_words = from_sentence = None
    if need_words:
        if first:
            W = linear(weights.h_0[None], weights.W.reshape(-1, H)).view(-1, 2 * window + 1)
            xi = neighbours(existing(h, mask), window)
        else:
            xi, W = neighbours(state.h, window), weights.W
        from_words = word_gates(xi, W, x_term, state.g, weights.V, kind)
        of_nodes = state.c_g[:, None].unbind(dim=2) if k else ()  # torch.export cannot load what unbinds nothing
        sources = [*neighbours(state.c, window).unbind(dim=2), *of_nodes]
        h, c = (zero_padding(tensor, mask) for tensor in word_update(from_words, sources))
    if k and need_sentence:
        f_term = linear(weights.h_0 if first else state.h, weights.sentence_U_f).unflatten(-1, (k, H))
        f_term = f_term.expand(*h.shape[:2], k, H)
        from_sentence = sentence_gates(f_term, mean_word(state.h, mask), state.g, weights, mask, kind)
        g, c_g = sentence_update(from_sentence, state.c, state.c_g)
    return Step(State(h, c, g, c_g), from_words, from_sentence)


def light_step(*arguments: Any) -> Step:
    """`step` that keeps nothing but the states: the backward pass computes its gates again."""
    from torch.utils.checkpoint import checkpoint  # here: before torch 2.8 it takes 0.3 s to import

    reached: Step = checkpoint(step, *arguments, use_reentrant=False, preserve_rng_state=False)
    return Step(reached.state, None, None)


def input_term(x: Tensor, weights: Weights) -> Tensor:
    """U x + b for all word gates, once for all steps: (B, N, D) -> (B, N, A, H)."""
    term: Tensor = linear(x, weights.U, weights.b).unflatten(-1, (-1, weights.sentence_U_f.shape[1]))
    return term


def initial_state(x: Tensor, mask: Tensor | None, weights: Weights) -> State:
    """H^0: every h and g is h_0, every cell c_0, both parameters; zero at padding. g and c_g are one row for all B."""
    H = len(weights.h_0)
    k = len(weights.sentence_U_f) // H
    h, c = (zero_padding(vector.expand(*x.shape[:2], H), mask) for vector in (weights.h_0, weights.c_0))
    g, c_g = (vector.expand(1, k, H) for vector in (weights.h_0, weights.c_0))
    return State(h, c, g, c_g)


def drop(state: State, dropout: tuple[Tensor, Tensor] | None) -> State:
    """Step dropout: the same masks on h and g after every step but the last."""
    return state if dropout is None else state._replace(h=state.h * dropout[0], g=state.g * dropout[1])


def existing(h: Tensor, mask: Tensor | None) -> Tensor:
    """(B, N, 1): one at a word, zero at padding."""
    return h.new_ones(*h.shape[:2], 1) if mask is None else mask[..., None].to(h.dtype)


def zero_padding(state: Tensor, mask: Tensor | None) -> Tensor:
    return state if mask is None else state.masked_fill(~mask[..., None], 0)


def mean_word(h: Tensor, mask: Tensor | None) -> Tensor:
    """avg(h_0 .. h_{n+1}) over the words of each sentence: (B, N, H), zero at padding -> (B, H)."""
    return h.mean(dim=1) if mask is None else h.sum(dim=1) / mask.sum(dim=1, keepdim=True)
