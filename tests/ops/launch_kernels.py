"""Launches the kernels of all steps where there is no GPU: `python -m tests.ops.launch_kernels`.

Triton compiles them and takes its own way to the card, where a driver that only takes notes stands in. A kernel that
`plan.Launch` launches without looking it up must get what one gets that is looked up.
"""

import torch
import triton
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from sentence_state.ops.fused import plan
from sentence_state.ops.fused.autograd import fused_recurrence

from .compile_kernels import HOPPER
from .test_fused import random_case

STEPS = "forward_step", "close_step", "backward_step", "close_gradient"
launched: list[tuple] = []  # of every launch: the kernel, what was loaded of it, the grid, all arguments
looked_up: list[str] = []


class Launcher:
    def __init__(self, source, metadata):
        self.kernel = source.fn

    def __call__(self, x, y, z, stream, function, packed_metadata, launch_metadata, before, after, *arguments):
        launched.append((self.kernel, function, (x, y, z), arguments))


class Driver:
    launcher_cls = Launcher
    loaded = 0

    @property
    def utils(self):
        return self

    def load_binary(self, *arguments):
        self.loaded += 1
        found = self.loaded, self.loaded, 32, 0, 1024  # module, function, registers, spills, threads
        return found[:4] if triton.__version__.startswith("3.3.") else found

    def get_device_properties(self, device):
        return {"max_shared_mem": 2**18}

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_current_target(self):
        return HOPPER


def look_up(kernel, *arguments, run=JITFunction.run, **options):
    looked_up.append(kernel.fn.__name__)
    return run(kernel, *arguments, **options)


def launches(memory, gates, drop):
    """All of a forward and a backward pass, steps only, and how many were looked up."""
    launched.clear()
    looked_up.clear()
    torch.manual_seed(0)
    x, lengths, weights, num_steps, kind, dropout = random_case(2, 9, 16, 16, 6, gates, drop, drop)
    x = x.float().requires_grad_()
    weights = type(weights)(*(weight.detach().float() for weight in weights))
    dropout = dropout and tuple(mask.float() for mask in dropout)
    state = fused_recurrence(x, lengths, weights, num_steps, kind, dropout, True, True, memory)
    (state.g.sum() + state.h.sum()).backward()
    steps = [described(launch) for launch in launched if launch[0].fn.__name__ in STEPS]
    return steps, sum(name in STEPS for name in looked_up)


def described(launch):
    """All but the addresses, which no two runs share."""
    kernel, function, grid, arguments = launch
    shapes = [(a.shape, a.stride(), a.dtype) if isinstance(a, torch.Tensor) else a for a in arguments]
    return kernel.fn.__name__, function, grid, shapes


if __name__ == "__main__":
    driver.set_active(Driver())
    JITFunction.run = look_up
    count = found_out = 0
    for case in (("high", "paper", False), ("normal", "sharp", True), ("low", "paper", True)):
        plan.LAUNCHES_COMPILED = False
        expected, every = launches(*case)
        plan.LAUNCHES_COMPILED = True
        found, some = launches(*case)
        assert found == expected, case
        assert every == len(expected), case
        count, found_out = count + len(found), found_out + some
    print(count, "launches,", found_out, "looked up")
