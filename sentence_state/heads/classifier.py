"""Section 3.3, classification: a softmax layer over the sentence vector, or over the attended words."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..encoders.encoding import check_size
from .attention import AdditiveAttention


class Classifier(nn.Module):
    """y = softmax(W_c g + b_c) without the softmax: g is the encoder's sentence vector, or attention over its words."""

    def __init__(
        self,
        hidden_size: int,
        num_classes: int,
        attention: bool = False,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_size("hidden_size", hidden_size)
        check_size("num_classes", num_classes)
        self.hidden_size = hidden_size
        self.attention = AdditiveAttention(hidden_size, device=device, dtype=dtype) if attention else None
        self.output = nn.Linear(hidden_size, num_classes, device=device, dtype=dtype)  # W_c and b_c

    def forward(self, words: Tensor, sentence: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """words: (B, N, H) and lengths: (B,), read by attention only; sentence: (B, H), read without attention only.

        Returns logits (B, K), not normalised, as `cross_entropy` wants them; `logits.softmax(-1)` is the paper's y.
        """
        g = sentence if self.attention is None else self.attention(words, lengths)  # (B, H)
        if g.shape[-1] != self.hidden_size:
            raise ValueError(f"sentence must have shape (B, {self.hidden_size}), got {tuple(g.shape)}")
        logits: Tensor = self.output(g)
        return logits
