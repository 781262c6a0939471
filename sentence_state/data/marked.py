"""Utterances with an intent and slots marked inline, for the joint task; the embedded sample is written so.

book_flight<TAB>a flight from [lisbon](from_place) to [new york](to_place)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from importlib import resources
from os import PathLike

from .example import Corpus, Example, Splits
from .tag_schemes import Span, spans_to_tags
from .text_files import TextFile, read_text
from .tokenizer import Tokenizer

SLOT = re.compile(r"\[([^][]*)\]\(([^()\s]+)\)")


def read_marked(
    path: str | PathLike[str],
    *,
    target_scheme: str = "bio",
    tokenizer: Tokenizer | None = None,
    encoding: str | None = None,
) -> Corpus:
    """One utterance a line: label, tab, text, with `[words](slot)` around every slot.

    `tokenizer` cuts the text into words, as that of the model will do with what it is asked about.
    """
    return marked_corpus(read_text(path, encoding), target_scheme, tokenizer or Tokenizer())


def marked_corpus(file: TextFile, target_scheme: str, tokenizer: Tokenizer) -> Corpus:
    examples = read_utterances(file, target_scheme, tokenizer)
    if not examples:
        raise file.error("the file is empty", 1)
    labels = Counter(example.label for example in examples)
    form = f"{len(examples):,} utterances, {len(labels)} labels, slots marked inline, {file.encoding}"
    return Corpus(file.path, examples, [f"{file.path}: {form}"], tag_scheme=target_scheme)


def read_sample(target_scheme: str = "bio", targets: Collection[str] = ("label", "tags")) -> Splits:
    """The embedded sample: utterances to an assistant, each with its intent and its slots, or with one of them."""
    folder = resources.files(__package__) / "sample"
    texts = {split: (folder / f"{split}.txt").read_text(encoding="utf-8") for split in ("train", "dev", "test")}
    splits = Splits(
        **{
            split: read_utterances(TextFile(f"sample/{split}.txt", text, "UTF-8"), target_scheme, Tokenizer())
            for split, text in texts.items()
        }
    )
    for example in (*splits.train, *splits.dev, *splits.test):
        example.label = example.label if "label" in targets else None
        example.tags = example.tags if "tags" in targets else None
    return splits


def read_utterances(file: TextFile, target_scheme: str, tokenizer: Tokenizer) -> list[Example]:
    return [
        read_utterance(file, line, number, target_scheme, tokenizer)
        for number, line in enumerate(file.text.split("\n"), start=1)
        if line.strip()
    ]


def read_utterance(file: TextFile, line: str, number: int, target_scheme: str, tokenizer: Tokenizer) -> Example:
    label, tab, marked = line.partition("\t")
    if not tab or not label.strip():
        raise file.error(f'expected a label, a tab and an utterance, got "{line[:40]}"', number)
    text, slots = unmark(file, marked.strip(), number)
    example = Example.of_text(text, tokenizer, label.strip(), file.path, (number,))
    if not example.words:
        raise file.error("empty text", number)
    offsets = example.located()[1]
    starts = {start: position for position, (start, _) in enumerate(offsets)}
    ends = {end: position + 1 for position, (_, end) in enumerate(offsets)}
    spans = []
    for start, end, slot in slots:
        if start not in starts or end not in ends:
            raise file.error(f'the slot "[{text[start:end]}]({slot})" must cover whole words', number)
        spans.append(Span(starts[start], ends[end], slot))
    example.tags = spans_to_tags(spans, len(example.words), target_scheme)
    return example


def unmark(file: TextFile, marked: str, number: int) -> tuple[str, list[tuple[int, int, str]]]:
    """The text without its marks, and where in it the slots are."""
    text, position = "", 0
    slots = []
    for match in SLOT.finditer(marked):
        text += marked[position : match.start()]
        slots.append((len(text), len(text) + len(match.group(1)), match.group(2)))
        text += match.group(1)
        position = match.end()
    text += marked[position:]
    if "[" in text or "]" in text:
        raise file.error(f'a slot is written [words](name), and a name has no spaces, got "{marked[:60]}"', number)
    return text, slots
