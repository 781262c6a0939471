"""How the files of a run were read: saved with the run, and the default where more files are read for its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from ..data.files import FolderError, read_json
from ..data.tables import is_json
from ..data.text_files import TextFile, is_surely_utf8, read_bytes, text_of
from ..training.run_folder import TRAINING
from .flags import Classifier, ColumnFlags, TableFlags, Tagger, TrainFlags

USUAL = {"usual_text": "text", "usual_label": "label"}  # columns that were found, and looked for in other files first
KEPT = {  # and their types; how texts are cut into words is saved in the model's tokenizer
    "encoding": str,
    "text_column": str,
    "label_column": str,
    "delimiter": str,
    "header": str,
    "word_column": int,
    "tag_column": str,
    "tag_scheme": str,
    "broken_tags": str,
    **dict.fromkeys(USUAL, str),
}
Flags = TypeVar("Flags", TableFlags, ColumnFlags)


def as_read(flags: TrainFlags, columns: Mapping[str, str]) -> dict[str, Any]:
    """How train was read: flags that are not the default, and of a table the columns that were found."""
    kept: dict[str, Any] = {"encoding": flags.encoding} if flags.encoding else {}
    if isinstance(flags, Classifier):
        kept |= differences(flags.table, TableFlags())
        found = {name: role for name, role in USUAL.items() if role in columns and f"{role}_column" not in kept}
        return kept | {name: columns[role] for name, role in found.items()}
    return kept | differences(flags.columns, ColumnFlags()) if isinstance(flags, Tagger) else kept


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


def usual_columns(saved: Mapping[str, Any]) -> dict[str, str]:
    """As `Corpus.columns` had them of the file that the model was trained on."""
    return {role: saved[name] for name, role in USUAL.items() if name in saved}


def read_text_as_trained(run: Path, path: Path, encoding: str | None) -> tuple[TextFile, dict[str, Any], list[str]]:
    """The file, which is read once, for it may be a pipe; the flags of training that fit it; notes of its encoding."""
    saved, data = saved_flags(run), read_bytes(path)
    encoding, notes = encoding_in_training(encoding, saved, path, data)
    file = text_of(data, path, encoding)
    return file, for_file(saved, file), notes


def for_file(saved: dict[str, Any], file: TextFile) -> dict[str, Any]:
    """What of it can be said of this file: columns of JSON have no numbers."""
    if not is_json(file):
        return saved
    numbers = [name for name in ("text_column", "label_column") if saved.get(name, "").isdecimal()]
    return {name: value for name, value in saved.items() if name not in numbers}


def encoding_in_training(
    given: str | None, saved: Mapping[str, Any], path: Path, data: bytes
) -> tuple[str | None, list[str]]:
    """The encoding to read `data` of a file with, and a note where it is that of training, or could have been."""
    if given is not None or "encoding" not in saved:
        return given, []
    if is_surely_utf8(data, saved["encoding"]):
        return None, [f"{path}: UTF-8, not --encoding {saved['encoding']} as in training"]
    return saved["encoding"], [f"read as in training: --encoding {saved['encoding']}"]


def as_in_training(flags: Flags, saved: dict[str, Any]) -> tuple[Flags, list[str]]:
    """The flags with what was saved in the place of defaults, and a note that says so."""
    given = differences(flags, type(flags)())
    used = {name: value for name, value in saved.items() if name in asdict(flags) and name not in given}
    shown = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in used.items())
    return replace(flags, **used), [f"read as in training: {shown}"] if used else []
