"""Files as a user has them, and the command line as a user types it; for test_cli_*.py and test_readme.py."""

from __future__ import annotations

import csv
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from sentence_state.cli import main
from sentence_state.data import Example, read_sample

ROOT = Path(__file__).parents[1]
TINY = ["--hidden-size", "8", "--word-size", "8", "--num-steps", "2", "--epochs", "2", "--batch-size", "16"]


def write_files(folder: Path, size: int = 160) -> None:
    """reviews.csv, {train,dev,test}.conll, intents.txt (labels and marked slots) and glove.txt, out of the sample."""
    sample = read_sample()
    with open(folder / "reviews.csv", "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "label"])
        rows.writerows([example.text, example.label] for example in sample.train[:size])
    for name, examples in (("train", sample.train), ("dev", sample.dev), ("test", sample.test)):
        (folder / f"{name}.conll").write_text("\n".join(map(columns, examples[:size])), encoding="utf-8")
    marked = (ROOT / "sentence_state/data/sample/train.txt").read_text(encoding="utf-8").splitlines()
    (folder / "intents.txt").write_text("\n".join(marked[:size]), encoding="utf-8")
    words = sorted({word for example in (*sample.train, *sample.dev) for word in example.words})
    numbers = random.Random(0)
    lines = [" ".join([word, *(f"{numbers.gauss(0, 0.5):.4f}" for _ in range(20))]) for word in words]
    (folder / "glove.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def columns(example: Example) -> str:
    return "".join(f"{word} {tag}\n" for word, tag in zip(example.words, example.tags or (), strict=True))


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that must succeed prints."""
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def environment() -> dict[str, str]:
    """One thread: several test processes share the machine. The scripts beside this Python come first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "OMP_NUM_THREADS": "1", "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}


def start(arguments: list[str], folder: Path, text: bool = True) -> subprocess.Popen:
    """`python -m sentence_state ...` as a process of its own."""
    command = [sys.executable, "-m", "sentence_state", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment(), text=text, stdin=pipe, stdout=pipe, stderr=pipe)
