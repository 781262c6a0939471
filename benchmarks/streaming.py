"""python -m benchmarks streaming: words a second and peak memory of files that stay on disk, by cores."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .measure import append, circumstances

DIFFERENT_WORDS = 60_000
BATCH = 64


def main(megabytes: tuple[int, ...] = (50, 500), save: bool = True) -> None:
    """The first pass over a JSONL file and an epoch of batches, each on one core and on all. Appends to
    benchmarks/results/streaming.jsonl.

    Args:
        megabytes: of the generated files.
        save: append the rows to the results.
    """
    cores = len(os.sched_getaffinity(0))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in megabytes:
            path = generate(Path(folder) / "reviews.jsonl", size)
            for number in sorted({1, cores}):
                command = [sys.executable, "-m", f"{__package__}.streaming", str(path), str(number)]
                done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, check=True)
                rows.append({"benchmark": "streaming", **circumstances("cpu"), **json.loads(done.stdout)})
    show(rows)
    if save:
        print(f"appended to {append('streaming', rows)}")


def generate(path: Path, megabytes: int) -> Path:
    """Sentences of 10 to 40 words with capitals and points, the first words more frequent."""
    numbers = random.Random(0)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(numbers.choices(letters, k=numbers.randint(2, 9))) for _ in range(DIFFERENT_WORDS)]
    with open(path, "w") as file:
        written = 0
        while written < megabytes * 1e6:
            chosen = [words[int(DIFFERENT_WORDS ** numbers.random()) - 1] for _ in range(numbers.randint(10, 40))]
            row = {"text": " ".join(chosen).capitalize() + ".", "label": numbers.choice(["good", "bad"])}
            written += file.write(json.dumps(row) + "\n")
    return path


def measure(path: Path, cores: int) -> dict[str, Any]:
    from sentence_state.data import Vocabulary
    from sentence_state.data.indexing import Vocabularies
    from sentence_state.data.streamed_forms import table_form
    from sentence_state.data.streaming import StreamedBatches, StreamedExamples

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    started = time.perf_counter()
    examples = StreamedExamples([path], table_form(path), dev_fraction=0.1)
    first_pass = time.perf_counter() - started
    labels = Vocabulary.of_labels(examples.survey.labels)
    batches = StreamedBatches(examples, Vocabularies(examples.survey.vocabulary(), labels=labels), BATCH)
    started = time.perf_counter()
    words = sum(int((batch.lengths - 2).sum()) for batch in batches)
    epoch = time.perf_counter() - started
    readers = examples.reading.readers
    alive = [readers.idle.get() for _ in range(readers.number)] if readers is not None else []
    return {
        "MB": path.stat().st_size / 1e6,
        "cores": cores,
        "readers": len(alive),
        "words": words,
        "first pass, words/s": words / first_pass,
        "epoch, words/s": words / epoch,
        "peak MB": peak_megabytes(os.getpid()),
        "peak MB of a reader": max((peak_megabytes(reader.process.pid) for reader in alive), default=0.0),
    }


def peak_megabytes(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def show(rows: list[dict[str, Any]]) -> None:
    table = Table(title=f"JSONL that stays on disk; {rows[0]['device']}, Python {rows[0]['python']}")
    names = ("MB", "cores", "readers", "first pass, words/s", "epoch, words/s", "peak MB", "peak MB of a reader")
    for name in names:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(f"{row[name]:,.0f}" for name in names))
    Console(width=110).print(table)


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), int(sys.argv[2]))))
