"""What every head reads: the words of an encoding, checked."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..encoders.encoding import check_lengths
from ..ops.equations import length_mask


def read_words(
    words: Tensor, lengths: Tensor | Sequence[int] | None, hidden_size: int
) -> tuple[Tensor, Tensor, Tensor | None]:
    """words (B, N, H) with zeros at padding, lengths (B,), and the mask (B, N), True at a word; None: no padding."""
    if words.dim() != 3 or words.shape[2] != hidden_size:
        raise ValueError(f"words must have shape (B, N, {hidden_size}), got {tuple(words.shape)}")
    if words.shape[1] == 0:
        raise ValueError(f"every sentence needs at least one word, got words of shape {tuple(words.shape)}")
    if lengths is None:
        return words, torch.full(words.shape[:1], words.shape[1], device=words.device), None
    lengths = torch.as_tensor(lengths)
    check_lengths(lengths, words)
    lengths = lengths.to(words.device, torch.long, non_blocking=True)
    mask = length_mask(lengths, words.shape[1])
    return words.masked_fill(~mask[..., None], 0), lengths, mask
