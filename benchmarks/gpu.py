"""python -m benchmarks gpu: the encoders, the CRF and training on a GPU; parity first, then time, then memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from sentence_state.encoders import Encoder, SentenceStateLSTM

from . import crf, training
from .cases import MODELS, MOST_REFERENCE_WORDS, MOST_WORDS, REFERENCE, STEPS, TARGETS, H, grid, make_encoder
from .measure import (
    RESULTS,
    alternately,
    append,
    captured,
    check_repeats,
    circumstances,
    peak_megabytes,
    ratio,
    summary,
)

KINDS = ("forward", "forward + backward")


def main(
    quick: bool = False,
    dtypes: tuple[str, ...] = ("bfloat16", "float32"),
    shapes: tuple[tuple[int, int], ...] = (),
    models: tuple[str, ...] = MODELS,
    repeats: int = 20,
    seconds: float = 0.15,
    minutes: float = 4.0,
    commit: str | None = None,
    out: Path = RESULTS,
    save: bool = True,
) -> None:
    """Forward and forward + backward in CUDA graphs and eager, peak memory; training on MR-shaped data; the CRF.
    Appends to gpu.jsonl, training.jsonl and crf.jsonl.

    Args:
        quick: the five target shapes only, bfloat16, S-LSTM and BiLSTM; no training, no CRF.
        dtypes: bfloat16, float32.
        shapes: batch and words of each case, instead of the grid.
        models: names of the paper's tables and "S-LSTM, reference"; S-LSTM and BiLSTM among them.
        repeats: rounds, two at least; every candidate runs once a round.
        seconds: rounds end when each candidate has run for so long.
        minutes: no new case begins after so long; what is left out is said.
        commit: where git does not know it; the environment variable COMMIT does the same.
        out: folder of the JSON lines.
        save: append the rows to the results.
    """
    check_repeats(repeats)
    end = time.monotonic() + 60 * minutes
    tf32 = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = tf32  # by default cuDNN alone would round float32
    keep = Keeper(out, save, {**circumstances("cuda", commit), "tf32": tf32})
    limits = {"repeats": repeats, "seconds": seconds}
    if quick:
        keep.show(encoders(keep, TARGETS, "bfloat16", ("S-LSTM", "BiLSTM"), limits, end))
        return
    if shapes:
        for dtype in dtypes:
            keep.show(encoders(keep, list(shapes), dtype, models, limits, end))
        return
    first, others = grid(dtypes[0])[: len(TARGETS)], grid(dtypes[0])[len(TARGETS) :]
    rows = encoders(keep, first, dtypes[0], models, limits, end)
    training.show([keep("training", row) for row in training.measure(dtypes, end)])
    crf.show([keep("crf", row) for row in crf.measure(limits, end)])
    keep.show(rows + encoders(keep, others, dtypes[0], models, limits, end))
    for dtype in dtypes[1:]:
        keep.show(encoders(keep, grid(dtype), dtype, models, limits, end))


class Keeper:
    """Writes every row as soon as it is measured: what was measured before an error or a time limit is kept."""

    def __init__(self, folder: Path, save: bool, about: dict[str, Any]) -> None:
        self.folder, self.save, self.about = folder, save, about

    def __call__(self, name: str, row: dict[str, Any]) -> dict[str, Any]:
        row = {"benchmark": name, **self.about, **row}
        if self.save:
            append(name, [row], self.folder)
        return row

    def show(self, rows: list[dict[str, Any]]) -> None:
        if rows:
            show(rows)
            if self.save:
                print(f"appended to {self.folder}")


def encoders(
    keep: Keeper,
    shapes: list[tuple[int, int]],
    dtype: str,
    models: tuple[str, ...],
    limits: dict[str, Any],
    end: float,
) -> list[dict[str, Any]]:
    rate, rows = matrix_rate(getattr(torch, dtype)), []
    for place, (B, N) in enumerate(shapes):
        if time.monotonic() > end:
            rest = ", ".join(f"{batch} x {words}" for batch, words in shapes[place:])
            print(f"{dtype}: the time is up, left out: {rest}")
            break
        names = [name for name in models if name != REFERENCE or B * N <= MOST_REFERENCE_WORDS]
        try:
            row = measure(B, N, getattr(torch, dtype), names, limits, rate)
        except torch.OutOfMemoryError:
            print(f"{dtype}, {B} x {N}: left out, more than the memory of this card")
            continue
        finally:
            torch.cuda.empty_cache()
        if len(names) < len(models):
            row["left out"] = {REFERENCE: f"more than {MOST_REFERENCE_WORDS} words"}
            print(f"{dtype}, {B} x {N}: {REFERENCE} left out, more than {MOST_REFERENCE_WORDS} words")
        rows.append(keep("gpu", row))
    skipped = [f"{batch} x {words}" for batch, words in grid("bfloat16") if batch * words > MOST_WORDS[dtype]]
    if skipped and len(shapes) > len(TARGETS):
        print(f"{dtype}: left out, more than {MOST_WORDS[dtype]} words: {', '.join(skipped)}")
    return rows


def matrix_rate(dtype: torch.dtype) -> float:
    """TFLOP/s of a large square product."""
    left, right = (torch.randn(8192, 8192, device="cuda", dtype=dtype) for _ in range(2))
    seconds = sorted(alternately({"product": lambda: left @ right}, "cuda", 10, seconds=0.2)["product"])
    return 2e-12 * 8192**3 / seconds[len(seconds) // 2]


def measure(
    B: int, N: int, dtype: torch.dtype, names: list[str], limits: dict[str, Any], rate: float
) -> dict[str, Any]:
    torch.manual_seed(0)
    x = torch.randn(B, N, H, device="cuda", dtype=dtype)
    candidates = {name: make_encoder(name, dtype) for name in names}
    row: dict[str, Any] = {"batch": B, "words": N, "dtype": str(dtype)[6:]}
    row["relative error"] = check_parity(candidates["S-LSTM"], x[:4, :256])
    runs = {name: passes(encoder, x) for name, encoder in candidates.items()}
    row["peak MB"] = {name: peak_megabytes(run["forward + backward"]) for name, run in runs.items()}
    for kind in KINDS:
        each = {name: run[kind] for name, run in runs.items()}
        eager = alternately(each, "cuda", max(5, limits["repeats"] // 4), seconds=limits["seconds"])
        graphs = alternately({name: captured(run) for name, run in each.items()}, "cuda", **limits)
        row[kind] = {name: summary(times) for name, times in graphs.items()}
        row[f"{kind}, eager"] = {name: summary(times) for name, times in eager.items()}
        row[f"{kind}, ratio"] = {name: ratio(graphs[name], graphs["S-LSTM"]) for name in names if name != "S-LSTM"}
    operations = 2e-12 * B * N * H * H * (7 + 22 * (STEPS - 1))
    row["TFLOP/s"] = operations / row["forward"]["S-LSTM"]["ms"] * 1e3
    row["share of the matrix rate"] = row["TFLOP/s"] / rate
    return row


def check_parity(encoder: Encoder, x: Tensor) -> float:
    """The relative error of the outputs and of the gradient of x, against the reference in float64."""
    precise = SentenceStateLSTM(H, H, STEPS, dtype=torch.float64, device="cuda", backend="reference")
    precise.load_state_dict(encoder.state_dict())
    results = []
    for module in (encoder, precise):
        inputs = x.detach().to(next(module.parameters()).dtype).requires_grad_()
        words, sentence = module(inputs)
        (gradient,) = torch.autograd.grad(words.sum() + sentence.sum(), inputs)
        results.append((words.detach(), sentence.detach(), gradient))
    error = max(float((a.double() - b).norm() / b.norm()) for a, b in zip(*results, strict=True))
    assert error < (2e-2 if x.dtype.itemsize == 2 else 1e-3), f"the fused recurrence is off by {error:.1e}"
    return error


def passes(encoder: Encoder, x: Tensor) -> dict[str, Callable[[], Any]]:
    inputs = x.clone().requires_grad_()
    with torch.no_grad():
        directions = [torch.randn_like(output) for output in encoder(x)]

    def forward() -> None:
        with torch.no_grad():
            encoder(x)

    def forward_backward() -> None:
        torch.autograd.grad(list(encoder(inputs)), [inputs, *encoder.parameters()], directions, allow_unused=True)

    return {"forward": forward, "forward + backward": forward_backward}


def show(rows: list[dict[str, Any]]) -> None:
    """Milliseconds in graphs, S-LSTM's first; the others as multiples of it."""
    first = rows[0]
    title = f"H = {H}, {STEPS} steps, {first['dtype']}, {first['device']}, torch {first['torch']}; in CUDA graphs"
    for kind in KINDS:
        table = Table(title=f"{title}; {kind}")
        others = [name for name in MODELS[1:] if any(name in row[kind] for row in rows)]
        columns = ["batch x words", "S-LSTM, ms", *(f"{name} / S-LSTM" for name in others), "eager, ms"]
        columns += ["BiLSTM eager / S-LSTM eager", *(["of matrix rate"] if kind == "forward" else ["MB", "BiLSTM, MB"])]
        for column in columns:
            table.add_column(column, justify="right")
        for row in rows:
            eager = {name: times["ms"] for name, times in row[f"{kind}, eager"].items()}
            ratios = row[f"{kind}, ratio"]
            cells = [f"{row['batch']} x {row['words']}", f"{row[kind]['S-LSTM']['ms']:.3f}"]
            cells += [f"{ratios[name]:.2f}" if name in ratios else "" for name in others]
            cells += [f"{eager['S-LSTM']:.2f}", f"{eager['BiLSTM'] / eager['S-LSTM']:.2f}"]
            if kind == "forward":
                cells.append(f"{row['share of the matrix rate']:.0%}")
            else:
                cells += [f"{row['peak MB'][name]:.0f}" for name in ("S-LSTM", "BiLSTM")]
            table.add_row(*cells)
        Console(width=170).print(table)
