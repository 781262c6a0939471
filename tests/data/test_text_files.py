"""Bytes on disk -> text, or a message with file and line."""

import gzip

import pytest

from sentence_state.data.errors import DataError
from sentence_state.data.text_files import read_text


def write(tmp_path, data, name="file.csv"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("naïve\nfilm\n".encode(), "UTF-8"),
        (b"\xef\xbb\xbf" + "naïve\nfilm\n".encode(), "UTF-8"),
        ("naïve\nfilm\n".encode("utf-16"), "UTF-16"),
        ("naïve\nfilm\n".encode("utf-32"), "UTF-32"),
        (b"\0\0\xfe\xff" + "naïve\nfilm\n".encode("utf-32-be"), "UTF-32"),
        ("naïve\r\nfilm\r\n".encode(), "UTF-8"),
        ("naïve\r\r\nfilm\r\n".encode(), "UTF-8"),
        ("naïve\rfilm\r".encode(), "UTF-8"),
        ("naïve\nfilm\n".encode("cp1252"), "cp1252 (line 1 is not UTF-8; --encoding to choose)"),
    ],
)
def test_mark_newlines_and_encoding_are_found_out(tmp_path, data, encoding):
    assert read_text(write(tmp_path, data))[1:3] == ("naïve\nfilm\n", encoding)


def test_gzip_is_recognised_by_its_content_whatever_the_name(tmp_path):
    assert read_text(write(tmp_path, gzip.compress(b"text\n"), "file.txt")).text == "text\n"


def test_an_encoding_that_is_given_is_used(tmp_path):
    assert read_text(write(tmp_path, "кино".encode("cp1251")), encoding="cp1251").text == "кино"


def test_typographic_quotes_of_windows_are_read_as_cp1252(tmp_path):
    assert read_text(write(tmp_path, b"a \x93fine\x94 film \x97 it\x92s good\n")).text == "a “fine” film — it’s good\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"one\ntwo \x81 three\n", "2: byte 0x81 is not UTF-8"),
        (b"one\ntwo\nthree \xff four\n", "3: byte 0xff is not UTF-8"),
        ("é è ê à\n".encode() * 9 + b"caf\xe9\n", "10: byte 0xe9 is not UTF-8"),
        (b"one\n\x01\x02\xe9\n", "2: byte 0xe9 is not UTF-8"),
        (bytes(range(0xA0, 0xFF)), "1: byte 0xa0 is not UTF-8"),
        (b"one\ntwo\0\n", "2: a NUL byte: this is a binary file"),
        (b"PK\x03\x04rest", "1: this is an Excel workbook or a zip archive, not text: export it as CSV"),
        (b"\x89PNG\r\n\x1a\n", "1: this is an image, not text"),
    ],
)
def test_what_is_not_text_is_refused_with_its_line(tmp_path, data, message):
    path = write(tmp_path, data)
    with pytest.raises(DataError) as error:
        read_text(path)
    assert str(error.value).startswith(f"{path}:{message}")


def test_a_nul_of_another_encoding_is_refused_with_its_line(tmp_path):
    path = write(tmp_path, "one\ntwo\n".encode("utf-32-le"))
    with pytest.raises(DataError, match=r"file.csv:1: a NUL character: this is a binary file, or not utf-16"):
        read_text(path, encoding="utf-16-le")


def test_a_wrong_encoding_is_refused_with_its_line(tmp_path):
    path = write(tmp_path, b"one\nna\xefve\n")
    with pytest.raises(DataError, match=r"file.csv:2: byte 0xef is not utf-8"):
        read_text(path, encoding="utf-8")
    with pytest.raises(DataError, match=r"file.csv: there is no encoding 'klingon'"):
        read_text(path, encoding="klingon")


def test_a_missing_file_a_folder_and_a_damaged_gzip_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.csv: no such file"):
        read_text(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match=r": this is a folder, not a file"):
        read_text(tmp_path)
    with pytest.raises(DataError, match=r"file.gz: the gzip file is damaged or cut off"):
        read_text(write(tmp_path, gzip.compress(b"text\n" * 99)[:-12], "file.gz"))
