"""Blocks of files: about a megabyte of whole records each, cut in one pass, read one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from .collection import no_collection
from .errors import DataError
from .example import Example
from .indexing import Spelled, spell
from .readers import MOST as MOST_READERS
from .readers import Readers, cores
from .text_files import GZIP, SIGNATURES, TextFile

BLOCK = 1 << 20  # bytes
LONGEST_RECORD = 1 << 26  # bytes
FEW_BLOCKS = 8  # are read without other processes
Task = TypeVar("Task")
Result = TypeVar("Result")


class Block(NamedTuple):
    file: int
    start: int  # byte
    size: int
    line: int  # of the file, from 1
    first: int = 0  # number of its first sentence, counted over all files
    sentences: int = 0


@dataclass(frozen=True)
class Form:
    """How the files are written. `cut` gives the number of whole lines of records at the beginning of a text, `read`
    the examples of whole records; `header` is the first line of every file that is not blank, where there is one;
    `columns` as `Corpus` has them. Forms travel to other processes: both functions must be ones that can be pickled."""

    description: str
    cut: Callable[[str], int]
    read: Callable[[TextFile], list[Example]]
    header: str | None = None
    encoding: str | None = None
    columns: dict[str, str] = field(default_factory=dict)


class Reading:
    """Files and their form; what reads them, here or in other processes."""

    def __init__(self, paths: Sequence[Path], form: Form) -> None:
        self.paths, self.form = paths, form
        blocks = sum(path.stat().st_size for path in paths if path.is_file()) // BLOCK
        number = min(MOST_READERS, cores())
        self.readers = Readers(number) if blocks > FEW_BLOCKS and number > 1 else None

    def __getstate__(self) -> dict[str, Any]:
        return {"paths": self.paths, "form": self.form, "readers": None}

    def map(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], ahead: int
    ) -> Iterator[tuple[Task, Result]]:
        """Tasks and their results in their order; other processes begin so many before they are asked for."""
        if self.readers is not None:
            yield from self.readers.map(function, tasks, ahead)
            return
        for task in tasks:
            with no_collection():
                result = function(task)
            yield task, result

    def examples(self, block: Block) -> list[Example]:
        path = self.paths[block.file]
        try:
            with open(path, "rb") as file:
                file.seek(block.start)
                return parse(path, self.form, file.read(block.size), block.line)
        except OSError as error:
            raise DataError.at(path, error.strerror or str(error)) from None

    def surveyed(self, block: Block) -> list[Example]:
        """Without what takes longest to travel, and nobody asks of an example to learn from."""
        examples = self.examples(block)
        for example in examples:
            example.offsets = None
        return examples

    def unchanged(self, block: Block) -> list[Example]:
        """Of a block whose sentences were counted."""
        found = self.examples(block)
        if len(found) != block.sentences:
            raise DataError.at(self.paths[block.file], "the file has changed since it was first read", block.line)
        return found

    def spelled(self, task: tuple[Block, frozenset[int], bool]) -> Spelled | None:
        """Of a block without the sentences at some places."""
        block, left_out, tags = task
        examples = [e for place, e in enumerate(self.unchanged(block)) if place not in left_out]
        return spell(examples, tags) if examples else None


def cut_blocks(number: int, path: Path, form: Form, look: Callable[[bytes], object]) -> Iterator[Block]:
    """Every block of a file, its sentences not counted yet; `look` is shown the bytes of each."""
    try:
        with open(path, "rb") as file:
            start, line = skip_header(path, form, file) if form.header is not None else (0, 1)
            file.seek(start)
            rest = b""
            while True:
                more = file.read(BLOCK)
                buffer = rest + more
                end = len(buffer) if len(more) < BLOCK else end_of_records(path, form, buffer, line)
                if end:
                    data = buffer[:end]
                    look(data)
                    yield Block(number, start, end, line)
                    start, line = start + end, line + data.count(b"\n")
                elif len(buffer) > LONGEST_RECORD:
                    raise DataError.at(path, f"a record of more than {LONGEST_RECORD >> 20} MB", line)
                rest = buffer[end:]
                if len(more) < BLOCK:
                    return
    except FileNotFoundError:
        raise DataError.at(path, "no such file") from None
    except OSError as error:
        raise DataError.at(path, error.strerror or str(error)) from None


def skip_header(path: Path, form: Form, file: IO[bytes]) -> tuple[int, int]:
    """Where the records of a file start, as byte and line; there may be blank lines before the header."""
    number, header = 0, ""
    while not header and (line := file.readline(LONGEST_RECORD)):
        number += 1
        header = to_text(path, line, form.encoding, number).strip()
    if header != form.header:
        raise DataError.at(
            path, f'expected the header "{form.header}" as in the first file, got "{header[:80]}"', number
        )
    return file.tell(), number + 1


def end_of_records(path: Path, form: Form, buffer: bytes, line: int) -> int:
    """The byte after the last whole record of a buffer."""
    whole = buffer[: buffer.rfind(b"\n") + 1]
    lines = form.cut(to_text(path, whole, form.encoding, line)) if whole else 0
    end = 0
    for _ in range(lines):
        end = whole.index(b"\n", end) + 1
    return end


def parse(path: Path, form: Form, data: bytes, line: int) -> list[Example]:
    """The examples of a block; their lines, and those of errors, are the file's."""
    examples = form.read(TextFile(str(path), to_text(path, data, form.encoding, line), form.encoding or "UTF-8", line))
    for example in examples:
        example.lines = [number + line - 1 for number in example.lines]
    return examples


def to_text(path: Path, data: bytes, encoding: str | None, line: int) -> str:
    """The text of a block that begins on `line`; only a newline ends a line, as in the file."""
    if line == 1:
        refuse_what_cannot_be_streamed(path, data)
        data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in data:
        raise DataError.at(path, "a NUL byte: this is a binary file", line + data.count(b"\n", 0, data.index(b"\0")))
    try:
        text = data.decode(encoding or "utf-8")
    except LookupError:
        raise DataError.at(path, f"there is no encoding {encoding!r}") from None
    except UnicodeDecodeError as error:
        message = f"byte 0x{data[error.start]:02x} is not {encoding or 'UTF-8'} (--encoding to choose another one)"
        raise DataError.at(path, message, line + data.count(b"\n", 0, error.start)) from None
    return text.replace("\r\n", "\n").replace("\r", " ") if "\r" in text else text


def refuse_what_cannot_be_streamed(path: Path, data: bytes) -> None:
    for signature, kind in {**SIGNATURES, GZIP: "a gzip file", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}.items():
        if data.startswith(signature):
            raise DataError.at(path, f"this is {kind}: a file that is streamed must be plain text, such as UTF-8", 1)
    if b"\r" in data and b"\n" not in data:
        raise DataError.at(path, "lines end with CR alone: a file that is streamed must have other line ends", 1)
