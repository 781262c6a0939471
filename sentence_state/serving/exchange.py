"""The state exchange of one sentence in numbers that can be looked at: who took how much from whom, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..data.batching import Batch, collate
from ..data.example import Example
from ..data.predictions import Prediction
from ..data.vocabulary import END, START
from ..encoders import Encoding, SentenceStateLSTM
from ..encoders.sentence_state_lstm import Trace
from ..models import Model
from ..ops.equations import State
from ..ops.recurrence import mean_word
from ..ops.released import released_sentence

SOURCES = ("input", "left", "own", "right", "sentence")


def can_trace(model: Any) -> bool:
    """Whether there is an exchange to show: only the S-LSTM's words and sentence read one another in steps."""
    return isinstance(getattr(model, "encoder", None), SentenceStateLSTM)


def trace(model: Model, example: Example) -> dict[str, Any]:
    """Shares of Eq. 2 and Eq. 3, means over the hidden units, for every step and word, <s> and </s> included."""
    encoder = model.encoder
    if not isinstance(encoder, SentenceStateLSTM):
        raise ValueError(f"{model.config.encoder} has no exchange of states")
    batch = batch_of(model, [example])
    with torch.no_grad():
        found = encoder.trace(model.embedding(batch), batch.lengths)
        answers = answers_after_each_step(model, encoder, example, found)
    window = 1 if encoder.variant == "released" else encoder.window  # there the words of one side share a gate
    _, offsets = example.located()
    edges = [None, *offsets, None] if batch.boundaries else list(offsets)
    return {
        "words": [START, *example.words, END] if batch.boundaries else list(example.words),
        "offsets": edges,
        "sources": SOURCES,
        "steps": [
            {**step, "prediction": answer} for step, answer in zip(steps_of(found, window), answers, strict=True)
        ],
    }


def batch_of(model: Model, examples: Sequence[Example]) -> Batch:
    batch = collate(examples, model.vocabularies, boundaries=model.config.boundaries, targets=False)
    return batch.to(model.embedding.words.weight.device)


def steps_of(found: Trace, window: int) -> list[dict[str, Any]]:
    """One entry for each of the steps 1 .. T of the only sentence of the batch."""
    words = shares(found.word_gates[:, 0].float().mean(dim=-1), window)  # (T, N, 5)
    read = found.sentence_word_gates[:, 0, :, :1].float().mean(dim=-1).sum(dim=-1)  # (T, N), the first node's
    kept = 1 - read.sum(dim=-1) if found.sentence_word_gates.shape[3] else read.sum(dim=-1)  # (T,)
    moved = relative_change(found.words[:, 0])  # (T, N)
    sentence_moved = relative_change(found.sentence[:, 0]).mean(dim=-1) if found.sentence.shape[2] else kept
    rows = zip(words.tolist(), read.tolist(), kept.tolist(), moved.tolist(), sentence_moved.tolist(), strict=True)
    names = ("words", "sentence_read", "sentence_kept", "words_moved", "sentence_moved")
    return [dict(zip(names, row, strict=True)) for row in rows]


def shares(gates: Tensor, window: int) -> Tensor:
    """(T, N, 2w+2+k) in Eq. 2's order -> (T, N, 5) in the order of SOURCES: the words of one side are added, and so
    are the sentence nodes."""
    nodes = gates.shape[2] - 2 * window - 2
    i, left, own, right, s = gates.split([1, window, 1, window, nodes], dim=2)
    return torch.cat([part.sum(dim=2, keepdim=True) for part in (i, left, own, right, s)], dim=2)


def answers_after_each_step(
    model: Model, encoder: SentenceStateLSTM, example: Example, found: Trace
) -> list[Prediction]:
    """What the model would say if it stopped after 1, 2, .. T steps: its head reads the states of each step as if they
    were a sentence of their own."""
    state = State(*(states[1:, 0] for states in found[:4]))
    sentence = sentence_vectors(encoder, state)
    if model.config.readout == "steps":  # its head reads the sentence vectors of all steps so far
        batch = batch_of(model, [example])
        so_far = (Encoding(h[None], sentence[None, : t + 1]) for t, h in enumerate(state.h))
        return [answer for encoding in so_far for answer in model.answers(batch, [example], encoding)]
    examples = [example] * len(state.h)
    return model.answers(batch_of(model, examples), examples, Encoding(state.h, sentence))


def sentence_vectors(encoder: SentenceStateLSTM, state: State) -> Tensor:
    """(T, H): what the encoder returns as the sentence of each state."""
    if encoder.variant == "released":
        return released_sentence(state, None)
    return state.g[:, 0] if encoder.sentence_nodes else mean_word(state.h, None)


def relative_change(states: Tensor) -> Tensor:
    """(T+1, .., H) -> (T, ..): |h^t - h^(t-1)| / |h^t|."""
    change: Tensor = (states[1:] - states[:-1]).norm(dim=-1)
    size: Tensor = states[1:].norm(dim=-1).clamp(min=1e-9)
    return change / size
