"""Which form a file of `predict --input` has, for models of each task."""

from types import SimpleNamespace

import pytest

from sentence_state.commands.flags import Predict
from sentence_state.commands.input_files import has_columns, has_text_column, is_marked, read_input_file
from sentence_state.data.tokenizer import Tokenizer
from sentence_state.data.vocabulary import Vocabulary


def tagger(scheme="bioes", tags=("O", "S-PER", "B-LOC", "I-LOC", "E-LOC")):
    vocabularies = SimpleNamespace(tags=Vocabulary(list(tags)), labels=None)
    return SimpleNamespace(targets=("tags",), tag_scheme=scheme, vocabularies=vocabularies, tokenizer=Tokenizer())


def joint():
    labels = Vocabulary(["play", "stop"])
    vocabularies = SimpleNamespace(tags=Vocabulary(["O", "B-genre"]), labels=labels)
    return SimpleNamespace(targets=("label", "tags"), vocabularies=vocabularies, tokenizer=Tokenizer())


PLAIN = tagger("plain", ["NN", "VB", "."])
TREE = "1\tI\tI\tPRON\tPRP\t_\t2\tnsubj\t_\t_\n2\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n"


@pytest.mark.parametrize(
    ("model", "text", "expected"),
    [
        (tagger(), "John B-PER\nlives O\n\nin O\n", True),
        (tagger(), "北 B-LOC\n京 M-LOC\n市 E-LOC\n", True),
        (tagger(), "10 000\tO\nRome\tS-LOC\n", True),
        (tagger(), "# id = 1\n# text = a b\nRome B-NEW\n\n# id = 2\n# text = c\nin O\n-DOCSTART- O\n", True),
        (tagger(), TREE, True),
        (tagger(), "wake me at seven\nplan B or O\n", False),
        (tagger(), "O\nO\n", False),
        (tagger(), "", False),
        (PLAIN, "dogs NN\nbark VB\n. .\n", True),
        (PLAIN, "They left .\nWe stayed .\n", False),
        (joint(), "jazz B-genre\nnow O\n", False),
    ],
)
def test_columns_are_known_by_their_tags(model, text, expected):
    assert has_columns(text, model, {}) == expected


def test_tags_are_looked_for_where_they_were_in_training():
    text = "see O x a\nRome S-LOC y b\n"
    assert has_columns(text, tagger(), {"tag_column": "1"})
    assert not has_columns(text, tagger(), {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [("play\tsome [jazz](genre)\nstop\tit\n", True), ("play\tsome\nfly\taway\n", False), ("play some jazz\n", False)],
)
def test_marked_text_is_known_by_its_labels(text, expected):
    assert is_marked(text, joint()) == expected
    assert not is_marked(text, tagger())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tale\tlabel\na b\tpos\n", True),
        ('"id";"tale"\n1;a b\n', True),
        ('{"tale": "a b"}\n', True),
        ("a tale, and more\n", False),
        ("tale\na b\n", False),
        ("", False),
    ],
)
def test_a_table_is_known_by_the_column_of_training(text, expected):
    assert has_text_column(text, {"usual_text": "tale"}) == has_text_column(text, {"text_column": "tale"}) == expected


@pytest.mark.parametrize(
    ("name", "text", "flags", "expected"),
    [
        ("a.tsv", "John\tS-PER\nlives\tO\n", {}, ["John lives"]),
        ("a.txt", "1 John\n2 lives\n", {"word_column": 1}, ["John lives"]),
        ("a.txt", "id|said\n1|go home\n2|stay\n", {"text_column": "said"}, ["go home", "stay"]),
        ("a.txt", "go home\nstay\n", {}, ["go home", "stay"]),
    ],
)
def test_a_file_is_read_as_it_is_or_as_flags_say(tmp_path, name, text, flags, expected):
    path = tmp_path / name
    path.write_text(text)
    corpus = read_input_file(Predict(tmp_path, input=path, **flags), path, tagger())
    assert [" ".join(example.words) for example in corpus.examples] == expected
