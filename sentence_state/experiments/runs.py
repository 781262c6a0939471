"""Run = data + model + training + seed: declared as data, executed once, kept as one JSON line."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import torch

from ..data.example import Example
from ..models import Model, ModelConfig, SequenceTagger, TextClassifier
from ..training import TrainingConfig, TrainingError, TrainingResult, fit
from ..training.evaluation import compare
from .conditions import PeakMemory, conditions
from .material import Data, Material, Place, load
from .outcomes import pack, sentence_counts

IRRELEVANT = ("device", "checkpoint_seconds")  # of TrainingConfig: where a run happens, not what it computes

OF_ENCODERS = {"cell", *ModelConfig().encoder_options()}  # fields of ModelConfig that some encoders read


@dataclass(frozen=True)
class Run:
    """One training run. `vectors` is the name of the word vectors, "none" for random ones; the machine knows where
    they are. The test set is read only where `test` says so."""

    data: Data
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    vectors: str = "none"
    test: bool = False

    @property
    def seed(self) -> int:
        return self.training.seed

    @property
    def smoke(self) -> bool:
        return self.data.limit > 0

    def key(self) -> str:
        """The same for the same run on every machine. Only what differs from the defaults is hashed, so that a new
        option, which does nothing by default, leaves the old keys as they were."""
        described = {
            "data": asdict(self.data),
            "model": {name: value for name, value in changed(self.model).items() if name not in self.unused()},
            "training": changed(self.training),
            "vectors": self.vectors,
        }
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]

    def unused(self) -> set[str]:
        """Fields of the model that mean nothing to this encoder or this task."""
        of_task = {"readout"} if self.data.task == "tagging" else {"transitions"}
        of_characters = {"character_size", "character_hidden_size"} if self.model.characters == "none" else set()
        return of_task | of_characters | (OF_ENCODERS - self.model.encoder_options().keys())

    def describe(self) -> dict[str, Any]:
        """Everything, for the JSON line."""
        training = {name: value for name, value in self.training.to_dict().items() if name not in IRRELEVANT}
        return {
            "data": asdict(self.data),
            "model": self.model.to_dict(),
            "training": training,
            "vectors": self.vectors,
        }

    def title(self) -> str:
        options = {**changed(self.model), **changed(self.training)}
        shown = [
            f"{name}={value}" for name, value in options.items() if name not in {"encoder", "seed", *self.unused()}
        ]
        return " ".join([self.data.name, self.model.encoder, *shown, f"seed {self.seed}"])


def changed(config: ModelConfig | TrainingConfig) -> dict[str, Any]:
    """The fields that are not the defaults. A 0 that was written for 0.0 is the same number."""
    values = {item.name: getattr(config, item.name) for item in fields(config) if item.name not in IRRELEVANT}
    defaults = {item.name: item.default for item in fields(config)}
    values = {name: float(value) if isinstance(defaults[name], float) else value for name, value in values.items()}
    return {name: value for name, value in values.items() if value != defaults[name]}


def satisfies(record: dict[str, Any] | None, run: Run) -> bool:
    """Whether a kept line is the result of this run, test scores included where they are asked for."""
    return record is not None and "error" not in record and (not run.test or "test" in record)


class Stopped(Exception):
    """Ctrl-C during a run: nothing is kept of it."""


def execute(run: Run, place: Place) -> dict[str, Any]:
    """Train and measure; returns the line to keep."""
    material = load(run.data, place)
    started = time.time()  # what reads a set first does not take longer than those after it
    memory = PeakMemory(place.device)
    model = build(run, material)
    config = replace(run.training, device=place.device)
    splits = replace(material.splits, test=[])  # fit would evaluate it; here that is asked for, or not done at all
    result = fit(model, splits, config)
    if not result.finished:
        raise Stopped
    record: dict[str, Any] = {"key": run.key(), "kind": "training", "smoke": run.smoke, "run": run.describe()}
    record |= training_facts(result) | sizes(model)
    record["dev"] = measure(model, material.splits.dev)
    if run.test:
        record["test"] = measure(model, material.splits.test, material)
    record["seconds"] = round(time.time() - started, 2)
    record |= memory.read() | {"data": material.hashes, "unexpected": material.unexpected} | conditions(place.device)
    return record


def failure(run: Run, error: Exception) -> dict[str, Any]:
    """The line of a run that diverged or ran out of memory; it is tried again when it is asked for again."""
    message = str(error).splitlines()[0] if str(error) else type(error).__name__
    return {"key": run.key(), "kind": "training", "smoke": run.smoke, "run": run.describe(), "error": message}


EXPECTED_FAILURES = (TrainingError, torch.OutOfMemoryError)


def build(run: Run, material: Material) -> Model:
    model_class: type[Model] = TextClassifier if run.data.task == "classification" else SequenceTagger
    words = vectors = None
    if material.embeddings is not None:
        words, vectors = material.words, material.embeddings.matrix(run.seed)
    return model_class.from_examples(material.splits.train, run.model, words=words, vectors=vectors, seed=run.seed)


def training_facts(result: TrainingResult) -> dict[str, Any]:
    return {
        "best_epoch": result.best_epoch,
        "history": [
            {"loss": round(line["loss"], 5), "dev": round(line["dev"][line["metric"]], 5)} for line in result.history
        ],
        "training_seconds": round(result.seconds, 2),
    }


def sizes(model: Model) -> dict[str, int]:
    """Parameters, with and without the word vectors."""
    everything = sum(parameter.numel() for parameter in model.parameters())
    return {"parameters": everything, "parameters_without_words": everything - model.embedding.words.weight.numel()}


def measure(model: Model, examples: list[Example], material: Material | None = None) -> dict[str, Any]:
    """Scores, and for every sentence its counts, so that significance can be computed from the lines alone."""
    started = time.perf_counter()
    found = model.decode_all(examples)
    seconds = time.perf_counter() - started
    evaluation = compare(examples, found, model.tag_scheme)
    measured = {
        "metric": evaluation.metric,
        "score": evaluation.score,
        "scores": evaluation.scores,
        "counts": pack(sentence_counts(examples, found, model.tag_scheme)),
        "decode_seconds": round(seconds, 3),
    }
    if material is not None:
        measured |= {"lengths": pack(material.test_lengths), "in_train": material.test_in_train}
    return measured
