"""What a model may be asked: strings, or lists of words."""

import pytest

from sentence_state.data.example import Example
from sentence_state.data.predictions import read_texts, span_predictions
from sentence_state.data.tokenizer import Tokenizer


def test_texts_and_lists_of_words_are_read():
    examples = read_texts(["it's late", ("it's", "late"), (word for word in ["late"])], Tokenizer())
    assert [example.words for example in examples] == [["it", "'s", "late"], ["it's", "late"], ["late"]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, "is NoneType"),
        (float("nan"), "is float"),
        (3, "is int"),
        (b"ab", "is bytes"),
        ({"text": "a"}, "is dict"),
        (["a", None], "holds NoneType"),
        ([["a"]], "holds list"),
    ],
)
def test_anything_else_is_refused_with_its_place(text, found):
    with pytest.raises(ValueError, match=f"^text 1 {found}, expected a string or a list of words$"):
        read_texts(["a", text], Tokenizer())


def test_a_plain_tag_is_a_span_of_one_word_and_o_is_none():
    example = Example(["John", "Smith", "lives"])
    assert span_predictions(example, ["PER", "PER", "O"], [0.9, 0.8, 0.7], "plain") == [
        {"start": 0, "end": 4, "label": "PER", "text": "John", "score": 0.9},
        {"start": 5, "end": 10, "label": "PER", "text": "Smith", "score": 0.8},
    ]
