"""Data sets of the hub, with a stand-in for the package `datasets`: no test downloads anything."""

import sys
from types import SimpleNamespace

import pytest

from sentence_state.data.errors import DataError
from sentence_state.data.hub import read_hub


class Rows(list):
    """The part of datasets.Dataset that is used."""

    def __init__(self, rows, **features):
        super().__init__(rows)
        self.features = {name: features.get(name) for name in rows[0]}
        self.column_names = list(rows[0])


def stand_in(monkeypatch, parts):
    def load_dataset(name, configuration):
        if isinstance(parts, Exception):
            raise parts
        return parts

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))


def class_label(*names):
    return SimpleNamespace(names=list(names))


def test_texts_and_named_labels_are_read(monkeypatch):
    label = class_label("neg", "pos")
    train = Rows([{"sentence": "It's fine.", "label": 1}, {"sentence": "no", "label": 0}], label=label)
    test = Rows([{"sentence": "secret", "label": -1}], label=label)
    stand_in(monkeypatch, {"train": train, "validation": train, "test": test})
    splits = read_hub("sst2", task="classification")
    assert [(example.words, example.label) for example in splits.train] == [
        (["It", "'s", "fine", "."], "pos"),
        (["no"], "neg"),
    ]
    assert len(splits.dev) == 2
    assert splits.test == []
    assert str(splits.train[1].error("odd")) == "sst2[train]:2: odd"


def test_words_and_named_tags_are_read_and_converted(monkeypatch):
    feature = SimpleNamespace(feature=class_label("O", "B-PER", "I-PER"))
    train = Rows([{"id": "0", "tokens": ["Ann", "Lee", "ran"], "ner_tags": [1, 2, 0]}], ner_tags=feature)
    stand_in(monkeypatch, {"train": train})
    splits = read_hub("conll2003", task="tagging")
    assert splits.train[0].tags == ["B-PER", "E-PER", "O"]
    assert splits.dev == splits.test == []


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"test": []}, "set: the data set has no split 'train', only test"),
        ({"train": Rows([{"a": "x", "b": 1}])}, "set: which column holds the text? Columns: a, b. Use --text-column"),
        (ConnectionError("offline"), "set: the data set could not be loaded (ConnectionError: offline)"),
    ],
)
def test_what_goes_wrong_is_said(monkeypatch, parts, message):
    stand_in(monkeypatch, parts)
    with pytest.raises(DataError) as error:
        read_hub("set", task="classification")
    assert str(error.value) == message


def test_without_the_package_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r'sst2: .* need the package datasets: pip install "sentence-state\[hub\]"'):
        read_hub("sst2", task="classification")
