"""How the files of a run were read: saved with the run, and the default where more files are read for its model."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from ..data.files import FolderError, read_json
from ..training.run_folder import TRAINING
from .flags import Classifier, ColumnFlags, TableFlags, Tagger, TrainFlags

KEPT = {  # and their types; how texts are cut into words is saved in the model's tokenizer
    "text_column": str,
    "label_column": str,
    "delimiter": str,
    "header": str,
    "word_column": int,
    "tag_column": str,
    "tag_scheme": str,
    "broken_tags": str,
}
Flags = TypeVar("Flags", TableFlags, ColumnFlags)


def chosen_flags(flags: TrainFlags) -> dict[str, Any]:
    """Flags that say how a file is read, where they are not the default."""
    if isinstance(flags, Classifier):
        return differences(flags.table, TableFlags())
    return differences(flags.columns, ColumnFlags()) if isinstance(flags, Tagger) else {}


def differences(flags: Flags, defaults: Flags) -> dict[str, Any]:
    usual = asdict(defaults)
    return {name: value for name, value in asdict(flags).items() if name in KEPT and value != usual[name]}


def saved_flags(run: Path) -> dict[str, Any]:
    """What training saved; nothing for a model that was not trained on files through the command line."""
    path = run / TRAINING
    saved = read_json(path) if path.exists() else {}
    reading = saved.get("reading", {}) if isinstance(saved, dict) else None
    if not isinstance(reading, dict) or any(type(value) is not KEPT.get(name) for name, value in reading.items()):
        raise FolderError.at(path, f"'reading' must hold flags of {', '.join(KEPT)}, got {str(reading)[:80]}")
    return reading


def as_in_training(flags: Flags, saved: dict[str, Any]) -> tuple[Flags, list[str]]:
    """The flags with what was saved in the place of defaults, and a note that says so."""
    given = differences(flags, type(flags)())
    used = {name: value for name, value in saved.items() if name in asdict(flags) and name not in given}
    shown = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in used.items())
    return replace(flags, **used), [f"read as in training: {shown}"] if used else []
