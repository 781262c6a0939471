"""sentence-state evaluate: a trained model on a file with labels or tags."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from ..data import Corpus, Example, read_marked
from ..models import Model
from ..training import evaluate as measure
from .console import make_console, print_evaluation
from .flags import Evaluate
from .load import load_model
from .read import read_labelled, read_words


def evaluate(flags: Evaluate) -> int:
    console = make_console()
    model = load_model(flags.run, flags.device, flags.batch_size)
    corpus = read_as_trained(flags, model)
    evaluation = measure(model, corpus.examples, flags.batch_size)
    if flags.json:
        print(json.dumps(evaluation.to_dict(), ensure_ascii=False))
        return 0
    for note in (*corpus.description, *unknown_labels(model, corpus.examples)):
        console.print(note)
    print_evaluation(console, evaluation, f"{flags.run} on {flags.file}")
    return 0


def read_as_trained(flags: Evaluate, model: Model) -> Corpus:
    """The file in the form that the model's targets ask for, its tags in the model's scheme."""
    if model.targets == ("label",):
        return read_labelled(flags.file, flags.table, model.tokenizer, flags.encoding)
    if model.targets == ("tags",):
        plain = model.tag_scheme == "plain"
        target = "bioes" if plain else str(model.tag_scheme)
        return read_words(flags.file, flags.columns, "plain" if plain else None, target, flags.encoding)
    scheme = str(model.tag_scheme)
    return read_marked(flags.file, target_scheme=scheme, tokenizer=model.tokenizer, encoding=flags.encoding)


def unknown_labels(model: Model, examples: Sequence[Example]) -> list[str]:
    """Labels that the model has never seen cannot be right."""
    known = model.vocabularies.labels
    if known is None:
        return []
    counts = Counter(str(example.label) for example in examples if example.label not in known.index)
    return [f"label {label!r} is not one of the model's: {n:,} examples count as wrong" for label, n in counts.items()]
