"""The folder of a run: what was trained on what, its metrics line by line, the best weights so far, checkpoints.

config.json, words.json, ...   the model without its weights (models/pretrained.py)
model.safetensors              its weights after the best epoch so far: the folder can be loaded at any time
training.json                  TrainingConfig, hashes of the data, and the flags that the files were read with
versions.json                  of this package and of what it stands on
metrics.jsonl                  a line after every epoch
bad_batch.json                 the sentences of a batch whose loss was no number, where that happened
result.json                    written last: the run is finished
checkpoints/                   while it is not
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data.description import CONFIG
from ..data.example import Example, Splits
from ..data.files import UNFINISHED, FolderError, read_json, remove, sync_folder, write_json, writing_error
from ..data.streaming import StreamedExamples
from ..models import Model
from ..models.pretrained import describe, save_description
from .checkpoint import FOLDER
from .config import TrainingConfig

TRAINING, METRICS, RESULT = "training.json", "metrics.jsonl", "result.json"
MAY_CHANGE = ("device", "checkpoint_seconds", "on_nan")  # between a run and its resumption


def start_run(
    run: Path, model: Model, splits: Splits, config: TrainingConfig, reading: Mapping[str, Any] | None = None
) -> None:
    """Make the folder with the description of the run in it: all of it or, after an error, nothing."""
    refuse_other_run(run)
    unfinished = run.with_name(run.name + UNFINISHED)
    try:
        shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed here
        save_description(model, unfinished)
        saved = {"training": config.to_dict(), "data": describe_data(splits), "reading": dict(reading or {})}
        write_json(unfinished / TRAINING, saved)
        if run.is_dir():
            run.rmdir()
        os.replace(unfinished, run)
        sync_folder(run.parent)
    except OSError as error:
        raise writing_error(run, error) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def is_new(run: Path) -> bool:
    """Nothing is there, or an empty folder."""
    return not run.exists() or (run.is_dir() and not any(run.iterdir()))


def refuse_other_run(run: Path) -> None:
    if is_new(run):
        if not run.name:  # a new folder takes its place: nobody could stay in it
            raise FolderError.at(run, "give the new folder a name: choose another --out")
        return
    if (run / TRAINING).exists() and not (run / RESULT).exists():
        raise FolderError.at(run, "holds a run that is not finished: --resume to go on with it, or another --out")
    if (run / CONFIG).exists():
        raise FolderError.at(run, "holds another run: choose another --out, or delete the folder")
    raise FolderError.at(run, "is there already and holds something else: choose another --out")


def check_same_run(run: Path, model: Model, splits: Splits, config: TrainingConfig) -> None:
    """Raise where going on would not be going on: another model, other data or another config."""
    if not (run / TRAINING).exists():
        raise FolderError.at(run, "holds no run to resume")
    saved = read_json(run / TRAINING)
    if read_json(run / CONFIG) != json.loads(json.dumps(describe(model))):
        raise FolderError.at(run, f"holds a run of another model: its {CONFIG} differs")
    if not isinstance(saved, dict) or not isinstance(saved.get("training"), dict):
        raise FolderError.at(run / TRAINING, "describes no run")
    new = config.to_dict()
    for name in sorted(new.keys() | saved["training"].keys()):
        before, now = saved["training"].get(name), new.get(name)
        if before != now and name not in MAY_CHANGE:
            raise FolderError.at(run, f"holds a run with {name} = {before}, not {now}: a run is resumed as it began")
    for name, data in describe_data(splits).items():
        if (saved.get("data") or {}).get(name, {}).get("sha256") != data["sha256"]:
            raise FolderError.at(run, f"holds a run with other data: {name} has changed since it began")


def describe_data(splits: Splits) -> dict[str, dict[str, Any]]:
    parts = {"train": splits.train, "dev": splits.dev, "test": splits.test}
    return {name: describe_part(examples) for name, examples in parts.items()}


def describe_part(examples: Sequence[Example]) -> dict[str, Any]:
    if isinstance(examples, StreamedExamples):
        return examples.describe()
    return {
        "files": sorted({example.path for example in examples if example.path}),
        "sentences": len(examples),
        "words": sum(len(example.words) for example in examples),
        "sha256": hash_examples(examples),
    }


def hash_examples(examples: Sequence[Example]) -> str:
    """The same for the same words and targets in the same order, however they were stored."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(json.dumps([example.words, example.label, example.tags]).encode())
    return digest.hexdigest()


def append_metrics(run: Path, record: dict[str, Any]) -> int:
    """Add a line to metrics.jsonl, or nothing; returns the size of the file."""
    path = run / METRICS
    size = path.stat().st_size if path.exists() else 0
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())
            return file.tell()
    except OSError as error:
        cut_metrics(run, size)
        raise writing_error(path, error) from error


def cut_metrics(run: Path, size: int) -> None:
    """Take back the lines that a resumed run is going to write again."""
    path = run / METRICS
    if path.exists() and path.stat().st_size > size:
        os.truncate(path, size)


def tidy(run: Path) -> None:
    """Delete what a killed process left unfinished."""
    for path in [*run.glob(f"*{UNFINISHED}"), *(run / FOLDER).glob(f"*{UNFINISHED}")]:
        remove(path)


def is_finished(run: Path) -> bool:
    return (run / RESULT).exists()
