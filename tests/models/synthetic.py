"""A tiny corpus with a rule behind it: the label says whether "good" or "bad" occurs, spans are places and names."""

import random

from sentence_state.data.example import Example, Splits
from sentence_state.models import ModelConfig

FILLERS = ["the", "film", "was", "quite", "a", "long", "story", "about", "some", "old", "house", "and", "its", "garden"]
SPANS = {("Paris",): "LOC", ("New", "York"): "LOC", ("Rio", "de", "Janeiro"): "LOC", ("Mary",): "PER"}


def example(rng: random.Random) -> Example:
    label = rng.choice(["pos", "neg"])
    parts = [((word,), None) for word in rng.choices(FILLERS, k=rng.randint(1, 6))]
    parts.insert(rng.randrange(len(parts) + 1), (("good" if label == "pos" else "bad",), None))
    parts.insert(rng.randrange(len(parts) + 1), rng.choice(list(SPANS.items())))
    words, tags = [], []
    for span, kind in parts:
        words += span
        if kind is None:
            tags += ["O"]
        elif len(span) == 1:
            tags += [f"S-{kind}"]
        else:
            tags += [f"B-{kind}", *[f"I-{kind}"] * (len(span) - 2), f"E-{kind}"]
    return Example(words, label=label, tags=tags)


def corpus(size: int, seed: int = 0) -> list[Example]:
    rng = random.Random(seed)
    return [example(rng) for _ in range(size)]


def splits(train: int = 60, dev: int = 12, test: int = 12) -> Splits:
    return Splits(corpus(train, 0), corpus(dev, 1), corpus(test, 2))


def small(**fields) -> ModelConfig:
    """A model that trains in a blink."""
    defaults = {"hidden_size": 12, "word_size": 10, "num_steps": 3, "gates": "sharp", "dropout": 0.1}
    return ModelConfig(**{**defaults, **fields})
