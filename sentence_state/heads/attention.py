"""Section 3.3, external attention: one vector for a sentence, a weighted sum of its word states."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..encoders.encoding import check_size
from .words import read_words


class AdditiveAttention(nn.Module):
    """g = sum_t alpha_t h_t, where alpha = softmax_t(u . tanh(W h_t + b)). Padding has the weight 0."""

    def __init__(
        self, hidden_size: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        check_size("hidden_size", hidden_size)
        self.hidden_size = hidden_size
        self.W = nn.Linear(hidden_size, hidden_size, device=device, dtype=dtype)  # W_alpha and b_alpha
        self.u = nn.Linear(hidden_size, 1, bias=False, device=device, dtype=dtype)

    def forward(self, words: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """words: (B, N, H); lengths: (B,), None where nothing is padded. Returns g (B, H)."""
        words, _, mask = read_words(words, lengths, self.hidden_size)
        alpha = self._alpha(words, mask)
        return (alpha[:, None] @ words).squeeze(1)

    def weights(self, words: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """The same input -> alpha (B, N): what `forward` weighs each word with; sums to one over a sentence."""
        words, _, mask = read_words(words, lengths, self.hidden_size)
        return self._alpha(words, mask)

    def _alpha(self, words: Tensor, mask: Tensor | None) -> Tensor:
        score: Tensor = self.u(self.W(words).tanh()).squeeze(2)  # (B, N)
        if mask is not None:
            score = score.masked_fill(~mask, -torch.inf)
        return score.softmax(dim=1)
