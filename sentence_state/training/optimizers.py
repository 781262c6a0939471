"""Adam for everything, apart for the word vectors, with a learning rate of their own; gradients clipped together."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer, SparseAdam

from ..models import Model
from ..ops.recurrence import has_kernels
from .config import TrainingConfig


class LazyAdam(Optimizer):
    """torch's SparseAdam for dense gradients: only rows with a gradient are touched. It reads no values, so that a CUDA
    graph can hold it. Its state is SparseAdam's, with the number of steps on the device."""

    def __init__(self, groups: list[dict[str, Any]]) -> None:
        super().__init__(groups, {"betas": (0.9, 0.999), "eps": 1e-8, "capturable": True})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self.update(parameter, group)

    def update(self, parameter: nn.Parameter, group: dict[str, Any]) -> None:
        state, gradient = self.state[parameter], parameter.grad
        assert gradient is not None
        if not state:
            state["step"] = torch.zeros((), device=parameter.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] += 1
        beta1, beta2 = group["betas"]
        unbiased1, unbiased2 = (
            -torch.expm1(state["step"] * math.log(beta)) for beta in (beta1, beta2)
        )  # 1 - beta^step
        size = group["lr"] * unbiased2.sqrt() / unbiased1
        of_rows = parameter, gradient, state["exp_avg"], state["exp_avg_sq"]
        if can_fuse(*of_rows):
            from ..ops.fused.lazy_adam import update_rows  # here, so that Triton is needed only where it can run

            update_rows(*of_rows, size, group["betas"], group["eps"])
            return
        touched = (gradient != 0).any(dim=1, keepdim=True).to(parameter.dtype)  # (rows, 1)
        mean = state["exp_avg"].lerp_(gradient, touched * (1 - beta1))
        square = state["exp_avg_sq"].lerp_(gradient.square(), touched * (1 - beta2))
        parameter.addcmul_(mean / (square.sqrt() + group["eps"]), touched * -size)


def can_fuse(*matrices: Tensor) -> bool:
    """Whether one kernel can do it."""
    return all(has_kernels(matrix) and matrix.dtype == torch.float32 and matrix.is_contiguous() for matrix in matrices)


def make_optimizers(model: Model, config: TrainingConfig, capturable: bool = False) -> list[Optimizer]:
    """One for the word vectors, one for all other weights. Every group keeps its share of the rate in `factor`.

    capturable: for CUDA graphs; learning rates are tensors, and nothing is sparse.
    """
    words = model.word_parameters()
    own = {id(parameter) for parameter in words}
    others = [parameter for parameter in model.parameters() if parameter.requires_grad and id(parameter) not in own]
    matrices = [parameter for parameter in others if parameter.dim() > 1]
    vectors = [parameter for parameter in others if parameter.dim() <= 1]
    groups: list[dict[str, Any]] = [
        {"params": matrices, "weight_decay": config.l2, "factor": 1.0},  # Adam's weight decay is the gradient of L2
        {"params": vectors, "factor": 1.0},
    ]
    of_words = {"params": words, "factor": config.word_rate}
    for group in [*groups, of_words]:
        group["lr"] = config.learning_rate
        if capturable:
            group["lr"] = torch.tensor(config.learning_rate, device=next(model.parameters()).device)
    groups = [group for group in groups if group["params"]]
    optimizers: list[Optimizer] = [Adam(groups, fused=True, capturable=capturable)] if groups else []
    if words and not config.lazy_words:
        optimizers.append(Adam([of_words], fused=True, capturable=capturable))
    elif words:
        optimizers.append(LazyAdam([of_words]) if capturable else SparseAdam([of_words]))
    return optimizers


def set_learning_rate(optimizers: list[Optimizer], rate: float) -> None:
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate * group["factor"])  # where the graphs read it
            else:
                group["lr"] = rate * group["factor"]


def clip_gradients(parameters: list[nn.Parameter], most: float) -> Tensor:
    """Shorten all gradients together to the norm `most`, 0 for any; returns the norm before. A sparse gradient counts
    as the dense one that it stands for."""
    gradients: list[Any] = []
    for parameter in parameters:
        if parameter.grad is not None:
            if parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()  # a word that occurs twice has one gradient, the sum
                gradients.append(parameter.grad.values())
            else:
                gradients.append(parameter.grad)
    norm = torch.nn.utils.get_total_norm(gradients)
    if hasattr(norm, "full_tensor"):  # FSDP2: parts of gradients, but the norm of the whole
        norm, gradients = norm.full_tensor(), [gradient.to_local() for gradient in gradients]
    if most and (norm.is_cuda or norm > most):  # on a GPU the question would wait for the answer
        torch._foreach_mul_(gradients, (most / norm).clamp(max=1.0))
    return norm
