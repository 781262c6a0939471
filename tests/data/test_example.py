"""Offsets without a text, and the dev set that is split off."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentence_state.data.errors import DataError
from sentence_state.data.example import Example, split_off_dev


def labelled(labels):
    return [Example([str(i)], label, path="train.csv", lines=(i + 2,)) for i, label in enumerate(labels)]


def test_words_without_a_text_are_located_in_the_words_joined_by_spaces():
    text, offsets = Example(["New", "York", "!"]).located()
    assert [text[start:end] for start, end in offsets] == ["New", "York", "!"]


def test_an_error_names_the_file_and_the_line_of_the_word():
    example = Example(["a", "b"], path="train.conll", lines=range(7, 9))
    assert str(example.error("bad tag", word=1)) == "train.conll:8: bad tag"


def test_dev_is_stratified_by_label():
    train, dev = split_off_dev(labelled(["a"] * 700 + ["b"] * 200 + ["c"] * 100), fraction=0.1)
    assert Counter(example.label for example in dev) == {"a": 70, "b": 20, "c": 10}
    assert len(train) == 900


def test_the_same_seed_gives_the_same_dev_and_another_seed_another():
    examples = labelled(["a", "b"] * 50)
    assert split_off_dev(examples, seed=3) == split_off_dev(examples, seed=3)
    assert split_off_dev(examples, seed=3) != split_off_dev(examples, seed=4)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=3), st.floats(0.01, 0.9), st.integers(0, 5))
def test_the_split_loses_nothing_keeps_the_order_and_leaves_every_label_in_train(labels, fraction, seed):
    if len(set(labels)) == len(labels):
        return
    examples = labelled(labels)
    train, dev = split_off_dev(examples, fraction, seed)
    assert sorted(train + dev, key=lambda example: example.lines[0]) == examples
    assert train == sorted(train, key=lambda example: example.lines[0])
    assert {example.label for example in train} == set(labels)
    assert len(dev) >= 1


def test_tagged_sentences_are_split_without_labels():
    train, dev = split_off_dev([Example([str(i)], tags=["O"]) for i in range(20)], 0.25)
    assert (len(train), len(dev)) == (15, 5)


def test_too_few_examples_are_refused():
    with pytest.raises(
        DataError, match=r"train.csv:2: 1 example\(s\) are too few to split off a dev set: give --dev FILE"
    ):
        split_off_dev(labelled(["a"]))


def test_a_file_without_empty_lines_is_recognised():
    sentence = Example(["a"] * 360, tags=["O"] * 360, path="train.conll", lines=range(1, 361))
    with pytest.raises(DataError, match=r"train.conll:1: one sentence of 360 words: is there an empty line after each"):
        split_off_dev([sentence])
