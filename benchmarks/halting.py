"""python -m benchmarks halting: what stopping early costs, as a curve of the score against the steps taken."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from sentence_state import SentenceStateLSTM, evaluate
from sentence_state.data import Example, Tokenizer, read_benchmark
from sentence_state.encoders.encoding import read_input
from sentence_state.models import Model

from .measure import RESULTS, append, circumstances, read

THRESHOLDS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.1, 0.12, 0.15, 0.2, 1.0)


def main(
    run: Path, data: str, data_dir: Path, sentences: int | None = None, batch_size: int = 32, save: bool = True
) -> None:
    """Score and mean number of steps on the test set for thresholds from 0 (all steps) to 1 (two steps). Appends to
    benchmarks/results/halting.jsonl and draws all of its curves.

    Args:
        run: folder of a trained S-LSTM.
        data: the set it was trained on: mr, conll2003, ...
        data_dir: where the set is.
        sentences: of the test set; all by default.
        batch_size: sentences in a batch.
        save: append the rows to the results and draw them.
    """
    model = Model.from_pretrained(run)
    scheme = model.tag_scheme if model.tag_scheme in ("bio", "bioes") else "bioes"
    tokenizer = Tokenizer(whitespace=True, contractions=model.tokenizer.contractions)
    examples = read_benchmark(data, data_dir, tokenizer=tokenizer, target_scheme=scheme).splits.test[:sentences]
    rows = [measure(model, examples, threshold, batch_size, data) for threshold in THRESHOLDS]
    show(rows)
    if save:
        print(f"appended to {append('halting', rows)}, drawn in {draw()}")


def measure(model: Model, examples: Sequence[Example], halting: float, batch_size: int, data: str) -> dict[str, Any]:
    steps = steps_of(model, examples, halting, batch_size)
    start = time.perf_counter()
    with model.halting(halting):
        evaluation = evaluate(model, examples, batch_size)
    return {
        "benchmark": "halting",
        **circumstances("cpu"),
        "data": data,
        "sentences": len(examples),
        "num_steps": model.config.num_steps,
        "halting": halting,
        "mean_steps": steps.mean().item(),
        "most_steps": int(steps.max()),
        "metric": evaluation.metric,
        "score": evaluation.score,
        "seconds": time.perf_counter() - start,
    }


def steps_of(model: Model, examples: Sequence[Example], halting: float, batch_size: int) -> torch.Tensor:
    """How many steps every sentence takes."""
    encoder = model.encoder
    if not isinstance(encoder, SentenceStateLSTM):
        raise SystemExit(f"halting is for an S-LSTM, the run holds {model.config.encoder}")
    if not halting:
        return torch.full((len(examples),), float(model.config.num_steps))
    taken = []
    for batch in model.reading(examples, batch_size):
        x, lengths, _ = read_input(model.embedding(batch), batch.lengths, None, encoder.input_size)
        taken.append(encoder.run_until(x, lengths, halting)[2].float())
    return torch.cat(taken)


def show(rows: Sequence[dict[str, Any]]) -> None:
    first = rows[0]
    table = Table(title=f"{first['data']}, {first['sentences']:,} sentences, {first['num_steps']} steps at most")
    for column in ("halting", "mean steps", first["metric"], "difference", "seconds"):
        table.add_column(column, justify="right")
    for row in rows:
        lost = row["score"] - first["score"]
        table.add_row(
            f"{row['halting']:g}",
            f"{row['mean_steps']:.2f}",
            f"{row['score']:.2%}",
            f"{100 * lost:+.2f}",
            f"{row['seconds']:.1f}",
        )
    Console(width=100).print(table)


def draw() -> Path:
    """The newest curve of every set: score against mean steps."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = read("halting")
    curves = {data: {row["halting"]: row for row in rows if row["data"] == data} for data in {r["data"] for r in rows}}
    figure, axes = pyplot.subplots(
        1, len(curves), figsize=(4.5 * len(curves), 3.4), layout="constrained", squeeze=False
    )
    for axis, (data, points) in zip(axes[0], sorted(curves.items()), strict=True):
        curve = [points[threshold] for threshold in sorted(points)]
        axis.plot(
            [row["mean_steps"] for row in curve], [100 * row["score"] for row in curve], marker="o", color="#0b6e99"
        )
        for before, row in zip([None, *curve], curve, strict=False):
            if before and abs(before["mean_steps"] - row["mean_steps"]) < 0.05:
                continue  # labels would lie on each other
            axis.annotate(
                f"{row['halting']:g}", (row["mean_steps"], 100 * row["score"]), xytext=(3, -11),
                textcoords="offset points", fontsize=7, color="#555555",
            )  # fmt: skip
        axis.set(title=data, xlabel="mean steps of a sentence", ylabel=f"{curve[0]['metric']}, %")
        axis.grid(alpha=0.3)
    path = RESULTS / "halting.png"
    figure.savefig(path, dpi=110)
    return path
