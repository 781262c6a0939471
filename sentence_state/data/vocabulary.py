"""Word, character or label <-> id; saved as JSON."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path

from .errors import DataError

PAD, UNKNOWN, START, END = "<pad>", "<unk>", "<s>", "</s>"
SPECIALS = (PAD, UNKNOWN, START, END)
PAD_ID, UNKNOWN_ID, START_ID, END_ID = range(4)
FORMAT = "sentence-state vocabulary 1"


class Vocabulary:
    """An ordered set of words. One of labels has no special words, and knows every label or raises a KeyError."""

    def __init__(
        self,
        words: Sequence[str],
        counts: Sequence[int] | None = None,
        *,
        specials: Sequence[str] = SPECIALS,
    ) -> None:
        self.words = [*specials, *words]
        self.counts = [0] * len(specials) + list(counts if counts is not None else [0] * len(words))
        self.specials = tuple(specials)
        # a "<pad>" in somebody's text is an unknown word, not padding: the specials cannot be looked up
        self.index = {word: len(specials) + position for position, word in enumerate(words)}
        if len(self.index) != len(words) or len(self.counts) != len(self.words):
            raise ValueError(f"expected {len(words)} different words with a count each")

    @classmethod
    def of_words(cls, sentences: Iterable[Iterable[str]]) -> Vocabulary:
        """The most frequent words first, then by alphabet."""
        return cls.of_counts(Counter(word for sentence in sentences for word in sentence))

    @classmethod
    def of_characters(cls, sentences: Iterable[Iterable[str]]) -> Vocabulary:
        """Characters of all words, the most frequent first."""
        return cls.of_counts(count_characters(Counter(word for sentence in sentences for word in sentence)))

    @classmethod
    def of_counts(cls, counts: Mapping[str, int], most: int | None = None) -> Vocabulary:
        """Words that are counted already, the `most` frequent of them."""
        kept = sorted((word for word in counts if word not in SPECIALS), key=lambda word: (-counts[word], word))[:most]
        return cls(kept, [counts[word] for word in kept])

    @classmethod
    def of_labels(cls, labels: Iterable[str]) -> Vocabulary:
        """Labels or tags by alphabet, without special words."""
        counts = Counter(labels)
        kept = sorted(counts)
        return cls(kept, [counts[label] for label in kept], specials=())

    def __len__(self) -> int:
        return len(self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.to_json() == other.to_json()

    def id(self, word: str) -> int:
        if self.specials:
            return self.index.get(word, UNKNOWN_ID)
        return self.index[word]

    def ids(self, words: Iterable[str]) -> list[int]:
        return [self.id(word) for word in words]

    def word(self, position: int) -> str:
        return self.words[position]

    def hash(self) -> str:
        """The same for the same words in the same order, on every machine."""
        return hashlib.sha256(json.dumps(self.words).encode()).hexdigest()

    def to_json(self) -> str:
        size = len(self.specials)
        content = {
            "format": FORMAT,
            "specials": list(self.specials),
            "words": self.words[size:],
            "counts": self.counts[size:],
        }
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Vocabulary:
        content = json.loads(text)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"expected a file of the format {FORMAT!r}")
        return cls(content["words"], content["counts"], specials=content["specials"])

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Vocabulary:
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError.at(path, "no such file") from None
        except (ValueError, KeyError, TypeError) as error:
            raise DataError.at(path, f"no vocabulary of sentence-state ({error})") from None


def count_characters(words: Mapping[str, int]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    return counts
