"""Depth that adapts: a sentence takes steps of Eq. 2 and Eq. 3 until its state no longer changes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .equations import State, Weights
from .recurrence import initial_state, input_term, step


class Halted(NamedTuple):
    state: State  # of each sentence after the last step that it took
    steps: Tensor  # (B,): how many it took


def halting_recurrence(
    x: Tensor, mask: Tensor | None, weights: Weights, num_steps: int, kind: str, threshold: float
) -> Halted:
    """At most `num_steps` steps for each sentence; it stops after the first, but not before the second, in which its
    sentence nodes changed by no more than `threshold`, and leaves the batch: the rest is computed without it.

    The change of a node is the root of the mean square of g^t - g^{t-1} over its H numbers, all of which lie between
    -1 and 1; of several nodes the greatest counts. After the first step every sentence has the same g.
    x: (B, N, D), zero at padding. A sentence's result does not depend on the others. Without a gradient.
    """
    B = len(x)
    x_term = input_term(x, weights)
    state = everywhere(initial_state(x, mask, weights), B)
    reached = State(*(torch.empty_like(part, memory_format=torch.contiguous_format) for part in state))
    steps = torch.full((B,), num_steps, device=x.device)
    rows = torch.arange(B, device=x.device)  # of the sentences that go on
    for t in range(num_steps):
        after = everywhere(step(state, x_term, mask, weights, kind, first=t == 0).state, len(rows))
        change = (after.g - state.g).float().square().mean(dim=2).sqrt().amax(dim=1)  # (rows,)
        if t == num_steps - 1:
            stops = torch.ones_like(rows, dtype=torch.bool)
        else:
            stops = (change <= threshold) & (t > 0)
        for whole, part in zip(reached, after, strict=True):
            whole[rows[stops]] = part[stops]
        steps[rows[stops]] = t + 1
        goes_on = ~stops
        if not goes_on.any():
            break
        state = State(*(part[goes_on] for part in after))
        x_term, rows = x_term[goes_on], rows[goes_on]
        mask = None if mask is None else mask[goes_on]
    return Halted(reached, steps)


def everywhere(state: State, B: int) -> State:
    """g and c_g for every sentence, where they were one row for all."""
    return state._replace(g=state.g.expand(B, -1, -1), c_g=state.c_g.expand(B, -1, -1))
