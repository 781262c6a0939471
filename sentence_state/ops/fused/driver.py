"""The two passes over all steps: buffers, cuBLAS's products and the kernels between them, in order.

The forward pass keeps h and c of every step and the small tensors of the sentence; the backward pass computes the word
products again, several steps in one product where sentences are short, and sums the weights' gradients the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
import triton
from torch import Tensor
from torch.nn import functional as F

from ..equations import Weights
from .backward import backward_step, gather_neighbours
from .forward import forward_step
from .layout import BLOCKS, NODE_BLOCKS, VECTORS, Packed, pad_columns, padded
from .packing import pack, unpack

CHUNK_ROWS = 8192  # products of several steps are joined up to about this many rows


class Options(NamedTuple):
    num_steps: int
    sharp: bool
    need_words: bool
    need_sentence: bool


class Saved(NamedTuple):
    """What the backward pass reads besides x."""

    x_term: Tensor  # (M, 7 Hp)
    first: Tensor  # (8 Hp 3,)
    h: Tensor  # (T-1, M, Hp)
    c: Tensor  # (T-1, M, Hp), at least one
    c_g: Tensor  # (T+1, B, Hp) float32
    gh: Tensor  # (T+1, B, 2 Hp)
    Q: Tensor  # (T, B, 10 Hp)
    log_z: Tensor  # (T, B, Hp) float32
    words: Tensor  # the packed weights
    inputs: Tensor
    sentence: Tensor
    vectors: Tensor


class Tiling(NamedTuple):
    """How the rows of a sentence and the units are cut into programs."""

    rows: int
    units: int
    tiles: int
    unit_blocks: int
    warps: int

    @classmethod
    def of(cls, N: int, Hp: int, rows: int, units: int, warps: int) -> Tiling:
        rows = min(rows, triton.next_power_of_2(N))
        return cls(rows, units, triton.cdiv(N, rows), triton.cdiv(Hp, units), warps)

    def launch(self) -> dict[str, int]:
        close = next((size for size in (4, 64) if self.tiles <= size), triton.next_power_of_2(self.tiles))
        return {"ROWS": self.rows, "UNITS": self.units, "CLOSE": close, "num_warps": self.warps}


class Beside:
    """Runs small products beside large ones while a graph is captured; in order otherwise, where launches cost more
    than they would save."""

    def __init__(self, x: Tensor) -> None:
        capturing = x.is_cuda and torch.cuda.is_current_stream_capturing()
        self.stream = torch.cuda.Stream() if capturing else None

    def __call__(self) -> AbstractContextManager[object]:
        if self.stream is None:
            return nullcontext()
        self.stream.wait_stream(torch.cuda.current_stream())
        return torch.cuda.stream(self.stream)

    def join(self) -> None:
        if self.stream is not None:
            torch.cuda.current_stream().wait_stream(self.stream)


def rows_of_dropout(mask: Tensor | None, Hp: int, x: Tensor) -> Tensor:
    """A dropout mask as rows of Hp; x stands in for a missing one, and is not read."""
    return x if mask is None else F.pad(mask.flatten(0, -2), (0, Hp - mask.shape[-1]))


def blank(x: Tensor, lengths: Tensor | None) -> Callable[..., Tensor]:
    """Kernels do not write at padding: buffers in which it could be read start at zero."""
    return x.new_empty if lengths is None else x.new_zeros


def forward(
    x: Tensor,
    weights: Weights,
    lengths: Tensor | None,
    drop_h: Tensor | None,
    drop_g: Tensor | None,
    options: Options,
    save: bool,
) -> list[Tensor]:
    """h (B, N, H), g (B, H), c_g (B, H), each with no rows where it is not needed, then `Saved` if asked for."""
    B, N, D = x.shape
    H, M, T = len(weights.h_0), B * N, options.num_steps
    Hp = padded(H)
    beside = Beside(x)
    packed = pack(weights, x.dtype)
    first = torch.mv(packed.words.view(-1, Hp), packed.h_0)
    x_term = torch.addmm(packed.inputs_b, pad_columns(x.reshape(M, D)), packed.inputs.t())
    xi = x.new_zeros(M, 3 * Hp)
    P = x.new_empty(M, BLOCKS * Hp)
    kept = T - 1 if save else min(2, T - 1)
    h_kept = blank(x, lengths)(T - 1 if save else 0, M, Hp)
    c_kept = x.new_empty(max(kept, 1), M, Hp)
    c_g = x.new_empty(T + 1, B, Hp, dtype=torch.float32)
    gh = x.new_empty(T + 1, B, 2 * Hp)
    Q, log_z = x.new_empty(T, B, NODE_BLOCKS * Hp), torch.empty_like(c_g[1:])
    c_g[0] = packed.c_0
    gh[0].view(B, 2, Hp).copy_(packed.h_0)
    words = blank(x, lengths)(M if options.need_words else 0, H)
    tiling = Tiling.of(N, Hp, rows=16, units=64, warps=4)
    partial = x.new_empty(B, tiling.tiles, 4, Hp, dtype=torch.float32)
    counter = x.new_zeros(B, tiling.unit_blocks, dtype=torch.int32)
    drops = rows_of_dropout(drop_h, Hp, x), rows_of_dropout(drop_g, Hp, x)
    for t in range(T):
        last = t == T - 1
        with_words, with_sentence = options.need_words or not last, options.need_sentence or not last
        with beside():
            torch.addmm(packed.sentence_b, gh[t], packed.sentence.t(), out=Q[t])
        product = P
        if t and with_words:
            torch.mm(xi, packed.words.t(), out=P)
        elif t:
            product = torch.mm(xi[:, Hp : 2 * Hp], packed.U_f.t())
        beside.join()
        forward_step[(tiling.tiles, tiling.unit_blocks, B)](
            product,
            first,
            x_term,
            Q[t],
            c_kept[(t - 1) % kept] if t else c_kept,
            packed.c_0,
            c_g[t],
            c_kept if last else c_kept[t % kept],
            words if last or not save else h_kept[t],
            xi,
            c_g[t + 1],
            gh[t + 1],
            log_z[t],
            partial,
            counter,
            x if lengths is None else lengths,
            *drops,
            N,
            Hp,
            product.shape[1],
            H if last else Hp,
            tiling.tiles,
            FIRST=t == 0,
            LAST=last,
            NEED_WORDS=with_words,
            NEED_SENTENCE=with_sentence,
            STORE_H=last or save,
            SHARP=options.sharp,
            FAST=x.dtype.itemsize == 2,
            DROP=drop_h is not None and not last,
            RAGGED=lengths is not None,
            **tiling.launch(),
        )
    sentences = B if options.need_sentence else 0
    outputs = [words.view(-1, N, H), gh[T, :sentences, :H].clone(), c_g[T, :sentences, :H].to(x.dtype, copy=True)]
    return outputs + (list(Saved(x_term, first, h_kept, c_kept, c_g, gh, Q, log_z, *packed)) if save else [])


def backward(
    dh: Tensor,
    dg: Tensor,
    dc_g: Tensor,
    x: Tensor,
    s: Saved,
    lengths: Tensor | None,
    drop_h: Tensor | None,
    drop_g: Tensor | None,
    H: int,
    options: Options,
    dtype: torch.dtype,
) -> list[Tensor]:
    """The gradients of x and of every weight, the latter in `dtype`."""
    packed = Packed(*s[-4:])
    B, N, D = x.shape
    M, T, Hp = B * N, options.num_steps, packed.vectors.shape[1]
    ragged, beside = lengths is not None, Beside(x)
    of_lengths = x if lengths is None else lengths
    full_steps = T - 1 if options.need_words else T - 2  # steps after the first that have a word product
    chunk = max(1, min(full_steps, CHUNK_ROWS // M))
    P, xi = x.new_empty(chunk, M, BLOCKS * Hp), x.new_empty(chunk, M, 3 * Hp)
    dxi, dc = x.new_empty(M, 3 * Hp), blank(x, lengths)(2, M, 3 * Hp)
    dx_term = (blank(x, lengths) if options.need_words or T > 1 else x.new_zeros)(M, 7 * Hp)
    dQ, dgh = x.new_empty(T, B, NODE_BLOCKS * Hp), x.new_empty(B, 2 * Hp)
    d_c_g = torch.zeros_like(s.c_g[0])
    if options.need_sentence:
        d_c_g[:, :H] = dc_g
    d_words = torch.zeros_like(packed.words, dtype=torch.float32)
    tiling = Tiling.of(N, Hp, rows=16, units=32, warps=4)
    partial = x.new_empty(B, tiling.tiles, 9, Hp, dtype=torch.float32)
    counter = x.new_zeros(B, tiling.unit_blocks, dtype=torch.int32)
    drops = rows_of_dropout(drop_h, Hp, x), rows_of_dropout(drop_g, Hp, x)

    def step(t: int, product: Tensor) -> None:
        """The kernel of step t: the word product in, its gradient out."""
        last = t == T - 1
        backward_step[(tiling.tiles, tiling.unit_blocks, B)](
            product,
            s.first,
            s.x_term,
            dx_term,
            s.Q[t],
            dQ[t],
            s.c[t - 1] if t else s.c,
            packed.c_0,
            s.c_g[t],
            s.c_g[t + 1],
            s.log_z[t],
            dh if last else dxi,
            dc[(t + 1) % 2],
            dc[t % 2],
            dg if last else dgh,
            d_c_g,
            partial,
            counter,
            of_lengths,
            *drops,
            N,
            Hp,
            H,
            tiling.tiles,
            FIRST=t == 0,
            LAST=last,
            NEED_WORDS=options.need_words or not last,
            NEED_SENTENCE=options.need_sentence or not last,
            INIT=t == full_steps,
            SHARP=options.sharp,
            FAST=x.dtype.itemsize == 2,
            DROP=drop_h is not None and not last,
            RAGGED=ragged,
            **tiling.launch(),
        )
        with beside():
            torch.mm(dQ[t], packed.sentence, out=dgh)

    if T > 1 and not options.need_words:  # the last step has no word update: of its products only U_f h
        product = torch.mm(s.h[T - 2], packed.U_f.t())
        step(T - 1, product)
        dxi.zero_()
        dxi[:, Hp : 2 * Hp] = torch.mm(product, packed.U_f)
        d_words.view(BLOCKS, Hp, 3, Hp)[7, :, 1] += torch.mm(product.t(), s.h[T - 2])
        beside.join()
    for top in range(full_steps, 0, -chunk):  # steps top, top-1, ..: their h before the step lie in s.h[top-1], ..
        low = max(1, top - chunk + 1)
        steps = top - low + 1
        gather_neighbours[(triton.cdiv(N, 32), triton.cdiv(Hp, 64), steps * B)](
            s.h[low - 1 : top], xi, of_lengths, N, B, Hp, RAGGED=ragged, ROWS=32, UNITS=64
        )
        torch.mm(xi[:steps].view(-1, 3 * Hp), packed.words.t(), out=P[:steps].view(-1, BLOCKS * Hp))
        for t in range(top, low - 1, -1):
            step(t, P[t - low])
            torch.mm(P[t - low], packed.words, out=dxi)
            beside.join()
        d_words += torch.mm(P[:steps].view(-1, BLOCKS * Hp).t(), xi[:steps].view(-1, 3 * Hp))
    if full_steps >= 0:
        product = P[0].zero_() if ragged else P[0]
        step(0, product)
    else:  # a single step without words
        product = x.new_zeros(M, Hp)
        step(0, product)
        product = F.pad(product, (7 * Hp, 0))
    beside.join()

    d_vectors = x.new_empty(VECTORS, Hp, dtype=torch.float32)
    d_first = first_product_gradient(product, N, B, lengths, dQ[0])  # (8 Hp, 3)
    d_words.view(-1, Hp).addcmul_(d_first.reshape(-1, 1), packed.h_0.float())
    d_vectors[7:17] = dQ.view(T * B, NODE_BLOCKS, Hp).sum(dim=0, dtype=torch.float32)
    d_vectors[:7] = d_vectors[7:14]  # b meets every word of every step, as V g meets every sentence's sum of them
    d_vectors[17] = d_first.reshape(-1).to(x.dtype) @ packed.words.view(-1, Hp) + dgh.view(-1, Hp).sum(dim=0)
    d_vectors[18] = dc[0].view(-1, Hp).sum(dim=0, dtype=torch.float32) + d_c_g.sum(dim=0)
    d_sentence = torch.mm(dQ.view(T * B, -1).t(), s.gh[:T].view(T * B, -1))
    d_inputs = torch.mm(dx_term.t(), pad_columns(x.reshape(M, D)))
    d_x = torch.mm(dx_term, packed.inputs)[:, :D].contiguous().view(x.shape)
    return [d_x, *unpack(Packed(d_words, d_inputs, d_sentence, d_vectors), H, D, dtype)]


def first_product_gradient(product: Tensor, N: int, B: int, lengths: Tensor | None, dQ: Tensor) -> Tensor:
    """Of the first step's (8 Hp, 3) products with h_0, from the gradients (M, 8 Hp) of what each word received: the sum
    over all words, less the first word of each sentence on the left side and the last one on the right."""
    dQ = dQ.view(B, NODE_BLOCKS, -1)
    own = torch.cat([dQ[:, :7], dQ[:, 9:]], dim=1).flatten(1).sum(dim=0, dtype=torch.float32)  # every word once
    start = torch.arange(B, device=product.device) * N
    end = start + (N if lengths is None else lengths) - 1
    left, right = (own - product[rows].sum(dim=0, dtype=torch.float32) for rows in (start, end))
    return torch.stack([left, own, right], dim=1)
