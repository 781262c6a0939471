"""CSV and TSV -> rows with their line numbers; delimiter, quoting and header are found out."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Container, Iterator
from itertools import islice, product
from typing import Any, NamedTuple

from .text_files import TextFile

DELIMITERS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar"}  # texts hold tabs hardly ever, commas often
SNIFFED_ROWS = 200
LARGEST_FIELD = 2**31 - 1  # the csv module refuses a text of more than 131,072 characters otherwise
SEPARATOR = re.compile(r'"?sep=(?P<delimiter>[^\n"])"?\n', re.IGNORECASE)  # a first line for Excel alone
SHORT_NAME = re.compile(r"[^\W\d][\w-]{0,30}(?: [\w-]+){0,2}")
NUMBER = re.compile(r"[-+]?[\d.,]*\d%?")
ENOUGH_ROWS = 10  # to tell a name from the values below it by these alone


class Row(NamedTuple):
    line: int  # where it starts: a quoted cell may go over several lines
    cells: list[str]


class Rows(NamedTuple):
    columns: list[str]
    rows: list[Row]
    form: str  # for people: how the file is written


class Quoting(NamedTuple):
    form: str
    options: dict[str, Any]


ORDINARY = Quoting("", {"strict": True})
BACKSLASHES = Quoting(", quotes escaped by backslashes", {"strict": True, "escapechar": "\\", "doublequote": False})
SPACED = Quoting(", spaces after the separators", {"strict": True, "skipinitialspace": True})
NONE = Quoting(", quotes are part of the text", {"quoting": csv.QUOTE_NONE})
QUOTINGS = ((ORDINARY, ""), (BACKSLASHES, '\\"'), (SPACED, ' "'), (NONE, '"'))  # and what a text so written holds


def read_delimited(
    file: TextFile, names: Collection[str], delimiter: str | None = None, header: bool | None = None
) -> Rows:
    """Rows of a CSV or TSV file; `names` are those a header may hold. Without a header the columns are 1, 2, 3."""
    limit = csv.field_size_limit(LARGEST_FIELD)
    if found := SEPARATOR.match(file.text):
        file = file._replace(text="\n" + file.text[found.end() :])  # all other lines keep their numbers
        delimiter = delimiter or found["delimiter"]
    try:
        delimiter = delimiter or sniff_delimiter(file, names)
        rows, quoting = parse(file, delimiter)
    finally:
        csv.field_size_limit(limit)
    table = name_columns(file, rows, names, header, delimiter, quoting)
    check_widths(file, table.rows, len(table.columns), delimiter)
    return table


def parse(file: TextFile, delimiter: str) -> tuple[list[Row], Quoting]:
    """Rows by the first way of quoting that makes them all equally wide, or by the ordinary one."""
    attempts = []
    failure = csv.Error("broken quoting", 1)
    for quoting, sign in QUOTINGS:
        try:
            if sign in file.text:
                attempts.append((split_rows(file.text, delimiter, quoting), quoting))
        except csv.Error as error:
            failure = error if quoting is ORDINARY else failure
    even = [attempt for attempt in attempts if len({len(row.cells) for row in attempt[0]}) <= 1]
    if even and delimiter == "\t":  # two stray quotes in a TSV must not swallow the rows between them
        return max(even, key=lambda attempt: len(attempt[0]))
    if even:
        return even[0]
    if attempts[0][1] is ORDINARY:
        return attempts[0]
    message, line = failure.args
    raise file.error(message, line)


def split_rows(text: str, delimiter: str, quoting: Quoting) -> list[Row]:
    """Rows that hold anything, each with the line it starts on."""
    text += "" if text.endswith("\n") else "\n"  # the csv module forgets a field behind an escaped line end otherwise
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter, **quoting.options)
    rows, line = [], 1
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                rows.append(Row(line, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        unclosed = "unexpected end" in str(error)
        message = "a quote is opened here and never closed" if unclosed else f"broken quoting ({error})"
        raise csv.Error(message, line) from None
    return rows


def sniff_delimiter(file: TextFile, names: Collection[str]) -> str:
    """The delimiter under which most of the first rows have the same number of columns, two or more."""
    sample = beginning(file.text)
    if re.search(r"\.(tsv|tab)(\.gz)?$", file.path, re.IGNORECASE) and "\t" in sample:
        return "\t"

    def score(delimiter: str) -> tuple[float, int]:
        rows = split_rows(sample, delimiter, Quoting("", {}))
        width = usual_width(rows)
        if width < 2:
            return 0.0, 0
        share = sum(len(row.cells) == width for row in rows) / len(rows)
        return share, sum(last_part(cell) in names for cell in rows[0].cells)

    return max(DELIMITERS, key=score)


def beginning(text: str) -> str:
    return "".join(islice(io.StringIO(text, newline="\n"), SNIFFED_ROWS))


def is_headed(text: str, name: str) -> bool:
    """Whether the first row has a cell `name` beside others, and most of the rows after it are as wide."""
    for _, rows in readings(beginning(text)):
        names = [cell.strip(' "') for cell in rows[0].cells]
        as_wide = sum(len(row.cells) == len(names) for row in rows[1:])
        if name in names and len(names) > 1 and (2 * as_wide > len(rows) - 1 or len(rows) == 1):
            return True
    return False


def labelled_by(text: str, labels: Container[str], share: float, delimiter: str | None = None) -> str | None:
    """The delimiter, `delimiter` before others, under which a column of equally wide rows holds labels in more than
    `share` of all rows. Texts may all begin with a label and a comma: one label is enough only before a tab."""
    for part, least in ((beginning(text), 1), (text, 2)):  # most files are no tables, and need not be read as a whole
        marks = (mark for mark, rows in readings(part, delimiter) if kinds_of_labels(rows, labels, share) >= least)
        mark = next(marks, None)
        if mark in (None, "\t"):
            return mark
    return mark


def kinds_of_labels(rows: list[Row], labels: Container[str], share: float) -> int:
    """How many labels there are in a column that holds one of them in more than `share` of the rows."""
    width = usual_width(rows)
    for column in range(width) if width > 1 else ():
        cells = [row.cells[column].strip(' "') for row in rows if len(row.cells) == width]
        found = [cell for cell in cells if cell in labels]
        if len(found) > share * len(rows):
            return len(set(found))
    return 0


def readings(text: str, delimiter: str | None = None) -> Iterator[tuple[str, list[Row]]]:
    """Delimiters, with the rows under each of them and every way of quoting, where there are any."""
    marks = [delimiter] if delimiter else []
    if named := SEPARATOR.match(text):
        marks, text = [*marks, named["delimiter"]], text[named.end() :]
    limit = csv.field_size_limit(LARGEST_FIELD)
    try:
        for mark, (quoting, sign) in product(dict.fromkeys([*marks, *DELIMITERS]), QUOTINGS):
            if mark not in text or sign not in text:
                continue
            rows = split_rows(text, mark, Quoting("", {**quoting.options, "strict": False}))
            if rows:
                yield mark, rows
    finally:
        csv.field_size_limit(limit)


def last_part(name: str) -> str:
    """airline_sentiment -> sentiment"""
    return name.strip().lower().rpartition("_")[2]


def usual_width(rows: list[Row]) -> int:
    return Counter(len(row.cells) for row in rows).most_common(1)[0][0] if rows else 0


def name_columns(
    file: TextFile, rows: list[Row], names: Collection[str], header: bool | None, delimiter: str, quoting: Quoting
) -> Rows:
    """The rows below the header, or all of them where there is none."""
    if not rows:
        raise file.error("the file is empty", 1)
    has_header, said = find_header(rows, names, header)
    if has_header and len(rows) == 1:
        raise file.error("a header, but no row after it", rows[0].line)
    numbers = [str(i + 1) for i in range(usual_width(rows))]
    columns = [cell.strip() for cell in rows[0].cells] if has_header else numbers
    form = f"{DELIMITERS.get(delimiter, repr(delimiter))}-separated, {said}{quoting.form}"
    return Rows(columns, rows[has_header:], form)


def check_widths(file: TextFile, rows: list[Row], width: int, delimiter: str) -> None:
    for row in rows:
        if len(row.cells) != width:
            hint = "; a cell with the delimiter inside must be quoted" if len(row.cells) > width else ""
            shown = delimiter.join(row.cells)[:40]
            raise file.error(f'expected {width} columns, got {len(row.cells)} ("{shown}"){hint}', row.line)


def find_header(rows: list[Row], names: Collection[str], header: bool | None) -> tuple[bool, str]:
    """Whether the first row names the columns, and how to say it; `header` is the user's word."""
    if header is not None:
        return header, "a header" if header else "no header"
    first = [cell.strip() for cell in rows[0].cells]
    below = [Counter(row.cells[i].strip() for row in rows[1:] if i < len(row.cells)) for i in range(len(first))]
    # commas at the end of every row: a column that has no name, and cells as empty, says nothing
    told = [i for i in range(len(first)) if first[i] or not below[i][""]]
    first, below = [first[i] for i in told], [below[i] for i in told]
    fresh = [name not in values for name, values in zip(first, below, strict=True)]
    if any(new and (name.lower() in names or last_part(name) in names) for name, new in zip(first, fresh, strict=True)):
        return True, "a header"
    if is_index([row.cells[0].strip() for row in rows]):
        return True, "a header"
    if all(fresh) and looks_like_names(first, below, len(rows) - 1):
        return True, "a header as it seems (--header to choose)"
    return False, "no header"


def is_index(column: list[str]) -> bool:
    """Numbers of rows that pandas has written, above which it leaves the header empty."""
    return len(column) > 1 and column == ["", *map(str, range(len(column) - 1))]


def looks_like_names(first: list[str], below: list[Counter[str]], size: int) -> bool:
    """Short names above a column whose values repeat, or any that do not fit what is below them."""
    if any(2 * len(values) <= size for values in below) and all(SHORT_NAME.fullmatch(name) for name in first):
        return True
    return size >= ENOUGH_ROWS and not any(map(NUMBER.fullmatch, first)) and any(map(is_uniform, below))


def is_uniform(values: Counter[str]) -> bool:
    """Labels of which every one comes again, or numbers: a cell that is neither is a name."""
    return min(values.values(), default=0) > 1 or all(map(NUMBER.fullmatch, values))
