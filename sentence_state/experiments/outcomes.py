"""How each sentence came out: (correct, predicted, gold) counts, from which every score can be computed again.

For a label the counts are (1 or 0, 1, 1), for tags that are no spans (right ones, words, words), for spans as usual:
then 2 correct / (predicted + gold) is accuracy, token accuracy and F1.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.example import Example
from ..data.tag_schemes import tags_to_spans
from ..models import Decoded

Counts = NDArray[np.int64]  # (sentences, 3)


def sentence_counts(examples: Sequence[Example], found: Decoded, tag_scheme: str | None) -> Counts:
    if found.labels is not None:
        right = [example.label == label for example, label in zip(examples, found.labels, strict=True)]
        return np.array([(correct, 1, 1) for correct in right], np.int64)
    pairs = [(example.tags or [], tags) for example, tags in zip(examples, found.tags or [], strict=True)]
    if tag_scheme == "plain":
        return np.array([(sum(map(str.__eq__, *pair)), len(pair[0]), len(pair[0])) for pair in pairs], np.int64)
    spans = [(set(tags_to_spans(gold)), set(tags_to_spans(predicted))) for gold, predicted in pairs]
    return np.array([(len(gold & found), len(found), len(gold)) for gold, found in spans], np.int64)


def score_of(counts: NDArray[np.generic]) -> NDArray[np.float64]:
    """(..., sentences, 3) -> (...): accuracy or F1 of all sentences together, in percent."""
    correct, predicted, gold = np.moveaxis(counts.sum(axis=-2).astype(float), -1, 0)
    both = predicted + gold
    return np.asarray(100 * np.divide(2 * correct, both, out=np.zeros_like(both), where=both > 0))


def pack(values: ArrayLike) -> str:
    """Small non-negative integers as a short string."""
    return base64.b64encode(zlib.compress(np.asarray(values, "<u2").tobytes(), 9)).decode()


def unpack(text: str) -> NDArray[np.int64]:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), "<u2").astype(np.int64)


def unpack_counts(text: str) -> Counts:
    return unpack(text).reshape(-1, 3)
