"""A file for tagging of any form -> examples whose tags are in one scheme."""

from __future__ import annotations

import re
from collections import Counter
from os import PathLike

from .columns import columns_corpus, looks_like_conllu, trees_corpus
from .example import Corpus, Example
from .tag_schemes import NAMES, SCHEMES, TYPED, breaks, convert, detect_scheme, is_tag_of
from .text_files import TextFile, read_text

ALMOST_SPAN = re.compile(r"[biesluBIESLU][-_].+|.+[-_][BIESLU]")  # b-loc, B_LOC, LOC-B


def read_tagged(
    path: str | PathLike[str],
    *,
    word_column: int = 0,
    tag_column: int | str | None = -1,
    tag_scheme: str = "auto",
    target_scheme: str = "bioes",
    broken: str = "error",
    encoding: str | None = None,
) -> Corpus:
    """Sentences and tags of CoNLL columns or CoNLL-U (`tag_column` "xpos" or "upos"), plain or gzip.

    `tag_scheme` is that of the file (auto, iob1, bio, bioes, bmes, bilou, plain), `target_scheme` that of the result.
    Tags that break their scheme raise an error, or with `broken="repair"` are read as conlleval does.
    `tag_column=None` reads words only, for predictions.
    """
    corpus = tagged_corpus(read_text(path, encoding), word_column, tag_column)
    if tag_column is not None:
        unify_tags(corpus, tag_scheme, target_scheme, broken)
    return corpus


def tagged_corpus(file: TextFile, word_column: int, tag_column: int | str | None) -> Corpus:
    """Sentences with their tags as they stand in the file."""
    conllu = "xpos" if isinstance(tag_column, int) else tag_column
    if is_called_conllu(file):
        return trees_corpus(file, conllu, "CoNLL-U")
    if is_unnamed_conllu(file, word_column, tag_column):
        return trees_corpus(file, conllu, "CoNLL-U as found out")
    if isinstance(tag_column, str):
        raise file.error(f"the column {tag_column} is one of CoNLL-U (.conllu); here, columns have numbers")
    return columns_corpus(file, word_column, tag_column)


def is_called_conllu(file: TextFile) -> bool:
    return file.path.lower().removesuffix(".gz").endswith(".conllu")


def is_unnamed_conllu(file: TextFile, word_column: int, tag_column: int | str | None) -> bool:
    """A CoNLL-U file by another name; who counts its columns reads it as columns."""
    if word_column != 0 or (isinstance(tag_column, int) and tag_column != -1):
        return False
    return looks_like_conllu(file.text.split("\n"))


def unify_tags(corpus: Corpus, tag_scheme: str = "auto", target_scheme: str = "bioes", broken: str = "error") -> None:
    """Detect the scheme of a corpus, check its tags and convert them, in place; the description says what was done."""
    scheme = detect_scheme([example.tags or [] for example in corpus.examples]) if tag_scheme == "auto" else tag_scheme
    if scheme not in (*SCHEMES, "plain"):
        raise ValueError(f"tag_scheme must be auto, plain or one of {', '.join(SCHEMES)}, got {scheme!r}")
    corpus.tag_scheme = scheme
    if scheme == "plain" and tag_scheme == "auto":
        corpus.description += note_of_spans(corpus)
    if scheme != "plain":
        problems = refuse_or_count(corpus, scheme, broken)
        note_of_scheme(corpus, scheme, chosen=tag_scheme != "auto")
        corpus.description.extend(problems)
        for example in corpus.examples:
            if scheme != target_scheme or problems:
                example.tags = convert(example.tags or [], None if problems else scheme, target_scheme)
    counts = Counter(tag for example in corpus.examples for tag in example.tags or ())
    shown = ", ".join(f"{tag} {count:,}" for tag, count in counts.most_common(10))
    corpus.description.append(f"{len(counts)} tags: {shown}{', ...' if len(counts) > 10 else ''}")


def refuse_or_count(corpus: Corpus, scheme: str, broken: str) -> list[str]:
    """Raise at the first tag that breaks the scheme, or say how many do."""
    found = [(example, *problem) for example in corpus.examples for problem in breaks(example.tags or [], scheme)]
    if not found:
        return []
    for example, position, problem in found:
        if not any(is_tag_of((example.tags or [])[position], name) for name in SCHEMES):
            names = ": a line of column names? delete it" if is_first_line(example, position) else ""
            raise example.error(f"{problem}{names} (--tag-scheme plain, if the tags are no spans)", position)
    example, position, problem = found[0]
    error = example.error(f"{problem}: not {NAMES[scheme]}", position)
    if broken != "repair" and scheme != "iob1":  # IOB1 is never in doubt: CoNLL-2003 itself has a B too many, twice
        others = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
        hint = "--tag-scheme to choose another scheme, --broken-tags repair to read such tags as conlleval does"
        raise type(error)(f"{error}{others}; {hint}")
    return [f"{error}: {len(found):,} such tag{'s' * (len(found) > 1)} read as conlleval does"]


def is_first_line(example: Example, position: int) -> bool:
    return position == 0 and list(example.lines[:1]) == [1]


def note_of_spans(corpus: Corpus) -> list[str]:
    """Plain tags, O among them: they may have been meant as those of spans, the more where they look almost so."""
    tags = {tag for example in corpus.examples for tag in example.tags or ()}
    meant = sorted(tag for tag in tags if ALMOST_SPAN.fullmatch(tag) and not TYPED.match(tag))
    if meant and tags & {"O", "o"}:
        note = f"tags such as {meant[0]!r} are no spans: spans are written B-LOC, I-LOC (--tag-scheme to choose)"
        return [f"{corpus.path}: {note}"]
    if "O" in tags:
        tag = min(tags - {"O"}, key=lambda tag: (bool(TYPED.match(tag)), tag))
        note = f"tags such as {tag!r} beside O, without B- or I-: each word is a span of its own, one with O is none"
        return [f"{corpus.path}: {note}; for spans of several words write B-{tag}, I-{tag}"]
    return []


def note_of_scheme(corpus: Corpus, scheme: str, chosen: bool) -> None:
    """Say which scheme was found; for IOB1, which often is an accident, also where it differs from BIO."""
    if scheme == "iob1" and not chosen:
        for example in corpus.examples:
            for position, problem in breaks(example.tags or [], "bio"):
                note = f"{problem}: the file looks like IOB1, read as IOB1 (--tag-scheme to choose)"
                corpus.description.append(str(example.error(note, position)))
                return
    corpus.description.append(f"{corpus.path}: tags are {NAMES[scheme]}{'' if chosen else ', as found out'}")
