"""The file of `predict --input` -> examples: in the form that the model was trained on where the file has it, else by
the end of its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..data import Corpus, read_lines, read_marked, read_table, read_tagged
from ..data.columns import looks_like_conllu
from ..data.delimited import DELIMITERS
from ..data.tag_schemes import TYPED
from ..data.text_files import read_text
from ..models import Model
from .flags import Predict, TableFlags
from .read import HEADER, delimiter_of
from .reading import as_in_training, encoding_in_training, for_file, saved_flags, usual_columns

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")
COLUMNS = (".conll", ".conllu", ".iob", ".bio")
MOST = 0.9  # of the lines of a file in columns, or of marked text


def read_input_file(flags: Predict, path: Path, model: Model) -> Corpus:
    saved = for_file(saved_flags(flags.run), path)
    encoding, notes = encoding_in_training(flags.encoding, saved, path)
    name = path.name.lower().removesuffix(".gz")
    text = read_text(path, encoding).text
    given = TableFlags(text_column=flags.text_column, delimiter=flags.delimiter, header=flags.header)
    if flags.word_column is not None or name.endswith(COLUMNS) or has_columns(text, model, saved):
        column = saved.get("word_column", 0) if flags.word_column is None else flags.word_column
        corpus = read_tagged(path, word_column=column, tag_column=None, encoding=encoding)
    elif is_marked(text, model):
        corpus = read_marked(path, tokenizer=model.tokenizer, encoding=encoding)
    elif name.endswith(TABLES) or given != TableFlags() or has_text_column(text, saved):
        table, more = as_in_training(given, saved)
        notes += more
        corpus = read_table(
            path,
            text_column=table.text_column,
            labelled=False,
            tokenizer=model.tokenizer,
            delimiter=delimiter_of(table.delimiter),
            header=HEADER[table.header],
            encoding=encoding,
            skip_empty=True,
            usual=usual_columns(saved),
        )
    else:
        corpus = read_lines(path, model.tokenizer, encoding)
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
    column = saved.get("tag_column", "-1")
    place = int(column) if column.lstrip("-").isdecimal() else -1
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


def is_marked(text: str, model: Model) -> bool:
    """Whether it is what a joint model is trained on: a label that it knows, a tab and a text on nearly every line."""
    labels = model.vocabularies.labels
    if model.targets != ("label", "tags") or labels is None:
        return False
    lines = [line for line in text.split("\n") if line.strip()]
    return sum("\t" in line and line.split("\t")[0].strip() in labels.index for line in lines) > MOST * len(lines)


def has_text_column(text: str, saved: Mapping[str, Any]) -> bool:
    """Whether the header names the column that the model was trained on, beside others, or the file holds JSON."""
    name = saved.get("text_column") or saved.get("usual_text")
    first = next((line for line in text.split("\n") if line.strip()), "")
    rows = [[cell.strip(' "') for cell in first.split(delimiter)] for delimiter in DELIMITERS]
    return first.lstrip().startswith('{"') or any(name in cells and len(cells) > 1 for cells in rows)
