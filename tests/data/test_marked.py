"""Utterances with slots marked inline, and the sample that is written so."""

import pytest

from sentence_state.data.errors import DataError
from sentence_state.data.marked import read_marked, read_sample
from sentence_state.data.tag_schemes import tags_to_spans
from sentence_state.data.tokenizer import Tokenizer


def write(tmp_path, text):
    path = tmp_path / "train.txt"
    path.write_text(text)
    return path


def test_label_slots_and_offsets_are_read(tmp_path):
    path = write(tmp_path, "fly\tfrom [lisbon](from) to [new york](to) [friday](date)\n\nstop\tno thanks\n")
    fly, stop = read_marked(path, target_scheme="bio").examples
    assert fly.words == ["from", "lisbon", "to", "new", "york", "friday"]
    assert fly.tags == ["O", "B-from", "O", "B-to", "I-to", "B-date"]
    assert fly.label == "fly"
    assert fly.text == "from lisbon to new york friday"
    assert [fly.text[start:end] for start, end in fly.offsets] == fly.words
    assert (stop.label, stop.tags, stop.lines) == ("stop", ["O", "O"], (3,))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no tab here", '2: expected a label, a tab and an utterance, got "no tab here"'),
        ("\twords", "2: expected a label, a tab and an utterance"),
        ("fly\t  ", "2: empty text"),
        ("fly\tto [new york", '2: a slot is written [words](name), and a name has no spaces, got "to [new york"'),
        ("fly\tto [paris](to place)", "2: a slot is written [words](name), and a name has no spaces, got"),
        ("fly\tto [new york] now", "2: a slot is written [words](name)"),
        ("fly\tto [par](to)is", '2: the slot "[par](to)" must cover whole words'),
        ("fly\tto [](to) x", '2: the slot "[](to)" must cover whole words'),
    ],
)
def test_bad_marks_are_refused_with_file_and_line(tmp_path, line, message):
    path = write(tmp_path, f"fly\ta b\n{line}\n")
    with pytest.raises(DataError) as error:
        read_marked(path)
    assert str(error.value).startswith(f"{path}:{message}")


def test_punctuation_and_contractions_are_words_of_their_own(tmp_path):
    path = write(tmp_path, "fly\tI don't fly to [paris](to), [today](date)!\n")
    (fly,) = read_marked(path, target_scheme="bio").examples
    assert fly.words == ["I", "do", "n't", "fly", "to", "paris", ",", "today", "!"]
    assert fly.tags == [*["O"] * 5, "B-to", "O", "B-date", "O"]
    assert [fly.text[start:end] for start, end in fly.offsets] == fly.words


def test_the_tokenizer_can_be_chosen(tmp_path):
    path = write(tmp_path, "fly\tI don't fly, [today](date)\n")
    spaces = Tokenizer(whitespace=True, contractions=False)
    assert read_marked(path, tokenizer=spaces).examples[0].words == ["I", "don't", "fly,", "today"]


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"train.txt:1: the file is empty"):
        read_marked(write(tmp_path, "\n"))


def test_the_embedded_sample_serves_both_tasks():
    splits = read_sample()
    examples = splits.train + splits.dev + splits.test
    assert len(examples) >= 1500
    assert len({example.label for example in splits.train}) >= 12
    assert len({span.label for example in splits.train for span in tags_to_spans(example.tags, "bio")}) >= 15
    assert {example.label for example in splits.dev + splits.test} <= {example.label for example in splits.train}
    for example in examples:
        assert [example.text[start:end] for start, end in example.offsets] == example.words
