"""Examples of files that are larger than memory: one pass finds out what is in them, then every epoch reads them in
blocks, in an order of its own.

An epoch shuffles the blocks of all files, and then the sentences of
every window of a few blocks: no more than one window is in memory, whatever the size of the files.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np

from .batching import Batch, Batches, make_share
from .blocks import Block, Form, Reading, cut_blocks
from .errors import DataError
from .example import Example
from .indexing import Ids, Spelled, Vocabularies, index_spelled, join_indexed
from .vocabulary import Vocabulary, count_characters

WINDOW = 16  # blocks that are shuffled together
MOST_WORDS = 1_000_000  # in the vocabulary, and about twice as many while they are counted
MOST_DEV = 10_000  # sentences that are split off


@dataclass
class Survey:
    """What one pass over all files found: enough to build a model and to find every sentence again."""

    blocks: list[Block] = field(default_factory=list)
    words: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    tags: Counter[str] = field(default_factory=Counter)
    sentences: int = 0
    tokens: int = 0
    sha256: str = ""
    dev: list[Example] = field(default_factory=list)
    dev_numbers: list[int] = field(default_factory=list)

    def add(self, block: Block, examples: Sequence[Example]) -> Block:
        """The next block; returns it with its place among the sentences."""
        block = block._replace(first=self.sentences, sentences=len(examples))
        self.blocks.append(block)
        self.sentences += block.sentences
        for example in examples:
            self.tokens += len(example.words)
            self.words.update(example.words)
            self.tags.update(example.tags or ())
            if example.label is not None:
                self.labels[example.label] += 1
        if len(self.words) > 2 * MOST_WORDS:
            self.words = Counter(dict(self.words.most_common(MOST_WORDS)))
        return block

    def vocabulary(self) -> Vocabulary:
        """Of the most frequent words."""
        return Vocabulary.of_counts(self.words, MOST_WORDS)

    def characters(self) -> Vocabulary:
        return Vocabulary.of_counts(count_characters(self.words))


class StreamedExamples(Sequence[Example]):
    """The training examples of files, read when they are asked for; those that were split off for dev are left out.

    Iterating reads everything once; `examples[i]` reads one block. `fit` takes it in the place of a list.
    """

    def __init__(self, paths: Sequence[str | Path], form: Form, dev_fraction: float = 0.0, seed: int = 0) -> None:
        self.paths = [Path(path) for path in paths]
        self.reading = Reading(self.paths, form)
        self.survey = survey(self.reading, dev_fraction, seed)
        if not len(self):
            raise DataError.at(self.paths[0], "no example in the file", 1)
        self.starts = [block.first for block in self.survey.blocks]

    def __len__(self) -> int:
        return self.survey.sentences - len(self.survey.dev_numbers)

    def __iter__(self) -> Iterator[Example]:
        for block in self.survey.blocks:
            yield from self.read(block)

    @overload
    def __getitem__(self, place: int) -> Example: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Example]: ...

    def __getitem__(self, place: int | slice) -> Example | Sequence[Example]:
        """By its number in the files, that is with the sentences of dev counted."""
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(self.survey.sentences))]
        block = self.survey.blocks[bisect_right(self.starts, place) - 1]
        return self.reading.examples(block)[place - block.first]

    def read(self, block: Block) -> list[Example]:
        dev = self.dev_of(block)
        return [e for place, e in enumerate(self.reading.unchanged(block)) if place not in dev]

    def dev_of(self, block: Block) -> frozenset[int]:
        """Places in the block of the sentences that were split off."""
        numbers = self.survey.dev_numbers
        first, last = (bisect_left(numbers, place) for place in (block.first, block.first + block.sentences))
        return frozenset(number - block.first for number in numbers[first:last])

    def spelled(self, blocks: Iterable[Block], tags: bool) -> Iterator[tuple[Ids, Spelled | None]]:
        """The sentences of blocks: their numbers, and what they are, unless there is none; a window is read ahead."""
        tasks = ((block, self.dev_of(block), tags) for block in blocks)
        for (block, dev, _), found in self.reading.map(self.reading.spelled, tasks, WINDOW):
            numbers = block.first + np.arange(block.sentences)
            yield np.delete(numbers, sorted(dev)), found

    def size_of(self, block: Block) -> int:
        """Its sentences without those of dev."""
        return block.sentences - len(self.dev_of(block))

    def describe(self) -> dict[str, Any]:
        """For the run folder: a run is resumed with the same files only."""
        return {
            "files": [str(path) for path in self.paths],
            "sentences": len(self),
            "words": self.survey.tokens - sum(len(example.words) for example in self.survey.dev),
            "sha256": self.survey.sha256,
        }


class StreamedBatches:
    """`Batches` of streamed examples: the same order again for the same seed and epoch, `epoch` and `index` say which
    batch comes next. A window that lies before it is not read."""

    def __init__(
        self,
        examples: StreamedExamples,
        vocabularies: Vocabularies,
        batch_size: int,
        *,
        seed: int = 0,
        boundaries: bool = True,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        self.examples, self.vocabularies, self.batch_size = examples, vocabularies, batch_size
        self.seed, self.boundaries, self.share = seed, boundaries, share
        self.epoch = 0
        self.index = 0
        self.counts: dict[int, int] = {}  # of the epoch that was asked for last

    def __len__(self) -> int:
        return self.count(self.epoch)

    def count(self, epoch: int) -> int:
        """Batches of an epoch: one more or less, as windows are drawn."""
        if epoch not in self.counts:
            self.counts = {epoch: sum(count for _, _, count in self.windows(epoch))}
        return self.counts[epoch]

    def __iter__(self) -> Iterator[Batch]:
        first, to_read = 0, []
        for number, blocks, count in self.windows(self.epoch):
            if self.index < first + count:
                to_read.append((first, number, blocks, count))
            first += count
        parts = self.spelled([block for _, _, blocks, _ in to_read for block in blocks])
        for first, number, blocks, count in to_read:
            numbers, window = self.join(number, islice(parts, len(blocks)))
            order = window.order(self.epoch)
            while self.index < first + count:
                self.index += 1  # before the batch is used: what is saved after a step names the next batch
                places = order[self.index - 1 - first]
                batch = make_share(window.examples, places, self.share)
                yield replace(batch, positions=batch.positions.new_tensor(numbers[batch.positions.numpy()]))
        self.epoch, self.index = self.epoch + 1, 0

    def windows(self, epoch: int) -> Iterator[tuple[int, list[Block], int]]:
        """Number, blocks and number of batches of every window of an epoch; windows without a sentence are left out."""
        blocks = self.examples.survey.blocks
        order = np.random.default_rng([self.seed, epoch]).permutation(len(blocks))
        for number, start in enumerate(range(0, len(blocks), WINDOW)):
            chosen = [blocks[i] for i in order[start : start + WINDOW]]
            count = -(-sum(map(self.examples.size_of, chosen)) // self.batch_size)
            if count:
                yield number, chosen, count

    def spelled(self, blocks: Iterable[Block]) -> Iterator[tuple[Ids, Spelled | None]]:
        return self.examples.spelled(blocks, bool(self.vocabularies.tags))

    def join(self, number: int, found: Iterable[tuple[Ids, Spelled | None]]) -> tuple[Ids, Batches]:
        """The sentences of a window: their numbers, and their batches. Words become ids block by block."""
        numbers, parts = [], []
        for these, spelled in found:
            if spelled is not None:
                at = partial(self.example_at, these)
                parts.append(index_spelled(spelled, self.vocabularies, at, boundaries=self.boundaries))
                numbers.append(these)
        seed = self.seed * 1_000_003 + number
        return np.concatenate(numbers), Batches(join_indexed(parts), self.batch_size, seed=seed)

    def example_at(self, numbers: Ids, place: int) -> Example:
        return self.examples[int(numbers[place])]

    def positions(self, epoch: int, index: int) -> list[int]:
        """The numbers of the sentences of batch `index`, counted from 1."""
        first = 0
        for number, blocks, count in self.windows(epoch):
            if index <= first + count:
                numbers, window = self.join(number, self.spelled(blocks))
                return [int(numbers[place]) for place in window.order(epoch)[index - 1 - first]]
            first += count
        raise IndexError(index)

    def state(self) -> dict[str, int]:
        return {"epoch": self.epoch, "index": self.index}

    def restore(self, state: dict[str, int]) -> None:
        self.epoch, self.index = state["epoch"], state["index"]


def survey(reading: Reading, dev_fraction: float = 0.0, seed: int = 0) -> Survey:
    """Read all files once. About `dev_fraction` of the sentences is split off for dev, less where it is too many."""
    found = Survey()
    digest = hashlib.sha256()
    blocks = (
        block
        for number, path in enumerate(reading.paths)
        for block in cut_blocks(number, path, reading.form, digest.update)
    )
    for block, examples in reading.map(reading.surveyed, blocks, WINDOW):
        block = found.add(block, examples)
        if dev_fraction:
            for i, example in enumerate(examples, start=block.first):
                if is_dev(i, seed, dev_fraction):
                    found.dev.append(example)
                    found.dev_numbers.append(i)
            while len(found.dev) > MOST_DEV:
                dev_fraction /= 2
                kept = [i for i, place in enumerate(found.dev_numbers) if is_dev(place, seed, dev_fraction)]
                found.dev = [found.dev[i] for i in kept]
                found.dev_numbers = [found.dev_numbers[i] for i in kept]
    found.sha256 = digest.hexdigest()
    return found


def is_dev(number: int, seed: int, fraction: float) -> bool:
    """What a smaller fraction has, a larger one has too."""
    digest = hashlib.blake2b(f"{seed} {number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") < fraction * 2**64
