"""The Wall Street Journal part of the Penn Treebank as the LDC ships it: merged trees (.mrg) or tagged files (.pos)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from .example import Example
from .text_files import TextFile, read_text

FILE_NAME = re.compile(r"wsj_(\d\d)\d\d\.(mrg|pos)(\.gz)?", re.IGNORECASE)
TREE_TOKEN = re.compile(r"[()]|[^\s()]+")
CLOSING_TAGS = {"''", ")", "-RRB-"}
WORDS = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]"}
TAGS = {"(": "-LRB-", ")": "-RRB-"}  # of tagged files; trees write them so

Sentence = list[tuple[str, str, int]]  # word, tag, line


def find_sections(folder: Path) -> dict[int, list[Path]]:
    """The files of every section under a folder; merged trees where both forms are there."""
    found: dict[str, dict[int, list[Path]]] = {"mrg": defaultdict(list), "pos": defaultdict(list)}
    for path in sorted(folder.rglob("*")):
        match = FILE_NAME.fullmatch(path.name)
        if match:
            found[match[2].lower()][int(match[1])].append(path)
    return dict(found["mrg"] or found["pos"])


def read_section(paths: list[Path]) -> list[Example]:
    examples = []
    for path in paths:
        file = read_text(path)
        read = read_trees if ".mrg" in path.name.lower() else read_tagged_text
        for sentence in read(file):
            words, tags, lines = (list(column) for column in zip(*sentence, strict=True))
            examples.append(Example(words, tags=tags, path=file.path, lines=lines))
    return examples


def read_trees(file: TextFile) -> Iterator[Sentence]:
    """Leaves of every tree, (NNP Vinken), less the traces, (-NONE- *T*-1)."""
    sentence: Sentence = []
    depth, tag = 0, ""
    for number, line in enumerate(file.text.split("\n"), start=1):
        before = ""
        for token in TREE_TOKEN.findall(line):
            if token == "(":
                depth, tag = depth + 1, ""
            elif token == ")":
                depth, tag = depth - 1, ""
                if depth == 0 and sentence:
                    yield sentence
                    sentence = []
            elif before == "(":
                tag = token
            elif tag and tag != "-NONE-":
                sentence.append((clean_word(token), clean_tag(tag), number))
            before = token
        if depth < 0:
            raise file.error("a closing bracket too many", number)
    if depth:
        raise file.error(f"{depth} brackets are never closed", number)


def read_tagged_text(file: TextFile) -> Iterator[Sentence]:
    """Sentences of `[ Pierre/NNP Vinken/NNP ] ,/, ...`; one ends after a full stop and the quotes that close it, or at
    a line of equal signs."""
    sentence: Sentence = []
    in_chunk = ended = False
    for number, line in enumerate(file.text.split("\n"), start=1):
        if line.startswith("====="):
            if sentence:
                yield sentence
            sentence, ended = [], False
            continue
        for token in line.split():
            if token in ("[", "]"):
                in_chunk = token == "["
                continue
            word, slash, tag = token.rpartition("/")
            if not slash or not word or not tag:
                raise file.error(f'expected word/TAG, got "{token}"', number)
            tag = clean_tag(tag)
            if ended and tag not in CLOSING_TAGS:
                yield sentence
                sentence, ended = [], False
            sentence.append((clean_word(word), tag, number))
            ended = ended or (tag == "." and not in_chunk)
    if sentence:
        yield sentence


def clean_word(word: str) -> str:
    """1\\/2 -> 1/2, -LRB- -> (: as the word stands in the newspaper."""
    return WORDS.get(word, word.replace("\\/", "/").replace("\\*", "*"))


def clean_tag(tag: str) -> str:
    """The first of two tags that the annotators could not decide between."""
    return TAGS.get(tag, tag.split("|")[0] or tag)
