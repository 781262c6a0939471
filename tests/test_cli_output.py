"""What the command line prints, into pipes, in any alphabet, and before a command is known."""

import subprocess
import sys

import pytest

from sentence_state import __version__
from sentence_state.cli import main
from sentence_state.commands.console import TrainingDisplay, make_console
from sentence_state.training import Progress

from .command_line import environment, start

ANY_ALPHABET = """
import sys
from sentence_state.cli import write_any_text
write_any_text()
print("да 😀 本文")
print("да 😀 本文", file=sys.stderr)
"""


def test_the_version_is_said(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"sentence-state {__version__}\n"


def test_a_reader_that_has_seen_enough_of_the_help_is_no_error(tmp_path):
    process = start(["predict", "--help"], tmp_path)
    process.stdout.close()  # before the help is written
    assert process.wait(timeout=60) == 141
    assert process.stderr.read() == ""


def test_pipes_get_utf8_where_the_system_has_another_encoding():
    done = subprocess.run(
        [sys.executable, "-c", ANY_ALPHABET], env={**environment(), "PYTHONIOENCODING": "cp1252"}, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().split() == done.stderr.decode().split() == ["да", "😀", "本文"]


def test_a_resumed_run_marks_an_epoch_only_if_it_is_better_than_all_before(capsys):
    record = {"loss": 0.5, "seconds": 2.0, "metric": "accuracy", "dev": {"accuracy": 0.8}}
    with TrainingDisplay(make_console()) as display:
        display(Progress(4, 6, 1, 10, 0.5, best_score=0.9))  # what was reached before it was stopped
        display(Progress(4, 6, 10, 10, 0.5, best_score=0.9, record=record))
        display(Progress(5, 6, 10, 10, 0.5, best_score=0.95, record=record | {"dev": {"accuracy": 0.95}}))
    worse, better = (line for line in capsys.readouterr().out.splitlines() if line.startswith("epoch"))
    assert "*" not in worse
    assert "*" in better


@pytest.mark.parametrize("seed", ["-1", "99999999999999999999"])
def test_a_seed_that_is_none_is_refused(capsys, seed):
    assert main(["train", "classifier", "--data", "sample", "--out", "never", "--seed", seed]) == 2
    assert "seed must" in capsys.readouterr().err
