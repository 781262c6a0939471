"""The vectors of chosen words in one small .npz file: what has to travel to another machine instead of gigabytes."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .errors import DataError
from .text_files import LARGEST_RATIO, SMALL
from .vector_files import LARGEST, encode, read_vectors

# What numpy raises on a file that is no .npz, or a damaged one.
DAMAGED = (
    OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, MemoryError, NotImplementedError, RuntimeError,
    struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def write_archive(
    sources: Sequence[str | PathLike[str]], words: Iterable[str], target: str | PathLike[str]
) -> tuple[int, int]:
    """The vectors that a text file has for these words, as written and lower-cased, in half precision; of several files
    side by side, zeros where one of them has none.

    Returns how many words were looked up and how many found.
    """
    keys = [encode(key) for word in words for key in (word, word.lower())]
    wanted = {key: row for row, key in enumerate(dict.fromkeys(keys))}
    parts = [read_vectors(Path(source), wanted, len(wanted)) for source in sources]
    vectors = np.concatenate([vectors * found[:, None] for vectors, found in parts], axis=1)
    found = np.any([found for _, found in parts], axis=0)
    kept = [key for key, row in wanted.items() if found[row]]
    joined = np.frombuffer(b"\n".join(kept), np.uint8)
    with open(target, "wb") as file:
        np.savez_compressed(file, words=joined, vectors=vectors[found].astype(np.float16))
    return len(wanted), len(kept)


def check_size(path: Path) -> None:
    """Refuse an archive that would fill the memory, before anything is unpacked."""
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > max(SMALL, LARGEST_RATIO * path.stat().st_size):
        raise ValueError(f"it holds more than {LARGEST_RATIO} times its size")


def read_archive(path: Path, wanted: Mapping[bytes, int], rows: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """As `read_vectors`, from what `write_archive` wrote."""
    try:
        check_size(path)
        with np.load(path, allow_pickle=False) as arrays:
            joined, kept = arrays["words"], arrays["vectors"]
    except FileNotFoundError:
        raise DataError.at(path, "no such file") from None
    except DAMAGED as error:
        raise DataError.at(path, f"no archive of word vectors, or a damaged one ({error})") from None
    if joined.dtype != np.uint8:
        written = "words as bytes (uint8) with line ends between them, vectors in half precision"
        raise DataError.at(path, f"expected {written}, as `reproduce vectors` writes; words are {joined.dtype}")
    words = joined.tobytes().split(b"\n")
    if kept.ndim != 2 or len(kept) != len(words) or not 0 < kept.shape[1] <= LARGEST or kept.dtype != np.float16:
        raise DataError.at(
            path,
            f"expected for each of {len(words)} words a vector of at most {LARGEST} half-precision numbers, "
            f"got {kept.dtype} of shape {kept.shape}",
        )
    vectors, found = np.zeros((rows, kept.shape[1]), np.float32), np.zeros(rows, bool)
    pairs = [(wanted[word], place) for place, word in enumerate(words) if word in wanted]
    if pairs:
        targets, places = map(list, zip(*pairs, strict=True))
        vectors[targets], found[targets] = kept[places], True
    return vectors, found
