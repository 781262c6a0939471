"""The files of the benchmarks, as we keep them and as their makers ship them -> splits, or None where they are not."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from .delimited import Row, Rows
from .example import Example, Splits
from .penn_treebank import find_sections, read_section
from .tables import build_examples, read_table
from .tagged_files import read_tagged
from .text_files import TextFile, read_text
from .tokenizer import Tokenizer

SPLITS = ("train", "dev", "test")
DEV_SIZE_OF_FDU = 200


def find_file(folder: Path, name: str) -> Path | None:
    """A file of this name, plain or gzip, in the folder or anywhere below, whatever its capitals."""
    names = {name.lower(), f"{name.lower()}.gz"}
    found = [path for path in folder.rglob("*") if path.name.lower() in names]
    return min(found, key=lambda path: (len(path.parts), path), default=None)


def find_files(folder: Path, names: Sequence[str]) -> list[Path] | None:
    found = [path for name in names if (path := find_file(folder, name))]
    return found if len(found) == len(names) else None


def in_folder(folder: Path, suffix: str) -> list[Path] | None:
    """train, dev and test of a folder, gzip or plain."""
    for ending in (f"{suffix}.gz", suffix):
        paths = [folder / f"{split}{ending}" for split in SPLITS]
        if all(path.is_file() for path in paths):
            return paths
    return None


def read_tables(paths: Sequence[Path], tokenizer: Tokenizer) -> Splits:
    return Splits(*(read_table(path, tokenizer=tokenizer).examples for path in paths))


def read_tagging(paths: Sequence[Path], tag_scheme: str, target_scheme: str) -> Splits:
    """Three files in one scheme: that of train, where it has to be found out."""
    train = read_tagged(paths[0], tag_scheme=tag_scheme, target_scheme=target_scheme)
    scheme = train.tag_scheme or tag_scheme
    others = (read_tagged(path, tag_scheme=scheme, target_scheme=target_scheme).examples for path in paths[1:])
    return Splits(train.examples, *others)


def read_polarity(positive: Path, negative: Path, tokenizer: Tokenizer) -> Splits:
    """MR: one sentence a line in two files, shuffled with seed 0; a tenth each for test and dev, which come first."""
    examples = []
    for path, label in ((positive, "pos"), (negative, "neg")):
        file = read_text(path)
        rows = [Row(number, [" ".join(line.split()), label]) for number, line in numbered(file)]
        examples.extend(label_rows(file, rows, tokenizer))
    random.Random(0).shuffle(examples)
    tenth = len(examples) // 10
    return Splits(test=examples[:tenth], dev=examples[tenth : 2 * tenth], train=examples[2 * tenth :])


def read_fdu(train: Path, test: Path, tokenizer: Tokenizer) -> Splits:
    """One of the 16 domains: `label TAB review` a line; dev is the last 200 lines of train."""
    lines = []
    for path in (train, test):
        file = read_text(path)
        rows = []
        for number, line in numbered(file):
            label, tab, review = line.partition("\t")
            if not tab or label not in ("0", "1"):
                raise file.error(f'expected 0 or 1, a tab and a review, got "{line[:40]}"', number)
            rows.append(Row(number, [review, "pos" if label == "1" else "neg"]))
        lines.append((file, rows))
    (file, rows), (test_file, test_rows) = lines
    return Splits(
        label_rows(file, rows[:-DEV_SIZE_OF_FDU], tokenizer),
        label_rows(file, rows[-DEV_SIZE_OF_FDU:], tokenizer),
        label_rows(test_file, test_rows, tokenizer),
    )


def read_ptb(folder: Path, sections: Sequence[range]) -> Splits | None:
    """Parts of speech of the sections for train, dev and test; None unless all of them are there."""
    if not has_sections(folder, sections):
        return None
    found = find_sections(folder)
    return Splits(*([e for section in split for e in read_section(found[section])] for split in sections))


def has_sections(folder: Path, sections: Sequence[range]) -> bool:
    found = find_sections(folder)
    return all(section in found for split in sections for section in split)


def numbered(file: TextFile) -> list[tuple[int, str]]:
    return [(number, line) for number, line in enumerate(file.text.split("\n"), start=1) if line.strip()]


def label_rows(file: TextFile, rows: list[Row], tokenizer: Tokenizer) -> list[Example]:
    """Examples of rows (text, label); one without a word is left out (the sports domain has such a review)."""
    return build_examples(file, Rows(["text", "label"], rows, ""), 0, 1, tokenizer, skip_empty=True)[0]
