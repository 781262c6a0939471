"""What is measured against what."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sentence_state import SentenceStateLSTM
from sentence_state.data.example import Example
from sentence_state.data.vocabulary import SPECIALS, Vocabulary
from sentence_state.encoders import ENCODERS, Encoder

H, STEPS = 300, 9
REFERENCE = "S-LSTM, reference"
MEMORY = {"S-LSTM, little memory": "low", "S-LSTM, normal memory": "normal"}
MODELS = ("S-LSTM", "BiLSTM", "2 stacked BiLSTM", "Transformer (N=8)", "CNN", REFERENCE, *MEMORY)

TARGETS = [(10, 24), (10, 256), (10, 1024), (64, 256), (256, 24)]  # batch x words
GRID = [(batch, words) for batch in (1, 10, 64, 256) for words in (8, 24, 64, 256, 1024, 2048)]
MOST_WORDS = {"bfloat16": 256 * 2048, "float32": 10 * 2048}  # beyond, one round would take seconds
MOST_REFERENCE_WORDS = 64 * 256  # keeps every gate of every step

WORDS = 20_000  # of the vocabulary


def grid(dtype: str) -> list[tuple[int, int]]:
    """The target shapes, then the others from few words to many."""
    others = sorted(set(GRID) - set(TARGETS), key=lambda shape: (shape[0] * shape[1], shape))
    return [shape for shape in (*TARGETS, *others) if shape[0] * shape[1] <= MOST_WORDS[dtype]]


def make_encoder(name: str, dtype: torch.dtype) -> Encoder:
    if name == REFERENCE:
        return SentenceStateLSTM(H, H, STEPS, device="cuda", dtype=dtype, backend="reference")
    if name in MEMORY:
        return SentenceStateLSTM(H, H, STEPS, device="cuda", dtype=dtype, memory=MEMORY[name])
    return ENCODERS[name](H, H, device="cuda", dtype=dtype)


@cache
def mr_shaped_examples(sentences: int = 8530) -> tuple[list[Example], Vocabulary]:
    """Sentences as long as those of MR's training set (8,530 of 1 to 59 words, mean 21.0, deviation 9.4), their words
    drawn by Zipf's law from a vocabulary of 20,000."""
    rng = np.random.default_rng(0)
    names = [f"w{rank}" for rank in range(WORDS - len(SPECIALS))]
    share = 1 / np.arange(10, len(names) + 10)
    lengths = rng.normal(21.0, 9.4, sentences).round().clip(1, 59).astype(int)
    drawn = rng.choice(len(names), lengths.sum(), p=share / share.sum())
    parts = np.split(drawn, np.cumsum(lengths)[:-1])
    labels = rng.choice(["negative", "positive"], sentences)
    examples = [
        Example([names[word] for word in part], label=str(label)) for part, label in zip(parts, labels, strict=True)
    ]
    return examples, Vocabulary(names)


class SevenProducts(nn.Module):
    """Eq. 2 and Eq. 3 written down directly: each gate its own product of [xi, x, g], and no saving of any kind. The
    port that one would write first, and the yardstick for ours. No padding."""

    def __init__(self, encoder: SentenceStateLSTM) -> None:
        super().__init__()
        H = encoder.hidden_size
        self.H, self.num_steps = H, encoder.num_steps
        joined = torch.cat([encoder.W, encoder.U, encoder.V], dim=1)
        self.word_weights = nn.ParameterList(joined.detach().split(H))
        self.word_biases = nn.ParameterList(encoder.b.detach().split(H))
        W_g, W_o, W_f = encoder.sentence_W.detach().split(H)
        U_g, U_o = encoder.sentence_U.detach().split(H)
        self.sentence_weights = nn.ParameterList(
            [torch.cat([W_g, U_g], 1), torch.cat([W_o, U_o], 1), torch.cat([W_f, encoder.sentence_U_f.detach()], 1)]
        )
        self.sentence_biases = nn.ParameterList(encoder.sentence_b.detach().split(H))
        self.h_0, self.c_0 = encoder.h_0, encoder.c_0

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        B, N, _ = x.shape
        h, c = self.h_0.expand(B, N, -1), self.c_0.expand(B, N, -1)
        g, c_g = self.h_0.expand(B, -1), self.c_0.expand(B, -1)
        for _ in range(self.num_steps):
            left, right = (
                F.pad(h, pad)[:, part] for pad, part in (((0, 0, 1, 0), slice(N)), ((0, 0, 0, 1), slice(1, None)))
            )
            read = torch.cat([left, h, right, x, g[:, None].expand(-1, N, -1)], dim=2)
            i, l, f, r, s, o, u = (F.linear(read, *wb) for wb in zip(self.word_weights, self.word_biases, strict=True))
            gates = torch.stack([i, l, f, r, s]).sigmoid().softmax(dim=0)
            left, right = (
                F.pad(c, pad)[:, part] for pad, part in (((0, 0, 1, 0), slice(N)), ((0, 0, 0, 1), slice(1, None)))
            )
            c_new = gates[0] * u.tanh() + gates[1] * left + gates[2] * c + gates[3] * right + gates[4] * c_g[:, None]
            h_new = o.sigmoid() * c_new.tanh()
            mean = h.mean(dim=1)
            f_g = F.linear(torch.cat([g, mean], 1), self.sentence_weights[0], self.sentence_biases[0])
            o_g = F.linear(torch.cat([g, mean], 1), self.sentence_weights[1], self.sentence_biases[1])
            pairs = torch.cat([g[:, None].expand(-1, N, -1), h], dim=2)
            f_i = F.linear(pairs, self.sentence_weights[2], self.sentence_biases[2])
            share = torch.cat([f_i, f_g[:, None]], dim=1).sigmoid().softmax(dim=1)
            c_g = share[:, -1] * c_g + (share[:, :-1] * c).sum(dim=1)
            g = o_g.sigmoid() * c_g.tanh()
            h, c = h_new, c_new
        return h, g


def multiply_adds(B: int, N: int, D: int, H: int, num_steps: int) -> int:
    """Multiply-adds of the matrix products that the exact savings leave (window 1, one node, words and sentence):
    U x once; W xi and U_f h in every step but the first; the products of g and of the mean word in every step."""
    return B * N * 7 * H * D + (num_steps - 1) * B * N * (21 + 1) * H * H + num_steps * B * (7 + 3 + 2) * H * H
