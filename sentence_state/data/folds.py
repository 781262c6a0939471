"""A set in ten parts, each of which is the test set of one fold: every sentence is tested once."""

from __future__ import annotations

import random

from .example import Splits

Counts = tuple[int, int, int]  # of train, dev, test
FOLDS = 10


def fold_of(splits: Splits, fold: int) -> Splits:
    """Part `fold` for test, the next one for dev, the others for train. All splits go in; the parts are the same in
    whatever order they come, and every label gives each part its share."""
    examples = [*splits.train, *splits.dev, *splits.test]
    examples.sort(key=lambda example: example.located()[0])
    random.Random(0).shuffle(examples)
    examples.sort(key=lambda example: example.label or "")  # equal ones stay as they were shuffled
    parts = [examples[first::FOLDS] for first in range(FOLDS)]
    dev = (fold + 1) % FOLDS
    train = [example for place, part in enumerate(parts) if place not in (fold, dev) for example in part]
    return Splits(train, parts[dev], parts[fold])


def fold_counts(size: int, fold: int) -> Counts:
    """Of train, dev and test, for a set of so many sentences."""
    dev, test = (len(range(first, size, FOLDS)) for first in ((fold + 1) % FOLDS, fold))
    return size - dev - test, dev, test
