"""Examples -> arrays of ids, once, so that a batch is only a matter of copying slices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

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


class Numbered(NamedTuple):
    """Different values in the order in which they come first, and which of them stands where."""

    values: list[Any]
    numbers: Ids

    @classmethod
    def of(cls, values: Iterable[Hashable]) -> Numbered:
        rows: dict[Hashable, int] = {}
        numbers = np.array([rows.setdefault(value, len(rows)) for value in values], np.int64)
        return cls(list(rows), numbers)


class Spelled(NamedTuple):
    """Sentences as what can be said of them without a vocabulary."""

    sizes: Ids  # words of each
    words: Numbered
    labels: Numbered  # one a sentence
    tags: Numbered | None  # one a word

    def sentence_of(self, word: int) -> tuple[int, int]:
        """The sentence of a word of all, and its place there."""
        ends = self.sizes.cumsum()
        sentence = int(np.searchsorted(ends, word, side="right"))
        return sentence, word - int(ends[sentence] - self.sizes[sentence])


def spell(examples: Sequence[Example], tags: bool) -> Spelled:
    for example in examples:
        if not example.words:
            raise example.error("a sentence without a word")
        if tags and len(example.tags or ()) != len(example.words):
            raise example.error(f"{len(example.words)} words, but {len(example.tags or ())} tags")
    return Spelled(
        np.array([len(example.words) for example in examples], np.int64),
        Numbered.of(chain.from_iterable(example.words for example in examples)),
        Numbered.of(example.label for example in examples),
        Numbered.of(chain.from_iterable(example.tags or () for example in examples)) if tags else None,
    )


def index_examples(
    examples: Sequence[Example], vocabularies: Vocabularies, *, boundaries: bool = True, targets: bool = True
) -> IndexedExamples:
    """`boundaries` adds <s> and </s>; `targets=False` leaves labels and tags out, for predictions."""
    spelled = spell(examples, targets and bool(vocabularies.tags))
    return index_spelled(spelled, vocabularies, examples.__getitem__, boundaries=boundaries, targets=targets)


def index_spelled(
    spelled: Spelled,
    vocabularies: Vocabularies,
    example_at: Callable[[int], Example],
    *,
    boundaries: bool = True,
    targets: bool = True,
) -> IndexedExamples:
    """example_at: the sentence at a place, which is asked for where something is wrong with it."""
    sizes, (words, spellings), labels, tags = spelled
    positions = Positions(np.concatenate([[0], (sizes + 2 * boundaries).cumsum()]), boundaries)
    word_ids = np.array(vocabularies.words.ids(words), np.int64)[spellings]
    case_ids = np.array([case_id(word) for word in words], np.int64)[spellings] if vocabularies.case else None
    characters = vocabularies.characters
    label_ids = tag_ids = None
    if targets and vocabularies.labels:
        label_ids = ids_of(labels, vocabularies.labels, "label", lambda place: (example_at(place), 0))
    if tags is not None and vocabularies.tags:

        def tagged(word: int) -> tuple[Example, int]:
            sentence, place = spelled.sentence_of(word)
            return example_at(sentence), place

        tag_ids = positions.spread(ids_of(tags, vocabularies.tags, "tag", tagged), NO_TAG, NO_TAG)
    return IndexedExamples(
        starts=positions.starts,
        word_ids=positions.spread(word_ids, START_ID, END_ID),
        boundaries=boundaries,
        case_ids=positions.spread(case_ids, OTHER, OTHER) if case_ids is not None else None,
        spellings=positions.spread(spellings, len(words), len(words) + 1) if characters else None,
        characters=index_characters(words, characters) if characters else None,
        label_ids=label_ids,
        tag_ids=tag_ids,
    )


def ids_of(found: Numbered, vocabulary: Vocabulary, kind: str, place_of: Callable[[int], tuple[Example, int]]) -> Ids:
    """Of labels or tags, which the vocabulary must know."""
    for row, value in enumerate(found.values):
        if value not in vocabulary.index:
            example, word = place_of(int((found.numbers == row).argmax()))
            raise example.error(f"{kind} {value!r} is none of {', '.join(vocabulary.words)}", word)
    ids: Ids = np.array([vocabulary.index[value] for value in found.values], np.int64)[found.numbers]
    return ids


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
