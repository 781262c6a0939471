"""Spans as seqeval finds them, in whole and in broken sequences; conversions that lose nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, Tokens

from sentence_state.data.tag_schemes import (
    PREFIXES,
    SCHEMES,
    Span,
    allowed,
    breaks,
    convert,
    detect_scheme,
    spans_to_tags,
    tags_to_spans,
)

SEQEVAL = {"iob1": IOB1, "bio": IOB2, "bioes": IOBES, "bmes": IOBES, "bilou": BILOU}


def random_tags(prefixes):
    """Any sequence, nearly always a broken one."""
    tags = ["O", *(prefix + label for prefix in prefixes if prefix != "O" for label in ("-X", "-Y", "-A-B", ""))]
    return st.lists(st.sampled_from(tags), max_size=12)


@st.composite
def sentences_of_spans(draw):
    """A length, and spans within it that do not overlap."""
    pieces = draw(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["", "X", "Y", "Y"])), max_size=8))
    spans, start = [], 0
    for size, label in pieces:
        if label:
            spans.append(Span(start, start + size, label))
        start += size
    return start, spans


@pytest.mark.parametrize("scheme", SCHEMES)
@given(data=st.data())
def test_strict_spans_equal_seqevals(scheme, data):
    tags = data.draw(random_tags(PREFIXES[scheme]))
    known = [tag.replace("M", "I") for tag in tags]  # seqeval has no BMES, which is BIOES with another letter
    expected = [(entity.start, entity.end, entity.tag) for entity in Tokens(known, SEQEVAL[scheme]).entities]
    assert [(start, end, label or "_") for start, end, label in tags_to_spans(tags, scheme)] == expected


@given(random_tags("OBIES"))
def test_lenient_spans_equal_those_of_seqeval_and_conlleval(tags):
    expected = [(start, end + 1, label) for label, start, end in get_entities(tags)]
    assert [(start, end, label or "_") for start, end, label in tags_to_spans(tags)] == expected


@pytest.mark.parametrize("scheme", SCHEMES)
@given(sentence=sentences_of_spans())
def test_spans_come_back_from_their_tags(scheme, sentence):
    length, spans = sentence
    tags = spans_to_tags(spans, length, scheme)
    assert tags_to_spans(tags, scheme) == tags_to_spans(tags) == spans
    assert not list(breaks(tags, scheme))


@pytest.mark.parametrize("source", SCHEMES)
@pytest.mark.parametrize("target", SCHEMES)
@given(sentence=sentences_of_spans())
def test_conversion_there_and_back_changes_nothing(source, target, sentence):
    length, spans = sentence
    tags = spans_to_tags(spans, length, source)
    assert convert(convert(tags, source, target), target, source) == tags


@pytest.mark.parametrize("scheme", SCHEMES)
@given(data=st.data())
def test_a_sequence_breaks_its_scheme_exactly_when_writing_its_spans_gives_other_tags(scheme, data):
    tags = data.draw(random_tags(PREFIXES[scheme]))
    assert (not list(breaks(tags, scheme))) == (convert(tags, scheme, scheme) == tags)


@given(sentences=st.lists(sentences_of_spans(), min_size=1), scheme=st.sampled_from(SCHEMES))
def test_the_scheme_of_whole_sequences_is_detected(sentences, scheme):
    tags = [spans_to_tags(spans, length, scheme) for length, spans in sentences]
    detected = detect_scheme(tags)
    prefixes = {tag[0] for sentence in tags for tag in sentence}
    if prefixes <= {"O", "B", "I"} and scheme in ("bioes", "bilou"):
        assert prefixes <= {"O"}  # a span of BIOES always shows an E or an S
    elif scheme == "bmes" and "M" not in prefixes:
        assert detected == "bioes" or prefixes <= {"O"}  # without a long span they are written as in BIOES
    elif prefixes & set("BIESLU"):
        assert detected == scheme


def test_the_same_entity_in_all_schemes():
    bio = ["B-PER", "I-PER", "B-PER", "O", "B-LOC"]
    assert convert(bio, "bio", "iob1") == ["I-PER", "I-PER", "B-PER", "O", "I-LOC"]
    assert convert(bio, "bio", "bioes") == ["B-PER", "E-PER", "S-PER", "O", "S-LOC"]
    assert convert(bio, "bio", "bilou") == ["B-PER", "L-PER", "U-PER", "O", "U-LOC"]
    assert convert(["B-LOC", "M-LOC", "E-LOC", "S"], "bmes", "bioes") == ["B-LOC", "I-LOC", "E-LOC", "S"]


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["NN", "VBZ", "O"], "plain"),
        (["-LRB-", "NN"], "plain"),
        (["B", "I", "O"], "bio"),
        (["I", "I", "B", "O"], "iob1"),
        (["O", "O"], "bio"),
        (["O", "I-PER", "I-PER"], "iob1"),
        (["B-PER", "I-PER", "PER", "O"], "bio"),
        (["B-PER", "O", "B-LOC", "O", "I-LOC"], "bio"),
        (["S-PER"], "bioes"),
        (["U-PER", "O"], "bilou"),
        (["B-LOC", "M-LOC", "E-LOC", "O"], "bmes"),
        (["B", "M", "M", "E", "S"], "bmes"),
        (["B", "E", "S"], "bioes"),
        (["M-sg", "M-pl"], "plain"),
    ],
)
def test_schemes_of_small_files(tags, scheme):
    assert detect_scheme([tags]) == scheme


@pytest.mark.parametrize(
    ("scheme", "tags", "expected"),
    [
        ("bio", ["O", "I-PER"], [(1, "I-PER after O")]),
        ("bio", ["I-PER"], [(0, "I-PER after the beginning of the sentence")]),
        ("bio", ["B-LOC", "I-PER"], [(1, "I-PER after B-LOC")]),
        ("bio", ["E-LOC", "PER"], [(0, "'E-LOC' is no tag of BIO"), (1, "'PER' is no tag of BIO")]),
        ("iob1", ["O", "B-PER"], [(1, "B-PER after O")]),
        ("bioes", ["B-PER", "O"], [(1, "O after B-PER")]),
        ("bioes", ["O", "B-PER"], [(1, "the sentence ends after B-PER")]),
        ("bioes", ["S-PER", "E-PER"], [(1, "E-PER after S-PER")]),
        ("bilou", ["U-PER", "B-LOC", "L-LOC"], []),
        ("bmes", ["B-PER", "M-PER", "O"], [(2, "O after M-PER")]),
        ("bmes", ["I-PER"], [(0, "'I-PER' is no tag of BMES")]),
    ],
)
def test_every_broken_place_is_named(scheme, tags, expected):
    assert list(breaks(tags, scheme)) == expected


def test_allowed_is_the_mask_of_a_crf():
    assert allowed("B-PER", "E-PER", "bioes")
    assert not allowed("B-PER", "E-LOC", "bioes")
    assert not allowed("B-PER", "O", "bioes")
    assert allowed("B-PER", "O", "bio")
