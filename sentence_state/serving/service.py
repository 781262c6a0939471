"""A model by its name: what it is, its answers and its exchange of states, computed in its own thread."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch

from ..data.description import CONFIG, read_config
from ..data.example import Example
from ..data.predictions import Prediction, example_of
from ..models import FolderError, Model, ModelConfig
from ..runtime import EXPORT, RuntimeModel
from .batcher import Batcher, Watch
from .exchange import can_trace, trace
from .limits import Limits

Served = Model | RuntimeModel


class TextError(ValueError):
    """A text of a request that cannot be answered; the message is for the client."""


class Service:
    """One served model, trained or exported, out of `folder`.

    threads: of PyTorch, for this model. watch: told of every batch: sentences, words, seconds.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        model: Served,
        limits: Limits,
        threads: int,
        watch: Watch,
    ) -> None:
        self.name, self.model, self.limits, self.threads = name, model, limits, threads
        self.description = describe(name, folder, model)
        self.batcher = Batcher(self.answer, limits, self.prepare, watch)

    def prepare(self) -> None:
        """In the model's thread: its share of the cores, and a first answer, which is slower than all others."""
        torch.set_num_threads(self.threads)
        self.answer([Example(["warm"]), Example(["warm", "up"])])

    def answer(self, examples: Sequence[Example]) -> list[Prediction]:
        return self.model.answer(examples, len(examples))

    def read(self, texts: Sequence[str | Sequence[str]]) -> list[Example]:
        """Texts, or lists of words, as examples within the limits."""
        return [self.read_one(text, row) for row, text in enumerate(texts)]

    def read_one(self, text: str | Sequence[str], row: int) -> Example:
        if not isinstance(text, str) and not all(word.strip() for word in text):
            raise TextError(f"text {row} has a word that is empty")
        size = sum(map(len, text))
        if size > self.limits.max_characters:
            raise TextError(f"text {row} has {size} characters, at most {self.limits.max_characters} are read")
        try:
            example = example_of(text, row, self.model.tokenizer)
        except ValueError:
            raise TextError(f"text {row} has no words") from None
        if len(example.words) > self.limits.max_words:
            raise TextError(f"text {row} has {len(example.words)} words, at most {self.limits.max_words} are read")
        return example

    def predict(self, examples: Sequence[Example]) -> Future[list[Prediction]]:
        return self.batcher.submit(examples)

    def trace(self, example: Example) -> Future[dict[str, Any]]:
        model = self.model
        if not isinstance(model, Model):
            raise TypeError("an exported model keeps no states")
        return self.batcher.call(lambda: trace(model, example))

    def close(self) -> None:
        self.batcher.close()


def describe(name: str, folder: Path, model: Served) -> dict[str, Any]:
    """What /v1/models says."""
    config = model.config if isinstance(model, Model) else read_model_config(folder)
    vocabularies = model.vocabularies
    tags = vocabularies.tags.words if vocabularies.tags else []
    plain = model.tag_scheme == "plain"
    return {
        "name": name,
        "targets": list(model.targets),
        "runtime": "torch" if isinstance(model, Model) else "onnx",
        "encoder": config.encoder,
        "hidden_size": config.hidden_size,
        "num_steps": config.num_steps if config.encoder == "S-LSTM" else None,
        "parameters": sum(parameter.numel() for parameter in model.parameters()) if isinstance(model, Model) else None,
        "labels": vocabularies.labels.words if vocabularies.labels else [],
        "span_labels": sorted({tag if plain else tag[2:] for tag in tags if plain or tag != "O"}),
        "trace": can_trace(model),
    }


def read_model_config(folder: Path) -> ModelConfig:
    """What an exported model was before."""
    try:
        return ModelConfig.from_dict(read_config(folder)["model"])
    except ValueError as error:
        raise FolderError.at(folder / CONFIG, f"describes no model ({error})") from None


def names_of(folders: Sequence[Path]) -> list[str]:
    """The name of each folder, of an export inside a run that of the run; its whole path where two have the same."""
    short = [named_folder(folder.resolve()).name for folder in folders]
    names = [name if short.count(name) == 1 else str(folder) for name, folder in zip(short, folders, strict=True)]
    if len(set(names)) < len(names):  # a path may be what another folder is called
        names = [str(folder.resolve()) for folder in folders]
    return [os.fsencode(name).decode("utf-8", "replace") for name in names]  # a name on disk may be any bytes


def named_folder(folder: Path) -> Path:
    """The run that an export lies in, for clients need not know which of the two is served; or the folder itself."""
    is_inside = (folder / EXPORT).exists() and (folder.parent / CONFIG).exists()
    return folder.parent if is_inside else folder
