"""What the authors' released classifier computes (`ops/released.py`) as an ONNX graph; window and all, in float32."""

from __future__ import annotations

import numpy as np
import torch

from ...encoders import SentenceStateLSTM
from .graph import Graph, Value
from .recurrence import Encoded, Sizes, States, arrays, exponentials, sentence_update, shifted


def released_recurrence(op: Graph, encoder: SentenceStateLSTM, x: Value, lengths: Value) -> Encoded:
    W = arrays(encoder._prepare(torch.zeros(1))[1])
    H, window = encoder.hidden_size, encoder.window
    sizes = Sizes(H, 1, 1)  # the neighbours of a side are summed into one
    mask = op.unsqueeze(op("Cast", op.length_mask(lengths, x), to=1), 2)
    count = op.unsqueeze(op("Cast", lengths, to=1), 1)  # (B, 1)
    x = x * mask
    x_term = x @ np.ascontiguousarray(W.U.T) + W.b
    mean = op.sum(x, 1) / count
    state = States(x, x, mean, op.unsqueeze(mean, 1))
    for _ in range(encoder.num_steps):
        g_term = state.g @ np.ascontiguousarray(np.concatenate([W.V, W.sentence_W]).T)
        of_words, of_sentence = op.split(g_term, [6 * H, 3 * H], axis=1)
        xi = op.concat(summed_sides(op, state.h, window), 2)
        gates = x_term + xi @ np.ascontiguousarray(W.W.T) + op.unsqueeze(of_words, 1)
        mixed, o = op.split(gates, [5 * H, H], axis=2)
        weights = op.reshape(exponentials(op, mixed, sizes, encoder.gates), 0, 0, 5, H)
        like = op("Shape", x)
        sources = [x, *summed_sides(op, state.c, window), op("Expand", state.c_g, like)]
        stacked = op.concat([op.unsqueeze(source, 2) for source in sources], 2)  # (B, N, 5, H)
        c = op.sum(weights * stacked, 2) / op.sum(weights, 2) * mask
        h = op("Sigmoid", o) * op("Tanh", c)
        h_term = (op.sum(state.h, 1) / count) @ np.ascontiguousarray(W.sentence_U.T)
        f_term = op.unsqueeze(state.h @ np.ascontiguousarray(W.sentence_U_f.T), 2)
        g, c_g = sentence_update(op, state, of_sentence + W.sentence_b, h_term, f_term, mask, sizes, encoder.gates)
        state = States(h, c, g, c_g)
    return Encoded(state.h, (op.sum(state.h, 1) + state.g) / (count + 1))


def summed_sides(op: Graph, states: Value, window: int) -> list[Value]:
    """(B, N, H) -> the sum of w words to the left, the word, the sum of w words to the right."""
    parts = shifted(op, states, window)
    left, right = (op("Sum", *side) for side in (parts[:window], parts[window + 1 :]))
    return [left, parts[window], right]
