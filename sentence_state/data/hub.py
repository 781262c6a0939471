"""Data sets of the Hugging Face hub by name. Only this file can download anything, and only when it is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import DataError
from .example import Corpus, Example, Splits
from .tables import LABEL_NAMES, TEXT_NAMES, first_named
from .tagged_files import unify_tags
from .tokenizer import Tokenizer

DEV_NAMES = ("validation", "dev", "valid")
TOKEN_NAMES = ("tokens", "words")
TAG_NAMES = ("ner_tags", "tags", "pos_tags", "upos", "xpos", "labels")


def read_hub(
    name: str,
    *,
    task: str,
    configuration: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    tokenizer: Tokenizer | None = None,
    target_scheme: str = "bioes",
) -> Splits:
    """Train, dev and test of a data set, dev and test empty where it has none or hides their labels.

    `task` is "classification" (a text and a label a row) or "tagging" (a list of words and a list of tags a row).
    """
    parts = load(name, configuration)
    if "train" not in parts:
        raise DataError.at(name, f"the data set has no split 'train', only {', '.join(parts)}")
    dev = next((split for split in DEV_NAMES if split in parts), None)
    splits = {"train": parts["train"], "dev": parts[dev] if dev else None, "test": parts.get("test")}
    names = (TEXT_NAMES, LABEL_NAMES) if task == "classification" else (TOKEN_NAMES, TAG_NAMES)
    text = pick_column(name, parts["train"].column_names, text_column, names[0], "text")
    label = pick_column(name, parts["train"].column_names, label_column, names[1], "label")
    read = [read_split(rows, name, split, task, text, label, tokenizer) for split, rows in splits.items()]
    if task == "tagging":
        scheme = "auto"
        for corpus in read:
            if corpus.examples:
                unify_tags(corpus, scheme, target_scheme)
                scheme = corpus.tag_scheme or scheme
    return Splits(*(corpus.examples for corpus in read))


def load(name: str, configuration: str | None) -> Any:
    try:
        import datasets
    except ImportError:
        message = 'data sets of the hub need the package datasets: pip install "sentence-state[hub]"'
        raise DataError.at(name, message) from None
    try:
        return datasets.load_dataset(name, configuration)
    except Exception as error:  # of many kinds: no such set, no network, a script that may not be run
        raise DataError.at(name, f"the data set could not be loaded ({type(error).__name__}: {error})") from None


def pick_column(name: str, columns: Sequence[str], wanted: str | None, usual: Sequence[str], role: str) -> str:
    found = first_named(columns, usual)
    if wanted is None and found is not None:
        return columns[found]
    if wanted is None or wanted not in columns:
        start = f"no column {wanted!r}." if wanted else f"which column holds the {role}?"
        raise DataError.at(name, f"{start} Columns: {', '.join(columns)}. Use --{role}-column")
    return wanted


def read_split(
    rows: Any, name: str, split: str, task: str, text: str, label: str, tokenizer: Tokenizer | None
) -> Corpus:
    path = f"{name}[{split}]"
    if rows is None:
        return Corpus(path, [])
    feature = rows.features[label]
    values = getattr(getattr(feature, "feature", feature), "names", None)  # a ClassLabel, or a list of them
    examples = []
    for number, row in enumerate(rows, start=1):
        if task == "tagging":
            example = Example(list(row[text]), tags=[named(tag, values) for tag in row[label]])
        elif row[label] is None or row[label] == -1:
            return Corpus(path, [])  # a test set whose labels are kept secret
        else:
            example = Example.of_text(row[text], tokenizer or Tokenizer(), named(row[label], values))
        example.path, example.lines = path, (number,)
        if example.words:
            examples.append(example)
    return Corpus(path, examples)


def named(value: Any, names: Sequence[str] | None) -> str:
    return names[value] if names and isinstance(value, int) else str(value)
