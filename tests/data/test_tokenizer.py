"""Words as a reader would cut them; offsets that always point at the word."""

import time
import unicodedata
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ภาษาไทยเป็นภาษาที่มีน้ำ", "ภา ษา ไท ย เป็ น ภา ษา ที่ มี น้ำ"),
        ("เมื่อปี๒๕๖๗ๆ ราคา฿100บาท", "เมื่ อ ปี ๒๕๖๗ ๆ รา คา ฿ 100 บา ท"),
        ("ພາສາລາວເປັນພາສາ໑໒", "ພາ ສາ ລາ ວ ເປັ ນ ພາ ສາ ໑໒"),
        ("မြန်မာ၊ အင်္ဂလိပ် မန္တလေး။ ၂၀၂၄", "မြ န် မာ ၊ အ င်္ဂ လိ ပ် မ န္တ လေး ။ ၂၀၂၄"),
        ("ភាសាខ្មែរផ្លូវការ។ ៥០០៛", "ភា សា ខ្មែ រ ផ្លូ វ កា រ ។ ៥០០ ៛"),
        ("#हिन्दी @தமிழ், #مَرحبا. #cafe\u0301!", "#हिन्दी @தமிழ் , #مَرحبا . #cafe\u0301 !"),
        ("#กรุงเทพ ไปexample.comนะ", "#กรุงเทพ ไป example.com นะ"),
    ],
)
def test_scripts_without_spaces_are_cut_into_syllables_as_far_as_their_signs_show_them(text, words):
    assert [token.text for token in tokenize(text)] == words.split()


@pytest.mark.parametrize("block", ["\u0e01\u0e4f", "\u0e81\u0ecf", "\u1000\u109f", "\u1780\u17df"])
def test_every_mark_of_these_scripts_stays_with_its_consonant(block):
    consonant, last = block
    for character in map(chr, range(ord(consonant), ord(last) + 1)):
        if unicodedata.category(character) in ("Mn", "Mc"):
            assert [token.text for token in tokenize(2 * (consonant + character))] in (
                2 * [consonant + character],
                [consonant + character + consonant + character],  # one that stacks
            )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("مرحبا، كيف الحال؟ نعم؛ ٣٫١٤ و٥٠٪", "مرحبا ، كيف الحال ؟ نعم ؛ ٣٫١٤ و٥٠ ٪"),
        ("قیمت ۵٬۰۰۰ تومان، می\u200cخواهم.", "قیمت ۵٬۰۰۰ تومان ، می\u200cخواهم ."),
        ("کیا حال ہے؟ ٹھیک۔", "کیا حال ہے ؟ ٹھیک ۔"),
        ("नमस्ते। कैसे हैं?॥", "नमस्ते । कैसे हैं ? ॥"),
        ("Բարեւ՝ աշխարհ։", "Բարեւ ՝ աշխարհ ։"),
        ("בית־ספר, ־ שלום׃", "בית־ספר , ־ שלום ׃"),
        ("ሰላም።እንዴት፡ነህ፣", "ሰላም ። እንዴት ፡ ነህ ፣"),
    ],
)
def test_punctuation_of_other_scripts_is_no_part_of_a_word(text, words):
    assert [token.text for token in tokenize(text)] == words.split()


@given(st.text(alphabet="ab'’sntd. -#1\u00ad"), st.booleans())
def test_soft_hyphens_change_no_word_and_words_are_found_in_the_text_with_them(text, whitespace):
    tokenizer = Tokenizer(whitespace=whitespace)
    tokens = tokenizer.tokenize(text)
    assert [token.text for token in tokens] == [word for word, _, _ in tokenizer.tokenize(text.replace("\u00ad", ""))]
    assert [text[start:end].replace("\u00ad", "") for _, start, end in tokens] == [token.text for token in tokens]


def test_a_word_with_soft_hyphens_is_one_word():
    assert tokenize("(co\u00adope\u00adrate\u00ad)")[1] == ("cooperate", 1, 12)


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
    assert all(text[token.start : token.end].replace("\u00ad", "") == token.text != "" for token in tokens)
    assert all(before.end <= after.start for before, after in pairwise(tokens))
    assert not any(character.isspace() for token in tokens for character in token.text)
    invisible = "\u00ad\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
    visible = [character for character in text if not character.isspace() and character not in invisible]
    assert list("".join(token.text for token in tokens)) == visible


@pytest.mark.parametrize(
    "unit", ["a", "+-", "a.", "1,", "a'", "s'", "'s", ":(", "@", "http://", "😀\u200d", "เ", "กี้", "\u17d2", "\u00ada"]
)
def test_long_runs_take_linear_time(unit):
    times = [(seconds([unit * 160_000]), seconds([unit * 2_500] * 64)) for _ in range(3)]
    assert any(long < 16 * short for long, short in times)  # 1 where it is linear, 64 where it is quadratic


def seconds(texts):
    """Of the processor, not of what else this machine does; all words are kept, so that both need as much memory."""
    started = time.process_time()
    words = [tokenize(text) for text in texts]
    assert all(words)
    return time.process_time() - started
