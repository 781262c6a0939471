"""The whole recurrence as one operator, `sentence_state::recurrence`, and its gradient as another, so that
torch.compile and torch.export see one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..equations import State, Weights
from . import backward_pass, forward_pass
from .layout import BLOCKS, NODE_BLOCKS, PARTS, VECTORS, padded
from .plan import Options, Saved

WEIGHTS = ", ".join(f"Tensor {name}" for name in Weights._fields)
MASKS = "Tensor? lengths, Tensor? drop_h, Tensor? drop_g"
OPTIONS = (  # those of plan.Options
    "SymInt num_steps, bool sharp, bool need_words, bool need_sentence, SymInt keep, bool keep_products"
)
KEEP = {"low": (2, False), "normal": (1, False), "high": (1, True)}  # the last two options
LEAST_BYTES = 2**30  # that memory="auto" may keep for speed, even where it is more than a quarter of the card


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
    if differentiable and memory == "auto":
        memory = "high" if kept_bytes(x, weights, num_steps) <= most_bytes(x.device.index) else "normal"
    keep = KEEP[memory] if differentiable else (0, False)
    options = (num_steps, kind == "sharp", need_words, need_sentence, *keep)
    x, *weights_in_rows = (tensor.contiguous() for tensor in (x, *weights))  # kernels know no strides
    lengths = None if lengths is None else lengths.contiguous()
    h, g, c_g, *_ = recurrence_op(x, *weights_in_rows, lengths, drop_h, drop_g, *options)
    return State(h, h, g[:, None], c_g[:, None])


@torch.compiler.assume_constant_result
def most_bytes(card: int | None) -> int:
    """That memory="auto" keeps for speed: a quarter of the card's memory."""
    return LEAST_BYTES if card is None else max(LEAST_BYTES, torch.cuda.get_device_properties(card).total_memory // 4)


def kept_bytes(x: Tensor, weights: Weights, num_steps: int) -> int:
    """Of memory="high": the products of all steps, and the rows that they are made of."""
    B, N, D = x.shape
    Hp = padded(weights.h_0.shape[0])
    row = num_steps * BLOCKS * Hp + (num_steps - 1) * (3 * Hp + padded(D))
    return B * N * row * x.element_size()


def recurrence_kernel(x: Tensor, *arguments: Any) -> list[Tensor]:
    weights, (lengths, drop_h, drop_g), options = parted(arguments)
    with torch.cuda.device_of(x):  # which need not be the current one
        return forward_pass.forward(x, weights, lengths, drop_h, drop_g, options)


def recurrence_fake(x: Tensor, *arguments: Any) -> list[Tensor]:
    weights, _, options = parted(arguments)
    B, N, D = x.shape
    H, T, M = weights.h_0.shape[0], options.num_steps, B * N
    Hp, sentences = padded(H), B if options.need_sentence else 0
    outputs = [x.new_empty(B if options.need_words else 0, N, H), x.new_empty(sentences, H), x.new_empty(sentences, H)]
    if not options.keep:
        return outputs
    kept, width = options.kept_steps, 3 * Hp + padded(D)
    return outputs + list(
        Saved(
            first=x.new_empty(3, BLOCKS * Hp),
            h=x.new_empty(kept * M, width if options.keep_products else Hp),
            c=x.new_empty(kept * M, Hp),
            products=x.new_empty(options.kept_products * M, BLOCKS * Hp),
            c_g=x.new_empty(T + 1, B, Hp, dtype=torch.float32),
            gh=x.new_empty(T, B, 2 * Hp),
            Q=x.new_empty(T, B, PARTS * Hp),
            log_z=x.new_empty(T, B, Hp, dtype=torch.float32),
            words=x.new_empty(BLOCKS * Hp, width),
            sentence=x.new_empty(NODE_BLOCKS * Hp, 2 * Hp),
            vectors=x.new_empty(VECTORS, Hp),
        )
    )


def parted(arguments: Sequence[Any]) -> tuple[Weights, Sequence[Any], Options]:
    """What follows x in the operator's schema."""
    count = len(Weights._fields)
    return Weights(*arguments[:count]), arguments[count : count + 3], Options(*arguments[count + 3 :])


def backward_kernel(
    dh: Tensor | None, dg: Tensor | None, dc_g: Tensor | None, x: Tensor, saved: list[Tensor], *arguments: Any
) -> list[Tensor]:
    """Gradients of the products take their place, as in PyTorch's operator for cuDNN's LSTM: a copy is made only if the
    graph is kept for another pass."""
    lengths, drop_h, drop_g, H, *rest, dtype, in_place = arguments
    options, kept = Options(*rest), Saved(*saved)
    if options.keep_products and (not in_place or torch._C._autograd._get_current_graph_task_keep_graph()):
        kept = kept._replace(products=kept.products.clone())  # retain_graph=True, or outside of a backward pass
    with torch.cuda.device_of(x):
        return backward_pass.backward(dh, dg, dc_g, x, kept, lengths, drop_h, drop_g, H, options, dtype)


def backward_fake(
    dh: Tensor | None, dg: Tensor | None, dc_g: Tensor | None, x: Tensor, saved: list[Tensor], *arguments: Any
) -> list[Tensor]:
    H, dtype = arguments[3], arguments[-2]
    D = x.shape[2]
    shapes = [(7 * H, 3 * H), (7 * H, D), (7 * H, H), (7 * H,), (3 * H, H), (2 * H, H), (H, H), (3 * H,), (H,), (H,)]
    return [torch.empty_like(x), *(x.new_empty(shape, dtype=dtype) for shape in shapes)]


class Differentiable(torch.autograd.Function):
    """The operator with its gradient: the first three outputs have one, the others are kept for the backward pass."""

    @staticmethod
    def forward(ctx: Any, keys: Any, x: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
        output = recurrence_op.redispatch(keys, x, *arguments)
        weights, masks, options = parted(arguments)
        ctx.save_for_backward(x, *masks, *output[3:])
        ctx.mark_non_differentiable(*output[3:])
        ctx.set_materialize_grads(False)  # else outputs that no loss reads would get gradients of zeros
        ctx.H, ctx.options, ctx.dtype = weights.h_0.shape[0], options, weights.W.dtype
        return tuple(output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        x, *kept = ctx.saved_tensors
        masks, saved = kept[:3], kept[3:]
        given = (None if gradient is None else gradient.contiguous() for gradient in gradients[:3])
        # Compilers merge equal calls: two gradients may need one `saved`. Before torch 2.13 `is_compiling` says nothing
        # of some of them here, but what they follow it with is no plain tensor.
        in_place = not torch.compiler.is_compiling() and type(saved[0]) is Tensor
        with torch.no_grad():
            found = recurrence_backward_op(*given, x, saved, *masks, ctx.H, *ctx.options, ctx.dtype, in_place)
        if torch.is_grad_enabled():  # create_graph=True
            found = NotTwice.apply(torch.zeros((), requires_grad=True), *found)
        return None, *found, *[None] * 9


class NotTwice(torch.autograd.Function):
    """The gradients as they are: without it they would pass for constants in a second derivative."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, *found: Tensor) -> tuple[Tensor, ...]:
        return tuple(gradient.view_as(gradient) for gradient in found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> None:
        raise RuntimeError('the fused kernels have no second derivative; use backend="reference"')


def recurrence_autograd(keys: Any, x: Tensor, *arguments: Any) -> list[Tensor]:
    below = keys & torch._C._after_autograd_keyset
    if not torch.is_grad_enabled():
        return list(recurrence_op.redispatch(below, x, *arguments))
    weights, _, options = parted(arguments)
    if options.keep:
        return list(Differentiable.apply(below, x, *arguments))
    if any(tensor.requires_grad for tensor in (x, *weights)):  # a program that was traced without gradients
        return list(Differentiable.apply(below, x, *arguments[:-2], *KEEP["normal"])[:3])
    return list(recurrence_op.redispatch(below, x, *arguments))


# Not by torch.library.custom_op: its own Python, for an operator with so many arguments, took a tenth of the time that
# an eager forward and backward pass spent on the CPU.
LIBRARY = torch.library.Library("sentence_state", "FRAGMENT")
SCHEMAS = {
    "recurrence": f"(Tensor x, {WEIGHTS}, {MASKS}, {OPTIONS}) -> Tensor[]",
    "recurrence_backward": f"(Tensor? dh, Tensor? dg, Tensor? dc_g, Tensor x, Tensor[] saved, {MASKS}, SymInt H,"
    f" {OPTIONS}, ScalarType dtype, bool in_place) -> Tensor[]",
}
for name, schema in SCHEMAS.items():
    LIBRARY.define(name + schema, tags=(torch.Tag.pt2_compliant_tag,))
LIBRARY.impl("recurrence", recurrence_kernel, "CompositeExplicitAutograd")
LIBRARY.impl("recurrence_backward", backward_kernel, "CompositeExplicitAutograd")
LIBRARY.impl("recurrence", recurrence_autograd, "Autograd", with_keyset=True)
torch.library.register_fake("sentence_state::recurrence", recurrence_fake, lib=LIBRARY)
torch.library.register_fake("sentence_state::recurrence_backward", backward_fake, lib=LIBRARY)
recurrence_op = torch.ops.sentence_state.recurrence.default
recurrence_backward_op = torch.ops.sentence_state.recurrence_backward.default
