"""Files read in blocks: the same examples as when they are read whole, in memory one window at a time."""

import csv
import json
import random
import tracemalloc
from dataclasses import replace
from itertools import islice

import pytest
import torch

from sentence_state.data import blocks, read_marked, read_table, read_tagged, streamed_forms
from sentence_state.data import streaming as module
from sentence_state.data.errors import DataError
from sentence_state.data.indexing import Vocabularies
from sentence_state.data.streamed_forms import column_form, marked_form, table_form
from sentence_state.data.streaming import StreamedBatches, StreamedExamples
from sentence_state.data.vocabulary import Vocabulary

WORDS = ["a", "fine", "film", "with, commas", 'and "quotes"', "über", "two\nlines", "it's"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """So that a small file has many, in windows of three."""
    monkeypatch.setattr(blocks, "BLOCK", 300)
    monkeypatch.setattr(module, "WINDOW", 3)


def write_table(path, size=80, seed=0):
    rng = random.Random(seed)
    rows = [(" ".join(rng.choices(WORDS, k=rng.randint(1, 9))), rng.choice(["pos", "neg"])) for _ in range(size)]
    with open(path, "w", encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            file.writelines(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
        else:
            writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",", lineterminator="\r\n")
            writer.writerows([("text", "label"), *rows])
    return path


def write_columns(path, size=60):
    rng = random.Random(1)
    lines = ["-DOCSTART- O", ""]
    for _ in range(size):
        for _ in range(rng.randint(1, 6)):
            lines += rng.choice([["John B-PER", "Smith I-PER"], ["sat O"], ["in O"]])
        lines += rng.choice([[""], ["", " "]])
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def assert_same(streamed, corpus):
    examples = list(streamed)
    assert [(e.words, e.label, e.tags) for e in examples] == [(e.words, e.label, e.tags) for e in corpus.examples]
    assert [e.lines[0] for e in examples] == [e.lines[0] for e in corpus.examples]
    assert len(streamed) == len(examples)


@pytest.mark.parametrize("name", ["reviews.csv", "reviews.tsv", "reviews.jsonl"])
def test_a_table_in_blocks_is_the_table(name, tmp_path):
    path = write_table(tmp_path / name)
    streamed = StreamedExamples([path], table_form(path))
    assert_same(streamed, read_table(path))
    assert len(streamed.survey.blocks) > 5
    assert streamed[37].words == read_table(path).examples[37].words
    assert streamed.survey.vocabulary().words == Vocabulary.of_words(e.words for e in read_table(path).examples).words


def test_columns_in_blocks_are_the_columns(tmp_path):
    path = write_columns(tmp_path / "train.conll")
    form, scheme = column_form(path)
    streamed = StreamedExamples([path], form)
    assert_same(streamed, read_tagged(path))
    assert scheme == "bioes"
    assert len(streamed.survey.blocks) > 5


def test_conllu_and_marked_text_in_blocks(tmp_path):
    tree = "# text = it\n1\tit\tit\tPRON\tPRP\t_\t0\troot\t_\t_\n2\tsat\tsit\tVERB\tVBD\t_\t1\tdep\t_\t_\n\n"
    (tmp_path / "a.conllu").write_text(tree * 20)
    path = tmp_path / "a.conllu"
    assert_same(StreamedExamples([path], column_form(path)[0]), read_tagged(path))
    (tmp_path / "a.txt").write_text("play\tI'd like some [jazz](genre)!\nstop\tdon't, stop it\n" * 30)
    streamed = StreamedExamples([tmp_path / "a.txt"], marked_form(tmp_path / "a.txt"))
    assert_same(streamed, read_marked(tmp_path / "a.txt", target_scheme="bioes"))


def test_many_files_are_one_set_and_dev_is_left_out_of_train(tmp_path):
    paths = [write_table(tmp_path / f"{i}.csv", seed=i) for i in range(3)]
    streamed = StreamedExamples(paths, table_form(paths[0]), dev_fraction=0.1)
    everything = [e.words for path in paths for e in read_table(path).examples]
    dev = set(streamed.survey.dev_numbers)
    assert 10 < len(dev) < 40
    assert [e.words for e in streamed] == [words for i, words in enumerate(everything) if i not in dev]
    assert [e.words for e in streamed.survey.dev] == [everything[i] for i in sorted(dev)]
    again = StreamedExamples(paths, table_form(paths[0]), dev_fraction=0.1, seed=1)
    assert set(again.survey.dev_numbers) != dev


@pytest.mark.parametrize("fraction", [0.2, 0.4, 0.7, 0.9])
def test_dev_gets_the_share_that_was_asked_for(tmp_path, fraction):
    path = write_table(tmp_path / "a.jsonl", size=2000)
    survey = StreamedExamples([path], table_form(path), dev_fraction=fraction).survey
    assert len(survey.dev) == pytest.approx(2000 * fraction, rel=0.1)


def test_blank_lines_before_the_header_are_skipped(tmp_path):
    path = write_table(tmp_path / "a.csv")
    path.write_bytes(b"\xef\xbb\xbf\r\n \r\n" + path.read_bytes())
    assert_same(StreamedExamples([path], table_form(path)), read_table(path))


def test_texts_that_come_again_are_not_taken_for_labels(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"said": "{("yes", "no, no")[i % 2]}", "act": "{i % 3}"}}\n' for i in range(30)))
    assert_same(StreamedExamples([path], table_form(path)), read_table(path))


def test_dev_stays_small_however_many_sentences_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_DEV", 8)
    path = write_table(tmp_path / "a.jsonl", size=400)
    survey = StreamedExamples([path], table_form(path), dev_fraction=0.5).survey
    assert 0 < len(survey.dev) == len(survey.dev_numbers) <= 8


def batches_of(streamed, **options):
    survey = streamed.survey
    vocabularies = Vocabularies(survey.vocabulary(), survey.characters(), Vocabulary.of_labels(survey.labels))
    return StreamedBatches(streamed, vocabularies, 8, **options)


def test_an_epoch_has_every_sentence_once_in_an_order_of_its_own(tmp_path):
    path = write_table(tmp_path / "a.jsonl")
    batches = batches_of(StreamedExamples([path], table_form(path), dev_fraction=0.1))
    expected = sorted(set(range(80)) - set(batches.examples.survey.dev_numbers))
    orders = []
    for _ in range(2):
        size = len(batches)
        found = list(batches)
        assert len(found) == size
        orders.append([int(i) for batch in found for i in batch.positions])
        assert sorted(orders[-1]) == expected
    assert orders[0] != orders[1] != expected
    vocabulary = batches.vocabularies.words
    example = batches.examples[int(found[0].positions[0])]
    assert found[0].word_ids[0, 1 : int(found[0].lengths[0]) - 1].tolist() == vocabulary.ids(example.words)


def test_an_epoch_goes_on_from_any_batch_exactly(tmp_path):
    path = write_table(tmp_path / "a.csv")
    streamed = StreamedExamples([path], table_form(path))
    whole = list(batches_of(streamed))
    for start in (0, 1, 5, len(whole) - 1):
        batches = batches_of(streamed)
        batches.restore({"epoch": 0, "index": start})
        for a, b in zip(batches, whole[start:], strict=True):
            assert torch.equal(a.word_ids, b.word_ids)
            assert torch.equal(a.character_ids, b.character_ids)
        assert batches.state() == {"epoch": 1, "index": 0}
        assert batches.positions(0, start + 1) == whole[start].positions.tolist()


FORMS = {"a.csv": table_form, "a.jsonl": table_form, "a.conll": lambda path: column_form(path)[0], "a.txt": marked_form}


@pytest.mark.parametrize("name", FORMS)
def test_other_processes_read_the_same(name, tmp_path, monkeypatch):
    path = tmp_path / name
    if name == "a.txt":
        path.write_text("play\tI'd like [jazz](genre)!\nstop\tdon't, stop it\n" * 60)
    else:
        (write_columns if name == "a.conll" else write_table)(path)
    monkeypatch.setattr(blocks, "cores", lambda: 2)
    found = []
    for few in (0, 1000):
        monkeypatch.setattr(blocks, "FEW_BLOCKS", few)
        streamed = StreamedExamples([path], FORMS[name](path), dev_fraction=0.2)
        assert (streamed.reading.readers is None) == (few == 1000)
        tags = Vocabulary.of_labels(streamed.survey.tags) if streamed.survey.tags else None
        batches = batches_of(streamed)
        batches.vocabularies = replace(batches.vocabularies, tags=tags)
        found.append((streamed.survey, [batch.tensors() for _ in range(2) for batch in batches]))
    (one, ours), (other, theirs) = found
    assert one == other
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_a_label_that_is_not_known_is_named_with_its_line(tmp_path):
    path = write_table(tmp_path / "a.csv")
    batches = batches_of(StreamedExamples([path], table_form(path), dev_fraction=0.2))
    batches.vocabularies = replace(batches.vocabularies, labels=Vocabulary.of_labels(["pos"]))
    with pytest.raises(DataError, match=r"a.csv:\d+: label 'neg' is none of pos"):
        list(batches)


def test_shares_of_processes_make_up_the_batch(tmp_path):
    path = write_table(tmp_path / "a.jsonl")
    streamed = StreamedExamples([path], table_form(path))
    parts = [list(batches_of(streamed, share=(rank, 2))) for rank in range(2)]
    for whole, *shares in zip(batches_of(streamed), *parts, strict=True):
        assert sorted(i for share in shares for i in share.positions.tolist() if share.weight) == sorted(
            whole.positions.tolist()
        )
        assert sum(share.weight for share in shares) == pytest.approx(1)


def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 20_000)
    monkeypatch.setattr(streamed_forms, "BLOCK", 20_000)
    peaks = []
    for times in (4, 24):
        path = write_table(tmp_path / f"{times}.jsonl", size=1000)
        path.write_text(path.read_text() * times)
        tracemalloc.start()
        for _ in islice(batches_of(StreamedExamples([path], table_form(path))), 400 * times):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"text": "a b", "label": "x"}\n' * 40 + b"{", r"a.jsonl:41: not a JSON object"),
        ("a.jsonl", b'{"text": "a b", "label": "x"}\n' * 40 + b'{"text": "", "label": "x"}', r"a.jsonl:41: empty text"),
        ("a.csv", b"text,label\n" + b"a b,x\nc d,y\n" * 40 + b"a,b,c\n", r"a.csv:82: expected 2 columns, got 3"),
        ("a.jsonl", b'{"text": "a b", "label": "x"}\n' * 40 + b"\xff\n", r"a.jsonl:41: byte 0xff is not UTF-8"),
        ("a.jsonl", b'{"text": "a b", "label": "x"}\n' * 40 + b"\0\n", r"a.jsonl:41: a NUL byte"),
        ("a.csv", b"text,label\rgood,pos\r", r"a.csv:1: lines end with CR alone: a file that is streamed must have"),
        ("a.jsonl", b"\x1f\x8b123", r"a.jsonl:1: this is a gzip file: a file that is streamed must be plain text"),
        ("a.jsonl", b"", r"a.jsonl:1: the file is empty"),
    ],
)
def test_errors_name_the_line_of_the_file(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        StreamedExamples([tmp_path / name], table_form(tmp_path / name))


def test_files_with_other_headers_and_files_that_changed_are_refused(tmp_path):
    paths = [write_table(tmp_path / "a.csv"), tmp_path / "b.csv"]
    paths[1].write_text("label,text\nx,a\n")
    with pytest.raises(DataError, match=r'b\.csv:1: expected the header "text,label" as in the first file'):
        StreamedExamples(paths, table_form(paths[0]))
    streamed = StreamedExamples(paths[:1], table_form(paths[0]))
    write_table(paths[0], size=30, seed=5)
    with pytest.raises(DataError, match=r"a\.csv"):
        list(streamed)
    with pytest.raises(DataError, match="no such file"):
        table_form(tmp_path / "nowhere.csv")
