"""CoNLL columns and CoNLL-U -> examples with tags, as they stand in the file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .example import Corpus, Example
from .text_files import TextFile

CONLLU_COLUMNS = {"upos": 3, "xpos": 4}
RANGE_OR_EMPTY_NODE = re.compile(r"\d+[-.]\d+")
SAMPLE = 1000
SPACES = re.compile(r"[ \t]+")


@dataclass
class Columns:
    """How the columns of a file are written, and which of them hold words and tags."""

    word: int
    tag: int | None
    tabs: bool  # separated by tabs: then a space is part of a word
    width: int  # of most lines
    least: int  # columns that a line must have
    exact: bool  # a column is counted from the end: then all lines must have `width` of them

    def split(self, line: str) -> list[str]:
        if self.tabs and "\t" in line:
            return line.split("\t")
        return line.split() if line.isascii() else SPACES.split(line.strip(" \t"))  # 10 000 may be one word

    def place(self, column: int) -> int:
        """Counted from 0 in most lines."""
        return column if column >= 0 else column + self.width

    def form(self) -> str:
        return f"{self.width} columns by {'tabs' if self.tabs else 'spaces'}"


def columns_corpus(file: TextFile, word_column: int, tag_column: int | None) -> Corpus:
    """Sentences of a file with one word a line, its columns separated by tabs or spaces, blank lines between sentences.

    Columns count from 0, or from the end: -1 is the last. `tag_column=None` reads words only, for predictions.
    -DOCSTART- lines and comments (# before a sentence, where the line is no word of it) are left out.
    """
    lines = file.text.split("\n")
    columns = sniff_columns(file, lines, word_column, tag_column)
    examples = list(read_sentences(file, lines, columns))
    if not examples:
        raise file.error("no sentence in the file" if file.text.strip() else "the file is empty", 1)
    notes = [f"{file.path}: {note}" for note in note_of_numbers(examples, columns)]
    return Corpus(file.path, examples, [describe(file, examples, columns.form()), *describe_roles(columns), *notes])


def sniff_columns(file: TextFile, lines: Sequence[str], word_column: int, tag_column: int | None) -> Columns:
    filled = [line for line in lines[:SAMPLE] if line.strip() and line[0] != "#"]
    tabs = 2 * sum("\t" in line for line in filled) > len(filled)
    wanted = {column for column in (word_column, tag_column) if column is not None}
    least = max(len(wanted), *(max(column + 1, -column) for column in wanted))
    columns = Columns(word_column, tag_column, tabs, 0, least, exact=min(wanted) < 0)
    widths = Counter(len(columns.split(line)) for line in filled)
    columns.width = widths.most_common(1)[0][0] if widths else 0
    same = tag_column is not None and columns.place(word_column) == columns.place(tag_column)
    if same and columns.width >= least:
        found = f"words and tags are both column {columns.place(word_column)} of {columns.width}, counted from 0"
        raise file.error(f"{found}: choose another --word-column or --tag-column", 1)
    return columns


def describe_roles(columns: Columns) -> list[str]:
    """Which columns hold words and tags, where there are others."""
    if columns.width <= 2:
        return []
    words = f"words from column {columns.place(columns.word)}"
    if columns.tag is None:
        return [f"{words} (--word-column to choose)"]
    return [f"{words}, tags from column {columns.place(columns.tag)} (--word-column, --tag-column to choose)"]


def note_of_numbers(examples: Sequence[Example], columns: Columns) -> list[str]:
    """Words that only count, beside other columns: they stand in the next one, as a rule."""
    if columns.width <= 2 or any(word != str(i) for e in examples for i, word in enumerate(e.words, start=1)):
        return []
    taken = [columns.place(column) for column in (columns.word, columns.tag) if column is not None]
    after = [*range(taken[0], columns.width), *range(taken[0])]
    meant = next(column for column in after if column not in taken)
    return [f"the words are 1, 2, 3, ..: --word-column {meant} may be meant"]


def read_sentences(
    file: TextFile, lines: Sequence[str], columns: Columns, tags_in_use: set[str] | None = None
) -> Iterator[Example]:
    if tags_in_use is None:
        tags_in_use = known_tags(lines, columns)
    words: list[str] = []
    tags: list[str] = []
    first = 0
    for number, line in enumerate([*lines, ""], start=1):
        if not line.strip() or line.startswith("-DOCSTART-"):
            if words:
                yield Example(words, tags=tags or None, path=file.path, lines=range(first, number))
                words, tags = [], []
            continue
        if line[0] == "#" and not words and is_comment(line, columns, tags_in_use):
            continue
        cells = columns.split(line)
        if len(cells) < columns.least or (columns.exact and len(cells) != columns.width):
            raise ragged(file, columns, line, number)
        first = first if words else number
        words.append(cells[columns.word].strip(" "))
        if columns.tag is not None:
            tags.append(cells[columns.tag].strip(" "))
        if not words[-1] or (tags and not tags[-1]):
            raise file.error(f"a column is empty ({line!r})", number)


def ragged(file: TextFile, columns: Columns, line: str, number: int) -> Exception:
    got = len(columns.split(line))
    expected = f"{columns.least} columns or more"
    if got >= columns.least:
        expected = f"{columns.width} columns as in most lines"
    hint = "; a line of column names? delete it" if number + file.first_line == 2 and got != columns.width else ""
    return file.error(f'expected {expected}, got {got} ("{line.strip()[:40]}"){hint}', number)


def known_tags(lines: Sequence[str], columns: Columns) -> set[str]:
    """Tags of the lines that cannot be comments; only asked for where there may be comments."""
    if columns.tag is None or not any(line.startswith("#") for line in lines):
        return set()
    split = (columns.split(line) for line in lines if line.strip() and line[0] != "#")
    return {cells[columns.tag] for cells in split if len(cells) == columns.width >= columns.least}


def is_comment(line: str, columns: Columns, tags_in_use: set[str]) -> bool:
    """Whether a # before a sentence begins a comment, and not the sentence, as a pound sign or a #hashtag may do."""
    cells = line.split("\t") if columns.tabs else columns.split(line)
    if len(cells) != columns.width or len(cells) < columns.least:
        return True
    return not columns.tabs and columns.tag is not None and cells[columns.tag] not in tags_in_use | {"#"}


def trees_corpus(file: TextFile, tag_column: str | None, form: str) -> Corpus:
    """Sentences of a CoNLL-U file with the tags of `xpos` or `upos`; multiword ranges and empty nodes are left out."""
    if tag_column not in (*CONLLU_COLUMNS, None):
        raise ValueError(f"tag_column must be xpos or upos in a CoNLL-U file, got {tag_column!r}")
    examples = list(read_trees(file, CONLLU_COLUMNS[tag_column] if tag_column else None))
    if not examples:
        raise file.error("no sentence in the file" if file.text.strip() else "the file is empty", 1)
    if tag_column and all(tag == "_" for example in examples for tag in example.tags or ()):
        raise examples[0].error(f"the column {tag_column} is empty, try {'upos' if tag_column == 'xpos' else 'xpos'}")
    return Corpus(file.path, examples, [describe(file, examples, f"{form}, {tag_column or 'words only'}")])


def looks_like_conllu(lines: Sequence[str]) -> bool:
    """Ten columns by tabs, of which the first counts the words of every sentence from 1."""
    filled = [line.split("\t") for line in lines[:SAMPLE] if line.strip() and line[0] != "#"]
    if not filled or any(len(cells) != 10 for cells in filled):
        return False
    number = 0
    for cells in filled:
        if RANGE_OR_EMPTY_NODE.fullmatch(cells[0]):
            continue
        if cells[0] not in ("1", str(number + 1)):
            return False
        number = int(cells[0])
    return number > 0


def read_trees(file: TextFile, column: int | None) -> Iterator[Example]:
    words: list[str] = []
    tags: list[str] = []
    numbers: list[int] = []
    for number, line in enumerate([*file.text.split("\n"), ""], start=1):
        if not line.strip():
            if words:
                yield Example(words, tags=tags or None, path=file.path, lines=numbers)
                words, tags, numbers = [], [], []
            continue
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 10:
            raise file.error(f'expected the 10 columns of CoNLL-U, by tabs, got {len(cells)} ("{line[:40]}")', number)
        if RANGE_OR_EMPTY_NODE.fullmatch(cells[0]):
            continue
        words.append(cells[1])
        numbers.append(number)
        if column is not None:
            tags.append(cells[column])
        if not words[-1] or (tags and not tags[-1]):
            raise file.error(f"a column is empty ({line!r})", number)


def describe(file: TextFile, examples: list[Example], form: str) -> str:
    words = sum(len(example.words) for example in examples)
    return f"{file.path}: {len(examples):,} sentences, {words:,} words ({form}, {file.encoding})"
