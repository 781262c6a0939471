"""Kernels compile for a GPU, and are launched without a look-up as they are with one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton")

from sentence_state.ops.fused import plan
from sentence_state.ops.fused.backward import backward_step, close_gradient
from sentence_state.ops.fused.few_words import (
    node_products,
    node_products_gradient,
    word_products,
    word_products_gradient,
)
from sentence_state.ops.fused.first import begin, begin_gradient
from sentence_state.ops.fused.forward import close_step, forward_step
from sentence_state.ops.fused.packing import copy_columns, copy_weights, gather_neighbours
from sentence_state.ops.fused.sums import add_steps, add_vectors


class Kernel:
    """In place of Triton's: takes down how it is launched. interpreted: it gives back nothing to launch."""

    arg_names = ("x", "N", "FIRST", "ROWS")

    def __init__(self, interpreted=False):
        self.interpreted, self.launched, self.fn = interpreted, [], object()

    def __getitem__(self, grid):
        def launch(*arguments, **constants):
            self.launched.append((grid, arguments, constants))
            return None if self.interpreted else Compiled(self.launched)

        return launch


class Compiled:
    def __init__(self, launched):
        self.launched = launched

    def __getitem__(self, grid):
        return lambda *arguments: self.launched.append((grid, arguments))


def test_a_kernel_is_looked_up_once_and_then_launched_with_all_its_arguments_in_order(monkeypatch):
    monkeypatch.setattr(plan, "LAUNCHES_COMPILED", True)
    kernel, constants = Kernel(), {"ROWS": 4, "FIRST": True, "num_warps": 1}
    a, b, c = torch.zeros(3, 4).unbind()
    launch = plan.Launch(kernel, (3, 2, 1), **constants)
    for place in (a, b):
        launch(place, 7)
    plan.Launch(kernel, (5, 1, 1), **constants)(c, 7)  # in another call of the operator
    assert kernel.launched == [
        ((3, 2, 1), (a, 7), constants),
        ((3, 2, 1), (b, 7, True, 4)),
        ((5, 1, 1), (c, 7, True, 4)),
    ]


def test_what_triton_compiles_a_kernel_for_is_looked_up_again(monkeypatch):
    monkeypatch.setattr(plan, "LAUNCHES_COMPILED", True)
    kernel, x = Kernel(), torch.zeros(9)

    def looked_up(x, N, ROWS):
        kernel.launched.clear()
        plan.Launch(kernel, (1, 1, 1), FIRST=False, ROWS=ROWS)(x, N)
        return len(kernel.launched[0]) == 3

    assert looked_up(x, 7, 4)
    assert not looked_up(torch.zeros(5), 9, 4)
    for other in ((x.half(), 7, 4), (x[1:], 7, 4), (x, 1, 4), (x, 32, 4), (x, 2**31 + 1, 4), (x, 7, 8)):
        assert [looked_up(*other), looked_up(*other)] == [True, False]


def test_a_kernel_that_cannot_be_launched_as_it_is_is_looked_up_every_time(monkeypatch):
    a, b = torch.zeros(2, 4).unbind()
    for interpreted in (True, False):
        kernel = Kernel(interpreted)
        monkeypatch.setattr(plan, "LAUNCHES_COMPILED", interpreted)
        launch = plan.Launch(kernel, (1, 1, 1), FIRST=False, ROWS=4)
        for place in (a, b):
            launch(place, 7)
        assert [arguments for _, arguments, _ in kernel.launched] == [(a, 7), (b, 7)]


def test_a_launch_has_its_constants_before_another_thread_may_use_it(monkeypatch):
    monkeypatch.setattr(plan, "LAUNCHES_COMPILED", True)
    kernel, seen = Kernel(), []
    launch = plan.Launch(kernel, (1, 1, 1), FIRST=False, ROWS=4)

    class Slow(Compiled):
        def __getitem__(self, grid):  # meanwhile another thread looks
            seen.append((launch.launch, list(launch.values)))
            return super().__getitem__(grid)

    monkeypatch.setitem(globals(), "Compiled", Slow)
    for _ in range(2):
        launch(torch.zeros(4), 7)
    assert seen == [(None, [False, 4])]


def test_launches_of_a_pass_are_kept_for_the_next_one_like_it(monkeypatch):
    x = torch.zeros(8)

    def like(sizes, *tensors):
        return plan.Launches.like(sizes, x.device, tensors)

    kept = like((2, 3), x, None)
    assert like((2, 3), torch.ones(5), None) is kept
    assert like((2, 3), x[2:], None) is not like((2, 3), x[1:], None)  # groups of sentences begin elsewhere in them
    for other in [((2, 4), x, None), ((2, 3), x[1:], None), ((2, 3), x.half(), None), ((2, 3), x, x)]:
        assert like(*other) is not kept
    launch = plan.Launch(Kernel(), (1, 1, 1))
    assert kept.of("step", lambda: launch) is kept.of("step", lambda: pytest.fail("made again")) is launch
    monkeypatch.setattr(plan.Launches, "MOST", len(plan.Launches.kept))
    like((2, 5), x)
    assert like((2, 3), x, None) is not kept


LAUNCHED = [forward_step, close_step, backward_step, close_gradient, add_steps, add_vectors, gather_neighbours]

FEW = [node_products, node_products_gradient, word_products, word_products_gradient]


@pytest.mark.parametrize("kernel", [*LAUNCHED, *FEW, begin, begin_gradient, copy_columns, copy_weights])
def test_the_constants_of_a_kernel_stand_behind_its_arguments(kernel):
    """`Launch` relies on it."""
    constant = ["constexpr" in str(annotation) for annotation in kernel.fn.__annotations__.values()]
    assert all(constant)
    assert kernel.arg_names[-len(constant) :] == list(kernel.fn.__annotations__)


def compiled(module):
    """What a module of tests prints where Triton compiles instead of interpreting."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", f"tests.ops.{module}"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_every_kernel_compiles_for_a_gpu():
    kernels = [kernel.fn.__name__ for kernel in (*LAUNCHED, *FEW, begin, begin_gradient, copy_columns, copy_weights)]
    chain = [
        "log_partition_kernel",
        "expected_counts_kernel",
        "marginals_kernel",
        "shared_pairs_kernel",
        "viterbi_kernel",
    ]
    assert set(compiled("compile_kernels")[2:]) == {*kernels, *chain, "adam_of_row"}


@pytest.mark.skipif(not plan.LAUNCHES_COMPILED, reason="this Triton's kernels are looked up every time")
def test_steps_launched_as_they_are_get_what_others_get():
    assert compiled("launch_kernels") == ["235", "launches,", "looked", "up:", "93", "0", "16"]
