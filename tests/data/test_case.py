"""The case of a word."""

import pytest

from sentence_state.data.case import CASES, case_id


@pytest.mark.parametrize(
    ("word", "case"),
    [
        ("film", "lower"),
        ("NATO", "UPPER"),
        ("I", "Title"),
        ("Film", "Title"),
        ("Jean-Luc", "miXed"),
        ("McDonald", "miXed"),
        ("iPhone", "miXed"),
        ("2018", "123"),
        ("1,000.5", "123"),
        ("3rd", "a1"),
        ("B-52", "a1"),
        ("...", "other"),
        ("映画", "lower"),
    ],
)
def test_words_have_a_case(word, case):
    assert CASES[case_id(word)] == case
