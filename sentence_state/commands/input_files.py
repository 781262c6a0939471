"""The file of `predict --input` -> examples: in the form that the model was trained on where the file has it, else by
the end of its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..data import Corpus
from ..data.columns import looks_like_conllu, sniff_columns
from ..data.delimited import is_headed, labelled_by
from ..data.marked import marked_corpus
from ..data.tables import JSON_SUFFIXES, lines_corpus, table_corpus
from ..data.tag_schemes import TYPED
from ..data.tagged_files import tagged_corpus
from ..data.text_files import TextFile
from ..models import Model
from .flags import Predict, TableFlags
from .saved_reading import as_in_training, read_text_as_trained, usual_columns
from .training_data import HEADER, delimiter_of

TABLES = (".csv", ".tsv", *JSON_SUFFIXES)
COLUMNS = (".conll", ".conllu", ".iob", ".bio")
MOST = 0.9  # of the lines of a file in columns, of marked text, or of a table without a header


def read_input_file(flags: Predict, path: Path, model: Model) -> Corpus:
    file, saved, notes = read_text_as_trained(flags.run, path, flags.encoding)
    name = path.name.lower().removesuffix(".gz")
    mark = None
    given = TableFlags(text_column=flags.text_column, delimiter=flags.delimiter, header=flags.header)
    has_tags = flags.word_column is None and has_columns(file.text, model, saved)
    if flags.word_column is not None or name.endswith(COLUMNS) or has_tags:
        column = saved.get("word_column", 0) if flags.word_column is None else flags.word_column
        if has_tags:
            refuse_tags_as_words(file, column, tag_place(saved))
        corpus = tagged_corpus(file, column, None)
    elif is_marked(file.text, model):
        corpus = marked_corpus(file, "bio", model.tokenizer)
    elif (
        name.endswith(TABLES)
        or given != TableFlags()
        or has_text_column(file.text, saved)
        or (mark := delimiter_of_labels(file.text, model, saved))
    ):
        table, more = as_in_training(given, saved)
        notes += more
        corpus = table_corpus(
            file,
            text_column=table.text_column,
            label_column=None,
            labelled=False,
            tokenizer=model.tokenizer,
            delimiter=mark or delimiter_of(table.delimiter),
            header=HEADER[table.header],
            skip_empty=True,
            usual=usual_columns(saved),
        )
    else:
        corpus = lines_corpus(file, model.tokenizer)
    corpus.description[:0] = notes
    return corpus


def has_columns(text: str, model: Model, saved: Mapping[str, Any]) -> bool:
    """Whether a tagger could have been trained on it: nearly all lines have as many cells, and a tag where it was."""
    tags = model.vocabularies.tags
    if model.targets != ("tags",) or tags is None:
        return False
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith(("# ", "#\t", "-DOCSTART-"))]
    if looks_like_conllu(lines):
        return True
    place = tag_place(saved)
    plain = model.tag_scheme == "plain"
    found: dict[int, set[str]] = {}
    widths: Counter[int] = Counter()
    for cells in (line.split("\t") if "\t" in line else line.split() for line in lines):
        tag = cells[place].strip() if len(cells) > max(1, place, -place - 1) else ""
        if tag in tags.index or (not plain and (tag == "O" or TYPED.match(tag))):
            widths[len(cells)] += 1
            found.setdefault(len(cells), set()).add(tag)
    width, number = max(widths.items(), key=lambda item: item[1], default=(0, 0))
    return number > MOST * len(lines) and (not plain or len(found[width]) > 1)  # texts that all end with a full stop


def tag_place(saved: Mapping[str, Any]) -> int:
    column = saved.get("tag_column", "-1")
    return int(column) if column.lstrip("-").isdecimal() else -1


def refuse_tags_as_words(file: TextFile, word_column: int, tag_column: int) -> None:
    """A file with tags where the model knows them, which has fewer columns than those of training."""
    columns = sniff_columns(file, file.text.split("\n"), word_column, None)
    if columns.place(word_column) == columns.place(tag_column):
        found = f"words, as in training, and tags are both column {columns.place(word_column)} of {columns.width}"
        raise file.error(f"{found}, counted from 0: choose another --word-column", 1)


def is_marked(text: str, model: Model) -> bool:
    """Whether it is what a joint model is trained on: a label that it knows, a tab and a text on nearly every line."""
    labels = model.vocabularies.labels
    if model.targets != ("label", "tags") or labels is None:
        return False
    lines = [line for line in text.split("\n") if line.strip()]
    return sum("\t" in line and line.split("\t")[0].strip() in labels.index for line in lines) > MOST * len(lines)


def delimiter_of_labels(text: str, model: Model, saved: Mapping[str, Any]) -> str | None:
    """What separates the columns, where one of them holds labels that a classifier knows, on nearly every line."""
    labels = model.vocabularies.labels
    if model.targets != ("label",) or labels is None:
        return None
    return labelled_by(text, labels.index, MOST, delimiter_of(saved.get("delimiter")))


def has_text_column(text: str, saved: Mapping[str, Any]) -> bool:
    """Whether the header names the column that the model was trained on, beside others, or the file holds JSON."""
    name = str(saved.get("text_column") or saved.get("usual_text") or "")
    first = next((line for line in text.split("\n") if line.strip()), "")
    return first.lstrip().startswith('{"') or (bool(first and name) and is_headed(text, name))
