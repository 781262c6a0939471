"""The encoders of Section 3.1 and Table 3 as ONNX graphs: (x, lengths) -> Encoded, for any number of words."""

from __future__ import annotations

import math
from functools import partial
from typing import cast

import numpy as np
import torch
from torch import nn

from ...encoders import CNN, LSTM, Encoder, SentenceStateLSTM, Transformer
from ...encoders.bilstm import CoupledLayer, StandardLayer
from ...encoders.transformer import TransformerLayer
from .graph import FLOAT, Graph, Value
from .heads import linear
from .products import Products
from .recurrence import Encoded, array, recurrence
from .released import released_recurrence


def encode(
    op: Graph,
    encoder: Encoder,
    x: Value,
    lengths: Value,
    need_words: bool,
    need_sentence: bool,
    products: Products,
    every_step: bool = False,
) -> Encoded:
    """x: (B, N, D), anything at padding; lengths: (B,). every_step: an S-LSTM's sentence after each, (B, T, H)."""
    if isinstance(encoder, SentenceStateLSTM):
        if encoder.variant == "released":
            return released_recurrence(op, encoder, x, lengths)
        return recurrence(op, encoder, x, lengths, need_words, need_sentence, products, every_step)
    if isinstance(encoder, LSTM):
        return lstm(op, encoder, x, lengths)
    if isinstance(encoder, CNN):
        return cnn(op, encoder, x, lengths)
    if isinstance(encoder, Transformer):
        return transformer(op, encoder, x, lengths)
    raise TypeError(f"no ONNX graph for {type(encoder).__name__}")


# ---- Section 3.1 ------------------------------------------------------------------------------------


def lstm(op: Graph, encoder: LSTM, x: Value, lengths: Value) -> Encoded:
    for layer in encoder.layers:
        if isinstance(layer, StandardLayer):
            x, final = standard_layer(op, layer, x, lengths)
        else:
            x, final = coupled_layer(op, cast(CoupledLayer, layer), x, lengths)
    return Encoded(x, final)


def standard_layer(op: Graph, layer: StandardLayer, x: Value, lengths: Value) -> tuple[Value, Value]:
    """ONNX's own LSTM operator, which knows lengths: h (B, N, directions H), zero at padding, and the last states."""
    lstm, H = layer.lstm, layer.lstm.hidden_size
    directions = lstm.all_weights

    def ordered(weight: torch.Tensor) -> np.ndarray:
        i, f, u, o = np.split(array(weight), 4)  # PyTorch's order
        return np.concatenate([i, o, f, u])  # ONNX's

    W, R = (np.stack([ordered(weights[part]) for weights in directions]) for part in (0, 1))
    b = np.stack([np.concatenate([ordered(weights[2]), ordered(weights[3])]) for weights in directions])
    h, final = op.several(
        "LSTM",
        2,
        op("Transpose", x, perm=[1, 0, 2]),
        W,
        R,
        b,
        op("Cast", lengths, to=6),  # int32
        hidden_size=H,
        direction="bidirectional" if len(directions) == 2 else "forward",
    )
    # (N, directions, B, H) -> (B, N, directions H) and (directions, B, H) -> (B, directions H)
    words = op.reshape(op("Transpose", h, perm=[2, 0, 1, 3]), 0, 0, H * len(directions))
    return words, op.reshape(op("Transpose", final, perm=[1, 0, 2]), 0, H * len(directions))


def coupled_layer(op: Graph, layer: CoupledLayer, x: Value, lengths: Value) -> tuple[Value, Value]:
    """Eq. 1 scanned from left to right, for the backward direction over the reversed sentences."""
    W, U, b, h_0, c_0 = (array(weight) for weight in (layer.W, layer.U, layer.b, layer.h_0, layer.c_0))
    H, reverse = U.shape[1], partial(reversed_words, op, lengths=lengths)
    mask = op.unsqueeze(op("Cast", op.length_mask(lengths, x), to=1), 2)
    last = op.unsqueeze(op.unsqueeze(lengths - op.value(np.array(1)), 1), 2)  # (B, 1, 1)
    words, final = [], []
    for direction in range(len(W)):
        product = (x if direction == 0 else reverse(x)) @ W[direction] + b[direction]
        batch = op.concat([op.size(x, 0), op.value(np.array([H]))], 0)
        states = [op("Expand", start[direction], batch) for start in (h_0, c_0)]
        step = partial(coupled_step, U=U[direction], H=H)
        _, outputs = op.scan(step, states, [product], [FLOAT] * 3)
        h = outputs[0] * mask
        final.append(op.squeeze(op("GatherElements", h, op("Expand", last, np.array([1, 1, H])), axis=1), 1))
        words.append(h if direction == 0 else reverse(h))
    return op.concat(words, 2), op.concat(final, 1)


def coupled_step(
    op: Graph, states: list[Value], inputs: list[Value], U: np.ndarray, H: int
) -> tuple[list[Value], list[Value]]:
    h, c = states
    gates, u = op.split(inputs[0] + h @ U, [3 * H, H], axis=1)
    i_hat, f_hat, o = op.split(op("Sigmoid", gates), [H, H, H], axis=1)
    i = op("Sigmoid", i_hat - f_hat)  # the softmax of two values; f = 1 - i
    c = c + i * (op("Tanh", u) - c)
    h = o * op("Tanh", c)
    return [h, c], [h]


def reversed_words(op: Graph, x: Value, lengths: Value) -> Value:
    """Each sentence of (B, N, .) from its last word to its first, its padding still behind it."""
    return op("ReverseSequence", x, lengths, batch_axis=0, time_axis=1)


# ---- Table 3 ----------------------------------------------------------------------------------------


def cnn(op: Graph, encoder: CNN, x: Value, lengths: Value) -> Encoded:
    mask = op.unsqueeze(op("Cast", op.length_mask(lengths, x), to=1), 1)  # (B, 1, N)
    h = op("Transpose", x, perm=[0, 2, 1]) * mask
    for layer in cast(list[nn.Conv1d], encoder.layers):
        weight = array(layer.weight)
        side = weight.shape[2] // 2
        h = op("Relu", op("Conv", h, weight, array(cast(torch.Tensor, layer.bias)), pads=[side, side])) * mask
    return Encoded(op("Transpose", h, perm=[0, 2, 1]), op("ReduceMax", h, axes=[2], keepdims=0))


def transformer(op: Graph, encoder: Transformer, x: Value, lengths: Value) -> Encoded:
    inside = op.length_mask(lengths, x)  # (B, N)
    unseen = op("Where", inside, np.float32(0), np.float32(-1e30))
    unseen = op.unsqueeze(op.unsqueeze(unseen, 1), 1)  # (B, 1, 1, N)
    h = x if isinstance(encoder.projection, nn.Identity) else linear(op, x, encoder.projection)
    h = h + positions(op, x, encoder.output_size)
    for layer in cast(list[TransformerLayer], encoder.layers):
        h = h + attend(op, layer, norm(op, layer.attention_norm, h), unseen)
        inner, _, _, outer = cast(list[nn.Linear], layer.feedforward)
        h = h + linear(op, op("Relu", linear(op, norm(op, layer.feedforward_norm, h), inner)), outer)
    h = norm(op, encoder.norm, h) * op.unsqueeze(op("Cast", inside, to=1), 2)
    return Encoded(h, op.sum(h, 1) / op.unsqueeze(op("Cast", lengths, to=1), 1))


def norm(op: Graph, layer: nn.LayerNorm, x: Value) -> Value:
    return op("LayerNormalization", x, array(layer.weight), array(layer.bias), axis=-1, epsilon=layer.eps)


def attend(op: Graph, layer: TransformerLayer, h: Value, unseen: Value) -> Value:
    """softmax(Q K' / sqrt(H / heads)) V: (B, N, H) -> (B, N, H)."""
    heads, size = layer.num_heads, layer.heads_out.in_features // layer.num_heads
    split = op.reshape(linear(op, h, layer.queries_keys_values), 0, 0, 3, heads, size)
    joined = op("Transpose", split, perm=[2, 0, 3, 1, 4])  # (3, B, heads, N, size)
    queries, keys, values = (op.squeeze(part, 0) for part in op.split(joined, [1, 1, 1], axis=0))
    scores = queries @ op("Transpose", keys, perm=[0, 1, 3, 2]) * (1 / math.sqrt(size)) + unseen
    attended = op("Softmax", scores, axis=3) @ values
    return linear(op, op.reshape(op("Transpose", attended, perm=[0, 2, 1, 3]), 0, 0, heads * size), layer.heads_out)


def positions(op: Graph, x: Value, hidden_size: int) -> Value:
    """sin and cos of n / 10000^(2k / H) side by side -> (N, H)."""
    number = op("Cast", op("Range", np.array(0), op.squeeze(op.size(x, 1), 0), np.array(1)), to=1)
    pair = np.arange(0, hidden_size, 2, dtype=np.float32)
    angle = op.unsqueeze(number, 1) * np.exp(pair * np.float32(-math.log(10000) / hidden_size))
    both = op.concat([op.unsqueeze(op("Sin", angle), 2), op.unsqueeze(op("Cos", angle), 2)], 2)
    return op.slice(op.reshape(both, 0, 2 * len(pair)), 0, hidden_size, 1)
