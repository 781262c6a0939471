"""torchrun and --stream as a user types them."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from sentence_state.cli import main

from .command_line import TINY, environment, write_files
from .training.many_processes import CAN_SHARD


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_files_are_streamed_for_every_task(capsys):
    assert main(["train", "classifier", "--stream", "--train", "*.csv", "--out", "a", *TINY]) == 0
    assert "*.csv: 160 sentences" in capsys.readouterr().out
    assert (
        main(["train", "tagger", "--stream", "--train", "train.conll", "--dev", "dev.conll", "--out", "b", *TINY]) == 0
    )
    assert main(["train", "joint", "--stream", "--train", "intents.txt", "--out", "c", *TINY]) == 0
    for name in "abc":
        capsys.readouterr()
        assert main(["predict", name, "--json", "play some jazz"]) == 0
        answer = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert answer["label"] is not None or name == "b"


@pytest.mark.usefixtures("folder")
def test_what_cannot_be_streamed_is_said(capsys):
    assert main(["train", "classifier", "--stream", "--train", "no*.csv", "--out", "a"]) == 2
    assert main(["train", "classifier", "--stream", "--data", "sample", "--out", "a"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first == "error: no*.csv: there is no file"
    assert second == "error: --stream goes with --train FILE, a folder or a pattern"


@pytest.mark.usefixtures("folder")
def test_dev_of_a_streamed_set_is_checked_as_any_other(folder, capsys):
    (folder / "dev.csv").write_text("text,label\nplay jazz,play_music\nso so,NEU\n")
    (folder / "dev.conll").write_text("Rome B-PLANET\n\n")
    (folder / "few.csv").write_text("text,label\nplay jazz,a\nso so,b\n")
    stream = ["--stream", "--out", "a", *TINY]
    assert main(["train", "classifier", "--train", "reviews.csv", "--dev", "dev.csv", *stream]) == 2
    assert "dev.csv:3: label 'NEU' never occurs in reviews.csv (labels: " in capsys.readouterr().err
    assert main(["train", "classifier", "--train", "few.csv", *stream]) == 2
    assert capsys.readouterr().err.endswith("2 sentences are too few to split off a dev set: give --dev FILE\n")
    assert main(["train", "tagger", "--train", "train.conll", "--dev", "dev.conll", *stream]) == 0
    assert "dev.conll:1: tag 'S-PLANET' never occurs in train.conll: it will not" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_torchrun_trains_and_goes_on_when_a_process_is_killed(folder):
    arguments = [
        "train",
        "classifier",
        "--train",
        "reviews.csv",
        "--out",
        "run",
        *TINY,
        "--epochs",
        "40",
        "--patience",
        "0",
    ]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--max-restarts=1", "--standalone"]
    log = folder / "log"
    with open(log, "w") as file:
        process = subprocess.Popen(
            [*command, "-m", "sentence_state", *arguments], cwd=folder, env=environment(), stdout=file, stderr=file
        )
    try:
        wait_for(lambda: (folder / "run" / "metrics.jsonl").exists(), process, log)
        workers = children_of(process.pid)
        assert len(workers) == 2
        os.kill(workers[1], signal.SIGKILL)
        assert process.wait(timeout=100) == 0, log.read_text()
    finally:
        process.kill()
    said = log.read_text()
    assert said.count("The model is in run.") == 1  # one of the processes prints
    epochs = [json.loads(line)["epoch"] for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    assert epochs == list(range(1, 41))


def wait_for(condition, process, log):
    for _ in range(1000):
        if condition():
            return
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def children_of(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=True).stdout
    return [int(child) for child in found.split()]


@pytest.mark.skipif(not hasattr(os, "sched_setscheduler") or not CAN_SHARD, reason="needs Linux's scheduler, torch 2.8")
def test_processes_leave_while_threads_of_gloo_are_still_busy(folder):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["-m", "tests.training.leaving_slowly", "train", "classifier", "--train", "reviews.csv"]
    command += ["--preset", "paper", "--shard", "--device", "cpu", *TINY, "--epochs", "1"]
    for run in "abc":
        process = subprocess.run(
            [*command, "--out", run], cwd=folder, env=environment(), capture_output=True, text=True, timeout=120
        )
        assert process.returncode == 0, process.stderr[-2000:]
        assert process.stdout.endswith('"\n'), "the next command was not printed"
