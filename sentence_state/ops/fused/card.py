"""Which cards the kernels are for."""

from __future__ import annotations

import torch

AMPERE, HOPPER = 8, 9
GENERATIONS: dict[int, int] = {}  # of the cards that were asked for: to ask takes microseconds


@torch.compiler.assume_constant_result
def generation(card: int) -> int:
    """Of a card by NVIDIA, the first number of its compute capability; 0: of another maker, whose instructions the
    kernels do not know."""
    if card not in GENERATIONS:
        GENERATIONS[card] = 0 if torch.version.hip else torch.cuda.get_device_capability(card)[0]
    return GENERATIONS[card]
