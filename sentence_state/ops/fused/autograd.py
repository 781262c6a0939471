"""The whole recurrence as one operator, `sentence_state::recurrence`, and its gradient as another, so that
torch.compile and torch.export see one node."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..equations import State, Weights
from . import backward_pass, forward_pass
from .layout import BLOCKS, NODE_BLOCKS, VECTORS, padded
from .plan import Options, Saved

KEEP = {"normal": 1, "low": 2}  # which steps the backward pass finds; the others it computes again


def fused_recurrence(
    x: Tensor,
    lengths: Tensor | None,
    weights: Weights,
    num_steps: int,
    kind: str,
    dropout: tuple[Tensor, Tensor] | None,
    need_words: bool,
    need_sentence: bool,
    memory: str,
) -> State:
    """`recurrence` of `ops/recurrence.py` for window 1 and one sentence node, in the type of x; c is not kept."""
    drop_h, drop_g = (None, None) if dropout is None else (dropout[0], dropout[1].squeeze(1))
    differentiable = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (x, *weights))
    keep = KEEP[memory] if differentiable else 0
    options = (num_steps, kind == "sharp", need_words, need_sentence, keep)
    h, g, c_g, *_ = recurrence_op(x.contiguous(), *weights, lengths, drop_h, drop_g, *options)
    return State(h, h, g[:, None], c_g[:, None])


@torch.library.custom_op("sentence_state::recurrence", mutates_args=())
def recurrence_op(
    x: Tensor,
    W: Tensor,
    U: Tensor,
    V: Tensor,
    b: Tensor,
    sentence_W: Tensor,
    sentence_U: Tensor,
    sentence_U_f: Tensor,
    sentence_b: Tensor,
    h_0: Tensor,
    c_0: Tensor,
    lengths: Tensor | None,
    drop_h: Tensor | None,
    drop_g: Tensor | None,
    num_steps: int,
    sharp: bool,
    need_words: bool,
    need_sentence: bool,
    keep: int,
) -> list[Tensor]:
    weights = Weights(W, U, V, b, sentence_W, sentence_U, sentence_U_f, sentence_b, h_0, c_0)
    options = Options(num_steps, sharp, need_words, need_sentence, keep)
    return forward_pass.forward(x, weights, lengths, drop_h, drop_g, options)


@recurrence_op.register_fake
def _(
    x: Tensor,
    W: Tensor,
    U: Tensor,
    V: Tensor,
    b: Tensor,
    sentence_W: Tensor,
    sentence_U: Tensor,
    sentence_U_f: Tensor,
    sentence_b: Tensor,
    h_0: Tensor,
    c_0: Tensor,
    lengths: Tensor | None,
    drop_h: Tensor | None,
    drop_g: Tensor | None,
    num_steps: int,
    sharp: bool,
    need_words: bool,
    need_sentence: bool,
    keep: int,
) -> list[Tensor]:
    B, N, D = x.shape
    H, T, M = len(h_0), num_steps, B * N
    Hp, sentences = padded(H), B if need_sentence else 0
    outputs = [x.new_empty(B if need_words else 0, N, H), x.new_empty(sentences, H), x.new_empty(sentences, H)]
    if not keep:
        return outputs
    kept = Options(num_steps, sharp, need_words, need_sentence, keep).kept_steps
    return outputs + list(
        Saved(
            first=x.new_empty(BLOCKS * Hp, 3),
            h=x.new_empty(kept * M, Hp),
            c=x.new_empty(kept * M, Hp),
            c_g=x.new_empty(T + 1, B, Hp, dtype=torch.float32),
            gh=x.new_empty(T + 1, B, 2 * Hp),
            Q=x.new_empty(T, B, NODE_BLOCKS * Hp),
            log_z=x.new_empty(T, B, Hp, dtype=torch.float32),
            words=x.new_empty(BLOCKS * Hp, 3 * Hp + padded(D)),
            sentence=x.new_empty(NODE_BLOCKS * Hp, 2 * Hp),
            vectors=x.new_empty(VECTORS, Hp),
        )
    )


@torch.library.custom_op("sentence_state::recurrence_backward", mutates_args=())
def recurrence_backward_op(
    dh: Tensor | None,
    dg: Tensor | None,
    dc_g: Tensor | None,
    x: Tensor,
    saved: list[Tensor],
    lengths: Tensor | None,
    drop_h: Tensor | None,
    drop_g: Tensor | None,
    H: int,
    num_steps: int,
    sharp: bool,
    need_words: bool,
    need_sentence: bool,
    keep: int,
    dtype: torch.dtype,
) -> list[Tensor]:
    options = Options(num_steps, sharp, need_words, need_sentence, keep)
    return backward_pass.backward(dh, dg, dc_g, x, Saved(*saved), lengths, drop_h, drop_g, H, options, dtype)


@recurrence_backward_op.register_fake
def _(
    dh: Tensor | None,
    dg: Tensor | None,
    dc_g: Tensor | None,
    x: Tensor,
    saved: list[Tensor],
    lengths: Tensor | None,
    drop_h: Tensor | None,
    drop_g: Tensor | None,
    H: int,
    num_steps: int,
    sharp: bool,
    need_words: bool,
    need_sentence: bool,
    keep: int,
    dtype: torch.dtype,
) -> list[Tensor]:
    D = x.shape[2]
    shapes = [(7 * H, 3 * H), (7 * H, D), (7 * H, H), (7 * H,), (3 * H, H), (2 * H, H), (H, H), (3 * H,), (H,), (H,)]
    return [torch.empty_like(x), *(x.new_empty(shape, dtype=dtype) for shape in shapes)]


def keep_for_backward(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    x, W, h_0, lengths, drop_h, drop_g = (inputs[place] for place in (0, 1, 9, 11, 12, 13))
    ctx.save_for_backward(x, lengths, drop_h, drop_g, *output[3:])
    ctx.set_materialize_grads(False)  # else what is kept for the backward pass would get gradients of zeros
    ctx.H, ctx.options, ctx.dtype = len(h_0), inputs[14:19], W.dtype


def backward(ctx: Any, gradients: list[Tensor]) -> tuple[Tensor | None, ...]:
    x, lengths, drop_h, drop_g, *saved = ctx.saved_tensors
    given = (None if gradient is None else gradient.contiguous() for gradient in gradients[:3])
    found = recurrence_backward_op(*given, x, saved, lengths, drop_h, drop_g, ctx.H, *ctx.options, ctx.dtype)
    return *found, *[None] * 8


recurrence_op.register_autograd(backward, setup_context=keep_for_backward)
