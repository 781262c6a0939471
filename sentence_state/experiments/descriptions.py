"""In words: where the settings of a table's rows are not the paper's, and how large the models are that were timed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..models import ModelConfig
from .experiment import PRESET, Experiment, name_of, origin_of
from .runs import Run, changed
from .summaries import Summary

FEW = 4  # names that are listed; of more it is "all others"


def settings_note(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    """What differs from the paper's model and training, for each encoder, settings and, where they are few, set, of all
    rows that have a score, or of all where none has."""
    rows = [summary.row for summary in summaries if len(summary.scores)] or experiment.rows
    sets = list(dict.fromkeys(row.runs[0].data.name for row in rows))
    settings = list(dict.fromkeys(name_of(row.settings) for row in rows))
    kinds: dict[str, list[Run]] = {}
    origins: dict[str, str] = {}
    for row in rows:
        run = row.runs[0]
        suffix = f" ({name_of(row.settings)})" if len(settings) > 1 else ""
        place = f" on {run.data.name}" if 1 < len(sets) < FEW else ""
        name = run.model.encoder + suffix + place
        kinds.setdefault(name, []).append(run)
        origins.setdefault(name, origin_of(row))
    where = ", ".join(sets) if len(sets) < FEW else f"{len(sets)} sets"
    differences = listed_together((name, differences_of(runs)) for name, runs in kinds.items())
    vectors = ", ".join(dict.fromkeys(row.runs[0].vectors for row in rows))
    beginning = f"Settings: {', '.join(settings)}; word vectors: {vectors}; data: {where} ({experiment.split})"
    chosen = listed_together(origins.items())
    ending = "" if chosen == PRESET else f" How they were chosen: {chosen}."
    return f"{beginning}. Not as in the paper: {differences}.{ending}"


def differences_of(runs: Sequence[Run]) -> str:
    """The options that mean something to the encoder and the task, and have another value than the paper's in some of
    the runs, with all their values there."""
    names = dict.fromkeys(name for run in runs for config in (run.model, run.training) for name in changed(config))
    left_out = {"encoder", "seed", *runs[0].unused()}
    values = {name: sorted({value_of(run, name) for run in runs}) for name in names if name not in left_out}
    return (
        ", ".join(f"{name.replace('_', ' ')} {' or '.join(map(shown, found))}" for name, found in values.items())
        or "nothing"
    )


def value_of(run: Run, name: str) -> Any:
    return getattr(run.model if hasattr(run.model, name) else run.training, name)


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def sizes_note(models: Iterable[tuple[str, ModelConfig]]) -> str:
    """Units, and steps where the encoder has any."""
    return listed_together((label, size_of(model)) for label, model in models)


def size_of(model: ModelConfig) -> str:
    steps = model.encoder_options().get("num_steps")
    return f"{model.hidden_size} units" + (f", {counted(steps, 'step')}" if steps else "")


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def listed_together(pairs: Iterable[tuple[str, str]]) -> str:
    """Names of one description beside each other: "A, B: that; C: this"; the most names, where they are many, last."""
    names: dict[str, list[str]] = {}
    for name, description in pairs:
        names.setdefault(description, []).append(name)
    most = max(names, key=lambda description: len(names[description]))
    if len(names) > 1 and len(names[most]) > FEW:
        del names[most]
        names[most] = ["all others"]
    if len(names) == 1:
        return most
    return "; ".join(f"{', '.join(together)}: {description}" for description, together in names.items())
