"""Compiles every kernel for a GPU where there is none: `python -m tests.ops.compile_kernels`.

The operators run on CPU tensors, but a kernel that would be launched is compiled instead, once for each type and set of
options. Triton's interpreter, which runs them in the other tests, takes more than its compiler does.
"""

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from sentence_state.ops.fused import crf, few_words, lazy_adam
from sentence_state.ops.fused.autograd import fused_recurrence
from sentence_state.ops.fused.plan import Launches

from .fused_cases import random_case

HOPPER, SHARED_MEMORY = GPUTarget("cuda", 90, 32), 227 * 1024
TYPES = {torch.bfloat16: "bf16", torch.float32: "fp32", torch.int8: "i8", torch.int32: "i32", torch.int64: "i64"}
compiled: dict[tuple, str] = {}


def describe(value):
    return f"*{TYPES[value.dtype]}" if isinstance(value, torch.Tensor) else {int: "i32", float: "fp32"}[type(value)]


def compile_instead(kernel, *args, grid, warmup, **options):
    launch = {name: options.pop(name) for name in ("num_warps", "num_stages", "maxnreg") if name in options}
    values = {**dict(zip(kernel.arg_names, args, strict=False)), **options}
    constants = {p.name: values[p.name] for p in kernel.params if p.is_constexpr}
    types = {name: describe(values[name]) for name in kernel.arg_names if name not in constants}
    key = (kernel.fn.__name__, *launch.items(), *types.items(), *constants.items())
    if key not in compiled:
        old = tuple(map(int, triton.__version__.split(".")[:2])) < (3, 3)  # whose signatures leave constants out
        signature = types if old else {name: types.get(name, "constexpr") for name in kernel.arg_names}
        found = triton.compile(ASTSource(kernel, signature, constants), HOPPER, launch)
        assert found.metadata.shared <= SHARED_MEMORY
        compiled[key] = found.asm["ptx"]


def recurrence(dtype, gates, drop, memory):
    x, lengths, weights, num_steps, kind, dropout = random_case(2, 20, 20, 20, 4, gates, drop, drop)
    x, weights = x.to(dtype).requires_grad_(), type(weights)(*(weight.detach().to(dtype) for weight in weights))
    dropout = dropout and tuple(mask.to(dtype) for mask in dropout)
    for need_words in (True, False):
        state = fused_recurrence(x, lengths, weights, num_steps, kind, dropout, need_words, True, memory)
        (state.g.sum() + (state.h.sum() if need_words else 0)).backward()


def chain(shared):
    emission, lengths = torch.randn(2, 3, 5), torch.tensor([3, 2])
    transition, end = torch.randn(1, 1, 5, 5).expand(1, 3, 5, 5) if shared else torch.randn(2, 3, 5, 5), torch.randn(5)
    _, alphas = crf.log_partition(emission, transition, end, lengths)
    crf.expected_counts(transition, end, lengths, alphas, torch.ones(2))
    crf.marginals(emission, transition, end, lengths, pairs=not shared)
    crf.viterbi(emission, transition, end, lengths)


if __name__ == "__main__":
    JITFunction.run = compile_instead
    few_words.WORD_PROGRAMS = range(1, 115)
    for columns in few_words.STAGES:
        few_words.GRADIENT_PROGRAMS = {columns: range(1, 115)}
        Launches.kept.clear()
        recurrence(torch.bfloat16, "sharp", True, "low")
    recurrence(torch.float32, "paper", False, "high")
    chain(shared=True)
    chain(shared=False)
    lazy_adam.update_rows(*(torch.randn(5, 3) for _ in range(4)), torch.ones(()), (0.9, 0.999), 1e-8)
    names = sorted({key[0] for key in compiled})
    assert all(".target sm_90a" in code for code in compiled.values())
    print(len(compiled), "kernels:", *names)
