"""Adam for everything, with a learning rate of its own for the word vectors; gradients clipped together."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer, SparseAdam

from ..models import Model
from .config import TrainingConfig


def make_optimizers(model: Model, config: TrainingConfig) -> list[Optimizer]:
    """One, or two where the word vectors have sparse gradients. Every group keeps its share of the rate in `factor`."""
    words = model.word_parameters()
    own = {id(parameter) for parameter in words}
    others = [parameter for parameter in model.parameters() if parameter.requires_grad and id(parameter) not in own]
    matrices = [parameter for parameter in others if parameter.dim() > 1]
    vectors = [parameter for parameter in others if parameter.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": config.l2, "factor": 1.0},  # Adam's weight decay is the gradient of L2
        {"params": vectors, "factor": 1.0},
    ]
    of_words = {"params": words, "factor": config.word_rate}
    if not config.lazy_words:
        groups.append(of_words)
    groups = [group for group in groups if group["params"]]
    optimizers: list[Optimizer] = [Adam(groups, lr=config.learning_rate, fused=True)]
    if config.lazy_words and words:
        optimizers.append(SparseAdam([of_words], lr=config.learning_rate))
    return optimizers


def set_learning_rate(optimizers: list[Optimizer], rate: float) -> None:
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate * group["factor"]


def clip_gradients(parameters: list[nn.Parameter], most: float) -> Tensor:
    """Shorten all gradients together to the norm `most`, 0 for any; returns the norm before. A sparse gradient counts
    as the dense one that it stands for."""
    gradients = []
    for parameter in parameters:
        if parameter.grad is not None:
            if parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()  # a word that occurs twice has one gradient, the sum
                gradients.append(parameter.grad.values())
            else:
                gradients.append(parameter.grad)
    norm = torch.nn.utils.get_total_norm(gradients)
    if most and (norm.is_cuda or norm > most):  # on a GPU the question would wait for the answer
        torch._foreach_mul_(gradients, (most / norm).clamp(max=1.0))
    return norm
