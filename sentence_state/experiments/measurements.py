"""What is measured without training to the end: times as ratios, memory, statistics of the data.

Models that are compared take turns, batch list by batch list, in one process with nothing beside it: what a machine
does meanwhile meets all of them alike, and only ratios are reported.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import torch

from ..data import Batches, Example, Splits, index_examples
from ..data.batching import Batch, make_batch
from ..models import Model, ModelConfig, SequenceTagger, TextClassifier
from ..training import TrainingConfig
from ..training.interrupt import StopRequest
from ..training.loop import Loop
from .conditions import conditions
from .material import Data, Place, hash_splits, read_splits, repeated
from .runs import changed

GROUPS = 10  # of Figure 5
WARM_UP = 2  # rounds that do not count: kernels are compiled, memory is fetched, CUDA graphs are captured


@dataclass(frozen=True)
class Measurement:
    """time: training steps and decoding of all models on the same batches, in turns. memory: of a training step.
    statistics: counts of a set. group: one of ten groups of the sentences by length, -1 for all of them."""

    kind: Literal["time", "memory", "statistics"]
    data: tuple[Data, ...]
    models: tuple[tuple[str, ModelConfig], ...] = ()
    batch_size: int = 10
    group: int = -1
    batches: int = 24
    rounds: int = 5
    device: str = "any"  # cpu or cuda: times on one say nothing about the other
    precision: Literal["float32", "bfloat16"] = "float32"

    def key(self) -> str:
        described = asdict(self) | {"models": [(label, changed(model)) for label, model in self.models]}
        if self.precision == "float32":
            del described["precision"]  # as when there was no other
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        """For the JSON line: all that is needed to measure it again."""
        described: dict[str, Any] = {"data": [asdict(data) for data in self.data], "precision": self.precision}
        if self.kind != "statistics":
            described["models"] = {label: model.to_dict() for label, model in self.models}
            described |= {name: getattr(self, name) for name in ("batch_size", "group", "batches", "rounds")}
        return described

    @property
    def smoke(self) -> bool:
        return any(data.limit for data in self.data)

    def on(self, device: str) -> Measurement:
        return self if self.kind == "statistics" else replace(self, device=torch.device(device).type)

    def title(self) -> str:
        names = self.data[0].name if len(self.data) == 1 else f"{len(self.data)} sets"
        group = f", group {self.group + 1}" if self.group >= 0 else ""
        models = ", ".join(label for label, _ in self.models)
        return f"{self.kind} on {names}{group}" + (f" in {self.precision}: {models}" if models else "")


def take(measurement: Measurement, place: Place) -> dict[str, Any]:
    """Measure; returns the line to keep."""
    take_kind = {"time": take_times, "memory": take_memory, "statistics": take_statistics}[measurement.kind]
    record: dict[str, Any] = {"key": measurement.key(), "kind": measurement.kind, "smoke": measurement.smoke}
    record |= measurement.describe() | {"hashes": hashes(measurement, place)}
    record |= take_kind(measurement, place) | conditions(place.device)
    return record


def hashes(measurement: Measurement, place: Place) -> list[dict[str, str]]:
    """Of the splits of each of its sets, as they are in this place."""
    return [hash_splits(data, place.data_dir) for data in measurement.data]


# ---- times ------------------------------------------------------------------------------------------


def take_times(measurement: Measurement, place: Place) -> dict[str, Any]:
    examples = examples_of(measurement, place)
    loops = {label: loop_of(measurement, model, examples, place) for label, model in measurement.models}
    seconds: dict[str, dict[str, list[float]]] = {label: {"train": [], "decode": []} for label in loops}
    for number in range(measurement.rounds + WARM_UP):
        for label, loop in loops.items():
            batches = batches_of(measurement, loop)
            on_device = [batch.to(loop.device) for batch in batches]
            spent = {
                "train": timed(loop, batches, loop.step, training=True),
                "decode": timed(loop, on_device, loop.model.decode, training=False),
            }
            for kind, value in spent.items():
                if number >= WARM_UP:
                    seconds[label][kind].append(round(value, 6))
    for loop in loops.values():
        loop.close()
    lengths = [len(example.words) for example in examples]
    return {"seconds": seconds, "median_length": float(np.median(lengths)), "sentences": len(examples)}


def timed(loop: Loop, batches: Sequence[Batch], step: Any, training: bool) -> float:
    """Seconds that all batches take."""
    loop.model.train(training)
    with torch.set_grad_enabled(training):
        wait_for(loop.device)
        start = time.perf_counter()
        for batch in batches:
            step(batch)
        wait_for(loop.device)
    return time.perf_counter() - start


def wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def examples_of(measurement: Measurement, place: Place) -> list[Example]:
    """The training examples of all sets, or one of ten groups of them by length."""
    everything = [example for data in measurement.data for example in read_splits(data, place.data_dir).train]
    if measurement.group < 0:
        return everything
    everything.sort(key=lambda example: len(example.words))
    return [everything[i] for i in np.array_split(np.arange(len(everything)), GROUPS)[measurement.group]]


def loop_of(
    measurement: Measurement, config: ModelConfig, examples: list[Example], place: Place, graphs: bool = True
) -> Loop:
    """The training loop as `fit` makes it, ready for its first step."""
    model_class: type[Model] = TextClassifier if measurement.data[0].task == "classification" else SequenceTagger
    model = model_class.from_examples(examples, config).to(place.device)
    training = TrainingConfig(
        batch_size=measurement.batch_size, device=place.device, graphs=graphs, precision=measurement.precision
    )
    return Loop(model, Splits(examples, []), training, None, torch.device(place.device), StopRequest(), None)


def batches_of(measurement: Measurement, loop: Loop) -> list[Batch]:
    """Batches spread evenly over an epoch."""
    assert isinstance(loop.batches, Batches)
    order = Batches(loop.batches.examples, measurement.batch_size).order(0)
    chosen = np.unique(np.linspace(0, len(order) - 1, measurement.batches).round().astype(int))
    return [make_batch(loop.batches.examples, order[place]) for place in chosen]


# ---- memory -----------------------------------------------------------------------------------------


def take_memory(measurement: Measurement, place: Place) -> dict[str, Any]:
    """Megabytes: the peak on a GPU; on a CPU, what is kept for the backward pass of the longest batch."""
    examples = read_splits(measurement.data[0], place.data_dir).dev
    peak = peak_of_steps if torch.device(place.device).type == "cuda" else kept_for_backward
    megabytes = {}
    for label, config in measurement.models:
        megabytes[label] = round(peak(measurement, config, examples, place) / 1e6, 3)
    what = "peak of the GPU" if peak is peak_of_steps else "kept for the backward pass"
    return {"megabytes": megabytes, "memory_of": what}


def peak_of_steps(measurement: Measurement, config: ModelConfig, examples: list[Example], place: Place) -> int:
    torch.cuda.init()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(place.device)
    torch.cuda.reset_peak_memory_stats(place.device)
    loop = loop_of(measurement, config, examples, place, graphs=False)
    for batch in batches_of(measurement, loop):
        loop.step(batch)
    loop.close()
    return torch.cuda.max_memory_allocated(place.device) - before


def kept_for_backward(measurement: Measurement, config: ModelConfig, examples: list[Example], place: Place) -> int:
    loop = loop_of(measurement, config, examples, place)
    weights = {parameter.untyped_storage().data_ptr() for parameter in loop.model.parameters()}
    indexed = index_examples(examples, loop.model.vocabularies, boundaries=config.boundaries)
    longest = np.argsort(indexed.lengths)[-measurement.batch_size :]
    storages: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            storages[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = loop.model.train().loss(make_batch(indexed, longest))
    loss.backward()
    loop.close()
    return sum(storage.nbytes() for storage in storages.values())


# ---- statistics -------------------------------------------------------------------------------------


def take_statistics(measurement: Measurement, place: Place) -> dict[str, Any]:
    """Sentences, words and bytes of each split, and test sentences that stand in train."""
    splits = read_splits(measurement.data[0], place.data_dir)
    counts: dict[str, Any] = {}
    for name in ("train", "dev", "test"):
        examples: list[Example] = getattr(splits, name)
        texts = [example.text or " ".join(example.words) for example in examples]
        counts[name] = {
            "sentences": len(examples),
            "words": sum(len(text.split()) for text in texts),
            "bytes": sum(len(text.encode()) for text in texts),
        }
    return {"counts": counts, "test_in_train": len(repeated(splits.test, splits.train))}
