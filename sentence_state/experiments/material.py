"""The data of runs, read once a process: splits, word vectors, hashes, and which test sentences stand in train too."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from ..data import DataError, Embeddings, Example, Splits, Tokenizer, Vocabulary, read_benchmark, read_sample
from ..data.benchmarks import SOURCES
from ..data.word_vectors import read_word_vectors
from ..training.run_folder import describe_data

SAMPLE = {"sample/label": "classification", "sample/tags": "tagging"}
KEPT_IN_MEMORY = 20  # sets a process: the 16 and some more, which take turns in a search; tens of megabytes each


@dataclass(frozen=True)
class Data:
    """A set by its name in data/benchmarks.py, or the embedded sample as "sample/label" or "sample/tags".

    contractions: split it's into it 's, as in GloVe's vocabulary.
    limit: smoke runs read so many sentences of train, and half as many of dev and test; 0: all.
    """

    name: str
    contractions: bool = True
    limit: int = 0

    @property
    def task(self) -> str:
        if self.name in SAMPLE:
            return SAMPLE[self.name]
        if self.name not in SOURCES:
            raise DataError.at(self.name, f"no such set; there are {', '.join([*SAMPLE, *SOURCES])}")
        return SOURCES[self.name].task


@dataclass(frozen=True)
class Place:
    """Where things are on this machine."""

    data_dir: Path | None = None
    embeddings: Path | None = None
    device: str = "cpu"


@dataclass
class Material:
    splits: Splits
    words: Vocabulary | None
    embeddings: Embeddings | None
    hashes: dict[str, str]
    test_lengths: list[int]
    test_in_train: list[int]
    unexpected: list[str]  # a sentence for each split that is not as it was published


def load(data: Data, place: Place) -> Material:
    return load_from(data, place.data_dir, place.embeddings)  # the same on every device


@lru_cache(maxsize=KEPT_IN_MEMORY)
def load_from(data: Data, data_dir: Path | None, vectors: Path | None) -> Material:
    splits, unexpected = read_set(data, data_dir)
    hashes = hash_splits(data, data_dir)
    words = embeddings = None
    if vectors is not None:
        words, embeddings = read_word_vectors(vectors, splits)
        hashes = hashes | {"vectors": hash_vectors(embeddings)}
    lengths = [len(example.words) for example in splits.test]
    return Material(splits, words, embeddings, hashes, lengths, repeated(splits.test, splits.train), unexpected)


@lru_cache(maxsize=KEPT_IN_MEMORY)
def hash_splits(data: Data, data_dir: Path | None) -> dict[str, str]:
    return {name: part["sha256"][:16] for name, part in describe_data(read_splits(data, data_dir)).items()}


def hash_vectors(embeddings: Embeddings) -> str:
    """Of the vectors as an .npz keeps them: the same for a text file and for what `reproduce vectors` makes of it."""
    kept = embeddings.vectors[embeddings.found].astype(np.float16).astype(np.float32)
    return hashlib.sha256(kept.tobytes()).hexdigest()[:16]


def read_splits(data: Data, data_dir: Path | None) -> Splits:
    return read_set(data, data_dir)[0]


@lru_cache(maxsize=KEPT_IN_MEMORY)
def read_set(data: Data, data_dir: Path | None) -> tuple[Splits, list[str]]:
    """The splits, and in sentences what of them is not as it was published."""
    unexpected: list[str] = []
    if data.name in SAMPLE:
        splits = read_sample("bioes", ["label" if data.task == "classification" else "tags"])
    elif data_dir is None:
        raise DataError.at(data.name, "where is it? --data-dir names the folder; nothing is downloaded")
    else:
        tokenizer = Tokenizer(whitespace=True, contractions=data.contractions)
        benchmark = read_benchmark(data.name, data_dir, tokenizer=tokenizer)
        splits = benchmark.splits
        unexpected = [sentence for sentence in benchmark.description if not sentence.endswith("as expected")]
    return (cut(splits, data.limit) if data.limit else splits), unexpected


def cut(splits: Splits, limit: int) -> Splits:
    """A random slice, the same every time, of which no label of dev or test is unknown to train."""
    train = random.Random(0).sample(splits.train, min(limit, len(splits.train)))
    labels = {example.label for example in train}

    def part(examples: list[Example]) -> list[Example]:
        known = [example for example in examples if example.label in labels]
        return random.Random(0).sample(known, min(limit // 2, len(known)))

    return Splits(train, part(splits.dev), part(splits.test))


def repeated(test: Sequence[Example], train: Sequence[Example]) -> list[int]:
    """Places of the test sentences that stand in train, word for word."""
    known = {tuple(example.words) for example in train}
    return [place for place, example in enumerate(test) if tuple(example.words) in known]


def vectors_name(path: Path | None) -> str:
    """glove.840B.300d of .../glove.840B.300d.txt.gz: what a run is known by, wherever the file lies."""
    if path is None:
        return "none"
    name = path.name
    for suffix in (".gz", ".zip", ".txt", ".vec", ".npz"):
        name = name.removesuffix(suffix)
    return name
