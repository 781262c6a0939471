"""Section 3.1: LSTM, BiLSTM and stacked BiLSTM, with nn.LSTM's cell or with the coupled gates of Eq. 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from ..ops.equations import length_mask
from ..ops.products import has_products_of
from .encoding import Encoder, Encoding, check_choice, check_size


class LSTM(Encoder):
    """Section 3.1, one direction: reads from left to right; the sentence vector is the state at the last word.

    x (B, N, input_size) -> words (B, N, hidden_size), sentence (B, hidden_size).
    cell: "standard" is nn.LSTM's own (cuDNN on a GPU, two biases a gate); "coupled" is Eq. 1, a loop over the words.
    dropout: between stacked layers, as in nn.LSTM.
    Neither cell compiles into one graph for all lengths: torch.compile runs nn.LSTM eagerly and unrolls Eq. 1 anew for
    each length, torch.export unrolls both, so the number of words is fixed in an exported program.
    """

    num_directions = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        cell: str = "standard",
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_size("input_size", input_size)
        check_size("hidden_size", hidden_size)
        check_size("num_layers", num_layers)
        check_choice("cell", cell, ("standard", "coupled"))
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.output_size = self.num_directions * hidden_size
        layer = StandardLayer if cell == "standard" else CoupledLayer
        sizes = [input_size] + [self.output_size] * (num_layers - 1)
        self.layers = nn.ModuleList(layer(size, hidden_size, self.num_directions, device, dtype) for size in sizes)
        self.dropout = nn.Dropout(dropout)

    def encode(self, x: Tensor, lengths: Tensor | None) -> Encoding:
        h = self.layers[0](x, lengths)
        for layer in self.layers[1:]:
            h = layer(self.dropout(h), lengths)  # (B, N, output_size)
        if lengths is not None:
            h = h.masked_fill(~length_mask(lengths, h.shape[1])[..., None], 0)
        return Encoding(words=h, sentence=final_states(h, lengths, self.hidden_size))


class BiLSTM(LSTM):
    """Section 3.1, both directions; with num_layers > 1 the stacked BiLSTM. `hidden_size` is that of one direction.

    x (B, N, input_size) -> words [forward; backward] (B, N, 2 hidden_size), sentence (B, 2 hidden_size): the forward
    state at the last word and the backward state at the first. The other arguments are those of `LSTM`.
    """

    num_directions = 2


def final_states(h: Tensor, lengths: Tensor | None, hidden_size: int) -> Tensor:
    """g = [forward state at the last word; backward state at the first]: h (B, N, H or 2H) -> (B, H or 2H)."""
    forward, backward = h[..., :hidden_size], h[:, 0, hidden_size:]  # one direction: backward is (B, 0)
    if lengths is None:
        return torch.cat([forward[:, -1], backward], dim=-1)
    last = (lengths.long() - 1)[:, None, None].expand(-1, 1, hidden_size)
    return torch.cat([forward.gather(1, last).squeeze(1), backward], dim=-1)


def reverse(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Each sentence of x (B, N, D) from its last word to its first, its padding still behind it; its own inverse."""
    if lengths is None:
        return x.flip(1)
    position = torch.arange(x.shape[1], device=x.device)
    source = torch.where(position < lengths[:, None], lengths[:, None] - 1 - position, position)  # (B, N)
    return x.gather(1, source[..., None].expand_as(x))


class StandardLayer(nn.Module):
    """One layer of nn.LSTM in one or two directions: x (B, N, D), lengths (B,) -> h (B, N, H or 2H).

    Padding stands behind the words, so a forward pass never meets it before a word. Only the backward direction of a
    padded batch needs care: it reads every sentence reversed within its own length. No packing: that would bring the
    lengths to the host at every call, which a CUDA graph forbids, and on the CPU it is slower. Where a processor
    has no fast products of a 16-bit type, float32 takes its place; under autocast PyTorch would fail there, for it asks
    oneDNN for an LSTM before the type is changed.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_directions: int,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        self.lstm = nn.LSTM(
            input_size, hidden_size, batch_first=True, bidirectional=num_directions == 2, device=device, dtype=dtype
        )

    def forward(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
        is_low = dtype.itemsize == 2 and x.dtype != torch.float64  # which autocast leaves as it is
        if is_low and x.device.type == "cpu" and not has_products_of(dtype):
            weights = [[weight.float() for weight in direction] for direction in self.lstm.all_weights]
            with torch.autocast("cpu", enabled=False):
                return self.directions_by_turns(x.float(), lengths, weights).to(dtype)
        if lengths is None or not self.lstm.bidirectional:
            return cast(Tensor, self.lstm(x)[0])
        if x.is_cuda:
            return self.directions_in_one_call(x, lengths)
        return self.directions_by_turns(x, lengths, self.lstm.all_weights)

    def directions_by_turns(self, x: Tensor, lengths: Tensor | None, weights: Sequence[Sequence[Tensor]]) -> Tensor:
        forward, *backward = weights  # of each direction
        h = self.one_direction(x, forward)
        if not backward:
            return h
        return torch.cat([h, reverse(self.one_direction(reverse(x, lengths), backward[0]), lengths)], dim=-1)

    def one_direction(self, x: Tensor, weights: Sequence[Tensor]) -> Tensor:
        """What nn.LSTM calls, from left to right with the weights of either direction: (B, N, D) -> (B, N, H)."""
        zeros = x.new_zeros(1, x.shape[0], self.lstm.hidden_size)
        return torch.lstm(x, (zeros, zeros), tuple(weights), True, 1, 0.0, self.training, False, True)[0]

    def directions_in_one_call(self, x: Tensor, lengths: Tensor) -> Tensor:
        """cuDNN wants the weights of both directions in one piece of memory and runs both at once: one call on 2B rows,
        of which the forward direction is kept for the sentences as they are, the backward one for those moved to the
        right end, is faster than two calls."""
        B, H = x.shape[0], self.lstm.hidden_size
        to_the_right = reverse(x, lengths).flip(1)  # words end at N: the backward direction meets padding last
        rows = self.lstm(torch.cat([x, to_the_right]))[0]  # (2B, N, 2H)
        forward, backward = rows[:B, :, :H], rows[B:, :, H:]
        return torch.cat([forward, reverse(backward.flip(1), lengths)], dim=-1)


class CoupledLayer(nn.Module):
    """One layer of Eq. 1 in one or two directions: x (B, N, D), lengths (B,) -> h (B, N, H or 2H).

    W, U and b hold the gates i, f, o, u side by side, once for each direction; h_0 and c_0 are the initial states.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_directions: int,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()

        def parameter(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(num_directions, *shape, device=device, dtype=dtype))

        self.W = parameter(input_size, 4 * hidden_size)
        self.U = parameter(hidden_size, 4 * hidden_size)
        self.b = parameter(1, 4 * hidden_size)
        self.h_0 = parameter(1, hidden_size)
        self.c_0 = parameter(1, hidden_size)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = self.U.shape[1] ** -0.5
        for weight in (self.W, self.U, self.b):
            nn.init.uniform_(weight, -bound, bound)  # as nn.LSTM
        for state in (self.h_0, self.c_0):
            nn.init.zeros_(state)

    def forward(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        B, N, _ = x.shape
        both = len(self.W) == 2
        directions = torch.stack([x, reverse(x, lengths)] if both else [x])  # (directions, B, N, D)
        products = torch.baddbmm(self.b, directions.flatten(1, 2), self.W).unflatten(1, (B, N))
        h = coupled_recurrence(products, self.U, self.h_0, self.c_0)  # (directions, B, N, H)
        return torch.cat([h[0], reverse(h[1], lengths)], dim=-1) if both else h[0]


def coupled_recurrence(products: Tensor, U: Tensor, h_0: Tensor, c_0: Tensor) -> Tensor:
    """Eq. 1 from left to right, all directions in one loop: W x + b (directions, B, N, 4H), U (directions, H, 4H),
    initial states (directions, 1, H) -> h (directions, B, N, H)."""
    directions, B, _, _ = products.shape
    h = h_0.expand(directions, B, -1)
    c = c_0.expand(directions, B, -1)
    states = []
    for product in products.unbind(2):
        h, c = coupled_step(torch.baddbmm(product, h, U), c)
        states.append(h)
    return torch.stack(states, dim=2)


def coupled_step(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Eq. 1 after the matrix products: gates (directions, B, 4H) and cells c (directions, B, H) -> new h and c."""
    hidden_size = c.shape[-1]
    i_hat, f_hat, o = gates[..., : 3 * hidden_size].sigmoid().chunk(3, dim=-1)
    u = gates[..., 3 * hidden_size :].tanh()
    i = (i_hat - f_hat).sigmoid()  # the softmax of two values; f = 1 - i
    c = c + i * (u - c)  # c * f + u * i
    return o * c.tanh(), c
