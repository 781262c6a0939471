"""x W^T + b on a CPU, by the faster of the two libraries that PyTorch brings.

PyTorch's own linear hands float32 to MKL. oneDNN multiplies the same matrices in 0.4 to 0.8 of the time on the AMD
processors that were measured (0.8 at 240 x 900 x 2100, 0.4 at 10 x 300 x 2100), forward and backward, and needs no
weights packed before. It has products of bfloat16 for processors with AVX-512, of float16 for few of these. PyTorch's
own take ten times as long as those of float32, to which such matrices are turned elsewhere.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F

if TYPE_CHECKING:
    from .int8 import Int8Matrix

ONEDNN = (
    torch.backends.mkldnn.is_available()
    and platform.machine() in ("x86_64", "AMD64")
    and hasattr(torch.ops.mkldnn, "_linear_pointwise")
)

IS_FAST = {torch.bfloat16: "_is_mkldnn_bf16_supported", torch.float16: "_is_mkldnn_fp16_supported"}
# Asked for once, here: torch.export cannot trace the question.
SLOW_TYPES = frozenset(
    dtype
    for dtype, name in IS_FAST.items()
    if torch.backends.mkldnn.is_available() and not getattr(torch.ops.mkldnn, name, lambda: True)()
)


def linear(x: Tensor, W: Tensor | Int8Matrix, b: Tensor | None = None) -> Tensor:
    """What F.linear computes: (..., I), (O, I), (O,) -> (..., O)."""
    if not isinstance(W, Tensor):
        return W.product(x, b)
    is_followed = torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None or is_transformed()
    if is_followed or torch.is_autocast_enabled("cpu"):
        return F.linear(x, W, b)
    if x.device.type == "cpu" and x.dtype == W.dtype and not has_products_of(x.dtype):
        return linear(x.float(), W.float(), None if b is None else b.float()).to(x.dtype)
    if not (takes(x) and takes(W)):
        return F.linear(x, W, b)
    rows = x.reshape(-1, x.shape[-1])
    W = W if W.is_contiguous() or W.t().is_contiguous() else W.contiguous()  # oneDNN takes no rows that overlap
    product = Product.apply if torch.is_grad_enabled() or is_dual(x) or is_dual(W) else Product.forward
    y: Tensor = product(rows, W, b)
    return y.view(*x.shape[:-1], len(W))


def takes(tensor: Tensor) -> bool:
    is_plain = type(tensor) in (Tensor, nn.Parameter)
    is_float = tensor.device.type == "cpu" and tensor.dtype == torch.float32
    return ONEDNN and is_plain and is_float and tensor.numel() > 0


def has_products_of(dtype: torch.dtype) -> bool:
    """Whether PyTorch's own products of this type are no slower than float32's: oneDNN's, where they are of 16 bits."""
    return dtype not in SLOW_TYPES


def is_transformed() -> bool:
    """Whether a transform of torch.func (vmap, grad, jvp) is at work. It follows neither our operators nor what is
    written in place: vmap cannot write many values into a tensor that holds one for all."""
    return bool(torch._C._are_functorch_transforms_active())


def is_dual(tensor: Tensor) -> bool:
    """Whether forward-mode differentiation, which asks for a Function even without gradients, passes through."""
    return forward_ad.unpack_dual(tensor).tangent is not None


class Product(torch.autograd.Function):
    """x W^T + b for two-dimensional x, with every derivative that F.linear has."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, W: Tensor, b: Tensor | None) -> Tensor:
        y: Tensor = torch.ops.mkldnn._linear_pointwise(x, W, b, "none", [], "")
        return y

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])
        ctx.save_for_forward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, W = ctx.saved_tensors
        needs_x, needs_W, needs_b = ctx.needs_input_grad
        dx = linear(dy, W.t()) if needs_x else None
        dW = linear(x.t(), dy.t()).t() if needs_W else None
        return dx, dW, dy.sum(0) if needs_b else None

    @staticmethod
    def jvp(ctx: Any, x_t: Tensor | None, W_t: Tensor | None, b_t: Tensor | None) -> Tensor:
        x, W = ctx.saved_tensors
        y_t = torch.zeros(len(x), len(W), dtype=x.dtype)
        for part in (x_t is not None and linear(x_t, W), W_t is not None and linear(x, W_t), b_t):
            y_t = y_t + part if isinstance(part, Tensor) else y_t
        return y_t
