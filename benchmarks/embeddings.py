"""python -m benchmarks embeddings: our reader of GloVe text files against gensim's, same file, same run."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from sentence_state.data import Embeddings, Vocabulary, read_embeddings

from .measure import alternately, append, check_repeats, circumstances, ratio, summary

FEW = 1000
DIMENSION = 300
OURS = ("every word", f"{FEW:,} words", "every word, cached", f"{FEW:,} words, cached")
Vectors = tuple[list[str], np.ndarray]  # the words of a file and a row for each


def main(file: Path | None = None, megabytes: int = 100, repeats: int = 3, save: bool = True) -> None:
    """A file of vectors read plain and as .gz, by gensim and by us. Appends to benchmarks/results/embeddings.jsonl.

    Args:
        file: vectors as text, without a header; generated when absent.
        megabytes: of the generated file.
        repeats: rounds, two at least; every reader runs once a round.
        save: append the rows to the results.
    """
    check_repeats(repeats)
    theirs = gensim_reader()
    if theirs is None:
        print("gensim is missing (pip install gensim): our reader alone")
    with tempfile.TemporaryDirectory() as folder:
        plain = file or generate(Path(folder) / "vectors.txt", megabytes)
        packed = Path(folder) / f"{plain.name}.gz"
        with open(plain, "rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
            shutil.copyfileobj(source, target)
        rows = [measure(path, words_of(plain), theirs, Path(folder), repeats) for path in (plain, packed)]
    show(rows)
    if save:
        print(f"appended to {append('embeddings', rows)}")


def gensim_reader() -> Callable[[Path], Vectors] | None:
    try:
        from gensim.models import KeyedVectors
    except ImportError:
        return None

    def read(path: Path) -> Vectors:
        vectors = KeyedVectors.load_word2vec_format(str(path), no_header=True)
        return vectors.index_to_key, vectors.vectors

    return read


def generate(path: Path, megabytes: int) -> Path:
    """A file as GloVe's are: five or six digits a number."""
    numbers = np.random.default_rng(0)
    with open(path, "w") as file:
        written = 0
        while written < megabytes * 1e6:
            vector = numbers.normal(0, 0.4, DIMENSION)
            written += file.write(f"word{written} " + " ".join(f"{number:.5g}" for number in vector) + "\n")
    return path


def words_of(path: Path) -> list[str]:
    with open(path, "rb") as file:
        return list(dict.fromkeys(line[: line.index(b" ")].decode() for line in file))


def measure(
    path: Path, words: list[str], theirs: Callable[[Path], Vectors] | None, folder: Path, repeats: int
) -> dict[str, Any]:
    """One row: the readers in turns, and that gensim found the same vectors."""
    absent = "a word that no file has"  # so that the file is read to its end
    few = [*words[:: max(1, len(words) // (FEW - 1))][: FEW - 1], absent]
    wanted = {OURS[0]: Vocabulary(words), OURS[1]: Vocabulary(few)}
    found: dict[str, Any] = {}

    def ours(name: str, cache: Path | None) -> Callable[[], None]:
        vocabulary = wanted[name.removesuffix(", cached")]
        return lambda: found.update({name: read_embeddings(path, vocabulary, cache)})

    readers = {name: ours(name, folder / "cache" if name.endswith("cached") else None) for name in OURS}
    for name in OURS[2:]:
        readers[name]()  # fills the cache
    if theirs is not None:
        readers = {"gensim": lambda: found.update(gensim=theirs(path)), **readers}
    times = alternately(readers, "cpu", repeats, warmup=0)
    if theirs is not None:
        compare(found["gensim"], found[OURS[0]], wanted[OURS[0]])
    return {
        "benchmark": "embeddings",
        **circumstances("cpu"),
        "numpy": np.__version__,
        "gensim": metadata.version("gensim") if theirs is not None else None,
        "form": "gz" if path.suffix == ".gz" else "plain",
        "MB": path.stat().st_size / 1e6,
        "words": len(words),
        "dimension": found[OURS[0]].vectors.shape[1],
        "times": {name: summary(seconds) for name, seconds in times.items()},
        "gensim / ours": {name: ratio(times["gensim"], times[name]) for name in OURS if theirs is not None},
    }


def compare(theirs: Vectors, ours: Embeddings, vocabulary: Vocabulary) -> None:
    words, vectors = theirs
    rows = [vocabulary.index[word] for word in words]
    if not ours.found[rows].all():
        raise AssertionError("gensim found words that our reader did not")
    np.testing.assert_allclose(ours.vectors[rows], vectors, rtol=1e-6)  # float32


def show(rows: list[dict[str, Any]]) -> None:
    size = f"{rows[0]['words']:,} words, {rows[0]['dimension']} numbers each, {rows[0]['MB']:.0f} MB"
    table = Table(title=f"{size}; {rows[0]['device']}; median s")
    for column in ("file", "reader", "s", "gensim / ours"):
        table.add_column(column, justify="left" if column in ("file", "reader") else "right")
    for row in rows:
        for name, seconds in row["times"].items():
            faster = row["gensim / ours"].get(name)
            table.add_row(row["form"], name, f"{seconds['ms'] / 1e3:.2f}", "" if faster is None else f"{faster:.1f}")
    Console(width=100).print(table)
