"""Launches the kernels of all steps where there is no GPU: `python -m tests.ops.launch_kernels`.

Triton compiles them and takes its own way to the card, where a driver that only takes notes stands in. What
`plan.Launch` launches without looking it up must be the kernel that Triton would find, with the same arguments.
"""

import torch
import triton
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from sentence_state.ops.fused import few_words, plan
from sentence_state.ops.fused.autograd import fused_recurrence

from .compile_kernels import HOPPER
from .fused_cases import random_case

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


def launches(memory, gates, drop, dtype, sentences, offset):
    """All of a forward and a backward pass, and how many were looked up. offset: of x and the weights in their memory,
    a number each, so that Triton may not compile for memory that begins at a multiple of 16."""
    launched.clear()
    looked_up.clear()
    torch.manual_seed(0)

    def placed(tensor):
        return torch.empty(tensor.numel() + offset, dtype=dtype)[offset:].view(tensor.shape).copy_(tensor.detach())

    x, lengths, weights, num_steps, kind, dropout = random_case(sentences, 9, 7, 5, 6, gates, drop, drop)
    x, weights = placed(x).requires_grad_(), type(weights)(*map(placed, weights))
    dropout = dropout and tuple(mask.to(dtype) for mask in dropout)
    state = fused_recurrence(x, lengths, weights, num_steps, kind, dropout, True, True, memory)
    (state.g.sum() + state.h.sum()).backward()
    return [described(launch) for launch in launched], len(looked_up)


def described(launch):
    """All but the addresses, which no two runs share."""
    kernel, function, grid, arguments = launch
    shapes = [(a.shape, a.stride(), a.dtype) if isinstance(a, torch.Tensor) else a for a in arguments]
    return kernel.fn.__name__, function, grid, shapes


if __name__ == "__main__":
    driver.set_active(Driver())
    JITFunction.run = look_up
    plan.GROUP_ROWS = (2 * 9, 9)  # of "normal" and "low"
    few_words.WORD_PROGRAMS = range(1, 115)
    total, looked = 0, [0, 0, 0]
    for case in (
        ("high", "paper", False, torch.float32, 2),
        ("normal", "sharp", True, torch.float32, 2),
        ("low", "paper", True, torch.float32, 3),  # a group each: lengths begin at multiples of 16 bytes, and do not
        ("high", "paper", True, torch.bfloat16, 2),  # with the products of few words
    ):
        plan.LAUNCHES_COMPILED = False
        expected = {offset: launches(*case, offset) for offset in (0, 1)}
        assert all(every == len(found) for found, every in expected.values()), case
        plan.LAUNCHES_COMPILED = True
        for turn, offset in enumerate((0, 0, 1)):
            found, some = launches(*case, offset)
            assert found == expected[offset][0], (case, turn)
            looked[turn] += some
        total += len(found)
    print(total, "launches, looked up:", *looked)
