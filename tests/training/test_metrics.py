import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import classification_report
from seqeval.metrics import f1_score as seqeval_f1
from seqeval.scheme import IOB2, IOBES

from sentence_state.training.metrics import (
    Scores,
    accuracy,
    confusion,
    label_scores,
    span_scores,
    token_accuracy,
    total,
)

TAGS = {
    "bio": ["O", "B-X", "I-X", "B-Y", "I-Y"],
    "bioes": ["O", "B-X", "I-X", "E-X", "S-X", "B-Y", "I-Y", "E-Y", "S-Y"],
}
SCHEMES = {"bio": IOB2, "bioes": IOBES}


def pairs_of_tags(scheme):
    """Sentences of random tags, most of them broken, gold beside predicted."""
    tags = st.sampled_from(TAGS[scheme])
    sentence = st.lists(st.tuples(tags, tags), min_size=1, max_size=12)
    return st.lists(sentence, min_size=1, max_size=6).map(
        lambda rows: ([[a for a, _ in row] for row in rows], [[b for _, b in row] for row in rows])
    )


def check_against_seqeval(gold, predicted, **mode):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = classification_report(gold, predicted, output_dict=True, zero_division=0, **mode)
        f1 = seqeval_f1(gold, predicted, zero_division=0, **mode)
    scheme = {IOB2: "bio", IOBES: "bioes", None: None}[mode.get("scheme")]
    table = span_scores(gold, predicted, scheme)
    assert total(table.values()).f1 == pytest.approx(f1)
    for label, scores in table.items():
        found = report.get(label, {"precision": 0, "recall": 0, "f1-score": 0, "support": 0})
        assert scores.precision == pytest.approx(found["precision"])
        assert scores.recall == pytest.approx(found["recall"])
        assert scores.f1 == pytest.approx(found["f1-score"])
        assert scores.gold == found["support"]


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_strict_span_scores_equal_seqevals_on_any_tags(scheme):
    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(pairs_of_tags(scheme))
    def check(pair):
        check_against_seqeval(*pair, mode="strict", scheme=SCHEMES[scheme])

    check()


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_span_scores_equal_seqevals_default_on_any_tags(scheme):
    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(pairs_of_tags(scheme))
    def check(pair):
        check_against_seqeval(*pair)

    check()


def test_span_scores_by_hand():
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC"]]
    predicted = [["B-PER", "I-PER", "O", "B-PER"], ["B-LOC", "B-LOC"]]
    table = span_scores(gold, predicted)
    assert table == {"LOC": Scores(1, 2, 2), "PER": Scores(1, 2, 1)}
    assert total(table.values()) == Scores(2, 4, 3)
    assert total(table.values()).f1 == pytest.approx(4 / 7)
    assert (table["PER"].precision, table["PER"].recall) == (0.5, 1.0)


def test_accuracy_table_and_confusion_by_hand():
    gold, predicted = ["a", "a", "b", "c"], ["a", "b", "b", "b"]
    assert accuracy(gold, predicted) == 0.5
    assert label_scores(gold, predicted) == {"a": Scores(1, 1, 2), "b": Scores(1, 3, 1), "c": Scores(0, 0, 1)}
    assert confusion(gold, predicted) == {
        "a": {"a": 1, "b": 1, "c": 0},
        "b": {"a": 0, "b": 1, "c": 0},
        "c": {"a": 0, "b": 1, "c": 0},
    }
    assert token_accuracy([["a", "b"], ["c"]], [["a", "c"], ["c"]]) == pytest.approx(2 / 3)


def test_nothing_there_and_nothing_found_is_zero_not_an_error():
    assert (Scores(0, 0, 0).precision, Scores(0, 0, 0).recall, Scores(0, 0, 0).f1) == (0, 0, 0)
    assert span_scores([["O"]], [["O"]]) == {}
    assert accuracy([], []) == 0


def test_different_lengths_are_refused():
    with pytest.raises(ValueError, match="as many predictions as gold labels, got 1 and 2"):
        accuracy(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="sentence 1 has 2 gold tags and 1 predicted ones"):
        span_scores([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="scheme must be None or one of"):
        span_scores([["O"]], [["O"]], "BIO")
