"""Example: one sentence and its target. Corpus: what a reader found in one file. Splits: train, dev, test."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from .errors import DataError
from .tokenizer import Tokenizer


@dataclass(slots=True)
class Example:
    """A sentence. `label` is the target of classification, `tags` that of tagging; the joint task has both."""

    words: list[str]
    label: str | None = None
    tags: list[str] | None = None
    text: str | None = None  # as it was before it was cut into words
    offsets: list[tuple[int, int]] | None = None  # text[start:end] of each word
    path: str = ""
    lines: Sequence[int] = ()  # the line of each word, or one line for all of them

    @classmethod
    def of_text(
        cls, text: str, tokenizer: Tokenizer, label: str | None = None, path: str = "", lines: Sequence[int] = ()
    ) -> Self:
        """A raw text and its words, of which there may be none."""
        tokens = tokenizer.tokenize(text)
        offsets = [(start, end) for _, start, end in tokens]
        return cls([word for word, _, _ in tokens], label, None, text, offsets, path, lines)

    def error(self, message: str, word: int = 0) -> DataError:
        """The error to raise about this sentence, or about one word of it."""
        line = self.lines[min(word, len(self.lines) - 1)] if self.lines else None
        return DataError.at(self.path or "data", message, line)

    def located(self) -> tuple[str, list[tuple[int, int]]]:
        """The text and the character offsets of its words; words joined by spaces when there never was a text."""
        if self.text is not None and self.offsets is not None:
            return self.text, self.offsets
        offsets, start = [], 0
        for word in self.words:
            offsets.append((start, start + len(word)))
            start += len(word) + 1
        return " ".join(self.words), offsets


@dataclass
class Corpus:
    """The examples of one file, and as sentences for the user what had to be found out about it."""

    path: str
    examples: list[Example]
    description: list[str] = field(default_factory=list)
    tag_scheme: str | None = None  # that of the file; the examples' tags may have been converted since
    columns: dict[str, str] = field(default_factory=dict)  # "text" and "label" -> how a table's header names them


@dataclass
class Splits:
    train: Sequence[Example]  # a list, or `streaming.StreamedExamples`
    dev: list[Example]
    test: list[Example] = field(default_factory=list)


def split_off_dev(
    examples: Sequence[Example], fraction: float = 0.1, seed: int = 0
) -> tuple[list[Example], list[Example]]:
    """(train, dev), both in the order of the file; every label gives its share, and keeps at least one for train."""
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must lie between 0 and 1, got {fraction}")
    groups: dict[str, list[int]] = defaultdict(list)
    for position, example in enumerate(examples):
        groups[example.label or ""].append(position)
    shuffled = random.Random(seed)
    chosen: set[int] = set()
    for label, size in dev_sizes({label: len(group) for label, group in groups.items()}, fraction).items():
        chosen.update(shuffled.sample(groups[label], size))
    if not chosen:
        raise too_few(examples)
    train = [example for position, example in enumerate(examples) if position not in chosen]
    return train, [examples[position] for position in sorted(chosen)]


def too_few(examples: Sequence[Example]) -> DataError:
    if len(examples) == 1 and examples[0].label is None:
        question = "is there an empty line after each sentence?"
        return examples[0].error(f"one sentence of {len(examples[0].words):,} words: {question}")
    where = examples[0] if examples else Example([])
    return where.error(f"{len(examples)} example(s) are too few to split off a dev set: give --dev FILE")


def dev_sizes(sizes: dict[str, int], fraction: float) -> dict[str, int]:
    """Examples that each label gives to dev: its share rounded down, then one more by largest remainder."""
    shares = {label: min(size * fraction, size - 1) for label, size in sorted(sizes.items())}
    result = {label: int(share) for label, share in shares.items()}
    total = max(1, round(sum(sizes.values()) * fraction))
    for label in sorted(shares, key=lambda name: result[name] - shares[name]):  # sorted() keeps the labels' order
        if sum(result.values()) < total and result[label] < sizes[label] - 1:
            result[label] += 1
    return result
