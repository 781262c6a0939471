"""Baseline of Table 3: N layers of self-attention (Vaswani et al., 2017)."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from ..ops.equations import length_mask
from .encoding import Encoder, Encoding, check_size


class Transformer(Encoder):
    """Positions are added to the words, then `num_layers` of self-attention; the sentence is the mean of the words.

    x (B, N, input_size) -> words (B, N, hidden_size), sentence (B, hidden_size); a linear layer comes first where the
    two sizes differ. feedforward_size: 4 hidden_size unless given. dropout: as in nn.TransformerEncoderLayer.
    The paper gives 6, 8 and 10 layers of about 190K parameters each, but no sizes: hidden_size 128 has 198K a layer
    (hidden_size 300 has 1,084K). The norm stands before each sub-layer, so that it trains at the paper's constant
    learning rate: the original order needs a warm-up.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 8,
        num_heads: int = 4,
        feedforward_size: int | None = None,
        dropout: float = 0.1,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        feedforward_size = 4 * hidden_size if feedforward_size is None else feedforward_size
        check_size("input_size", input_size)
        check_size("hidden_size", hidden_size)
        check_size("num_layers", num_layers)
        check_size("num_heads", num_heads)
        check_size("feedforward_size", feedforward_size)
        if hidden_size % num_heads:
            raise ValueError(f"hidden_size must be divisible by num_heads = {num_heads}, got {hidden_size}")
        self.input_size = input_size
        self.output_size = hidden_size
        self.projection = (
            nn.Identity()
            if input_size == hidden_size
            else nn.Linear(input_size, hidden_size, device=device, dtype=dtype)
        )
        self.layers = nn.ModuleList(
            TransformerLayer(hidden_size, num_heads, feedforward_size, dropout, device, dtype)
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(hidden_size, device=device, dtype=dtype)

    def encode(self, x: Tensor, lengths: Tensor | None) -> Encoding:
        h = self.projection(x) + positions(x.shape[1], self.output_size, x.dtype, x.device)  # (B, N, H)
        mask = None if lengths is None else length_mask(lengths, x.shape[1])  # (B, N)
        for layer in self.layers:
            h = layer(h, mask)
        h = self.norm(h)
        if lengths is None or mask is None:
            return Encoding(words=h, sentence=h.mean(dim=1))
        h = h.masked_fill(~mask[..., None], 0)
        return Encoding(words=h, sentence=h.sum(dim=1) / lengths[:, None])


class TransformerLayer(nn.Module):
    """Self-attention and a feed-forward layer, each added to its input: h (B, N, H), mask (B, N) -> (B, N, H).

    The same numbers as nn.TransformerEncoderLayer(norm_first=True), on scaled_dot_product_attention alone: that class
    has a second implementation for inference, which tracing and autocast switch on and off.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        feedforward_size: int,
        dropout: float,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.attention_norm = nn.LayerNorm(hidden_size, device=device, dtype=dtype)
        self.queries_keys_values = nn.Linear(hidden_size, 3 * hidden_size, device=device, dtype=dtype)
        self.heads_out = nn.Linear(hidden_size, hidden_size, device=device, dtype=dtype)
        self.feedforward_norm = nn.LayerNorm(hidden_size, device=device, dtype=dtype)
        self.feedforward = nn.Sequential(
            nn.Linear(hidden_size, feedforward_size, device=device, dtype=dtype),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(feedforward_size, hidden_size, device=device, dtype=dtype),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor, mask: Tensor | None) -> Tensor:
        h = h + self.dropout(self.attend(self.attention_norm(h), mask))
        return cast(Tensor, h + self.dropout(self.feedforward(self.feedforward_norm(h))))

    def attend(self, h: Tensor, mask: Tensor | None) -> Tensor:
        """softmax(Q K' / sqrt(H / heads)) V over the words of each sentence: (B, N, H) -> (B, N, H)."""
        heads = self.queries_keys_values(h).unflatten(-1, (3, self.num_heads, -1))  # (B, N, 3, heads, H / heads)
        queries, keys, values = heads.permute(2, 0, 3, 1, 4).unbind(0)  # each (B, heads, N, H / heads)
        keys_seen = None if mask is None else mask[:, None, None]  # (B, 1, 1, N): every word sees all words, no padding
        dropout = self.dropout.p if self.training else 0.0
        attended = scaled_dot_product_attention(queries, keys, values, keys_seen, dropout_p=dropout)
        return cast(Tensor, self.heads_out(attended.transpose(1, 2).flatten(2)))


def positions(num_positions: int, hidden_size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """sin and cos of n / 10000^(2k / H) side by side, for any number of words N and units H -> (N, H)."""
    exact = torch.promote_types(dtype, torch.float32)  # bfloat16 cannot count beyond 256
    number = torch.arange(num_positions, device=device, dtype=exact)
    pair = torch.arange(0, hidden_size, 2, device=device, dtype=exact)  # (H / 2), rounded up
    angle = number[:, None] * torch.exp(pair * (-math.log(10000) / hidden_size))
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :hidden_size].to(dtype)
