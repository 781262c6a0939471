"""Words as a reader would cut them; offsets that always point at the word."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentence_state.data.tokenizer import Tokenizer, tokenize


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A gorgeous, witty film.", "A gorgeous , witty film ."),
        ("It's good; don't miss John's film!", "It 's good ; do n't miss John 's film !"),
        ("I CAN'T. They shouldn't've. We’ll see", "I CA N'T . They should n't 've . We ’ll see"),
        ("O'Brien and the dogs' bowls", "O'Brien and the dogs ' bowls"),
        ("already it 's cut , is n't it ?", "already it 's cut , is n't it ?"),
        ("Mr. Smith of the U.S. met J. Doe, e.g. on Jan. 5.", "Mr. Smith of the U.S. met J. Doe , e.g. on Jan. 5 ."),
        ("$3,000.50 (50%) at 10:30am", "$ 3,000.50 ( 50 % ) at 10:30am"),
        ("on 2018-05-06, -3.5 degrees or .5", "on 2018-05-06 , -3.5 degrees or .5"),
        ("see https://a.org/b?c=1. (www.x.com)", "see https://a.org/b?c=1 . ( www.x.com )"),
        ("mail me.you@web.co.uk, @bob #fun", "mail me.you@web.co.uk , @bob #fun"),
        ("well-known—yes...no -- 'quoted' “so”", "well-known — yes ... no -- ' quoted ' “ so ”"),
        ("the '90s :-) AT&T <3", "the '90s :-) AT&T <3"),
        ("wow😀👍🏽👨‍👩‍👧🇩🇪!", "wow 😀 👍🏽 👨‍👩‍👧 🇩🇪 !"),
        ("naïve हिन्दी 映画", "naïve हिन्दी 映 画"),
        ("end.Next", "end . Next"),
        ("zero\u200bwidth\ufeff", "zero width"),
        (" \t\n", ""),
    ],
)
def test_raw_text_is_cut_into_words(text, words):
    assert [token.text for token in tokenize(text)] == words.split()


def test_contractions_stay_whole_when_asked():
    assert [token.text for token in Tokenizer(contractions=False).tokenize("it's don't")] == ["it's", "don't"]


def test_tokenised_text_is_cut_at_spaces_only_and_at_contractions_when_asked():
    text = "it's  a [film] , isn't it ?"
    whole = Tokenizer(whitespace=True, contractions=False).tokenize(text)
    split = Tokenizer(whitespace=True).tokenize(text)
    assert [token.text for token in whole] == ["it's", "a", "[film]", ",", "isn't", "it", "?"]
    assert [token.text for token in split] == ["it", "'s", "a", "[film]", ",", "is", "n't", "it", "?"]


@given(
    st.text() | st.text(alphabet="ab'’sntd .,-:/@#1😀\u200d\ufe0f"),
    st.builds(Tokenizer, whitespace=st.booleans(), contractions=st.booleans()),
)
def test_offsets_give_back_every_word_and_lose_no_visible_character(text, tokenizer):
    tokens = tokenizer.tokenize(text)
    assert all(text[token.start : token.end] == token.text != "" for token in tokens)
    assert all(before.end <= after.start for before, after in pairwise(tokens))
    assert not any(character.isspace() for token in tokens for character in token.text)
    invisible = "\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
    visible = [character for character in text if not character.isspace() and character not in invisible]
    assert list("".join(token.text for token in tokens)) == visible


@pytest.mark.parametrize("unit", ["a", "+-", "a.", "1,", "a'", "s'", "'s", ":(", "@", "http://", "😀\u200d"])
def test_long_runs_take_linear_time(unit):
    assert tokenize(unit * 20_000)
