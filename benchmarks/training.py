"""Whole training steps: an epoch of `fit` on MR-shaped data, with and without CUDA graphs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from sentence_state.data.example import Splits
from sentence_state.models import ModelConfig, TextClassifier
from sentence_state.training import TrainingConfig, fit

from .cases import mr_shaped_examples

PAIR = ("S-LSTM", "BiLSTM")
OTHERS = ("2 stacked BiLSTM", "CNN", "Transformer (N=8)")  # in the first precision only
EAGER_SENTENCES = 300  # eager steps are slow


def measure(dtypes: tuple[str, ...], end: float, device: str = "cuda") -> Iterator[dict[str, Any]]:
    """A row for each encoder and precision."""
    cases = [(encoder, dtype) for dtype in dtypes for encoder in PAIR] + [(encoder, dtypes[0]) for encoder in OTHERS]
    for place, (encoder, dtype) in enumerate(cases):
        if time.monotonic() > end:
            rest = ", ".join(f"{encoder} in {dtype}" for encoder, dtype in cases[place:])
            print(f"training: the time is up, left out: {rest}")
            return
        yield {"encoder": encoder, "dtype": dtype, **epoch(encoder, dtype, device)}


def epoch(encoder: str, dtype: str, device: str, sentences: int = 8530) -> dict[str, Any]:
    """Seconds of an epoch, the first one apart: there shapes are met for the first time and captured."""
    config = TrainingConfig(epochs=3, patience=0, device=device, precision=dtype)
    captured = epoch_seconds(encoder, config, sentences)
    peak = torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else None
    eager_sentences = min(sentences, EAGER_SENTENCES)
    eager = epoch_seconds(encoder, replace(config, epochs=2, graphs=False), eager_sentences)
    batches = -(-sentences // config.batch_size)
    seconds = statistics.median(captured[1:])
    return {
        "batches": batches,
        "first epoch, s": captured[0],
        "epoch, s": seconds,
        "step, ms": 1e3 * seconds / batches,
        "eager step, ms": 1e3 * eager[-1] / -(-eager_sentences // config.batch_size),
        "peak MB": peak,
    }


def epoch_seconds(encoder: str, config: TrainingConfig, sentences: int) -> list[float]:
    """What `fit` takes for each epoch, without a dev set: 20,000 vectors of 300 are trained as well."""
    examples, vocabulary = mr_shaped_examples(sentences)
    model = TextClassifier.from_examples(examples, ModelConfig(encoder=encoder), words=vocabulary)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    ends = [record["seconds"] for record in fit(model, Splits(examples, []), config).history]
    return [after - before for before, after in zip([0.0, *ends], ends, strict=False)]


def show(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    title = (
        f"fit() on MR-shaped data, {rows[0]['batches']} batches of 10, 20,000 x 300 word vectors, {rows[0]['device']}"
    )
    table = Table(title=title)
    for column in ("encoder", "precision", "epoch, s", "step, ms", "eager step, ms", "first epoch, s", "of BiLSTM's"):
        table.add_column(column, justify="right")
    for row in rows:
        base = [r["epoch, s"] for r in rows if r["encoder"] == "BiLSTM" and r["dtype"] == row["dtype"]]
        share = f"{row['epoch, s'] / base[0]:.2f}" if base else ""
        names = ("epoch, s", "step, ms", "eager step, ms", "first epoch, s")
        table.add_row(row["encoder"], row["dtype"], *(f"{row[name]:.3f}" for name in names), share)
    Console(width=140).print(table)
