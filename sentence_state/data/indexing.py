"""Examples -> arrays of ids, once, so that a batch is only a matter of copying slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .case import OTHER, case_id
from .example import Example
from .vocabulary import END_ID, PAD_ID, START_ID, Vocabulary

NO_TAG = -100  # at <s>, </s> and padding
LONGEST_WORD = 40  # characters that are looked at: a URL must not decide the size of a batch

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Vocabularies:
    """What a model needs to read its input; None for a feature or a target that it does not have."""

    words: Vocabulary
    characters: Vocabulary | None = None
    labels: Vocabulary | None = None
    tags: Vocabulary | None = None
    case: bool = False  # whether the case of a word is a feature


@dataclass(frozen=True)
class IndexedExamples:
    """All sentences one after another; sentence i is at starts[i]:starts[i + 1]."""

    starts: Ids  # (sentences + 1,)
    word_ids: Ids  # (positions,)
    boundaries: bool  # whether <s> and </s> were added
    case_ids: Ids | None = None  # (positions,)
    spellings: Ids | None = None  # (positions,) rows of `characters`
    characters: Ids | None = None  # (different words, longest) character ids, zero after the end
    label_ids: Ids | None = None  # (sentences,)
    tag_ids: Ids | None = None  # (positions,), NO_TAG at <s> and </s>

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Ids:
        return np.diff(self.starts)

    def lengths_of(self, positions: Ids) -> Ids:
        """Of some sentences: `lengths` would go through all of them."""
        lengths: Ids = self.starts[positions + 1] - self.starts[positions]
        return lengths

    def pad(self, values: Ids, positions: Ids, filling: int) -> Ids:
        """(B, N): the values of the sentences at `positions`, padded to the longest."""
        starts, ends = self.starts[positions].tolist(), self.starts[positions + 1].tolist()
        longest = max(end - start for start, end in zip(starts, ends, strict=True))
        padded = np.full((len(positions), longest), filling, np.int64)
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            padded[row, : end - start] = values[start:end]
        return padded


@dataclass(frozen=True)
class Positions:
    """Where sentences begin, and <s> and </s> around each where they are wanted."""

    starts: Ids
    boundaries: bool

    def spread(self, values: Ids, first: int, last: int) -> Ids:
        """Values of the words of all sentences, with `first` at every <s> and `last` at every </s>."""
        if not self.boundaries:
            return values
        result = np.empty(self.starts[-1], np.int64)
        word = np.ones(len(result), bool)
        word[self.starts[:-1]] = word[self.starts[1:] - 1] = False
        result[word] = values
        result[self.starts[:-1]], result[self.starts[1:] - 1] = first, last
        return result


def index_examples(
    examples: Sequence[Example], vocabularies: Vocabularies, *, boundaries: bool = True, targets: bool = True
) -> IndexedExamples:
    """`boundaries` adds <s> and </s>; `targets=False` leaves labels and tags out, for predictions."""
    for example in examples:
        if not example.words:
            raise example.error("a sentence without a word")
    lengths = [0, *(len(example.words) + 2 * boundaries for example in examples)]
    positions = Positions(np.cumsum(lengths, dtype=np.int64), boundaries)
    rows: dict[str, int] = {}
    spellings = np.array([rows.setdefault(word, len(rows)) for e in examples for word in e.words], np.int64)
    word_ids = np.array(vocabularies.words.ids(rows), np.int64)[spellings]
    case_ids = np.array([case_id(word) for word in rows], np.int64)[spellings] if vocabularies.case else None
    characters = vocabularies.characters
    return IndexedExamples(
        starts=positions.starts,
        word_ids=positions.spread(word_ids, START_ID, END_ID),
        boundaries=boundaries,
        case_ids=positions.spread(case_ids, OTHER, OTHER) if case_ids is not None else None,
        spellings=positions.spread(spellings, len(rows), len(rows) + 1) if characters else None,
        characters=index_characters(list(rows), characters) if characters else None,
        label_ids=index_labels(examples, vocabularies.labels) if targets and vocabularies.labels else None,
        tag_ids=index_tags(examples, vocabularies.tags, positions) if targets and vocabularies.tags else None,
    )


def join_indexed(parts: Sequence[IndexedExamples]) -> IndexedExamples:
    """Examples that were indexed in parts, one after another."""
    starts = np.concatenate([[0], *(part.lengths for part in parts)]).cumsum()
    tables = [part.characters for part in parts if part.characters is not None]
    rows = np.cumsum([0, *(len(table) for table in tables)])
    widest = max((table.shape[1] for table in tables), default=0)
    spellings = [part.spellings + row for part, row in zip(parts, rows, strict=False) if part.spellings is not None]

    def join(name: str) -> Ids | None:
        arrays = [getattr(part, name) for part in parts]
        return np.concatenate(arrays) if arrays[0] is not None else None

    return IndexedExamples(
        starts=starts,
        word_ids=np.concatenate([part.word_ids for part in parts]),
        boundaries=parts[0].boundaries,
        case_ids=join("case_ids"),
        spellings=np.concatenate(spellings) if spellings else None,
        characters=np.concatenate([np.pad(table, ((0, 0), (0, widest - table.shape[1]))) for table in tables])
        if tables
        else None,
        label_ids=join("label_ids"),
        tag_ids=join("tag_ids"),
    )


def index_characters(words: Sequence[str], vocabulary: Vocabulary) -> Ids:
    """(words + 2, longest) character ids; the last two rows spell <s> and </s>."""
    spelled = [vocabulary.ids(word[:LONGEST_WORD]) for word in words] + [[START_ID], [END_ID]]
    table = np.full((len(spelled), max(map(len, spelled))), PAD_ID, np.int64)
    for row, ids in enumerate(spelled):
        table[row, : len(ids)] = ids
    return table


def index_labels(examples: Sequence[Example], vocabulary: Vocabulary) -> Ids:
    for example in examples:
        if example.label not in vocabulary.index:
            raise example.error(f"label {example.label!r} is none of {', '.join(vocabulary.words)}")
    return np.array([vocabulary.index[example.label or ""] for example in examples], np.int64)


def index_tags(examples: Sequence[Example], vocabulary: Vocabulary, positions: Positions) -> Ids:
    ids = []
    for example in examples:
        tags = example.tags or []
        if len(tags) != len(example.words):
            raise example.error(f"{len(example.words)} words, but {len(tags)} tags")
        try:
            ids.extend(vocabulary.ids(tags))
        except KeyError:
            position = next(i for i, tag in enumerate(tags) if tag not in vocabulary.index)
            known = ", ".join(vocabulary.words)
            raise example.error(f"tag {tags[position]!r} is none of {known}", position) from None
    return positions.spread(np.array(ids, np.int64), NO_TAG, NO_TAG)
