"""python -m benchmarks plots: the README's figures, drawn from benchmarks/results/gpu.jsonl."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .cases import MODELS, REFERENCE
from .measure import RESULTS, read

Row = dict[str, Any]

OURS = "S-LSTM"
LABELS = {OURS: "S-LSTM, 9 steps", "BiLSTM": "BiLSTM (cuDNN)", "2 stacked BiLSTM": "2 stacked BiLSTM (cuDNN)"}
LABELS[REFERENCE] = "S-LSTM in plain PyTorch"
COLOURS = dict(
    zip(MODELS, ("#0b6e99", "#555555", "#a5a5a5", "#c77d1e", "#5b8c3e", "#7fb7cf", "#9467bd", "#b5446e"), strict=True)
)
MARKERS = dict(zip(MODELS, "osDv^x+*", strict=True))


def main(batch: int = 10, dtype: str = "bfloat16", results: Path = RESULTS, out: Path = RESULTS) -> None:
    """Time against length, memory against length, speed against batch: three PNG files.

    Args:
        batch: sentences in a batch, where length is what changes.
        dtype: bfloat16 or float32.
        results: folder of gpu.jsonl.
        out: folder of the figures.
    """
    rows = newest(read("gpu", results), dtype)
    if not rows:
        raise SystemExit(f"no rows of {dtype} in {results / 'gpu.jsonl'}: run python -m benchmarks gpu first")
    batches = sorted({row["batch"] for row in rows})
    if batch not in batches:
        there = ", ".join(map(str, batches))
        raise SystemExit(f"no rows of batch {batch} and {dtype} in {results / 'gpu.jsonl'}; there are {there}")
    draw = {"time_against_length": time, "memory_against_length": memory, "speed_against_batch": speed}
    out.mkdir(exist_ok=True, parents=True)
    for name, function in draw.items():
        figure = function(rows, batch)
        name_lines(figure)
        figure.savefig(out / f"{name}.png", dpi=110)
        print(out / f"{name}.png")


def newest(rows: list[Row], dtype: str) -> list[Row]:
    """Every shape as it was measured last, of the card that was measured last; models that were left out then, as they
    were before."""
    rows = [row for row in rows if row["dtype"] == dtype]
    latest: dict[tuple[int, int], Row] = {}
    for row in rows:
        if row["device"] == rows[-1]["device"]:
            shape = row["batch"], row["words"]
            before = latest.get(shape, {})
            of_models = {
                key: {**before.get(key, {}), **row[key]} for key in ("forward", "forward + backward", "peak MB")
            }
            latest[shape] = {**row, **of_models}
    return [latest[shape] for shape in sorted(latest)]


def time(rows: list[Row], batch: int) -> Any:
    rows = [row for row in rows if row["batch"] == batch]
    figure, axes = panels(f"{batch} sentences, in CUDA graphs", rows, 2)
    for axis, kind in zip(axes, ("forward", "forward + backward"), strict=True):
        lines(axis, rows, "words", lambda row, name, kind=kind: row[kind].get(name, {}).get("ms"))
        for row in rows:
            text, height = f"{row[f'{kind}, ratio']['BiLSTM']:.1f}x", row[kind][OURS]["ms"]
            style = {"textcoords": "offset points", "color": COLOURS[OURS], "fontsize": 8}
            axis.annotate(text, (row["words"], height), xytext=(3, -11), **style)
        axis.set(title=f"{kind} (numbers: BiLSTM's time / ours)", xlabel="words in a sentence")
    axes[0].set_ylabel("milliseconds")
    return figure


def memory(rows: list[Row], batch: int) -> Any:
    rows = [row for row in rows if row["batch"] == batch]
    figure, (axis,) = panels(f"{batch} sentences", rows, 1)
    lines(axis, rows, "words", lambda row, name: row["peak MB"].get(name))
    axis.set(title="peak memory of forward + backward", xlabel="words in a sentence", ylabel="MB")
    return figure


def speed(rows: list[Row], _: int) -> Any:
    """Words a second in training, at two lengths."""
    lengths = sorted({row["words"] for row in rows} & {24, 256})
    figure, axes = panels("forward + backward in CUDA graphs", rows, len(lengths))
    for axis, words in zip(axes, lengths, strict=True):
        of_length = [row for row in rows if row["words"] == words]
        lines(axis, of_length, "batch", words_a_second)
        axis.set(title=f"{words} words in a sentence", xlabel="sentences in a batch")
    axes[0].set_ylabel("words a second")
    return figure


def words_a_second(row: Row, name: str) -> float | None:
    times = row["forward + backward"].get(name)
    return row["batch"] * row["words"] / times["ms"] * 1e3 if times else None


def panels(what: str, rows: list[Row], number: int) -> tuple[Any, list[Any]]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, number, figsize=(5.2 * number, 4.3), sharey=True, layout="constrained", squeeze=False
    )
    first = max(rows, key=lambda row: row["date"])
    figure.suptitle(f"{what}, H = 300, {first['dtype']}, {first['device']}, {first['date'][:10]}", fontsize=9)
    return figure, list(axes[0])


def name_lines(figure: Any) -> None:
    """One legend for all panels, below them: within a panel it would cover lines."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    columns = 2 * len(figure.axes)
    style = {"frameon": False, "fontsize": 8, "ncols": columns}
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", **style)


def lines(axis: Any, rows: list[Row], x: str, y: Callable[[Row, str], float | None]) -> None:
    """A line for each encoder that was measured, on logarithmic axes whose ticks are the measured values."""
    for name in reversed(MODELS):
        points = [(row[x], value) for row in rows if (value := y(row, name)) is not None]
        if points:
            style = {"color": COLOURS[name], "marker": MARKERS[name], "linewidth": 2.2 if name == OURS else 1.2}
            axis.plot(*zip(*points, strict=True), label=LABELS.get(name, name), markersize=4, **style)
    ticks = sorted({row[x] for row in rows})
    axis.set(xscale="log", yscale="log")
    axis.set_xticks(ticks, [str(tick) for tick in ticks], minor=False)
    axis.minorticks_off()
    axis.margins(0.12)
    axis.grid(alpha=0.3)
