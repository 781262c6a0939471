"""Baseline of Table 3: stacked convolutions with max pooling."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..ops.equations import length_mask
from .encoding import Encoder, Encoding, check_size


class CNN(Encoder):
    """`num_layers` convolutions over windows of `kernel_size` words, each with ReLU; the sentence is their maximum.

    x (B, N, input_size) -> words (B, N, hidden_size), sentence (B, hidden_size).
    The paper gives no sizes. Windows of 3 words are what one step of S-LSTM sees. A layer has kernel_size H^2 + H
    parameters: 270K at H = 300; Table 3's layers (80K, 91K and 47K) fit no single size, H = 160 (77K) comes nearest.
    dropout: between stacked layers.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        kernel_size: int = 3,
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_size("input_size", input_size)
        check_size("hidden_size", hidden_size)
        check_size("num_layers", num_layers)
        check_size("kernel_size", kernel_size)
        if kernel_size % 2 == 0:
            raise ValueError(f"kernel_size must be odd, with as many words left as right, got {kernel_size}")
        self.input_size = input_size
        self.output_size = hidden_size
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(size, hidden_size, kernel_size, padding=kernel_size // 2, device=device, dtype=dtype)
            for size in sizes
        )
        self.dropout = nn.Dropout(dropout)

    def encode(self, x: Tensor, lengths: Tensor | None) -> Encoding:
        padding = None if lengths is None else ~length_mask(lengths, x.shape[1])[:, None]  # (B, 1, N)
        h = x.transpose(1, 2)  # (B, D, N), as nn.Conv1d has it
        for index, layer in enumerate(self.layers):
            h = layer(self.dropout(h) if index else h).relu()  # (B, H, N)
            if padding is not None:
                h = h.masked_fill(padding, 0)  # what the next window sees behind the last word
        return Encoding(words=h.transpose(1, 2), sentence=h.amax(dim=2))  # after ReLU the zeros at padding never win
