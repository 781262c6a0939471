"""CSV, TSV and JSONL -> examples with a label, for classification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike

from .delimited import Row, Rows, last_part, read_delimited
from .example import Corpus, Example
from .json_lines import read_json_lines, refuse_nested
from .text_files import TextFile, read_text
from .tokenizer import Tokenizer

# fmt: off
TEXT_NAMES = (
    "text", "sentence", "review", "content", "comment", "tweet", "utterance", "message", "body", "document", "question",
    "query", "phrase", "description", "headline", "input", "title",
)
LABEL_NAMES = (
    "label", "labels", "class", "category", "sentiment", "intent", "target", "polarity", "topic", "rating", "stars",
    "emotion", "gold", "output", "score", "y",
)
# fmt: on
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


def read_table(
    path: str | PathLike[str],
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    labelled: bool = True,
    tokenizer: Tokenizer | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    skip_empty: bool = False,
    usual: Mapping[str, str] | None = None,
) -> Corpus:
    """Texts and labels of a CSV, TSV or JSONL file, plain or gzip. What is not given is found out and described.

    A column is named as in the header, or by its number from 1. `labelled=False` reads texts only, for predictions.
    `usual`: `columns` of an earlier file. Where this one has columns of those names, none are guessed.
    """
    return table_corpus(
        read_text(path, encoding),
        text_column=text_column,
        label_column=label_column,
        labelled=labelled,
        tokenizer=tokenizer or Tokenizer(),
        delimiter=delimiter,
        header=header,
        skip_empty=skip_empty,
        usual=usual or {},
    )


def table_corpus(
    file: TextFile,
    *,
    text_column: str | None,
    label_column: str | None,
    labelled: bool,
    tokenizer: Tokenizer,
    delimiter: str | None,
    header: bool | None,
    skip_empty: bool,
    usual: Mapping[str, str],
) -> Corpus:
    if not file.text.strip():
        raise file.error("the file is empty", 1)
    if is_json(file):
        rows = read_json_lines(file)
    else:
        given = text_column or "", label_column or "", *usual.values()
        known = {name.lower() for name in (*TEXT_NAMES, *LABEL_NAMES, *given) if name}
        rows = read_delimited(file, known, delimiter, header)
    usual = {role: name for role, name in usual.items() if rows.columns.count(name) == 1}
    avoid = rows.columns.index(usual["label"]) if "label" in usual else None
    text_index = find_column(file, rows, text_column or usual.get("text"), "text", avoid=avoid)
    label_column = label_column or usual.get("label")
    label_index = find_column(file, rows, label_column, "label", taken=text_index) if labelled else None
    for index in (text_index,) if label_index is None else (text_index, label_index):
        refuse_nested(file, rows, index)
    examples, skipped = build_examples(file, rows, text_index, label_index, tokenizer, skip_empty)
    if not examples:
        raise file.error("no row has both a text and a label", 1)
    description = describe(file, rows, text_index, label_index, examples, skipped)
    return Corpus(file.path, examples, description, columns=named_columns(rows, text_index, label_index))


def named_columns(rows: Rows, text_index: int, label_index: int | None) -> dict[str, str]:
    """Those that were read, where a header gives them names; else they are numbers."""
    indices = {"text": text_index} | ({} if label_index is None else {"label": label_index})
    return {role: rows.columns[i] for role, i in indices.items() if rows.columns[i] != str(i + 1)}


def read_lines(path: str | PathLike[str], tokenizer: Tokenizer | None = None, encoding: str | None = None) -> Corpus:
    """One text a line, without labels, for predictions; blank lines are left out."""
    return lines_corpus(read_text(path, encoding), tokenizer or Tokenizer())


def lines_corpus(file: TextFile, tokenizer: Tokenizer) -> Corpus:
    if not file.text.strip():
        raise file.error("the file is empty", 1)
    lines = [Row(number, [line]) for number, line in enumerate(file.text.rstrip("\n").split("\n"), start=1)]
    examples, skipped = build_examples(file, Rows(["text"], lines, "lines"), 0, None, tokenizer, True)
    if not examples:
        raise file.error("no line has a word", 1)
    description = [f"{file.path}: {len(examples):,} lines ({file.encoding})"]
    if skipped:
        description.append(f"{len(skipped):,} lines without text left out (the first is line {skipped[0]})")
    return Corpus(file.path, examples, description)


def is_json(file: TextFile) -> bool:
    return file.path.lower().removesuffix(".gz").endswith(JSON_SUFFIXES) or file.text.lstrip().startswith('{"')


def find_column(
    file: TextFile, rows: Rows, name: str | None, role: str, taken: int | None = None, avoid: int | None = None
) -> int:
    """The index of the column called `name`, or of the one that looks like a text, not `avoid`, or a label."""
    guess = guess_label(rows, taken) if role == "label" else guess_text(rows, avoid)
    if name is None:
        if guess is None and len(rows.columns) == 1:
            message = f"one column only, a {role} is needed too (--delimiter if columns are separated otherwise)"
            raise file.error(message, rows.rows[0].line)
        if guess is None:
            message = f"which column holds the {role}? Columns: {', '.join(rows.columns)}. Use --{role}-column"
            raise file.error(message, 1)
        return guess
    found = None
    if name in rows.columns:
        found = rows.columns.index(name)
    elif name.isdecimal() and 1 <= int(name) <= len(rows.columns):
        found = int(name) - 1
    if found is not None and found != taken:
        return found
    wrong = f"no column {name!r}" if found is None else f"text and label are both the column {rows.columns[found]!r}"
    hint = f". Try --{role}-column {rows.columns[guess]}" if guess is not None else ""
    raise file.error(f"{wrong}. Columns: {', '.join(rows.columns)}{hint}", 1)


def guess_text(rows: Rows, avoid: int | None = None) -> int | None:
    """By its name, else the column with the longest cells that is not called as labels are."""
    named = first_named(rows.columns, TEXT_NAMES)
    if named is not None:
        return named
    columns = [i for i in range(len(rows.columns)) if i != avoid] or list(range(len(rows.columns)))
    columns = [i for i in columns if not is_named(rows.columns[i], LABEL_NAMES)] or columns
    return max(columns, key=lambda i: sum(len(row.cells[i]) for row in rows.rows), default=None)


def guess_label(rows: Rows, text_index: int | None) -> int | None:
    """By its name, else the column with the fewest values, which must repeat."""
    named = first_named(rows.columns, LABEL_NAMES)
    if named is not None and named != text_index:
        return named
    kinds = {i: len({row.cells[i] for row in rows.rows}) for i in range(len(rows.columns)) if i != text_index}
    repeating = {i: count for i, count in kinds.items() if 2 <= count <= max(2, len(rows.rows) // 2)}
    if repeating:
        return min(repeating, key=lambda i: repeating[i])
    return next(iter(kinds)) if len(kinds) == 1 else None


def is_named(column: str, names: Sequence[str]) -> bool:
    return column.lower() in names or last_part(column) in names


def first_named(columns: Sequence[str], names: Sequence[str]) -> int | None:
    """The column that has one of the names, or else ends with one, as airline_sentiment does."""
    whole = [column.lower() for column in columns]
    endings = [last_part(column) for column in columns]
    return next((given.index(name) for given in (whole, endings) for name in names if name in given), None)


def build_examples(
    file: TextFile, rows: Rows, text_index: int, label_index: int | None, tokenizer: Tokenizer, skip_empty: bool
) -> tuple[list[Example], list[int]]:
    """The examples, and the lines that were left out because text or label is empty."""
    examples, skipped = [], []
    for line, cells in rows.rows:
        label = cells[label_index].strip() if label_index is not None else None
        example = Example.of_text(cells[text_index], tokenizer, label, file.path, (line,))
        if example.words and label != "":
            examples.append(example)
        elif skip_empty:
            skipped.append(line)
        else:
            empty = "label" if example.words else "text"
            raise file.error(f"empty {empty} (--skip-empty to leave such rows out)", line)
    return examples, skipped


def describe(
    file: TextFile, rows: Rows, text_index: int, label_index: int | None, examples: list[Example], skipped: list[int]
) -> list[str]:
    sentences = [f"{file.path}: {len(examples):,} examples ({rows.form}, {file.encoding})"]
    columns = f"text from column {rows.columns[text_index]!r}"
    if label_index is not None:
        columns += f", label from column {rows.columns[label_index]!r}"
        counts = Counter(example.label for example in examples).most_common()
        shown = ", ".join(f"{label} {count:,}" for label, count in counts[:20])
        sentences.append(f"{len(counts)} labels: {shown}{', ...' if len(counts) > 20 else ''}")
    sentences.insert(1, columns)
    for index in (text_index, label_index):
        if index is not None and rows.columns.count(rows.columns[index]) > 1:
            sentences.append(f"more than one column is called {rows.columns[index]!r}: number {index + 1} is read")
    if skipped:
        sentences.append(f"{len(skipped):,} rows without text or label left out (the first on line {skipped[0]})")
    return sentences
