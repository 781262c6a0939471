import numpy as np
import pytest

from sentence_state.data import DataError, Vocabulary, read_embeddings
from sentence_state.data.vector_archives import write_archive

WORDS = ["the", "Paris", "film", "Zürich", "unheard"]


@pytest.fixture
def glove(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"{word} {' '.join(f'{x:.4f}' for x in rng.normal(size=6))}" for word in ("the", "paris", "film", "Zürich", "x")
    ]
    path = tmp_path / "glove.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_an_archive_gives_what_its_file_gives(glove, tmp_path):
    vocabulary = Vocabulary.of_words([WORDS])
    assert write_archive([glove], WORDS, tmp_path / "glove.npz") == (7, 4)
    whole, small = read_embeddings(glove, vocabulary), read_embeddings(tmp_path / "glove.npz", vocabulary)
    np.testing.assert_array_equal(small.found, whole.found)
    np.testing.assert_allclose(small.vectors, whole.vectors, rtol=2**-11, atol=1e-6)  # half precision: 11 bits
    assert "x" not in np.load(tmp_path / "glove.npz")["words"].tobytes().decode().split("\n")


def test_vectors_of_two_files_stand_side_by_side(glove, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("film 1 2\nunheard 3 4\n")
    assert write_archive([glove, other], WORDS, tmp_path / "both.npz") == (7, 5)
    both = read_embeddings(tmp_path / "both.npz", Vocabulary(["film", "unheard", "the"]))
    film, unheard, the = both.vectors[both.found]
    assert film[6:].tolist() == [1, 2]
    assert unheard.tolist() == [0] * 6 + [3, 4]
    assert np.any(the[:6])
    assert the[6:].tolist() == [0, 0]


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    vocabulary = Vocabulary.of_words([WORDS])
    (tmp_path / "text.npz").write_text("the 1 2 3\n")
    np.savez(tmp_path / "other.npz", weights=np.zeros(3))
    for name, message in (("text.npz", "no archive"), ("other.npz", "no archive"), ("none.npz", "no such file")):
        with pytest.raises(DataError, match=rf"{name}: {message}"):
            read_embeddings(tmp_path / name, vocabulary)


def test_an_archive_that_would_fill_the_memory_is_refused(tmp_path):
    words = np.frombuffer(b"the", np.uint8)
    np.savez_compressed(tmp_path / "bomb.npz", words=words, vectors=np.zeros((1, 20_000_000), np.float16))
    np.savez_compressed(tmp_path / "wide.npz", words=words, vectors=np.ones((1, 20_000), np.float16))
    for name, message in (("bomb.npz", "more than 200 times its size"), ("wide.npz", "at most 10000")):
        with pytest.raises(DataError, match=message):
            read_embeddings(tmp_path / name, Vocabulary(["the"]))
