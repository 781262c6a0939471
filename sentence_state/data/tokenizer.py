"""Raw text -> words with character offsets: text[start:end] is the word, less the soft hyphens in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

APOSTROPHE = "['’]"
SOFT_HYPHEN = "\u00ad"  # where a word may be broken: no part of it
INVISIBLE = "\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"  # separators without a width
PUNCTUATION = (
    r"!-/:-@\[-^`{-~\u00a1-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7\u2010-\u2027\u2030-\u205e"
    r"\u2070-\u20cf\u2100-\u2bff\u3001-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\U0001f000-\U0001faff"
    r"\u055d\u0589\u05be\u05c0\u05c3\u060c\u060d\u061b\u061e\u061f\u066a-\u066d\u06d4\u0964\u0965\u1360-\u1368"
)
# Thai, Lao, Burmese and Khmer, less their digits: no spaces between words
UNSPACED = r"\u0e00-\u0e4f\u0e5a-\u0ecf\u0eda-\u0eff\u1000-\u103f\u104a-\u108f\u109a-\u109f\u1780-\u17df\u17ea-\u17ff"
VOWEL_BEFORE = r"\u0e40-\u0e44\u0ec0-\u0ec4"  # and of the consonant after it
SIGN = (  # above, below or behind a consonant
    r"\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebd\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064"
    r"\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u17b4-\u17d3\u17dd"
)
STACKED = rf"[\u1039\u17d2][{UNSPACED}]"  # a consonant written below the one before it
IDEOGRAPH = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
LETTER = rf"[^\s{INVISIBLE}{PUNCTUATION}{IDEOGRAPH}{UNSPACED}]"  # letters, digits, marks and _ of other scripts
POINT = r"[.,:/\u066b\u066c]"  # between the digits of a number
PICTURE = r"[\u2190-\u21ff\u2300-\u2bff\U0001f000-\U0001faff](?:\ufe0f|[\U0001f3fb-\U0001f3ff])?"
ABBREVIATIONS = (
    "Mr Mrs Ms Dr Prof Sr Jr St Mt Gen Sen Rep Gov Inc Ltd Co Corp Jan Feb Aug Sep Sept Oct Nov Dec vs etc mr mrs ms dr"
)
TOP_LEVEL = "com|org|net|edu|gov|io|uk|de|fr|eu|info"

TOKEN = re.compile(
    "|".join(
        [
            r"[A-Za-z0-9]+(?!\S)",  # an ordinary word before a space: the rules below say the same, but slowly
            r"(?:https?://|www\.)[^\s<>\"]*[^\s<>\"'’.,;:!?)\]}]",  # URL, less the sentence's punctuation
            r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+",  # e-mail
            rf"(?:[A-Za-z0-9-]{{1,63}}\.){{1,4}}(?:{TOP_LEVEL})(?!{LETTER})(?:/[\w/-]*)?",  # example.com/page
            rf"(?<!\w)[@#](?:[\w{SIGN}]|{LETTER})+",  # @name, #topic
            r"[\U0001f1e6-\U0001f1ff]{2}|[#*0-9]\ufe0f?\u20e3",  # flags and keycaps
            rf"{PICTURE}(?:\u200d{PICTURE})*",  # emoji with their modifiers
            r"(?<!\w)(?:[:;=][-'^]?[()\[\]DPpOo/\\|*]|<3)(?!\w)",  # :-) and the like
            r"(?:[^\W\d_]\.){2,}",  # U.S., e.g.
            rf"(?:{ABBREVIATIONS.replace(' ', '|')})\.(?!{LETTER})",
            r"(?<![\w.])[A-HJ-Z]\.(?=\s[A-Z])",  # J. Smith
            rf"(?<![^\s(])[-+]\d+(?:{POINT}\d+)*{LETTER}*|(?<!\w)\.\d+",  # -3.5, .5
            rf"\d+(?:{POINT}\d+)+{LETTER}*",  # 1,000, 3.5GB, 10:30
            rf"{APOSTROPHE}(?:\d\ds|(?i:s|m|re|ve|ll|d))(?!{LETTER})",  # '90s, and 's where it stands alone
            r"[A-Z]+&[A-Z]+",  # AT&T
            rf"{LETTER}+(?:[-‐\u05be'’]{LETTER}+)*",  # words, with hyphens and apostrophes inside
            rf"[{IDEOGRAPH}]",
            rf"[{VOWEL_BEFORE}]?[{UNSPACED}](?:{STACKED}|[{SIGN}])*",  # a syllable, as far as its signs show one
            r"\.{2,}|-{2,}|``|''",
            rf"[^\s{INVISIBLE}]",
        ]
    )
)
VISIBLE = re.compile(rf"[^\s{INVISIBLE}]+")
CONTRACTION = re.compile(rf"(.*\w)(n{APOSTROPHE}t|{APOSTROPHE}(?:s|m|re|ve|ll|d)|(?<=s){APOSTROPHE})", re.IGNORECASE)

MOST_PARTS = 3  # that are split off one word


class Token(NamedTuple):
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Tokenizer:
    """`whitespace`: the text is tokenised already, cut it at spaces only.
    `contractions`: it's -> it 's, don't -> do n't, as in the Penn Treebank and in GloVe's vocabulary."""

    whitespace: bool = False
    contractions: bool = True

    def tokenize(self, text: str) -> list[Token]:
        if SOFT_HYPHEN in text:
            places = [place for place, character in enumerate(text) if character != SOFT_HYPHEN]
            tokens = self.tokenize(text.replace(SOFT_HYPHEN, ""))
            return [Token(word, places[start], places[end - 1] + 1) for word, start, end in tokens]
        pattern = VISIBLE if self.whitespace else TOKEN
        tokens = []
        for match in pattern.finditer(text):
            token = Token(match.group(), match.start(), match.end())
            if self.contractions and ("'" in token.text or "’" in token.text):
                tokens.extend(split_contraction(token))
            else:
                tokens.append(token)
        return tokens


def tokenize(text: str) -> list[Token]:
    """Words of raw text, contractions split."""
    return Tokenizer().tokenize(text)


def split_contraction(token: Token) -> list[Token]:
    """it's -> it 's; shouldn't've -> should n't 've."""
    parts: list[Token] = []
    while len(parts) < MOST_PARTS and (match := CONTRACTION.fullmatch(token.text)):
        middle = token.start + match.start(2)
        parts.append(Token(match.group(2), middle, token.end))
        token = Token(match.group(1), token.start, middle)
    return [token, *reversed(parts)]
