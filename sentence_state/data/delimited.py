"""CSV and TSV -> rows with their line numbers; delimiter, quoting and header are found out."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection
from typing import Any, NamedTuple

from .text_files import TextFile

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
SNIFFED_ROWS = 200
LARGEST_FIELD = 2**31 - 1  # the csv module refuses a text of more than 131,072 characters otherwise
SHORT_NAME = re.compile(r"[A-Za-z_][\w-]{0,30}(?: [\w-]+){0,2}")


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
NONE = Quoting(", quotes are part of the text", {"quoting": csv.QUOTE_NONE})


def read_delimited(
    file: TextFile, names: Collection[str], delimiter: str | None = None, header: bool | None = None
) -> Rows:
    """Rows of a CSV or TSV file; `names` are those a header may hold. Without a header the columns are 1, 2, 3."""
    limit = csv.field_size_limit(LARGEST_FIELD)
    try:
        delimiter = delimiter or sniff_delimiter(file, names)
        rows, quoting = parse(file, delimiter)
    finally:
        csv.field_size_limit(limit)
    if not rows:
        raise file.error("the file is empty", 1)
    has_header = looks_like_header(rows, names) if header is None else header
    width = len(rows[0].cells) if has_header else usual_width(rows)
    check_widths(file, rows, width, delimiter)
    if has_header and len(rows) == 1:
        raise file.error("a header, but no row after it", rows[0].line)
    columns = [cell.strip() for cell in rows[0].cells] if has_header else [str(i + 1) for i in range(width)]
    form = f"{DELIMITERS.get(delimiter, repr(delimiter))}-separated, {'a' if has_header else 'no'} header{quoting.form}"
    return Rows(columns, rows[1:] if has_header else rows, form)


def parse(file: TextFile, delimiter: str) -> tuple[list[Row], Quoting]:
    """Rows by the first way of quoting that makes them all equally wide, or by the ordinary one."""
    attempts = []
    failure = csv.Error("broken quoting", 1)
    for quoting, sign in ((ORDINARY, ""), (BACKSLASHES, '\\"'), (NONE, '"')):
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
    lines = io.StringIO(file.text, newline="\n")
    sample = "".join(line for line, _ in zip(lines, range(SNIFFED_ROWS), strict=False))
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


def last_part(name: str) -> str:
    """airline_sentiment -> sentiment"""
    return name.strip().lower().rpartition("_")[2]


def usual_width(rows: list[Row]) -> int:
    return Counter(len(row.cells) for row in rows).most_common(1)[0][0] if rows else 0


def check_widths(file: TextFile, rows: list[Row], width: int, delimiter: str) -> None:
    for row in rows:
        if len(row.cells) != width:
            hint = "; a cell with the delimiter inside must be quoted" if len(row.cells) > width else ""
            shown = delimiter.join(row.cells)[:40]
            raise file.error(f'expected {width} columns, got {len(row.cells)} ("{shown}"){hint}', row.line)


def looks_like_header(rows: list[Row], names: Collection[str]) -> bool:
    """The first row holds a usual name, or short names that never come again above a column whose values repeat."""
    first = [cell.strip() for cell in rows[0].cells]
    below = [{row.cells[i].strip() for row in rows[1:] if i < len(row.cells)} for i in range(len(first))]
    fresh = [name not in values for name, values in zip(first, below, strict=True)]
    if any(new and (name.lower() in names or last_part(name) in names) for name, new in zip(first, fresh, strict=True)):
        return True
    repeats = any(2 * len(values) <= len(rows) - 1 for values in below)
    return repeats and all(fresh) and all(SHORT_NAME.fullmatch(name) for name in first)
