"""Pictures of a finished run: learning curves and confusion matrices as PNG. They need matplotlib, an extra."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data import Example
from ..data.files import replacing
from ..data.tag_schemes import split_tag
from ..models import Model
from ..training import Evaluation
from ..training.metrics import confusion
from .console import SCORE_NAMES

MOST_LABELS = 30
HOW_TO_GET_PICTURES = 'no pictures: matplotlib is missing. pip install "sentence-state[plots]"'
Matrix = Mapping[str, Mapping[str, int]]


def draw_run(run: Path, history: Sequence[dict[str, Any]], matrices: Mapping[str, Matrix]) -> list[Path] | None:
    """Write learning_curves.png and confusion_<target>.png; None where there is no matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    figures = {"learning_curves.png": draw_curves(Figure, history)}
    figures |= {f"confusion_{target}.png": draw_confusion(Figure, matrix) for target, matrix in matrices.items()}
    for name, figure in figures.items():
        with replacing(run / name) as unfinished, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # a box in the picture says it
            figure.savefig(unfinished, format="png", dpi=120, bbox_inches="tight")
    return [run / name for name in figures]


def draw_curves(figure_class: Any, history: Sequence[dict[str, Any]]) -> Any:
    """Loss on the left, every dev score on the right, over the epochs."""
    figure = figure_class(figsize=(9, 3.6))
    left, right = figure.subplots(1, 2)
    epochs = [record["epoch"] for record in history]
    left.plot(epochs, [record["loss"] for record in history], marker=".")
    left.set(title="loss on train", xlabel="epoch")
    for name in history[0].get("dev", {}) if history else ():
        right.plot(epochs, [record["dev"][name] for record in history], marker=".", label=SCORE_NAMES.get(name, name))
    right.set(title="scores on dev", xlabel="epoch", ylim=(0, 1))
    right.legend(fontsize="small")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.xaxis.get_major_locator().set_params(integer=True)
    return figure


def draw_confusion(figure_class: Any, matrix: Matrix) -> Any:
    """Rows are what is right, columns what was predicted; colours are shares of a row, numbers are counts."""
    frequent = sorted(matrix, key=lambda name: -sum(matrix[name].values()))[:MOST_LABELS]
    labels = [name for name in matrix if name in frequent]
    counts = [[matrix[row][column] for column in labels] for row in labels]
    shares = [[count / max(sum(row), 1) for count in row] for row in counts]
    size = max(3.0, 0.42 * len(labels) + 1.5)
    figure = figure_class(figsize=(size, size))
    axes = figure.subplots()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(labels)), labels, rotation=90, parse_math=False)  # a label may be $$
    axes.set_yticks(range(len(labels)), labels, parse_math=False)
    title = f"the {len(labels)} most frequent of {len(matrix)}" if len(labels) < len(matrix) else ""
    axes.set(xlabel="predicted", ylabel="right", title=title)
    for y, row in enumerate(counts):
        for x, count in enumerate(row):
            if count:
                colour = "white" if shares[y][x] > 0.5 else "black"
                axes.text(x, y, f"{count}", ha="center", va="center", fontsize=7, color=colour)
    return figure


def confusion_matrices(model: Model, examples: Sequence[Example], evaluation: Evaluation) -> dict[str, Matrix]:
    """Those of the evaluation; where tags are spans, also one of words, by the label of the span they are in."""
    matrices: dict[str, Matrix] = dict(evaluation.confusion)
    if "tags" in model.targets and "tags" not in matrices:
        found = model.decode_all(examples).tags or []
        gold = [kind(tag) for example in examples for tag in example.tags or ()]
        matrices["tags"] = confusion(gold, [kind(tag) for tags in found for tag in tags])
    return matrices


def kind(tag: str) -> str:
    """B-PER -> PER; O stays."""
    return split_tag(tag).label or tag[0]
