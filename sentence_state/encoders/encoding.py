"""What every encoder takes and returns: (x, lengths) -> Encoding(words, sentence)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence
from torch.utils import _pytree

from ..ops.equations import length_mask


class Encoding(NamedTuple):
    """A hidden vector for every word and one for the sentence; `words` is zero at padding."""

    words: Tensor  # (B, N, H), or (N, H) for an unbatched input
    sentence: Tensor  # (B, H), or (H,)


if hasattr(_pytree, "_register_namedtuple"):  # so that torch.export.save knows it
    _pytree._register_namedtuple(Encoding, serialized_type_name="sentence_state.Encoding")


class Encoder(nn.Module):
    """The contract of all encoders. A subclass sets both sizes and implements `encode`, or `forward` itself."""

    input_size: int
    output_size: int

    def forward(
        self, x: Tensor | PackedSequence, lengths: Tensor | Sequence[int] | None = None, *, mask: Tensor | None = None
    ) -> Encoding:
        """Encode a batch of sentences.

        x: (B, N, D), a `PackedSequence`, or one sentence (N, D).
        lengths: (B,) words in each sentence; `mask`: (B, N), True at a word, instead. Neither: no padding.
        Returns `Encoding` with words (B, N, output_size) and sentence (B, output_size), in the order of the input.
        """
        x, lengths, unbatched = read_input(x, lengths, mask, self.input_size)
        encoding = self.encode(x, lengths)
        return Encoding(*(tensor.squeeze(0) for tensor in encoding)) if unbatched else encoding

    def encode(self, x: Tensor, lengths: Tensor | None) -> Encoding:
        """x: (B, N, D), zero at padding; lengths: (B,) on x's device, or None when nothing is padded."""
        raise NotImplementedError


def read_input(
    x: Tensor | PackedSequence, lengths: Tensor | Sequence[int] | None, mask: Tensor | None, input_size: int
) -> tuple[Tensor, Tensor | None, bool]:
    """Check every form of input and bring it into one: x (B, N, D) with zeros at padding, lengths (B,) or None, and
    whether the input was a single sentence without a batch dimension."""
    if isinstance(x, PackedSequence):
        if lengths is not None or mask is not None:
            raise ValueError("a PackedSequence carries its own lengths: leave out lengths and mask")
        x, lengths = pad_packed_sequence(x, batch_first=True)
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"x must be a tensor of floating-point numbers, got {kind}")
    if x.dim() not in (2, 3):
        raise ValueError(f"x must have shape (B, N, {input_size}) or (N, {input_size}), got {tuple(x.shape)}")
    if x.shape[-1] != input_size:
        raise ValueError(f"x must have input_size = {input_size} in its last dimension, got shape {tuple(x.shape)}")
    if x.shape[-2] == 0:
        raise ValueError(f"every sequence needs at least one word, got x of shape {tuple(x.shape)}")
    if lengths is not None and mask is not None:
        raise ValueError("give lengths or mask, not both")
    unbatched = x.dim() == 2
    if mask is not None:
        mask = torch.as_tensor(mask)
        check_mask(mask, x)
    if unbatched:
        x = x[None]
        mask = mask if mask is None else mask[None]
        lengths = lengths if lengths is None else torch.atleast_1d(torch.as_tensor(lengths))
    if mask is not None:
        lengths = mask_lengths(mask)
    if lengths is None:
        return x, None, unbatched
    lengths = torch.as_tensor(lengths)
    if check_lengths(lengths, x):
        return x, None, unbatched
    lengths = lengths.to(x.device, non_blocking=True)
    return x.masked_fill(~length_mask(lengths, x.shape[1])[..., None], 0), lengths, unbatched


def check_mask(mask: Tensor, x: Tensor) -> None:
    if mask.shape != x.shape[:-1]:
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}, input has shape {tuple(x.shape)}: expected {tuple(x.shape[:-1])}"
        )
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be boolean, True at a word, got {mask.dtype}")


def mask_lengths(mask: Tensor) -> Tensor:
    """(B,) lengths of a boolean mask whose words come before its padding."""
    lengths = mask.sum(dim=1)
    if not (torch.compiler.is_compiling() or mask.is_meta or is_mapped(mask)):
        broken = (mask != length_mask(lengths, mask.shape[1])).any(dim=1)
        if broken.any():
            row = int(broken.nonzero()[0])
            raise ValueError(f"mask must be True for the first words and False after them, row {row} is not")
    return lengths


def check_lengths(lengths: Tensor, x: Tensor) -> bool:
    """One length for each sentence, each between 1 and N. Returns True where all are known to be N: nothing is padded.
    Values are not read where there are none, nor while a graph is traced or captured or vmap goes over them; a captured
    copy from the CPU would be made again from memory that is somebody else's by then."""
    if lengths.shape != x.shape[:1]:
        raise ValueError(
            f"lengths must have shape ({x.shape[0]},), one for each sentence of x, got {tuple(lengths.shape)}"
        )
    if lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise ValueError(f"lengths must be integers, got {lengths.dtype}")
    if lengths.is_meta or torch.compiler.is_compiling() or is_mapped(lengths):
        return False
    captured = x.is_cuda and torch.cuda.is_current_stream_capturing()
    if captured and lengths.is_cuda:
        return False
    values = lengths.tolist()
    for row, length in enumerate(values):
        if length < 1:
            raise ValueError(f"sequence {row} has length {length}; every sequence needs at least one word")
        if length > x.shape[1]:
            raise ValueError(f"sequence {row} has length {length}, x has only {x.shape[1]} positions")
    if captured and min(values) < x.shape[1]:
        raise RuntimeError(f"while a CUDA graph is captured lengths must be on {x.device}, got {lengths.device}")
    return all(length == x.shape[1] for length in values)


def is_mapped(tensor: Tensor) -> bool:
    """Whether vmap goes over it, below other transformations too."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        if torch._C._functorch.is_batchedtensor(tensor):
            return True
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return False


def check_size(name: str, value: int, least: int = 1) -> None:
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
