"""What is printed: sentences, tables of scores, progress, predictions in colour. Plain where it is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from ..data.predictions import Prediction
from ..training import Evaluation, Progress
from ..training.metrics import Scores, total

SCORE_NAMES = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "token_accuracy": "token accuracy",
    "mean": "mean of accuracy and F1",
    "exact": "all right",
}
COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")
MOST_LABELS = 40


def make_console(stderr: bool = False, quiet: bool = False) -> Console:
    """Texts of users hold brackets and smileys: nothing in them is markup."""
    return Console(markup=False, highlight=False, emoji=False, soft_wrap=True, stderr=stderr, quiet=quiet)


def percent(score: float) -> str:
    return f"{100 * score:.2f}%"


def main_scores(scores: Mapping[str, float], metric: str) -> str:
    """The score that counts; for a joint model the two that it is the mean of."""
    names = [name for name in ("accuracy", "f1", "token_accuracy") if name in scores] if metric == "mean" else [metric]
    names = [name for name in names if name != "token_accuracy" or "f1" not in scores]
    return ", ".join(f"{SCORE_NAMES[name]} {percent(scores[name])}" for name in names)


class TrainingDisplay:
    """`fit`'s progress: a line after every epoch, and below them a bar where there is a terminal."""

    def __init__(self, console: Console, title: str = "") -> None:
        self.console, self.title = console, title
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[scores]}"),
        )
        self.bar = Bar(*columns, console=console, transient=True, disable=not console.is_terminal)
        self.task = self.bar.add_task("starting", total=None, scores="")
        self.best = -1.0

    def __enter__(self) -> TrainingDisplay:
        self.bar.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.bar.stop()

    def __call__(self, progress: Progress) -> None:
        if progress.best_score is not None and not progress.record:
            self.best = max(self.best, progress.best_score)  # a resumed run has one before its first epoch here
        if progress.note:
            self.bar.console.print(progress.note)
            return
        best = f", best dev {percent(progress.best_score)}" if progress.best_score is not None else ""
        self.bar.update(
            self.task,
            description=f"{self.title}epoch {progress.epoch}/{progress.epochs}",
            completed=(progress.epoch - 1) * progress.batches + progress.batch,
            total=progress.epochs * progress.batches,
            scores=f"loss {progress.loss:.4f}{best}",
        )
        if progress.record:
            self.bar.console.print(self.line(progress, progress.record))

    def line(self, progress: Progress, record: dict[str, Any]) -> str:
        left = record["seconds"] / progress.epoch * (progress.epochs - progress.epoch)
        parts = [f"{self.title}epoch {progress.epoch}/{progress.epochs}", f"loss {record['loss']:.4f}"]
        if "dev" in record:
            score = record["dev"][record["metric"]]
            parts.append(f"dev {main_scores(record['dev'], record['metric'])}{' *' if score > self.best else ''}")
            self.best = max(self.best, score)
        return "  ".join([*parts, f"{record['seconds']:.0f} s, at most {left:.0f} s left"])


def print_evaluation(console: Console, evaluation: Evaluation, title: str) -> None:
    """All scores, then a table of labels for each target."""
    scores = ", ".join(f"{SCORE_NAMES.get(name, name)} {percent(value)}" for name, value in evaluation.scores.items())
    console.print(f"\n{title}: {scores}", style="bold")
    for target, labels in evaluation.labels.items():
        console.print(label_table(labels, target))
        if len(labels) > MOST_LABELS:
            console.print(f"... the {MOST_LABELS} most frequent of {len(labels)}")


def label_table(labels: Mapping[str, Scores], target: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("label" if target == "label" else "tag")
    for name in ("precision", "recall", "F1", "examples" if target == "label" else "in the text"):
        table.add_column(name, justify="right")
    frequent = sorted(labels.items(), key=lambda item: (-item[1].gold, item[0]))[:MOST_LABELS]
    for name, scores in [*sorted(frequent), ("all", total(labels.values()))]:
        table.add_row(
            Text(name), percent(scores.precision), percent(scores.recall), percent(scores.f1), f"{scores.gold:,}"
        )
    return table


def coloured(text: str, prediction: Prediction, console: Console, colours: Mapping[str, str]) -> Text:
    """A text with its spans: coloured on a terminal, [words](label) elsewhere; label and score before it."""
    line = Text()
    if prediction["label"] is not None:
        line.append(prediction["label"], style="bold").append(f" {prediction['score'] or 0:.2f}  ", style="dim")
    position = 0
    for span in prediction["spans"]:
        line.append(text[position : span["start"]])
        words, colour = text[span["start"] : span["end"]], colours.get(span["label"], "white")
        if console.is_terminal:
            line.append(f" {words} ", style=f"bold black on {colour}")
            line.append(f" {span['label']}", style=colour)
        else:
            line.append(f"[{words}]({span['label']})")
        position = span["end"]
    return line.append(text[position:])


def colours_of(labels: list[str]) -> dict[str, str]:
    return {label: COLOURS[i % len(COLOURS)] for i, label in enumerate(sorted(labels))}


def program() -> str:
    """How the user called us, for commands that can be typed again."""
    return "python -m sentence_state" if sys.argv[0].endswith("__main__.py") else "sentence-state"
