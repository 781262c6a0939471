"""Words, characters and labels <-> ids."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentence_state.data.errors import DataError
from sentence_state.data.vocabulary import Vocabulary

SENTENCES = [["the", "film", "the", "end"], ["The", "end"]]


def test_special_words_come_first_then_the_most_frequent_then_the_alphabet():
    vocabulary = Vocabulary.of_words(SENTENCES)
    assert vocabulary.words == ["<pad>", "<unk>", "<s>", "</s>", "end", "the", "The", "film"]
    assert vocabulary.counts == [0, 0, 0, 0, 2, 2, 1, 1]
    assert vocabulary.ids(["the", "unheard", "film"]) == [5, 1, 7]
    assert vocabulary.word(5) == "the"


def test_the_order_does_not_depend_on_the_order_of_sentences():
    assert Vocabulary.of_words(SENTENCES) == Vocabulary.of_words(SENTENCES[::-1])


def test_of_many_words_the_most_frequent_are_kept():
    assert Vocabulary.of_counts({"film": 1, "<pad>": 9, "the": 2, "end": 2}, most=2).words[4:] == ["end", "the"]


def test_a_special_word_in_somebodys_text_is_an_unknown_word():
    vocabulary = Vocabulary.of_words([["<pad>", "<s>", "a"]])
    assert vocabulary.words[4:] == ["a"]
    assert vocabulary.ids(["<pad>", "<s>", "<unk>"]) == [1, 1, 1]


def test_characters_are_counted_over_all_words():
    vocabulary = Vocabulary.of_characters([["abb", "b"], ["b"]])
    assert (vocabulary.words[4:], vocabulary.counts[4:]) == (["b", "a"], [4, 1])


def test_labels_have_no_special_words_and_no_unknown_one():
    labels = Vocabulary.of_labels(["pos", "neg", "pos"])
    assert labels.words == ["neg", "pos"]
    assert labels.ids(["pos", "neg"]) == [1, 0]
    with pytest.raises(KeyError):
        labels.id("neutral")


@given(st.lists(st.lists(st.text(min_size=1).filter(lambda word: word.isprintable()))))
def test_a_vocabulary_comes_back_from_its_json(sentences):
    vocabulary = Vocabulary.of_words(sentences)
    again = Vocabulary.from_json(vocabulary.to_json())
    assert again == vocabulary
    assert again.hash() == vocabulary.hash()


def test_a_vocabulary_is_loaded_from_a_file(tmp_path):
    for vocabulary in (Vocabulary.of_words([["naïve", "😀"]]), Vocabulary.of_labels(["pos", "neg"])):
        (tmp_path / "words.json").write_text(vocabulary.to_json(), encoding="utf-8")
        assert Vocabulary.load(tmp_path / "words.json") == vocabulary


@pytest.mark.parametrize("content", ["", "[]", "{}", json.dumps({"format": "sentence-state vocabulary 1"}), "\x80"])
def test_a_file_that_is_no_vocabulary_is_refused(tmp_path, content):
    path = tmp_path / "words.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=r"words.json: no vocabulary of sentence-state"):
        Vocabulary.load(path)
    with pytest.raises(DataError, match=r"nowhere.json: no such file"):
        Vocabulary.load(tmp_path / "nowhere.json")
