"""A file of the user -> text: plain or gzip, UTF-8 or what it turns out to be, newlines and byte-order mark removed."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from .errors import DataError

MARKS = {  # that of UTF-32 begins as that of UTF-16
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
SMALL, LARGEST_RATIO = 1 << 24, 200  # bytes; text to gzip
GZIP = b"\x1f\x8b"
SIGNATURES = {
    b"PK\x03\x04": "an Excel workbook or a zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel or Word file",
    b"%PDF": "a PDF",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"PAR1": "a Parquet file",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
}
WIDE = re.compile(r"u(tf)?[-_ ]?(16|32)", re.IGNORECASE)  # names of encodings
ASCII = bytes(range(128))
CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1a"))
NOT_CP1252 = b"\x81\x8d\x8f\x90\x9d\xff"  # five bytes without a character, and one that text hardly ever holds


class TextFile(NamedTuple):
    path: str  # as the user wrote it, for messages
    text: str  # lines end with "\n"
    encoding: str  # for people: what was found out
    first_line: int = 1  # of the text in the file, where it is a part of it

    def error(self, message: str, line: int | None = None) -> DataError:
        return DataError.at(self.path, message, line + self.first_line - 1 if line else None)


def read_text(path: str | PathLike[str], encoding: str | None = None) -> TextFile:
    """Read a whole text file. Without `encoding`: UTF-8, UTF-16 with its mark, or cp1252 where it is plausible."""
    return text_of(read_bytes(path), path, encoding)


def text_of(data: bytes, path: str | PathLike[str], encoding: str | None = None) -> TextFile:
    """The bytes of a file as text."""
    for signature, kind in SIGNATURES.items():
        if data.startswith(signature):
            raise DataError.at(path, f"this is {kind}, not text: export it as CSV, TSV, JSONL or CoNLL columns", 1)
    text, found = decode(data, path, encoding)
    return TextFile(str(path), unify_newlines(text), found)


def read_bytes(path: str | PathLike[str]) -> bytes:
    try:
        data = Path(path).read_bytes()
        return unpack(data, path) if data.startswith(GZIP) else data
    except FileNotFoundError:
        raise DataError.at(path, "no such file") from None
    except IsADirectoryError:
        raise DataError.at(path, "this is a folder, not a file") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError.at(path, f"the gzip file is damaged or cut off ({error})") from None
    except OSError as error:
        raise DataError.at(path, error.strerror or str(error)) from None


def unpack(data: bytes, path: str | PathLike[str]) -> bytes:
    """A gzip file, unless it is made to fill the memory: text never shrinks to a two-hundredth."""
    most = max(SMALL, LARGEST_RATIO * len(data))
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise DataError.at(path, f"the gzip file holds more than {LARGEST_RATIO} times its size: this is no text")
    return text


def decode(data: bytes, path: str | PathLike[str], encoding: str | None) -> tuple[str, str]:
    """Text of the bytes, and the name of their encoding."""
    marked = next((name for mark, name in MARKS.items() if data.startswith(mark)), None)
    if marked not in ("utf-16", "utf-32") and (encoding or "utf-8").lower().startswith(
        ("utf-8", "utf8", "cp", "latin", "iso")
    ):
        refuse_nul(data, path)
    try:
        text = data.decode(marked or encoding or "utf-8")
    except LookupError:
        raise DataError.at(path, f"there is no encoding {encoding!r}") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{data[error.start]:02x}"
        if marked or encoding:
            raise DataError.at(path, f"{byte} is not {marked or encoding}", line) from None
        if not plausibly_cp1252(data):
            message = f"{byte} is not UTF-8 (--encoding to choose another one)"
            raise DataError.at(path, message, line) from None
        return data.decode("cp1252"), f"cp1252 (line {line} is not UTF-8; --encoding to choose)"
    except UnicodeError:  # of codecs that are not for texts
        raise DataError.at(path, f"cannot be read as {encoding}") from None
    position = text.find("\0")
    if position >= 0:
        line = text.count("\n", 0, position) + 1
        message = f"a NUL character: this is a binary file, or not {marked or encoding or 'UTF-8'}"
        raise DataError.at(path, message, line)
    named = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "utf-32": "UTF-32"}
    return text, named[marked] if marked else encoding or "UTF-8"


def refuse_nul(data: bytes, path: str | PathLike[str]) -> None:
    position = data.find(b"\0")
    if position >= 0:
        line = data.count(b"\n", 0, position) + 1
        raise DataError.at(path, "a NUL byte: this is a binary file, or UTF-16 without its mark", line)


def plausibly_cp1252(data: bytes) -> bool:
    """Western text of an older program, rather than something binary or UTF-8 with a damaged place."""
    high = data.translate(None, ASCII)
    if any(byte in high for byte in NOT_CP1252) or any(byte in data for byte in CONTROLS):
        return False
    valid = len(data.decode("utf-8", "ignore").encode()) - (len(data) - len(high))  # bytes of sound UTF-8 characters
    return len(high) < 0.3 * len(data) and valid < 0.5 * len(high)


def is_surely_utf8(data: bytes, other: str) -> bool:
    """Rather than the encoding `other`, text of which is hardly ever UTF-8 by chance, unless it is ASCII: that is the
    same in both, but in UTF-16 and UTF-32 has a NUL in every character."""
    if data.isascii():
        return bool(WIDE.match(other)) and b"\0" not in data
    try:
        return bool(data.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def unify_newlines(text: str) -> str:
    if "\r" not in text:
        return text
    if "\n" not in text:  # Mac OS 9
        return text.replace("\r", "\n")
    return re.sub("\r+\n", "\n", text).replace("\r", " ")
