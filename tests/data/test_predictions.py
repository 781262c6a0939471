"""What a model may be asked: strings, or lists of words."""

import pytest

from sentence_state.data.predictions import read_texts
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
