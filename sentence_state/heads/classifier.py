"""Section 3.3, classification: a softmax layer over the sentence vector, or over another read-out of the encoding."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..encoders.encoding import check_choice, check_size
from .attention import AdditiveAttention
from .words import read_words

READOUTS = ("sentence", "attention", "max", "steps")


class Classifier(nn.Module):
    """y = softmax(W_c g + b_c) without the softmax. What g is, `readout` says:

    "sentence", the encoder's sentence vector; "attention", the paper's attention over the words; "max", the sentence
    vector beside the maximum over the words; "steps", attention over the sentence vectors of all steps of an S-LSTM.
    """

    def __init__(
        self,
        hidden_size: int,
        num_classes: int,
        readout: str = "sentence",
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_size("hidden_size", hidden_size)
        check_size("num_classes", num_classes)
        check_choice("readout", readout, READOUTS)
        self.hidden_size, self.readout = hidden_size, readout
        attends = readout in ("attention", "steps")
        self.attention = AdditiveAttention(hidden_size, device=device, dtype=dtype) if attends else None
        size = 2 * hidden_size if readout == "max" else hidden_size
        self.output = nn.Linear(size, num_classes, device=device, dtype=dtype)  # W_c and b_c

    @property
    def needs(self) -> tuple[bool, bool]:
        """Whether the words are read, and whether the sentence vector is."""
        return self.readout in ("attention", "max"), self.readout != "attention"

    def forward(self, words: Tensor, sentence: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """words: (B, N, H) and lengths: (B,); sentence: (B, H), or (B, T, H) for readout="steps". What is not read may
        be None.

        Returns logits (B, K), not normalised, as `cross_entropy` wants them; `logits.softmax(-1)` is the paper's y.
        """
        logits: Tensor = self.output(self.read(words, sentence, lengths))
        return logits

    def read(self, words: Tensor, sentence: Tensor, lengths: Tensor | Sequence[int] | None) -> Tensor:
        """g (B, H), or (B, 2 H) for readout="max"."""
        if self.attention is not None:
            read = (words, lengths) if self.readout == "attention" else (sentence, None)
            attended: Tensor = self.attention(*read)
            return attended
        if sentence.dim() != 2 or sentence.shape[-1] != self.hidden_size:
            raise ValueError(f"sentence must have shape (B, {self.hidden_size}), got {tuple(sentence.shape)}")
        if self.readout == "sentence":
            return sentence
        words, _, mask = read_words(words, lengths, self.hidden_size)
        if mask is not None:
            words = words.masked_fill(~mask[..., None], -torch.inf)
        return torch.cat([sentence, words.amax(dim=1)], dim=-1)
