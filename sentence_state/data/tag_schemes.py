"""IOB1, BIO, BIOES, BMES and BILOU: detect, check, convert, tags -> spans -> tags.

A tag is O, or a prefix and a label: B-PER. A bare B is a span whose label is empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

SCHEMES = ("iob1", "bio", "bioes", "bmes", "bilou")
PREFIXES = {"iob1": "OBI", "bio": "OBI", "bioes": "OBIES", "bmes": "OBMES", "bilou": "OBILU"}
NAMES = {"iob1": "IOB1", "bio": "BIO", "bioes": "BIOES", "bmes": "BMES", "bilou": "BILOU", "plain": "plain tags"}
TYPED = re.compile(r"[BIMESLU]-.")
CANONICAL = {"M": "I", "L": "E", "U": "S"}  # BMES and BILOU are BIOES with other letters


class Span(NamedTuple):
    """Words start to end, end not included."""

    start: int
    end: int
    label: str


class Tag(NamedTuple):
    prefix: str  # O, B, I, E or S
    label: str


OUTSIDE = Tag("O", "")


@lru_cache(maxsize=10_000)
def split_tag(tag: str) -> Tag:
    if tag == "O":
        return OUTSIDE
    return Tag(CANONICAL.get(tag[0], tag[0]), tag[2:])


def tags_to_spans(tags: Sequence[str], scheme: str | None = None) -> list[Span]:
    """Spans of a sentence, as seqeval finds them. With a scheme: strictly, a span that breaks it is none.
    Without: as conlleval does, any change of label, B and S begin a span, and nothing is lost."""
    parsed = [split_tag(tag) for tag in tags]
    spans = []
    start = None
    for position, (previous, current) in enumerate(zip([OUTSIDE, *parsed], [*parsed, OUTSIDE], strict=True)):
        continues = current.prefix in "IE" and previous.prefix in "BI" and current.label == previous.label
        if continues and start is not None:
            continue
        if start is not None and (scheme is None or closes(previous, current, scheme)):
            spans.append(Span(start, position, previous.label))
        start = position if current != OUTSIDE and (scheme is None or opens(previous, current, scheme)) else None
    return spans


def opens(previous: Tag, current: Tag, scheme: str) -> bool:
    """Whether a span may begin at `current`, which does not continue the span before it."""
    if scheme == "iob1":
        return current.prefix == "I" or (current.prefix == "B" and touches(previous, current))
    return current.prefix in "BS"


def closes(previous: Tag, current: Tag, scheme: str) -> bool:
    """Whether a span may end at `previous`, before `current`, which does not continue it."""
    if scheme == "iob1":
        return not (previous.prefix == current.prefix == "B" and previous.label != current.label)
    return scheme == "bio" or previous.prefix in "ES"


def touches(previous: Tag, current: Tag) -> bool:
    return previous != OUTSIDE and previous.label == current.label


@lru_cache(maxsize=100_000)
def allowed(previous: str, current: str, scheme: str) -> bool:
    """Whether `current` may follow `previous`; the borders of a sentence count as O."""
    before, now = split_tag(previous), split_tag(current)
    if scheme == "iob1":
        return now.prefix != "B" or touches(before, now)
    continues = now.prefix in "IE"
    if scheme == "bio":
        return not continues or touches(before, now)
    open_before = before.prefix in "BI"
    return continues == open_before and (not continues or before.label == now.label)


def breaks(tags: Sequence[str], scheme: str) -> Iterator[tuple[int, str]]:
    """Every place where the tags break their scheme: position and what is there, such as (3, "I-PER after O")."""
    previous = "O"
    for position, tag in enumerate(tags):
        if not is_tag_of(tag, scheme):
            yield position, f"{tag!r} is no tag of {NAMES[scheme]}"
            previous = "O"
            continue
        if not allowed(previous, tag, scheme):
            yield position, f"{tag} after {previous if position else 'the beginning of the sentence'}"
        previous = tag
    if tags and not allowed(previous, "O", scheme):
        yield len(tags) - 1, f"the sentence ends after {previous}"


@lru_cache(maxsize=10_000)
def is_tag_of(tag: str, scheme: str) -> bool:
    return tag == "O" or (tag[0] in PREFIXES[scheme] and tag[0] != "O" and (len(tag) == 1 or bool(TYPED.match(tag))))


def spans_to_tags(spans: Iterable[Span], length: int, scheme: str) -> list[str]:
    """The tags of spans that do not overlap."""
    tags = ["O"] * length
    for start, end, label in sorted(spans):
        ending = f"-{label}" if label else ""
        tags[start:end] = [f"{'M' if scheme == 'bmes' else 'I'}{ending}"] * (end - start)
        if scheme in ("bioes", "bmes", "bilou"):
            first, last, single = ("B", "L", "U") if scheme == "bilou" else ("B", "E", "S")
            tags[start], tags[end - 1] = (first + ending, last + ending) if end - start > 1 else (single + ending,) * 2
        elif scheme == "bio" or (start > 0 and tags[start - 1][1:] == ending and tags[start - 1] != "O"):
            tags[start] = f"B{ending}"
    return tags


def convert(tags: Sequence[str], source: str | None, target: str) -> list[str]:
    """Tags of one scheme in another; source None reads broken tags too, as conlleval does."""
    return spans_to_tags(tags_to_spans(tags, source), len(tags), target)


def detect_scheme(sentences: Sequence[Sequence[str]]) -> str:
    """One of SCHEMES, or "plain" for tags such as parts of speech. Broken tags: the scheme they break least often."""
    kinds = {tag for tags in sentences for tag in tags}
    typed = {tag for tag in kinds if TYPED.match(tag)}
    if not {"B", "E"} <= {tag[0] for tag in typed}:  # no middle then, but such as M-sg
        typed = {tag for tag in typed if tag[0] != "M"}
    bare = "B" in kinds and kinds <= {"O", "B", "I", "M", "E", "S", "L", "U"}
    if not bare and (len(typed) <= len(kinds - typed - {"O"}) or not typed) and kinds != {"O"}:
        return "plain"
    prefixes = {tag[0] for tag in (kinds if bare else typed)}
    if "M" in prefixes:
        return "bmes"
    if prefixes & {"E", "S"}:
        return "bioes"
    if prefixes & {"L", "U"}:
        return "bilou"
    counts = {scheme: sum(1 for tags in sentences for _ in breaks(tags, scheme)) for scheme in ("bio", "iob1")}
    return min(counts, key=lambda scheme: counts[scheme])
