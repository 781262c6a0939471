"""The case of a word as a feature, for vectors that are lower-cased."""

from __future__ import annotations

from functools import lru_cache

CASES = ("<pad>", "lower", "UPPER", "Title", "miXed", "123", "a1", "other")
PAD_CASE, LOWER, UPPER, TITLE, MIXED, DIGITS, WITH_DIGIT, OTHER = range(len(CASES))


@lru_cache(maxsize=100_000)
def case_id(word: str) -> int:
    """Position in CASES."""
    if any(character.isdigit() for character in word):
        return WITH_DIGIT if any(character.isalpha() for character in word) else DIGITS
    if not any(character.isalpha() for character in word):
        return OTHER
    if word.islower():
        return LOWER
    if word.isupper() and len(word) > 1:
        return UPPER
    if word[:1].isupper() and word[1:] == word[1:].lower():
        return TITLE
    return MIXED if word != word.lower() else LOWER  # scripts without case are lower
