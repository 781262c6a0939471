"""GloVe / word2vec text file -> matrix for a vocabulary, with its coverage, cached on disk."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .errors import DataError
from .vector_archives import DAMAGED, read_archive
from .vector_files import encode, read_vectors
from .vocabulary import PAD_ID, Vocabulary

CACHE_FORMAT = 1


@dataclass
class Embeddings:
    vectors: NDArray[np.float32]  # (words of the vocabulary, D); zero where the file has none
    found: NDArray[np.bool_]  # (words of the vocabulary,)
    description: list[str]

    def matrix(self, seed: int = 0) -> NDArray[np.float32]:
        """The vectors; missing ones are drawn with the mean and spread of those found, <pad> stays zero."""
        matrix = self.vectors.copy()
        known = self.vectors[self.found]
        missing = ~self.found
        drawn = np.random.default_rng(seed).standard_normal((int(missing.sum()), matrix.shape[1]))
        matrix[missing] = drawn * known.std(axis=0) + known.mean(axis=0)
        matrix[PAD_ID] = 0
        return matrix


def read_embeddings(
    path: str | PathLike[str], vocabulary: Vocabulary, cache_folder: str | PathLike[str] | None = None
) -> Embeddings:
    """Vectors of a plain, .gz or .zip file, or of a .npz of ours, for the words of a vocabulary: as written, else
    lower-cased.

    Memory is bounded by the vocabulary, whatever the size of the file. With a cache folder the file is read once.
    """
    path = Path(path)
    cache = cache_path(path, vocabulary, Path(cache_folder)) if cache_folder else None
    kept = load_cache(cache) if cache else None
    vectors, exact, lowered = kept or look_up(path, vocabulary)
    found = exact | lowered
    description = [coverage(path, vocabulary, vectors.shape[1], found, lowered)]
    if cache and kept is None:
        description.extend(save_cache(cache, vectors, exact, lowered))
    elif cache:
        description.append(f"vectors from the cache {cache}")
    return Embeddings(vectors, found, description)


def look_up(path: Path, vocabulary: Vocabulary) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]:
    """Vectors of the words, which words were found as written, and which lower-cased only."""
    specials = len(vocabulary.specials)
    written = [encode(word) for word in vocabulary.words[specials:]]
    lower = [encode(word.lower()) for word in vocabulary.words[specials:]]
    wanted = {key: row for row, key in enumerate(dict.fromkeys(written + lower), start=specials)}
    read = read_archive if path.suffix == ".npz" else read_vectors
    vectors, exact = read(path, wanted, specials + len(wanted))
    rows_of_lower = np.array([0] * specials + [wanted[key] for key in lower])
    lowered = exact[rows_of_lower] & ~exact[: len(vocabulary)]
    vectors[: len(vocabulary)][lowered] = vectors[rows_of_lower[lowered]]
    vectors.resize((len(vocabulary), vectors.shape[1]), refcheck=False)  # gives the rows of other spellings back
    return vectors, exact[: len(vocabulary)], lowered


def coverage(
    path: Path, vocabulary: Vocabulary, dimension: int, found: NDArray[np.bool_], lowered: NDArray[np.bool_]
) -> str:
    words = len(vocabulary) - len(vocabulary.specials)
    counts = np.array(vocabulary.counts)
    if not found.any():
        raise DataError.at(path, f"none of the {words:,} words has a vector here: is it the right file?")
    types = 100 * found.sum() / words
    tokens = f", {100 * counts[found].sum() / counts.sum():.1f}% of all tokens" if counts.sum() else ""
    by_case = f", {lowered.sum():,} of them lower-cased" if lowered.any() else ""
    return f"{path}: {dimension}-d vectors for {found.sum():,} of {words:,} words ({types:.1f}%{tokens}){by_case}"


def cache_path(path: Path, vocabulary: Vocabulary, folder: Path) -> Path:
    """A name that changes with the file and with the vocabulary."""
    file = next((parent for parent in (path, *path.parents) if parent.is_file()), path)  # an archive, for its member
    try:
        status = file.stat()
    except FileNotFoundError:
        raise DataError.at(path, "no such file") from None
    parts = (CACHE_FORMAT, path.name, status.st_size, status.st_mtime_ns, vocabulary.hash())
    return folder / f"embeddings-{hashlib.sha256(repr(parts).encode()).hexdigest()[:24]}.npz"


def load_cache(path: Path) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]] | None:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            exact, lowered, kept = arrays["exact"], arrays["lowered"], arrays["vectors"]
    except DAMAGED:
        return None  # absent or damaged: it is written again
    vectors = np.zeros((len(exact), kept.shape[1]), np.float32)
    vectors[exact | lowered] = kept
    return vectors, exact, lowered


def save_cache(
    path: Path, vectors: NDArray[np.float32], exact: NDArray[np.bool_], lowered: NDArray[np.bool_]
) -> list[str]:
    """Write the cache whole or not at all; a full disk costs the cache, not the run."""
    unfinished = path.with_name(f"{path.stem}.{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(unfinished, "wb") as file:
            np.savez(file, vectors=vectors[exact | lowered], exact=exact, lowered=lowered)
        os.replace(unfinished, path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        return [f"the vectors were not cached in {path.parent}: {error.strerror or error}"]
    return []
