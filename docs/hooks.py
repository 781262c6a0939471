"""What mkdocs does beside rendering: tables out of benchmarks/results.

A line `<!-- table: NAME -->` of a page becomes the table of that name, so that no number is copied by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PLACE = re.compile(r"^<!-- table: ([\w-]+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """mkdocs calls it for every page."""
    return PLACE.sub(lambda match: TABLES[match[1]](), markdown)


def rows_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def newest(rows: list[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """The last row of each kind, in the order in which the kinds were first measured."""
    return list({tuple(row[key] for key in keys): row for row in rows}.values())


def table(head: list[str], body: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def measured(rows: list[dict[str, Any]], command: str) -> str:
    """Under what: of the last row, but for the commits, which are those of all."""
    row, commits = rows[-1], " and ".join(dict.fromkeys(row["commit"] for row in rows))
    versions = f"torch {row['torch']}" + (f", onnxruntime {row['onnxruntime']}" if "onnxruntime" in row else "")
    versions += f", flair {row['flair']}" if "flair" in row else ""
    plural = "commits" if " and " in commits else "commit"
    return f"\n\n*{row['device']}, {versions}, {row['date'][:10]}, {plural} {commits}; `{command}` measures it again.*"


def gpu() -> str:
    rows = newest([r for r in rows_of("gpu") if is_encoder(r)], "batch", "words")
    rows.sort(key=lambda row: (row["batch"], row["words"]))
    body = [
        [
            f"{row['batch']} x {row['words']:,}",
            *(
                cell
                for kind in ("forward", "forward + backward")
                for cell in (f"{row[kind]['S-LSTM']['ms']:.3f}", f"{row[f'{kind}, ratio']['BiLSTM']:.2f}")
            ),
        ]
        for row in rows
    ]
    head = ["batch x words", "forward, ms", "BiLSTM / ours", "forward + backward, ms", "BiLSTM / ours"]
    return table(head, body) + measured(rows, "python -m benchmarks gpu")


def is_encoder(row: dict[str, Any]) -> bool:
    return row.get("dtype") == "bfloat16" and "BiLSTM" in row.get("forward, ratio", {})


def cpu() -> str:
    rows = newest([row for row in rows_of("encoders") if not row["backward"]], "batch", "words")
    body = [
        [
            f"{row['batch']} x {row['words']}",
            f"{row['S-LSTM']['ms']:.1f}",
            f"{row['nn.LSTM']['ms']:.2f}",
            f"{1 / row['nn.LSTM / S-LSTM']:.1f}",
        ]
        for row in rows
    ]
    head = ["batch x words", "S-LSTM, ms", "nn.LSTM, ms", "S-LSTM / nn.LSTM"]
    return table(head, body) + measured(rows, "python -m benchmarks encoders")


def inference() -> str:
    rows = newest(rows_of("inference"), "threads", "batch", "way")
    body = [
        [
            row["way"],
            str(row["threads"]),
            f"{row['batch']} x {row['words']}",
            f"{row['p50_ms']:.2f}",
            f"{row['p99_ms']:.2f}",
            f"{row['words_per_second']:,.0f}",
            f"{row['eager S-LSTM / this']:.2f}",
        ]
        for row in rows
    ]
    head = ["", "threads", "batch x words", "p50, ms", "p99, ms", "words a second", "eager S-LSTM / this"]
    return table(head, body) + measured(
        rows, "python -m benchmarks inference --data data --vectors glove.txt --work runs/inference"
    )


def halting() -> str:
    rows = newest(rows_of("halting"), "data", "halting")
    body = [
        [
            row["data"],
            f"{row['halting']:g}",
            f"{row['mean_steps']:.2f} of {row['num_steps']}",
            f"{100 * row['score']:.2f}",
        ]
        for row in rows
    ]
    head = ["data", "halting", "mean steps", "score, %"]
    return table(head, body) + measured(
        rows, "python -m benchmarks halting --run runs/ner --data conll2003 --data-dir data"
    )


TABLES: dict[str, Callable[[], str]] = {"gpu": gpu, "cpu": cpu, "inference": inference, "halting": halting}
