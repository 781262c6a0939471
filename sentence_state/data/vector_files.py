"""GloVe and word2vec text files, streamed: the vectors of wanted words, and nothing else, are parsed.

A line is `word 0.1 -0.2 ...`. Blocks of whole lines are searched as bytes; a block in which the number of spaces does
not fit (a word with a space inside, as in GloVe 840B, or a damaged line) is looked at line by line.
"""

from __future__ import annotations

import gzip
import math
import zipfile
import zlib
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from .decimals import parse_decimals
from .errors import DataError
from .text_files import LARGEST_RATIO, SMALL

LONGEST_LINE = 1 << 24  # bytes
LARGEST = 10_000  # numbers in a vector: a header may say anything
BLOCK = 1 << 19  # bytes: stays in the cache between the passes over it
NUMBERS = frozenset(b"0123456789+-.eE")


class Shape(NamedTuple):
    dimension: int
    spaces: int  # in a line; one more than usual where fastText leaves a space at the end
    header: int  # lines before the first vector, 0 or 1


class Hit(NamedTuple):
    word: bytes
    line: int
    numbers: bytes


def encode(word: str) -> bytes:
    return word.encode("utf-8", "surrogatepass")


def read_vectors(path: Path, wanted: Mapping[bytes, int], rows: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """(rows, D) vectors of the wanted words, each in its row, and which rows were found. Of a word that comes twice,
    the first is read."""
    found = np.zeros(rows, bool)
    vectors = np.zeros((0, 0), np.float32)
    shape = None
    for line, block in read_blocks(path):
        if shape is None:
            shape = read_shape(path, block)
            vectors = np.zeros((rows, shape.dimension), np.float32)
        skip = shape.header if line == 1 else 0
        hits = {wanted[hit.word]: hit for hit in reversed(find_hits(path, block, line, skip, wanted, shape))}
        hits = {row: hit for row, hit in hits.items() if not found[row]}
        if hits:
            vectors[list(hits)] = parse_hits(path, list(hits.values()), shape.dimension)
            found[list(hits)] = True
        if found.sum() == len(wanted):
            break
    if shape is None:
        raise DataError.at(path, "the file is empty", 1)
    return vectors, found


def read_blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines with the number of their first line."""
    line, rest, total = 1, b"", 0
    most = max(SMALL, LARGEST_RATIO * size_on_disk(path))
    with open_vectors(path) as stream:
        while block := stream.read(BLOCK):
            total += len(block)
            if total > most:
                raise DataError.at(
                    path, f"the archive holds more than {LARGEST_RATIO} times its size: these are no vectors"
                )
            cut = block.rfind(b"\n") + 1
            if not cut:
                rest += block
                if len(rest) > LONGEST_LINE:
                    raise DataError.at(path, f"a line of more than {LONGEST_LINE >> 20} MB: these are no vectors", line)
                continue
            whole = rest + block[:cut]
            yield line, plain(whole, line)
            line += whole.count(b"\n")
            rest = block[cut:]
    if rest.strip():
        yield line, plain(rest + b"\n", line)


def plain(block: bytes, line: int) -> bytes:
    """Without the byte-order mark, and with spaces where a file has tabs."""
    return (block.removeprefix(b"\xef\xbb\xbf") if line == 1 else block).replace(b"\t", b" ")


def size_on_disk(path: Path) -> int:
    """Of the file, or of the archive that it is a member of; what is not there is named when it is opened."""
    return next((place.stat().st_size for place in (path, *path.parents) if place.is_file()), 0)


@contextmanager
def open_vectors(path: Path) -> Iterator[IO[bytes]]:
    """A plain, .gz or .zip file; a member of an archive is written as a path: glove.6B.zip/glove.6B.100d.txt."""
    archive = next((parent for parent in (path, *path.parents) if parent.suffix == ".zip" and parent.is_file()), None)
    try:
        if archive:
            with zipfile.ZipFile(archive) as files, files.open(pick_member(files, archive, path)) as stream:
                yield stream
        elif path.suffix == ".gz":
            with gzip.open(path) as unpacked:
                yield cast(IO[bytes], unpacked)
        else:
            with open(path, "rb", buffering=0) as stream:
                yield stream
    except FileNotFoundError:
        raise DataError.at(path, "no such file") from None
    except (EOFError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error) as error:
        raise DataError.at(path, f"the archive is damaged or cut off ({error})") from None
    except (RuntimeError, NotImplementedError) as error:  # zipfile's: a password, or an exotic compression
        raise DataError.at(path, f"the archive cannot be unpacked ({error})") from None
    except OSError as error:
        raise DataError.at(path, error.strerror or str(error)) from None


def pick_member(files: zipfile.ZipFile, archive: Path, path: Path) -> str:
    names = [info.filename for info in files.infolist() if not info.is_dir() and not info.filename.startswith("__")]
    if not names:
        raise DataError.at(archive, "the archive holds no file")
    wanted = names[0] if path == archive and len(names) == 1 else path.relative_to(archive).as_posix()
    if wanted not in names:
        raise DataError.at(archive, f"the archive holds {', '.join(names)}: name one, as in {archive}/{names[0]}")
    return wanted


def read_shape(path: Path, block: bytes) -> Shape:
    """From the first line, or from the second after a header of word2vec (number of words, dimension)."""
    refuse_binary(path, block, 1)
    lines = block.split(b"\n", 2)
    fields = lines[0].split()
    header = len(fields) == 2 and all(field.isdigit() for field in fields)
    first = lines[1] if header else lines[0]
    dimension = int(fields[1][:9]) if header else len(fields) - 1
    if dimension < 2 or dimension > LARGEST or not all(set(field) <= NUMBERS for field in first.split()[-dimension:]):
        raise DataError.at(
            path, f"expected a word and its numbers, got {lines[0][:40].decode('utf-8', 'replace')!r}", 1
        )
    trailing = len(first.rstrip(b"\r")) - len(first.rstrip())
    return Shape(dimension, dimension + trailing, int(header))


def refuse_binary(path: Path, block: bytes, line: int) -> None:
    if b"\0" in block:
        raise DataError.at(path, "a binary file; save the vectors as text, one word a line", line)


def find_hits(path: Path, block: bytes, line: int, skip: int, wanted: Container[bytes], shape: Shape) -> list[Hit]:
    """Wanted words of a block."""
    lines = block.count(b"\n") - skip
    start = block.find(b"\n") + 1 if skip else 0
    spaces = int(np.count_nonzero(np.frombuffer(block, np.uint8, offset=start) == 32))
    hits = quick_hits(block, start, line + skip, wanted, shape.spaces) if spaces == lines * shape.spaces else None
    return careful_hits(path, block[start:], line + skip, wanted, shape) if hits is None else hits


def quick_hits(block: bytes, start: int, line: int, wanted: Container[bytes], spaces: int) -> list[Hit] | None:
    """Wanted words by the bytes before the first space; None when a line of one of them is not as it should be."""
    hits = []
    find = block.find
    while start < len(block):
        space = find(b" ", start)
        end = find(b"\n", start)
        word = block[start:space]
        if word in wanted:
            if block.count(b" ", start, end) != spaces:
                return None
            hits.append(Hit(word, line, block[space:end].strip()))
        line += 1
        start = end + 1
    return hits


def careful_hits(path: Path, block: bytes, line: int, wanted: Container[bytes], shape: Shape) -> list[Hit]:
    """Wanted words line by line: a word may hold spaces, and a line of the wrong width is an error."""
    hits = []
    for number, text in enumerate(block.split(b"\n")[:-1], start=line):
        fields = text.rstrip().split(b" ")
        surplus = fields[1 : -shape.dimension]
        if len(fields) <= shape.dimension or (surplus and all(map(is_number, surplus))):
            refuse_binary(path, block, number)
            message = f"expected a word and {shape.dimension} numbers, got {len(fields) - 1} numbers"
            raise DataError.at(path, f"{message} (after {fields[0].decode('utf-8', 'replace')!r})", number)
        word = b" ".join(fields[: -shape.dimension])
        if word in wanted:
            hits.append(Hit(word, number, b" ".join(fields[-shape.dimension :])))
    return hits


def parse_hits(path: Path, hits: list[Hit], dimension: int) -> NDArray[np.float32]:
    """(hits, dimension) numbers, all of them in one call."""
    try:
        values = parse_decimals(b" ".join(hit.numbers for hit in hits))
    except ValueError:
        values = np.zeros(0, np.float32)
    if values.size == len(hits) * dimension and np.isfinite(values).all():
        return values.reshape(len(hits), dimension)
    for hit in hits:
        numbers = hit.numbers.split()
        if len(numbers) != dimension or not all(map(is_number, numbers)):
            break
    raise DataError.at(path, f"not {dimension} numbers after {hit.word.decode('utf-8', 'replace')!r}", hit.line)


def is_number(field: bytes) -> bool:
    try:
        return math.isfinite(float(field))
    except ValueError:
        return False
