"""Which form a file of `predict --input` has, for models of each task."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from sentence_state.commands.flags import Predict
from sentence_state.commands.input_files import (
    delimiter_of_labels,
    has_columns,
    has_text_column,
    is_marked,
    read_input_file,
)
from sentence_state.commands.saved_reading import encoding_in_training
from sentence_state.data import DataError
from sentence_state.data.tokenizer import Tokenizer
from sentence_state.data.vocabulary import Vocabulary


def tagger(scheme="bioes", tags=("O", "S-PER", "B-LOC", "I-LOC", "E-LOC")):
    vocabularies = SimpleNamespace(tags=Vocabulary(list(tags)), labels=None)
    return SimpleNamespace(targets=("tags",), tag_scheme=scheme, vocabularies=vocabularies, tokenizer=Tokenizer())


def joint():
    labels = Vocabulary(["play", "stop"])
    vocabularies = SimpleNamespace(tags=Vocabulary(["O", "B-genre"]), labels=labels)
    return SimpleNamespace(targets=("label", "tags"), vocabularies=vocabularies, tokenizer=Tokenizer())


def classifier():
    vocabularies = SimpleNamespace(tags=None, labels=Vocabulary(["pos", "neg"]))
    return SimpleNamespace(targets=("label",), vocabularies=vocabularies, tokenizer=Tokenizer())


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
        ("tale, or call or mail me\ngood film\n", False),
        ("tale, or call me\ngood film\nbad, really\nso so\n", False),
        ("tale,label\na,pos\nb,neg\nc d\n", True),
        ('tale,label\n"a, b, c",pos\n"d, ""e"", f\ng, h",neg\n', True),
        ('tale, label\n"a, b", pos\n"c, d, e", neg\n', True),
        ('tale,label\n"a \\"b\\", c",pos\n"d, \\"e\\", f",neg\n', True),
        ("tale,label\n", True),
        ("\n" * 300 + "tale and more\n", False),
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


@pytest.mark.parametrize("name", ["a.txt", "a.conll"])
def test_tags_are_not_taken_for_words_of_a_column_that_training_had_more(tmp_path, name):
    (tmp_path / "training.json").write_text(json.dumps({"reading": {"word_column": 1}}))
    path = tmp_path / name
    path.write_text("1 John S-PER\n2 lives O\n")
    assert read_input_file(Predict(tmp_path, input=path), path, tagger()).examples[0].words == ["John", "lives"]
    path.write_text("John S-PER\nlives O\n")
    message = "words, as in training, and tags are both column 1 of 2, counted from 0: choose another --word-column"
    with pytest.raises(DataError, match=message):
        read_input_file(Predict(tmp_path, input=path), path, tagger())
    for column, words in ((0, ["John", "lives"]), (1, ["S-PER", "O"])):
        corpus = read_input_file(Predict(tmp_path, input=path, word_column=column), path, tagger())
        assert corpus.examples[0].words == words


def pipe_of(text):
    """A path that gives the text once, as process substitution in a shell does."""
    if not Path("/dev/fd").exists():
        pytest.skip("needs /dev/fd")
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    return Path(f"/dev/fd/{reader}"), reader


@pytest.mark.parametrize(
    ("model", "text", "expected"),
    [
        (tagger(), "John\tS-PER\nlives\tO\n", ["John lives"]),
        (joint(), "play\tsome [jazz](genre)\nstop\tit\n", ["some jazz", "it"]),
        (classifier(), "pos\tgo , home\nneg\tstay , there\n", ["go , home", "stay , there"]),
        (classifier(), "go home;pos\nstay;neg\n", ["go home", "stay"]),
        (classifier(), "sep=;\ntale;label\ngo home;pos\n", ["go home"]),
        (tagger(), "id,tale\n1,go home\n2,stay\n", ["go home", "stay"]),
        (tagger(), "go home\nstay\n", ["go home", "stay"]),
    ],
)
def test_a_pipe_is_read_as_a_file_is(tmp_path, model, text, expected):
    (tmp_path / "training.json").write_text(json.dumps({"reading": {"usual_text": "tale", "encoding": "cp1252"}}))
    path, reader = pipe_of(text)
    corpus = read_input_file(Predict(tmp_path, input=path), path, model)
    os.close(reader)
    assert [" ".join(example.words) for example in corpus.examples] == expected


@pytest.mark.parametrize("text", ['{"text": "b", "id": "a longer name"}\n', '\n{"text": "b", "id": "a longer name"}\n'])
@pytest.mark.parametrize("name", ["a.jsonl", "a.txt", "a.csv"])
def test_columns_of_json_have_no_numbers_whatever_the_name(tmp_path, name, text):
    (tmp_path / "training.json").write_text(json.dumps({"reading": {"text_column": "2", "label_column": "1"}}))
    path = tmp_path / name
    path.write_text(text)
    corpus = read_input_file(Predict(tmp_path, input=path), path, tagger())
    assert [example.text for example in corpus.examples] == ["b"]


@pytest.mark.parametrize(
    ("text", "saved", "expected"),
    [
        ("pos\ta film, good\nneg\ta film, bad\n", {}, "\t"),
        ("pos\ta film\n", {}, "\t"),
        ('"a film, good",pos\n"a ""film"", bad",neg\n', {}, ","),
        ("".join(f"a film;{'pos' if i < 300 else 'neg'}\n" for i in range(600)), {}, ";"),
        ("sep=;\na film, good;pos\na film, bad;neg\n", {}, ";"),
        ("a film^pos\nbad^neg\n", {"delimiter": "^"}, "^"),
        ("pos\tneg,pos\nneg\tpos,neg\n", {"delimiter": "tab"}, "\t"),
        ("pos\tneg,pos\nneg\tpos,neg\n", {"delimiter": ","}, ","),
        ("1\ta film\n2\tanother\n", {}, None),
        ("pos, I say\npos, so I said\n", {}, None),
        ("a film\npos, neg\n", {}, None),
        ("pos\nneg\n", {}, None),
        ("", {}, None),
    ],
)
def test_a_table_without_a_header_is_known_by_its_labels(text, saved, expected):
    assert delimiter_of_labels(text, classifier(), saved) == expected
    assert delimiter_of_labels(text, tagger(), saved) is None


def test_a_table_after_a_line_for_excel_is_known_by_its_header():
    assert has_text_column("sep=;\ntale;label\na;pos\n", {"usual_text": "tale"})


@pytest.mark.parametrize(
    ("encoding", "data", "expected"),
    [
        ("cp1250", "zły".encode("cp1250"), "cp1250"),
        ("cp1250", "zły".encode(), None),
        ("cp1250", b"good", "cp1250"),
        ("utf-16-le", "good\n".encode("utf-16-le"), "utf-16-le"),
        ("utf-16-le", b"good film\n", None),
        ("UTF32", b"good film\n", None),
    ],
)
def test_what_is_surely_utf8_is_not_read_in_the_encoding_of_training(encoding, data, expected):
    assert encoding_in_training(None, {"encoding": encoding}, Path("a.csv"), data)[0] == expected
