"""Data on which no training can work are refused with file and line."""

import pytest

from sentence_state.data.checks import check_training_data
from sentence_state.data.errors import DataError
from sentence_state.data.example import Example


def labelled(path, labels):
    return [Example(["a"], label, path=path, lines=(line,)) for line, label in enumerate(labels, start=2)]


def tagged(path, *sentences):
    return [Example(["a"] * len(tags), tags=tags, path=path, lines=range(1, 9)) for tags in sentences]


def message(*splits):
    with pytest.raises(DataError) as error:
        check_training_data(*splits)
    return str(error.value)


def test_one_class_only_is_refused():
    expected = "train.csv:2: only one class: every label is 'POS'; a classifier needs two or more"
    assert message(labelled("train.csv", ["POS"] * 3)) == expected


def test_a_label_that_train_never_shows_is_refused():
    train = labelled("train.csv", ["NEG", "POS"])
    dev = labelled("dev.csv", ["POS", "NEU"])
    assert message(train, dev) == "dev.csv:3: label 'NEU' never occurs in train.csv (labels: NEG, POS)"
    assert message(train, train, dev) == "dev.csv:3: label 'NEU' never occurs in train.csv (labels: NEG, POS)"


def test_a_column_that_cannot_hold_labels_is_refused():
    expected = (
        "train.csv:2: 30 labels in 30 examples, such as '0': is that the right column? (--label-column to choose)"
    )
    assert message(labelled("train.csv", map(str, range(30)))) == expected


def test_no_example_at_all_is_refused():
    assert message([]) == "data: there is no example to train on"


def test_one_tag_only_is_refused():
    assert message(tagged("train.conll", ["O", "O"])) == "train.conll:1: every tag is 'O': there is nothing to learn"


def test_a_tag_that_train_never_shows_is_remarked_once():
    train = tagged("train.conll", ["O", "B-PER"])
    dev = tagged("dev.conll", ["O", "B-LOC"], ["B-LOC"])
    expected = "dev.conll:2: tag 'B-LOC' never occurs in train.conll: it will not be predicted"
    assert check_training_data(train, dev) == [expected]


def test_good_data_pass_without_a_remark():
    assert check_training_data(labelled("train.csv", ["a", "b"]), labelled("dev.csv", ["b"])) == []
    assert check_training_data(tagged("train.conll", ["NN", "VB"])) == []
