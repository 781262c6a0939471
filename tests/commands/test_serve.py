"""The token that `serve` asks clients for."""

import pytest

from sentence_state.commands.flags import UsageError
from sentence_state.commands.serve import TOKEN, read_token


def test_without_a_token_there_is_none(monkeypatch):
    monkeypatch.delenv(TOKEN, raising=False)
    assert read_token(None) is None


@pytest.mark.parametrize("given", ["sesame", "sesame\n", " sesame\r\n"])
def test_blanks_around_a_token_are_not_part_of_it(monkeypatch, tmp_path, given):
    monkeypatch.setenv(TOKEN, given)
    assert read_token(None) == "sesame"
    monkeypatch.setenv(TOKEN, "another")
    (tmp_path / "token").write_text(given)
    assert read_token(tmp_path / "token") == "sesame"


@pytest.mark.parametrize("given", ["", " ", "\n"])
def test_a_token_that_is_set_but_empty_is_no_way_to_do_without_one(monkeypatch, tmp_path, given):
    monkeypatch.setenv(TOKEN, given)
    with pytest.raises(UsageError, match=r"^SENTENCE_STATE_TOKEN: the token is empty$"):
        read_token(None)
    (tmp_path / "token").write_text(given)
    with pytest.raises(UsageError, match=r"token: the token is empty$"):
        read_token(tmp_path / "token")


def test_a_token_file_may_begin_with_the_mark_of_utf8(tmp_path):
    (tmp_path / "token").write_text("sesame\n", encoding="utf-8-sig")
    assert read_token(tmp_path / "token") == "sesame"


@pytest.mark.parametrize("given", ["ses\name", "sesame\0", "ses\ufeffame"])
def test_a_token_that_no_client_could_send_is_refused(tmp_path, given):
    (tmp_path / "token").write_text(given)
    with pytest.raises(UsageError, match=r"token: the token has characters that cannot be printed$"):
        read_token(tmp_path / "token")


def test_a_token_is_utf8(monkeypatch, tmp_path):
    (tmp_path / "token").write_text("sesame", encoding="utf-16")
    with pytest.raises(UsageError, match=r"token: the token is not UTF-8$"):
        read_token(tmp_path / "token")
    monkeypatch.setenv(TOKEN, "caf\udce9")  # what Python makes of a byte that is not UTF-8
    with pytest.raises(UsageError, match=r"^SENTENCE_STATE_TOKEN: the token has characters"):
        read_token(None)
