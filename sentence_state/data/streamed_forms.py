"""How streamed files are written, found out from the first megabyte: CSV, TSV, JSONL, CoNLL, marked text."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .blocks import BLOCK, Form, to_text
from .columns import (
    CONLLU_COLUMNS,
    Columns,
    describe_roles,
    known_tags,
    note_of_numbers,
    read_sentences,
    read_trees,
    sniff_columns,
)
from .delimited import (
    LARGEST_FIELD,
    SEPARATOR,
    Quoting,
    Rows,
    check_widths,
    name_columns,
    parse,
    sniff_delimiter,
    split_rows,
)
from .errors import DataError
from .example import Corpus, Example
from .json_lines import read_json_lines, refuse_nested
from .marked import read_utterances
from .tables import LABEL_NAMES, TEXT_NAMES, build_examples, find_column, is_json, named_columns
from .tag_schemes import NAMES, detect_scheme
from .tagged_files import is_called_conllu, is_unnamed_conllu, unify_tags
from .text_files import TextFile
from .tokenizer import Tokenizer


def table_form(
    path: Path,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    tokenizer: Tokenizer | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    skip_empty: bool = False,
) -> Form:
    """CSV, TSV or JSONL with a text and a label in every row."""
    csv.field_size_limit(LARGEST_FIELD)
    sample = first_lines(path, encoding)
    tokenizer = tokenizer or Tokenizer()
    if is_json(sample):
        rows = read_json_lines(sample)
        text_index = find_column(sample, rows, text_column, "text")
        label_index = find_column(sample, rows, label_column, "label", taken=text_index)
        names = rows.columns[text_index], rows.columns[label_index]
        reading = partial(read_objects, names=names, tokenizer=tokenizer, skip_empty=skip_empty)
        description = f"JSONL, text from {names[0]!r}, label from {names[1]!r}"
        columns = named_columns(rows, text_index, label_index)
        return Form(description, all_lines, reading, None, encoding, columns)
    return delimited_form(sample, text_column, label_column, tokenizer, delimiter, header, encoding, skip_empty)


def read_objects(file: TextFile, names: tuple[str, str], tokenizer: Tokenizer, skip_empty: bool) -> list[Example]:
    found = read_json_lines(file)
    if not found.rows:
        return []
    for name in names:
        if name not in found.columns:
            raise file.error(f"no field {name!r} here", found.rows[0].line)
    text, label = (found.columns.index(name) for name in names)
    for index in (text, label):
        refuse_nested(file, found, index)
    return build_examples(file, found, text, label, tokenizer, skip_empty)[0]


def delimited_form(
    sample: TextFile,
    text_column: str | None,
    label_column: str | None,
    tokenizer: Tokenizer,
    delimiter: str | None,
    header: bool | None,
    encoding: str | None,
    skip_empty: bool,
) -> Form:
    known = {name.lower() for name in (*TEXT_NAMES, *LABEL_NAMES, text_column or "", label_column or "") if name}
    if SEPARATOR.match(sample.text):
        raise sample.error("a line for Excel alone: delete it to stream the file", 1)
    delimiter = delimiter or sniff_delimiter(sample, known)
    try:
        rows, quoting = parse(sample, delimiter)
    except DataError:  # a cell over several lines that goes on after the sample
        lines = sample.text.split("\n")
        sample = sample._replace(text="\n".join(lines[: max(1, len(lines) // 2)]) + "\n")
        rows, quoting = parse(sample, delimiter)
    table = name_columns(sample, rows, known, header, delimiter, quoting)
    columns, width = table.columns, len(table.columns)
    body = table._replace(rows=[row for row in table.rows if len(row.cells) == width])
    if not body.rows:
        raise sample.error(f"a header of {width} columns, but no row that has as many", rows[0].line)
    text = find_column(sample, body, text_column, "text")
    label = find_column(sample, body, label_column, "label", taken=text)
    reading = partial(
        read_rows,
        delimiter=delimiter,
        quoting=quoting,
        columns=columns,
        places=(text, label),
        tokenizer=tokenizer,
        skip_empty=skip_empty,
    )
    has_header = len(table.rows) < len(rows)
    first = sample.text.split("\n")[rows[0].line - 1].strip() if has_header else None
    return Form(
        f"{table.form}, text from {columns[text]!r}, label from {columns[label]!r}",
        partial(lines_of_rows, delimiter=delimiter, quoting=quoting),
        reading,
        first,
        encoding,
        named_columns(body, text, label),
    )


def read_rows(
    file: TextFile,
    delimiter: str,
    quoting: Quoting,
    columns: list[str],
    places: tuple[int, int],
    tokenizer: Tokenizer,
    skip_empty: bool,
) -> list[Example]:
    csv.field_size_limit(LARGEST_FIELD)  # of this process, which need not be the one that found out the form
    try:
        block = split_rows(file.text, delimiter, quoting)
    except csv.Error as error:
        raise file.error(error.args[0], error.args[1]) from None
    check_widths(file, block, len(columns), delimiter)
    return build_examples(file, Rows(columns, block, ""), *places, tokenizer, skip_empty)[0]


def column_form(
    path: Path,
    *,
    word_column: int = 0,
    tag_column: int | str = -1,
    tag_scheme: str = "auto",
    target_scheme: str = "bioes",
    broken: str = "error",
    encoding: str | None = None,
) -> tuple[Form, str]:
    """CoNLL columns or CoNLL-U, and the scheme of the tags after they were converted."""
    sample = first_lines(path, encoding)
    lines = sample.text.split("\n")
    whole = sample._replace(text="\n".join(lines[: lines_of_sentences(sample.text)]) or sample.text)
    if is_called_conllu(sample) or is_unnamed_conllu(sample, word_column, tag_column):
        column = CONLLU_COLUMNS["xpos" if isinstance(tag_column, int) else tag_column]
        sentences: Callable[[TextFile], list[Example]] = partial(trees_of, column=column)
        found = sentences(whole)
        description = [f"CoNLL-U{'' if is_called_conllu(sample) else ' as found out'}"]
    elif isinstance(tag_column, str):
        raise DataError.at(path, f"the column {tag_column} is one of CoNLL-U (.conllu); here, columns have numbers")
    else:
        columns: Columns = sniff_columns(sample, lines, word_column, tag_column)
        sentences = partial(sentences_of, columns=columns, tags=known_tags(lines, columns))
        found = sentences(whole)
        description = [columns.form(), *describe_roles(columns), *note_of_numbers(found, columns)]
    if not found:
        raise sample.error("no sentence in the file", 1)
    scheme = detect_scheme([example.tags or [] for example in found]) if tag_scheme == "auto" else tag_scheme
    said = ", ".join([*description, f"tags are {NAMES[scheme]}"])
    reading = partial(
        read_tagged_sentences, sentences=sentences, scheme=scheme, target_scheme=target_scheme, broken=broken
    )
    form = Form(said, lines_of_sentences, reading, None, encoding)
    return form, "plain" if scheme == "plain" else target_scheme


def trees_of(file: TextFile, column: int) -> list[Example]:
    return list(read_trees(file, column))


def sentences_of(file: TextFile, columns: Columns, tags: set[str]) -> list[Example]:
    return list(read_sentences(file, file.text.split("\n"), columns, tags))


def read_tagged_sentences(
    file: TextFile, sentences: Callable[[TextFile], list[Example]], scheme: str, target_scheme: str, broken: str
) -> list[Example]:
    corpus = Corpus(file.path, sentences(file))
    for example in corpus.examples:
        example.lines = [number + file.first_line - 1 for number in example.lines]  # for errors
    unify_tags(corpus, scheme, target_scheme, broken)
    for example in corpus.examples:
        example.lines = [number - file.first_line + 1 for number in example.lines]
    return corpus.examples


def marked_form(
    path: Path, *, target_scheme: str = "bioes", tokenizer: Tokenizer | None = None, encoding: str | None = None
) -> Form:
    """A label, a tab and an utterance with its slots marked on every line."""
    first_lines(path, encoding)
    reading = partial(read_utterances, target_scheme=target_scheme, tokenizer=tokenizer or Tokenizer())
    return Form("slots marked inline", all_lines, reading, None, encoding)


def first_lines(path: Path, encoding: str | None) -> TextFile:
    """The whole lines of the first megabyte."""
    try:
        with open(path, "rb") as file:
            data = file.read(BLOCK)
    except FileNotFoundError:
        raise DataError.at(path, "no such file") from None
    except OSError as error:
        raise DataError.at(path, error.strerror or str(error)) from None
    if len(data) == BLOCK:
        data = data[: data.rfind(b"\n") + 1] or data
    file_text = TextFile(str(path), to_text(path, data, encoding, 1), encoding or "UTF-8")
    if not file_text.text.strip():
        raise file_text.error("the file is empty", 1)
    return file_text


def all_lines(whole: str) -> int:
    return whole.count("\n")


def lines_of_sentences(whole: str) -> int:
    """Up to and with the last blank line."""
    lines = whole.split("\n")[:-1]
    return next((number for number in range(len(lines), 0, -1) if not lines[number - 1].strip()), 0)


def lines_of_rows(whole: str, delimiter: str, quoting: Quoting) -> int:
    """Up to the last row, which may go on after the text."""
    try:
        rows = split_rows(whole, delimiter, quoting)
    except csv.Error as error:
        return int(error.args[1]) - 1
    return rows[-1].line - 1 if rows else whole.count("\n")
