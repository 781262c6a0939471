"""python -m benchmarks plots: the README's figure, drawn from benchmarks/results/gpu.jsonl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .measure import RESULTS


def newest(batch: int, dtype: str) -> list[dict[str, Any]]:
    """The latest row of every length, shortest first."""
    rows = [json.loads(line) for line in (RESULTS / "gpu.jsonl").read_text().splitlines()]
    latest = {row["words"]: row for row in rows if row["batch"] == batch and row["dtype"] == dtype}
    return [latest[words] for words in sorted(latest)]


def main(batch: int = 10, dtype: str = "bfloat16") -> None:
    """Time against length, forward and forward + backward, S-LSTM beside cuDNN's BiLSTM.

    Args:
        batch: sentences in a batch.
        dtype: bfloat16 or float32.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = newest(batch, dtype)
    words = [row["words"] for row in rows]
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for axis, kind in zip(axes, ("forward", "forward + backward"), strict=True):
        for name, label, colour in (("BiLSTM", "BiLSTM (cuDNN)", "#888888"), ("S-LSTM", "S-LSTM, 9 steps", "#0b6e99")):
            axis.plot(words, [row[kind][name]["ms"] for row in rows], marker="o", label=label, color=colour)
        for row in rows:
            text, height = f"{row[f'{kind}, ratio']['BiLSTM']:.1f}x", row[kind]["S-LSTM"]["ms"]
            axis.annotate(text, (row["words"], height), xytext=(4, -12), textcoords="offset points", color="#0b6e99")
        axis.set(title=kind, xscale="log", yscale="log", xlabel="words in a sentence")
        axis.set_xticks(words, [str(count) for count in words], minor=False)
        axis.minorticks_off()
        axis.margins(0.14)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("milliseconds")
    axes[0].legend(frameon=False)
    first = rows[0]
    figure.suptitle(f"{batch} sentences, H = 300, {dtype}, {first['device']}, {first['date'][:10]}", fontsize=10)
    path = Path(RESULTS / "time_against_length.png")
    figure.savefig(path, dpi=110)
    print(path)
