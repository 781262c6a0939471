"""JSONL -> rows with their line numbers."""

from __future__ import annotations

import json
import math

from .delimited import Row, Rows
from .text_files import TextFile

TO_LINES = (
    """python -c "import json; [print(json.dumps(row)) for row in json.load(open('FILE.json', 'rb'))]" > FILE.jsonl"""
)
NESTED = "\0"  # marks a list or an object; no text starts so, text_files.py refuses a NUL


def read_json_lines(file: TextFile) -> Rows:
    """One JSON object a line; the columns are all their keys."""
    objects: list[tuple[int, dict[str, object]]] = []
    for number, line in enumerate(file.text.split("\n"), start=1):
        if not line.strip():
            continue
        if not objects and line.lstrip().startswith("["):
            raise file.error(f"a JSON array; JSONL has one object on every line. To write it so: {TO_LINES}", number)
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:  # ValueError alone: a number of more than 4,300 digits
            place = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
            raise file.error(f"not a JSON object{place}; JSONL has one object on every line", number) from None
        if not isinstance(value, dict):
            raise file.error(f"expected an object in braces, got {line.strip()[:40]}", number)
        objects.append((number, value))
    columns = list(dict.fromkeys(key for _, value in objects for key in value))
    rows = [Row(number, [cell_text(value.get(key)) for key in columns]) for number, value in objects]
    return Rows(columns, rows, "JSONL")


def refuse_nested(file: TextFile, rows: Rows, index: int) -> None:
    """A list or an object in a field that should hold a text or a label; half a surrogate pair, which JSON can hold."""
    for line, cells in rows.rows:
        try:
            cells[index].encode()
        except UnicodeEncodeError as error:
            half = ascii(cells[index][error.start])
            message = f"field {rows.columns[index]!r} holds {half}, half a character: was the text cut off inside it?"
            raise file.error(message, line) from None
        if cells[index].startswith(NESTED):
            shown = cells[index].removeprefix(NESTED)[:40]
            raise file.error(f"field {rows.columns[index]!r} should hold a string, got {shown}", line)


def cell_text(value: object) -> str:
    """A string as it is; numbers and booleans as JSON writes them; null, NaN, or a key that is not there, as empty."""
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):  # pandas' missing value, as json writes it
        return ""
    written = json.dumps(value, ensure_ascii=False)
    return NESTED + written if isinstance(value, list | dict) else written
