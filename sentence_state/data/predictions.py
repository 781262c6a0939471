"""Texts -> Examples, and what a model says of them -> Prediction: the same for every way to run a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from .example import Example
from .tag_schemes import Span, tags_to_spans
from .tokenizer import Tokenizer
from .vocabulary import Vocabulary


class SpanPrediction(TypedDict):
    """text[start:end] is `text`; `score` is the least certain word's probability."""

    start: int
    end: int
    label: str
    text: str
    score: float


class Prediction(TypedDict, total=False):
    """The one shape of all answers, ready for JSON. `label` and `score` are None for a tagger, `spans` is empty for a
    classifier; `probabilities` of all labels where there is a label."""

    label: str | None
    score: float | None
    probabilities: dict[str, float]
    spans: list[SpanPrediction]


def read_texts(texts: Sequence[str | Sequence[str]], tokenizer: Tokenizer) -> list[Example]:
    """Raw texts cut into words, or lists of words as they are."""
    if isinstance(texts, str):
        raise ValueError(f"expected a list of texts, got one string: predict([{texts[:40]!r}])")
    return [example_of(text, row, tokenizer) for row, text in enumerate(texts)]


def example_of(text: str | Sequence[str], row: int, tokenizer: Tokenizer) -> Example:
    example = Example.of_text(text, tokenizer) if isinstance(text, str) else Example(words_of(text, row))
    if not example.words:
        raise ValueError(f"text {row} has no words: {text!r}")
    return example


def words_of(words: Sequence[str], row: int) -> list[str]:
    """Of a text that is cut into words already; what comes from a table may be anything."""
    if not isinstance(words, Iterable) or isinstance(words, bytes | Mapping):
        raise ValueError(f"text {row} is {type(words).__name__}, expected a string or a list of words")
    found = list(words)
    for word in found:
        if not isinstance(word, str):
            raise ValueError(f"text {row} holds {type(word).__name__}, expected a string or a list of words")
    return found


def label_prediction(probabilities: Sequence[float], vocabulary: Vocabulary) -> Prediction:
    """The best label, its probability, and those of all labels."""
    best = max(range(len(probabilities)), key=probabilities.__getitem__)
    named = dict(zip(vocabulary.words, probabilities, strict=True))
    return {"label": vocabulary.word(best), "score": probabilities[best], "spans": [], "probabilities": named}


def span_predictions(
    example: Example, tags: Sequence[str], scores: Sequence[float], scheme: str | None
) -> list[SpanPrediction]:
    """Spans with their place in the text; a plain tag other than O is a span of one word."""
    text, offsets = example.located()
    if scheme == "plain":
        spans = [Span(i, i + 1, tag) for i, tag in enumerate(tags) if tag != "O"]
    else:
        spans = tags_to_spans(tags, scheme)
    found: list[SpanPrediction] = []
    for first, last, label in spans:
        start, end = offsets[first][0], offsets[last - 1][1]
        score = min(scores[first:last])
        found.append({"start": start, "end": end, "label": label, "text": text[start:end], "score": score})
    return found
