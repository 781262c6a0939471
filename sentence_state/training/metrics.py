"""Accuracy and span F1, a table for each label, a confusion matrix: all from counts, so that parts can be added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..data.tag_schemes import SCHEMES, tags_to_spans


@dataclass(frozen=True)
class Scores:
    """Precision, recall and F1 of one label, or of all; zero where nothing was predicted or nothing was there."""

    correct: int
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        return 2 * self.correct / (self.predicted + self.gold) if self.predicted + self.gold else 0.0

    def __add__(self, other: Scores) -> Scores:
        return Scores(self.correct + other.correct, self.predicted + other.predicted, self.gold + other.gold)

    def to_dict(self) -> dict[str, float]:
        return {**asdict(self), "precision": self.precision, "recall": self.recall, "f1": self.f1}


def accuracy(gold: Sequence[Any], predicted: Sequence[Any]) -> float:
    """The share of equal pairs."""
    check_pairs(gold, predicted)
    return sum(a == b for a, b in zip(gold, predicted, strict=True)) / len(gold) if gold else 0.0


def token_accuracy(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """The share of words with the right tag."""
    check_sentences(gold, predicted)
    return accuracy([tag for tags in gold for tag in tags], [tag for tags in predicted for tag in tags])


def span_scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], scheme: str | None = None
) -> dict[str, Scores]:
    """Scores of each span label, by alphabet. A span is right when its borders and its label are.

    With a scheme ("bio", "bioes", ...) a span whose tags break it is none, as seqeval's strict mode; without, broken
    tags are read as conlleval reads them, seqeval's default.
    """
    if scheme is not None and scheme not in SCHEMES:
        raise ValueError(f"scheme must be None or one of {', '.join(SCHEMES)}, got {scheme!r}")
    check_sentences(gold, predicted)
    right: Counter[str] = Counter()
    found: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        gold_spans, predicted_spans = set(tags_to_spans(gold_tags, scheme)), set(tags_to_spans(predicted_tags, scheme))
        right.update(span.label for span in gold_spans & predicted_spans)
        found.update(span.label for span in predicted_spans)
        there.update(span.label for span in gold_spans)
    return {label: Scores(right[label], found[label], there[label]) for label in sorted({*found, *there})}


def label_scores(gold: Sequence[str], predicted: Sequence[str]) -> dict[str, Scores]:
    """Scores of each label of a classifier, or of each tag of a tagger, by alphabet."""
    check_pairs(gold, predicted)
    right = Counter(a for a, b in zip(gold, predicted, strict=True) if a == b)
    found, there = Counter(predicted), Counter(gold)
    return {label: Scores(right[label], found[label], there[label]) for label in sorted({*found, *there})}


def total(scores: Iterable[Scores]) -> Scores:
    """All labels together: the micro average."""
    return sum(scores, Scores(0, 0, 0))


def confusion(gold: Sequence[str], predicted: Sequence[str]) -> dict[str, dict[str, int]]:
    """Gold label -> predicted label -> how often; both by alphabet, zeros included."""
    check_pairs(gold, predicted)
    counts = Counter(zip(gold, predicted, strict=True))
    labels = sorted({*gold, *predicted})
    return {row: {column: counts[row, column] for column in labels} for row in labels}


def check_pairs(gold: Sequence[Any], predicted: Sequence[Any]) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"expected as many predictions as gold labels, got {len(predicted)} and {len(gold)}")


def check_sentences(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> None:
    check_pairs(gold, predicted)
    for row, (a, b) in enumerate(zip(gold, predicted, strict=True)):
        if len(a) != len(b):
            raise ValueError(f"sentence {row} has {len(a)} gold tags and {len(b)} predicted ones")
