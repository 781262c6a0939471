"""An average of the weights over the last steps, which is evaluated and kept instead of the weights themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from .checkpoint import fitting


class WeightAverage:
    """Exponential: after step t, average = d average + (1 - d) weights, d = min(decay, (1 + t) / (10 + t)), so that the
    first steps are soon forgotten."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay, self.steps = decay, 0
        self.weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.averages = {name: weight.detach().clone() for name, weight in self.weights.items()}

    @torch.no_grad()
    def update(self) -> None:
        kept = min(self.decay, (1 + self.steps) / (10 + self.steps))
        self.steps += 1
        torch._foreach_lerp_(list(self.averages.values()), list(self.weights.values()), 1 - kept)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model has the average as its weights; afterwards it has its own again."""
        own = {name: weight.detach().clone() for name, weight in self.weights.items()}
        self.copy(self.averages)
        try:
            yield
        finally:
            self.copy(own)

    @torch.no_grad()
    def copy(self, values: dict[str, Tensor]) -> None:
        for name, weight in self.weights.items():
            weight.copy_(values[name])

    def collect(self) -> dict[str, Tensor]:
        """For a checkpoint."""
        tensors = {f"average.{name}": tensor for name, tensor in self.averages.items()}
        return {**tensors, "average_steps": torch.tensor(self.steps)}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        self.steps = int(fitting(tensors, "average_steps", torch.tensor(self.steps)))
        for name, average in self.averages.items():
            average.copy_(fitting(tensors, f"average.{name}", average))
