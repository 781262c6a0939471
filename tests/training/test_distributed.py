"""Many processes train one model: the same weights as by one, nothing lost when one is killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sentence_state.data.batching import share_of

from .many_processes import CAN_SHARD

ROOT = Path(__file__).parents[2]
needs_fork = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")


def run_module(name: str, *arguments: object, timeout: int = 240) -> str:
    """A module of tests as a process of its own, which may fork: torch has no threads there."""
    command = [sys.executable, "-m", f"tests.training.{name}", *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        try:
            out, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # what it has forked too
            raise
    assert process.returncode == 0, out + errors
    return out.splitlines()[-1]  # the gloo of torch 2.8 prints too


@needs_fork
def test_many_processes_give_the_weights_of_one(tmp_path):
    found = json.loads(run_module("many_processes", tmp_path))
    assert len(found) == 5 + 2 * CAN_SHARD
    for case, differences in found.items():
        assert differences["steps"] >= 50
        assert differences["weights"] < 1e-5, case  # float32
        assert differences["losses"] < 1e-5, case
        assert differences["between processes"] == 0, case
        assert differences["same scores"], case


@pytest.mark.gpu
def test_on_gpus_many_processes_give_the_weights_of_one(tmp_path):
    cases = ["classifier", "tagger", "joint, sparse words", "sharded", "sharded, in pieces"]
    found = json.loads(run_module("many_processes", tmp_path, "cuda", *cases))
    for case, differences in found.items():
        assert differences["weights"] < 1e-4, case  # the order of sums on a GPU is not fixed, and Adam enlarges it
        assert differences["losses"] < 1e-5, case
        assert differences["between processes"] == 0, case


@pytest.mark.skipif(not hasattr(os, "sched_setscheduler"), reason="needs Linux's scheduler")
def test_processes_part_without_waiting_for_threads_that_wait_for_them(tmp_path):
    run_module("parting_often", tmp_path, 40)


@needs_fork
@pytest.mark.parametrize(("kills", "kind", "epochs", "places"), [(20, "dense and sparse", 6, 5), (3, "shard", 2, 2)])
def test_twenty_kills_across_two_processes_lose_nothing(kills, kind, epochs, places, tmp_path):
    if kind == "shard" and not CAN_SHARD:
        pytest.skip("FSDP2 on CPUs needs torch 2.8")
    killed, on_disk = run_module("killed_together", tmp_path, kills, kind).split()  # compares with a run never killed
    assert killed == on_disk
    starts = (tmp_path / "killed.starts").read_text().splitlines()
    assert len(starts) == kills + 1
    assert len(set(starts)) >= places  # the kills hit in the middle of training, not only before it
    left = sorted(path.name for path in (tmp_path / "killed").iterdir())
    assert left == sorted(path.name for path in (tmp_path / "never_killed").iterdir())
    assert len((tmp_path / "killed" / "metrics.jsonl").read_text().splitlines()) == epochs


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_shares_are_disjoint_and_have_about_as_many_words(size):
    lengths = np.random.default_rng(0).integers(1, 60, 37)
    shares = [share_of(lengths, rank, size) for rank in range(size)]
    assert sorted(np.concatenate(shares).tolist()) == list(range(37))
    sizes, words = [len(share) for share in shares], [int(lengths[share].sum()) for share in shares]
    assert max(sizes) - min(sizes) <= 1
    assert max(words) - min(words) <= lengths.max()
