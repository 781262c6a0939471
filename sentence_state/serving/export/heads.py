"""Section 3.3 as an ONNX graph: the classifier, additive attention, the CRF's best tags with their probabilities."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from ...heads import CRF, AdditiveAttention, Classifier
from ...ops.crf import FORBIDDEN
from .graph import FLOAT, INT64, MOST, Graph, Value
from .recurrence import Encoded, array


def linear(op: Graph, x: Value, layer: torch.nn.Linear) -> Value:
    product = x @ np.ascontiguousarray(array(layer.weight).T)
    return product if layer.bias is None else product + array(layer.bias)


def classify(op: Graph, head: Classifier, encoded: Encoded, lengths: Value) -> Value:
    """Probabilities (B, K)."""
    read = encoded.sentence  # (B, H), or (B, T, H) for the read-out of all steps
    if head.readout == "steps" and head.attention is not None:
        read = attend(op, head.attention, encoded.sentence, None)
    elif head.readout == "attention" and head.attention is not None:
        read = attend(op, head.attention, encoded.words, padding(op, encoded.words, lengths))
    elif head.readout == "max":
        words = encoded.words + padding(op, encoded.words, lengths)
        read = op.concat([encoded.sentence, op("ReduceMax", words, axes=[1], keepdims=0)], 1)
    return op("Softmax", linear(op, read, head.output), axis=1)


def attend(op: Graph, attention: AdditiveAttention, states: Value, padding: Value | None) -> Value:
    """(B, N, H) -> (B, H)."""
    scores = linear(op, op("Tanh", linear(op, states, attention.W)), attention.u)  # (B, N, 1)
    if padding is not None:
        scores = scores + padding
    alpha = op("Softmax", op.squeeze(scores, 2), axis=1)  # (B, N)
    return op.squeeze(op.unsqueeze(alpha, 1) @ states, 1)


def padding(op: Graph, words: Value, lengths: Value) -> Value:
    """(B, N, 1): 0 at a word, FORBIDDEN at padding."""
    outside = op("Cast", op("Not", op.length_mask(lengths, words)), to=1)
    return op.unsqueeze(outside * FORBIDDEN, 2)


class Chain(NamedTuple):
    """Log-potentials with one more position behind the last word, so that there is always a transition to scan."""

    emission: Value  # (B, N+1, K)
    transition: Value | np.ndarray  # (B, N, K, K), [:, i] leads to word i+1; or (1, K, K)
    end: np.ndarray  # (K,)


def decode(op: Graph, crf: CRF, words: Value, lengths: Value) -> tuple[Value, Value]:
    """Viterbi in words (B, N, H) without <s> and </s> -> the best tags (B, N), -1 at padding, and P(tag | words)."""
    chain = make_chain(op, crf, words)
    best, summed = forward(op, chain)  # both (B, N+1, K)
    last = op.unsqueeze(lengths - op.value(np.array(1)), 1)  # (B, 1)
    place = op("Expand", op.unsqueeze(last, 2), np.array([1, 1, crf.num_labels]))
    tag = op("ArgMax", op.squeeze(op("GatherElements", best, place, axis=1), 1) + chain.end, axis=1, keepdims=1)
    begin = op("Softmax", op.squeeze(op("GatherElements", summed, place, axis=1), 1) + chain.end, axis=1)  # (B, K)
    tags, labels = backward(op, chain, best, summed, last, tag, begin)
    scores = op.squeeze(op("GatherElements", labels, op.unsqueeze(tags, 2), axis=2), 2)
    inside = op.length_mask(lengths, words)
    return op("Where", inside, tags, np.array(-1)), op("Where", inside, scores, np.float32(0))


def make_chain(op: Graph, crf: CRF, words: Value) -> Chain:
    K = crf.num_labels
    start, pairs, end = (
        np.where(allowed.numpy(), np.float32(0), np.float32(FORBIDDEN))
        for allowed in (crf.allowed_start, crf.allowed_transition, crf.allowed_end)
    )
    if crf.transitions == "edge":
        first = op.slice(words, 0, 1, 1)
        emission = linear(op, first, crf.start) + start  # (B, 1, K): after the first word all is on the edges
        behind = op.concat([op.value(np.array([0, 0, 0, 0])), op.size(words, 1), op.value(np.array([0]))], 0)
        emission = op("Pad", emission, behind, np.float32(0))  # (B, N+1, K)
        edges = linear(op, words, crf.edge) + pairs.reshape(-1)  # (B, N, K*K)
        edges = op("Pad", op.slice(edges, 1, MOST, 1), np.array([0, 0, 0, 0, 1, 0]), np.float32(0))
        return Chain(emission, op.reshape(edges, 0, 0, K, K), end)
    emission = op("Pad", linear(op, words, crf.emission), np.array([0, 0, 0, 0, 1, 0]), np.float32(0))
    position = op("Range", np.array(0), op.squeeze(op.size(emission, 1), 0), np.array(1))
    is_first = op.unsqueeze(op("Equal", position, np.array(0)), 1)  # (N+1, 1)
    emission = emission + op("Where", is_first, array(crf.start_score) + start, np.float32(0))
    return Chain(emission, (array(crf.transition) + pairs)[None], array(crf.end_score) + end)


def forward(op: Graph, chain: Chain) -> tuple[Value, Value]:
    """Of every word and label, the greatest score of all ways there, and the log of their sum: both (B, N+1, K)."""
    first = op.squeeze(op.slice(chain.emission, 0, 1, 1), 1)
    rest = op.slice(chain.emission, 1, MOST, 1)

    def step(op: Graph, states: list[Value], inputs: list[Value]) -> tuple[list[Value], list[Value]]:
        transition = inputs[1] if len(inputs) > 1 else chain.transition
        ways = [op.unsqueeze(state, 2) + transition for state in states]  # (B, K, K)
        best = op("ReduceMax", ways[0], axes=[1], keepdims=0) + inputs[0]
        summed = op("ReduceLogSumExp", ways[1], axes=[1], keepdims=0) + inputs[0]
        summed = op("LogSoftmax", summed, axis=1)  # read up to a constant: it must not grow with the words
        return [best, summed], [best, summed]

    inputs = [rest, chain.transition] if isinstance(chain.transition, Value) else [rest]
    _, outputs = op.scan(step, [first, first], inputs, [FLOAT] * (2 + len(inputs)))
    beginning = op.unsqueeze(first, 1)
    return op.concat([beginning, outputs[0]], 1), op.concat([beginning, outputs[1]], 1)


def backward(
    op: Graph, chain: Chain, best: Value, summed: Value, last: Value, tag: Value, begin: Value
) -> tuple[Value, Value]:
    """From the last word to the first: tags (B, N), anything at padding, and P(y_i | words) (B, N, K).

    best, summed: (B, N+1, K); last: (B, 1), the place of the last word; tag: (B, 1) and begin: (B, K), the tag there
    and the probabilities of all. P(y_i) = sum over y_{i+1} of P(y_i | y_{i+1}) P(y_{i+1}).
    """
    transition = chain.transition if isinstance(chain.transition, Value) else op.value(chain.transition[None])
    before = [op.unsqueeze(op.slice(alpha, 0, -1, 1), 3) + transition for alpha in (best, summed)]  # (B, N, K, K)
    pointers = op("ArgMax", before[0], axis=2, keepdims=0)  # (B, N, K)
    conditional = op("Softmax", before[1], axis=2)  # (B, N, K, K)
    position = op("Range", np.array(0), op.squeeze(op.size(pointers, 1), 0), np.array(1))
    is_last = op.unsqueeze(op("Equal", position, last), 2)  # (B, N, 1)

    def step(op: Graph, states: list[Value], inputs: list[Value]) -> tuple[list[Value], list[Value]]:
        (next_tag, next_label), (pointer, conditional, is_last) = states, inputs
        here = op("Where", is_last, tag, op("GatherElements", pointer, next_tag, axis=1))  # (B, 1)
        label = op("Where", op.unsqueeze(is_last, 2), op.unsqueeze(begin, 2), op("MatMul", conditional, next_label))
        return [here, label], [here, label]

    zero = op("Mul", op.unsqueeze(begin, 2), np.float32(0))  # (B, K, 1): padding has no tag
    kinds = [INT64, FLOAT, INT64, FLOAT, "BOOL"]
    _, (tags, labels) = op.scan(step, [tag, zero], [pointers, conditional, is_last], kinds, reverse=True)
    return op.squeeze(tags, 2), op.squeeze(labels, 3)
