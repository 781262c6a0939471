"""nn.LSTM's own constructor, call and return around `SentenceStateLSTM`."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from .encoding import read_input
from .sentence_state_lstm import SentenceStateLSTM


class DropInLSTM(nn.Module):
    """Takes the place of `nn.LSTM` in code that is already written: `output, (h_n, c_n) = lstm(input)`.

    The sizes are nn.LSTM's: with bidirectional=True the states have 2 x hidden_size units, `output` ends in
    2 x hidden_size, and h_n and c_n are (2, B, hidden_size), the two halves of the sentence state g and its cell, so
    that the usual `torch.cat([h_n[-2], h_n[-1]], dim=-1)` is g. `dropout` is step dropout. What has no counterpart
    (several layers, projections, an initial state from outside) is refused. `num_steps`, `window` and `gates` are those
    of `SentenceStateLSTM`; all of them are always taken (`halting` is for the encoder itself).
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        num_steps: int = 9,
        window: int = 1,
        gates: str = "paper",
    ) -> None:
        super().__init__()
        if num_layers != 1:
            raise ValueError(f"num_layers must be 1, got {num_layers}: S-LSTM deepens by num_steps, not by layers")
        if proj_size != 0:
            raise ValueError(f"proj_size must be 0, got {proj_size}")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1), got {dropout}")
        self.input_size, self.hidden_size = input_size, hidden_size  # what code written for nn.LSTM reads from it
        self.num_layers, self.bias, self.batch_first, self.dropout = num_layers, bias, batch_first, dropout
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self.directions = 2 if bidirectional else 1
        self.encoder = SentenceStateLSTM(
            input_size,
            hidden_size * self.directions,
            num_steps,
            window,
            gates=gates,
            step_dropout=dropout,
            bias=bias,
            device=device,
            dtype=dtype,
        )

    def forward(
        self, input: Tensor | PackedSequence, hx: None = None
    ) -> tuple[Tensor | PackedSequence, tuple[Tensor, Tensor]]:
        """input: (N, B, D), (B, N, D) with batch_first, (N, D), or a `PackedSequence`; a packed input gives a packed
        output. Returns output (N, B, H) in the layout of the input, h_n and c_n (directions, B, hidden_size)."""
        if hx is not None:
            raise ValueError("hx must be None: the initial state of S-LSTM is a parameter")
        if isinstance(input, PackedSequence):
            x, lengths = pad_packed_sequence(input, batch_first=True)
            words, h_n, c_n = self._encode(x, lengths)
            if input.sorted_indices is not None:
                words, lengths = words[input.sorted_indices], lengths[input.sorted_indices.cpu()]
            data = pack_padded_sequence(words, lengths, batch_first=True).data
            return PackedSequence(data, input.batch_sizes, input.sorted_indices, input.unsorted_indices), (h_n, c_n)
        time_first = input.dim() == 3 and not self.batch_first
        words, h_n, c_n = self._encode(input.transpose(0, 1) if time_first else input, None)
        if input.dim() == 2:
            return words[0], (h_n[:, 0], c_n[:, 0])
        return (words.transpose(0, 1).contiguous() if time_first else words), (h_n, c_n)  # `output.view(-1, H)` works

    def _encode(self, x: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """words (B, N, H), h_n and c_n (directions, B, H / directions)."""
        x, lengths, _ = read_input(x, lengths, None, self.encoder.input_size)
        words, g, c_g = self.encoder.run(x, lengths)
        h_n, c_n = (state.unflatten(1, (self.directions, -1)).transpose(0, 1).contiguous() for state in (g, c_g))
        return words, h_n, c_n

    def reset_parameters(self) -> None:
        self.encoder.reset_parameters()

    def flatten_parameters(self) -> None:
        """Nothing to do; code written for nn.LSTM calls it."""
