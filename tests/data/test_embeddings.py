"""Vectors of a vocabulary from files of all kinds, and the message for a damaged one."""

import gzip
import os
import zipfile

import numpy as np
import pytest

from sentence_state.data import vector_files
from sentence_state.data.embeddings import read_embeddings
from sentence_state.data.errors import DataError
from sentence_state.data.vocabulary import Vocabulary

GLOVE = "the 0.1 -0.2 3e-05\nThe 1 2 3\nfilm 0.5 0.25 -0.125\n"
VOCABULARY = Vocabulary(["the", "Film", "unheard"], [6, 3, 1])
EXPECTED = np.array([[0, 0, 0]] * 4 + [[0.1, -0.2, 3e-05], [0.5, 0.25, -0.125], [0, 0, 0]], np.float32)


def write(tmp_path, text, name="glove.txt"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def zipped(tmp_path, **members):
    path = tmp_path / "glove.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(f"{name}.txt", text)
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("glove.txt", GLOVE),
        ("glove.txt", GLOVE.rstrip()),
        ("glove.txt", GLOVE.replace("\n", "\r\n")),
        ("glove.txt", "\ufeff" + GLOVE),
        ("glove.txt", GLOVE.replace(" ", "\t")),
        ("glove.txt", "\ufeff3\t3\n" + GLOVE.replace(" ", "\t", 1)),
        ("glove.txt.gz", gzip.compress(GLOVE.encode(), mtime=0)),
        ("word2vec.txt", "3 3\n" + GLOVE),
        ("fasttext.vec", "3 3\n" + GLOVE.replace("\n", " \n")),
    ],
)
def test_the_same_vectors_are_read_from_every_form(tmp_path, name, content):
    embeddings = read_embeddings(write(tmp_path, content, name), VOCABULARY)
    np.testing.assert_array_equal(embeddings.vectors, EXPECTED)
    assert embeddings.found.tolist() == [False] * 4 + [True, True, False]


def test_a_zip_is_read_and_a_member_is_chosen_by_its_path(tmp_path):
    one = zipped(tmp_path, glove=GLOVE)
    np.testing.assert_array_equal(read_embeddings(one, VOCABULARY).vectors, EXPECTED)
    two = zipped(tmp_path, small="the 1 2\n", large=GLOVE)
    np.testing.assert_array_equal(read_embeddings(two / "large.txt", VOCABULARY).vectors, EXPECTED)
    with pytest.raises(
        DataError, match=r"glove.zip: the archive holds small.txt, large.txt: name one, as in .*/small.txt"
    ):
        read_embeddings(two, VOCABULARY)


def test_a_zip_that_cannot_be_unpacked_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"glove.zip: the archive holds no file"):
        read_embeddings(zipped(tmp_path), VOCABULARY)
    data = bytearray(zipped(tmp_path, glove=GLOVE).read_bytes())
    central = data.index(b"PK\1\2")
    locked, exotic = bytearray(data), bytearray(data)
    locked[6] = locked[central + 8] = 1  # the flag of encryption
    exotic[8] = exotic[central + 10] = 97  # a compression of which Python has never heard
    for content, message in ((locked, "is encrypted"), (exotic, "not supported")):
        with pytest.raises(DataError, match=rf"glove.zip: the archive cannot be unpacked \(.*{message}"):
            read_embeddings(write(tmp_path, bytes(content), "glove.zip"), VOCABULARY)


def test_a_word_is_found_as_written_before_it_is_found_lower_cased(tmp_path):
    vocabulary = Vocabulary(["The", "FILM", "film"])
    vectors = read_embeddings(write(tmp_path, GLOVE), vocabulary).vectors[4:]
    assert vectors.tolist() == [[1, 2, 3], [0.5, 0.25, -0.125], [0.5, 0.25, -0.125]]


def test_coverage_is_described(tmp_path):
    path = write(tmp_path, GLOVE)
    expected = f"{path}: 3-d vectors for 2 of 3 words (66.7%, 90.0% of all tokens), 1 of them lower-cased"
    assert read_embeddings(path, VOCABULARY).description == [expected]


def test_words_with_spaces_are_words_and_do_not_disturb_others(tmp_path):
    glove = "the 0.1 -0.2 3e-05\n. . . 7 7 7\nFilm name@domain.com 8 8 8\n" + GLOVE[GLOVE.index("film") :]
    embeddings = read_embeddings(write(tmp_path, glove), VOCABULARY)
    np.testing.assert_array_equal(embeddings.vectors, EXPECTED)
    spaced = Vocabulary([". . .", "."])
    assert read_embeddings(write(tmp_path, glove), spaced).vectors[4:].tolist() == [[7, 7, 7], [0, 0, 0]]


def test_of_a_word_that_comes_twice_the_first_is_read(tmp_path):
    vectors = read_embeddings(write(tmp_path, "a 1 1\na 2 2\nb 3 3\na 4 4\n"), Vocabulary(["a", "c"])).vectors
    assert vectors[4].tolist() == [1, 1]


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_blocks_of_any_size_give_the_same_vectors(tmp_path, monkeypatch, block):
    rng = np.random.default_rng(0)
    lines = [f"wörd{i} " + " ".join(f"{value:.5g}" for value in rng.standard_normal(9)) for i in range(50)]
    lines[20] = "two words " + lines[20].partition(" ")[2]
    path = write(tmp_path, "\n".join(lines) + "\n")
    vocabulary = Vocabulary([f"Wörd{i}" for i in range(0, 60, 3)])
    monkeypatch.setattr(vector_files, "BLOCK", block)
    vectors = read_embeddings(path, vocabulary).vectors[4:]
    expected = {line.rsplit(" ", 9)[0]: np.array(line.rsplit(" ", 9)[1:], np.float32) for line in lines}
    for i, vector in zip(range(0, 60, 3), vectors, strict=True):
        np.testing.assert_array_equal(vector, expected.get(f"wörd{i}", np.zeros(9, np.float32)))


def test_missing_vectors_are_drawn_like_those_found_and_padding_is_zero(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"w{i} " + " ".join(map(str, 3 + 0.5 * rng.standard_normal(8))) for i in range(300)]
    embeddings = read_embeddings(write(tmp_path, "\n".join(lines)), Vocabulary([f"w{i}" for i in range(600)]))
    matrix = embeddings.matrix(seed=1)
    np.testing.assert_array_equal(matrix[4:304], embeddings.vectors[4:304])
    assert matrix[304:].mean() == pytest.approx(3, abs=0.05)
    assert matrix[304:].std() == pytest.approx(0.5, abs=0.05)
    assert not matrix[0].any()
    np.testing.assert_array_equal(matrix, embeddings.matrix(seed=1))


def test_the_cache_replaces_the_file_until_file_or_vocabulary_change(tmp_path, monkeypatch):
    path, cache = write(tmp_path, GLOVE), tmp_path / "cache"
    first = read_embeddings(path, VOCABULARY, cache)
    read_vectors = vector_files.read_vectors
    monkeypatch.setattr("sentence_state.data.embeddings.read_vectors", None)
    second = read_embeddings(path, VOCABULARY, cache)
    np.testing.assert_array_equal(first.vectors, second.vectors)
    assert second.description[0] == first.description[0]
    assert second.description[1].startswith("vectors from the cache")
    with pytest.raises(TypeError):
        read_embeddings(path, Vocabulary(["film"]), cache)
    os.utime(path, (1, 1))
    with pytest.raises(TypeError):
        read_embeddings(path, VOCABULARY, cache)
    monkeypatch.setattr("sentence_state.data.embeddings.read_vectors", read_vectors)
    assert [name.suffix for name in cache.iterdir()] == [".npz"]


def test_a_damaged_cache_is_written_again(tmp_path):
    path, cache = write(tmp_path, GLOVE), tmp_path / "cache"
    read_embeddings(path, VOCABULARY, cache)
    (file,) = cache.iterdir()
    file.write_bytes(file.read_bytes()[:100])
    np.testing.assert_array_equal(read_embeddings(path, VOCABULARY, cache).vectors, EXPECTED)
    assert len(read_embeddings(path, VOCABULARY, cache).description) == 2


def test_a_full_disk_costs_the_cache_and_not_the_run(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    embeddings = read_embeddings(write(tmp_path, GLOVE), VOCABULARY, tmp_path / "cache")
    assert embeddings.description[1].endswith("No space left on device")
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 1 2 3\nfilm 1 2\n", "2: expected a word and 3 numbers, got 2 numbers (after 'film')"),
        ("the 1 2 3\nother 1 2\nfilm 1 2 3\n", "2: expected a word and 3 numbers, got 2 numbers (after 'other')"),
        ("the 1 2 3\nfilm 1 2 3 4\n", "2: expected a word and 3 numbers, got 4 numbers (after 'film')"),
        ("2 3\nthe 1 2 3\n\n", "3: expected a word and 3 numbers, got 0 numbers (after '')"),
        ("the 1 2 3\nfilm 1 2 3 4\nother 1 2\n", "2: expected a word and 3 numbers, got 4 numbers (after 'film')"),
        ("the 1 2 3\nfilm 1 x 3\n", "2: not 3 numbers after 'film'"),
        ("the 1 2 3\nfilm 1 nan 3\n", "2: not 3 numbers after 'film'"),
        ("", "1: the file is empty"),
        ("just some text here\n", "1: expected a word and its numbers, got 'just some text here'"),
        (b"2 3\nthe \0\0\0\0", "2: a binary file; save the vectors as text"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(DataError) as error:
        read_embeddings(path, VOCABULARY)
    assert str(error.value).startswith(f"{path}:{message}")


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.txt: no such file"):
        read_embeddings(tmp_path / "nowhere.txt", VOCABULARY)
    with pytest.raises(DataError, match=r"nowhere.txt: no such file"):
        read_embeddings(tmp_path / "nowhere.txt", VOCABULARY, tmp_path)
    with pytest.raises(DataError, match=r"glove.gz: the archive is damaged or cut off"):
        read_embeddings(write(tmp_path, gzip.compress(GLOVE.encode() * 9)[:-9], "glove.gz"), VOCABULARY)
    with pytest.raises(DataError, match=r"glove.zip: the archive is damaged or cut off"):
        read_embeddings(write(tmp_path, GLOVE, "glove.zip"), VOCABULARY)
    with pytest.raises(DataError, match=r"glove.txt: none of the 1 words has a vector here: is it the right file\?"):
        read_embeddings(write(tmp_path, GLOVE), Vocabulary(["unheard"]))
