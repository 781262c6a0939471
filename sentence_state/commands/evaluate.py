"""sentence-state evaluate: a trained model on a file with labels or tags."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from ..data import Corpus, DataError, Example
from ..data.marked import marked_corpus
from ..models import Model
from ..training import evaluate as measure
from .console import make_console, print_evaluation
from .flags import Evaluate
from .load import load_model
from .saved_reading import as_in_training, read_text_as_trained, usual_columns
from .training_data import labelled_corpus, words_corpus

SHOWN = 10


def evaluate(flags: Evaluate) -> int:
    console = make_console()
    model = load_model(flags.run, flags.device, flags.batch_size)
    corpus = read_as_trained(flags, model)
    evaluation = measure(model, corpus.examples, flags.batch_size)
    beside = make_console(stderr=True) if flags.json else console
    for note in (*corpus.description, *unknown_targets(model, corpus.examples)):
        beside.print(note)
    if flags.json:
        print(json.dumps(evaluation.to_dict(), ensure_ascii=False))
        return 0
    print_evaluation(console, evaluation, f"{flags.run} on {flags.file}")
    return 0


def read_as_trained(flags: Evaluate, model: Model) -> Corpus:
    """The file in the form that the model's targets ask for, its tags in the model's scheme."""
    file, saved, notes = read_text_as_trained(flags.run, flags.file, flags.encoding)
    if model.targets == ("label",):
        table, more = as_in_training(flags.table, saved)
        corpus = labelled_corpus(file, table, model.tokenizer, usual_columns(saved))
        refuse_other_labels(corpus, model)
    elif model.targets == ("tags",):
        columns, more = as_in_training(flags.columns, saved)
        plain = model.tag_scheme == "plain"
        target = "bioes" if plain else str(model.tag_scheme)
        corpus = words_corpus(file, columns, "plain" if plain else None, target)
        if corpus.tag_scheme == "plain" and not plain:
            refuse_plain_tags(corpus)
    else:
        more, corpus = [], marked_corpus(file, str(model.tag_scheme), model.tokenizer)
    corpus.description[:0] = [*notes, *more]
    return corpus


def refuse_other_labels(corpus: Corpus, model: Model) -> None:
    """A column of something else, or a file in another encoding than it seems: no score would say so."""
    labels = model.vocabularies.labels
    if labels is not None and not any(example.label in labels.index for example in corpus.examples):
        known = ", ".join(labels.words[:SHOWN])
        found = f"no label, such as {corpus.examples[0].label!r}, is one of the model's ({known})"
        raise DataError.at(corpus.path, f"{found}: try another --label-column or --encoding")


def refuse_plain_tags(corpus: Corpus) -> None:
    example = corpus.examples[0]
    tag = (example.tags or [""])[0]
    raise example.error(f"tags such as {tag!r} are no spans, which this model finds: choose another --tag-column")


def unknown_targets(model: Model, examples: Sequence[Example]) -> list[str]:
    """Labels and tags that the model has never seen cannot be right."""
    labels, tags = model.vocabularies.labels, model.vocabularies.tags
    notes = []
    if labels is not None:
        counts = Counter(str(example.label) for example in examples if example.label not in labels.index)
        notes += unknown_notes(counts, "label", "examples")
    if tags is not None:
        counts = Counter(tag for example in examples for tag in example.tags or () if tag not in tags.index)
        notes += unknown_notes(counts, "tag", "words")
    return notes


def unknown_notes(counts: Counter[str], target: str, unit: str) -> list[str]:
    common = counts.most_common()
    notes = [f"{target} {name!r} is not one of the model's: {n:,} {unit} count as wrong" for name, n in common[:SHOWN]]
    rest = common[SHOWN:]
    if rest:
        notes.append(f"and {len(rest):,} more {target}s, of {sum(n for _, n in rest):,} {unit}")
    return notes
