"""What a line says of the machine and of the code that made it."""

import subprocess
import sys

import pytest
import torch

from sentence_state.experiments import conditions
from sentence_state.experiments.conditions import PeakMemory, commit_of


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_is_that_of_the_packages_own_repository(tmp_path):
    inside = tmp_path / "site-packages"
    for folder in (tmp_path, inside):
        (folder / "sentence_state").mkdir(parents=True)
        (folder / "sentence_state" / "file.py").touch()
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    assert commit_of(tmp_path) == git(tmp_path, "rev-parse", "--short=12", "HEAD")
    assert commit_of(inside) == "unknown"  # installed in somebody's repository
    (tmp_path / "sentence_state" / "file.py").write_text("changed")
    assert commit_of(tmp_path).endswith("+")


def test_the_commit_of_a_folder_without_a_repository_is_unknown(tmp_path):
    assert commit_of(tmp_path) == "unknown"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own peak is reset")
def test_a_small_run_after_a_large_one_has_a_small_peak():
    peaks = []
    for megabytes in (400, 1):
        memory = PeakMemory("cpu")
        torch.ones(megabytes, 250_000).sum()
        peaks.append(memory.read())
    assert peaks[1]["peak_memory_mb"] < peaks[0]["peak_memory_mb"] - 200
    assert {peak["memory_of"] for peak in peaks} == {"process during the run"}


def test_a_peak_that_cannot_be_forgotten_is_called_that_of_the_process(monkeypatch):
    monkeypatch.setattr(conditions, "forget_peak", lambda: False)
    peak = PeakMemory("cpu").read()
    assert peak["memory_of"] == "process since it began"
    assert peak["peak_memory_mb"] > 10
