"""Benchmarks from small folders in our layout and in their makers', and the message when one is missing."""

import gzip
import json
import random

import pytest

from sentence_state.data.benchmarks import SOURCES, read_benchmark
from sentence_state.data.errors import DataError
from sentence_state.data.tokenizer import Tokenizer

SIZES = {"train": 3, "dev": 2, "test": 1}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def sizes(benchmark):
    return {split: len(getattr(benchmark.splits, split)) for split in SIZES}


@pytest.mark.parametrize("name", ["mr", "fdu/books"])
def test_classification_is_read_from_our_layout(tmp_path, name):
    for split, size in SIZES.items():
        rows = [json.dumps({"text": f"it's number {i} , ok", "label": "pos"}) for i in range(size)]
        write(tmp_path / SOURCES[name].folder / f"{split}.jsonl.gz", "\n".join(rows))
    benchmark = read_benchmark(name, tmp_path)
    assert sizes(benchmark) == SIZES
    assert benchmark.task == "classification"
    assert benchmark.splits.train[0].words == ["it", "'s", "number", "0", ",", "ok"]
    whole = read_benchmark(name, tmp_path, tokenizer=Tokenizer(whitespace=True, contractions=False))
    assert whole.splits.train[0].words == ["it's", "number", "0", ",", "ok"]


@pytest.mark.parametrize("name", ["conll2003", "ewt", "gum", "ptb", "ptb/02-21"])
def test_tagging_is_read_from_our_layout(tmp_path, name):
    tag = "S-PER" if name == "conll2003" else "B-x"  # a part of speech is never taken for a span
    for split, size in SIZES.items():
        write(tmp_path / SOURCES[name].folder / f"{split}.conll.gz", f"Ann\t{tag}\n\n" * size)
    benchmark = read_benchmark(name, tmp_path)
    assert sizes(benchmark) == SIZES
    assert benchmark.splits.train[0].tags == [tag]


def test_counts_are_stated_and_compared(tmp_path):
    for split, size in zip(SIZES, SOURCES["ewt"].sentences, strict=True):
        write(tmp_path / "tagging/ud_ewt_pos" / f"{split}.conll", "Ann\tNNP\n\n" * (size if split == "dev" else 1))
    description = read_benchmark("ewt", tmp_path).description
    expected = "expected 12,544 sentences and 204,577 words: another release or another preparation?"
    assert description[0] == f"ewt train: 1 sentences, 1 words, {expected}"
    assert description[1].startswith("ewt dev: 2,001 sentences, 2,001 words, expected 2,001 sentences and 25,147 words")


def test_counts_that_agree_are_said_to(tmp_path):
    for split, size in zip(SIZES, SOURCES["fdu/baby"].sentences, strict=True):
        rows = json.dumps({"text": "good", "label": "pos"}) + "\n"
        write(tmp_path / "classification/fdu_mtl/baby" / f"{split}.jsonl", rows * size)
    assert read_benchmark("fdu/baby", tmp_path).description == [
        "fdu/baby train: 1,300 sentences, 1,300 words, as expected",
        "fdu/baby dev: 200 sentences, 200 words, as expected",
        "fdu/baby test: 400 sentences, 400 words, as expected",
    ]


def test_mr_is_split_as_its_description_says(tmp_path):
    files = {"pos": [f"café  good {i} " for i in range(25)], "neg": [f"bad {i}" for i in range(25)]}
    for label, lines in files.items():
        write(tmp_path / "rt-polaritydata" / f"rt-polarity.{label}", "\n".join(lines).encode("cp1252"))
    expected = [(" ".join(line.split()), label) for label, lines in files.items() for line in lines]
    random.Random(0).shuffle(expected)
    splits = read_benchmark("mr", tmp_path).splits
    found = [(example.text, example.label) for example in splits.test + splits.dev + splits.train]
    assert found == expected
    assert (len(splits.test), len(splits.dev), len(splits.train)) == (5, 5, 40)


def test_a_domain_takes_the_last_200_lines_for_dev_and_leaves_empty_reviews_out(tmp_path):
    lines = [f"{i % 2}\treview {i}" for i in range(210)]
    lines[3] = "1\t"
    write(tmp_path / "MR.task.train", "\n".join(lines) + "\n")
    write(tmp_path / "MR.task.test", '1\tgood\n0\tbad "quote\n')
    splits = read_benchmark("fdu/mr", tmp_path).splits
    assert [len(splits.train), len(splits.dev), len(splits.test)] == [9, 200, 2]
    assert (splits.dev[0].text, splits.dev[0].label) == ("review 10", "neg")
    assert splits.test[1].words == ["bad", '"quote']
    write(tmp_path / "MR.task.test", "1\tgood\ngood\n")
    with pytest.raises(DataError, match=r'MR.task.test:2: expected 0 or 1, a tab and a review, got "good"'):
        read_benchmark("fdu/mr", tmp_path)


def test_conll2003_is_read_from_its_four_columns_of_iob1(tmp_path):
    text = "-DOCSTART- -X- O O\n\nAnn NNP I-NP I-PER\nLee NNP I-NP I-PER\n. . O O\n\n"
    for name in ("eng.train", "eng.testa", "eng.testb"):
        write(tmp_path / "ner" / name, text)
    splits = read_benchmark("conll2003", tmp_path).splits
    assert splits.train[0].tags == splits.test[0].tags == ["B-PER", "E-PER", "O"]
    assert read_benchmark("conll2003", tmp_path, target_scheme="bio").splits.dev[0].tags == ["B-PER", "I-PER", "O"]


def test_universal_dependencies_are_read_from_their_own_files(tmp_path):
    for split in SIZES:
        write(tmp_path / f"UD_English-EWT/en_ewt-ud-{split}.conllu", "1\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n")
    assert read_benchmark("ewt", tmp_path).splits.train[0].tags == ["VB"]


@pytest.mark.parametrize(("name", "counts"), [("ptb", [19, 3, 3]), ("ptb/02-21", [20, 1, 1])])
@pytest.mark.parametrize("form", ["mrg", "pos"])
def test_both_splits_of_the_treebank_are_read_by_section(tmp_path, name, counts, form):
    text = "( (S (NN cat) ))\n" if form == "mrg" else "[ cat/NN ]\n"
    for section in range(25):
        write(tmp_path / f"wsj/{section:02d}/wsj_{section:02d}00.{form}", text.replace("cat", f"cat{section}"))
    splits = read_benchmark(name, tmp_path).splits
    assert [len(splits.train), len(splits.dev), len(splits.test)] == counts
    assert splits.dev[0].words == ["cat19" if name == "ptb" else "cat22"]


def test_a_missing_set_says_where_it_was_looked_for_and_where_it_comes_from(tmp_path):
    write(tmp_path / "wsj/00/wsj_0001.mrg", "( (S (NN cat) ))\n")
    with pytest.raises(DataError) as error:
        read_benchmark("ptb", tmp_path)
    message = str(error.value)
    assert message.startswith(f"{tmp_path}: the benchmark ptb is not here. Looked for {tmp_path}/tagging/ptb_pos/")
    for part in ("wsj_????.mrg or wsj_????.pos", "00-18; 19-21; 22-24", "LDC99T42", "licence of the LDC"):
        assert part in message


@pytest.mark.parametrize("name", SOURCES)
def test_every_set_names_its_files_origin_and_licence_when_it_is_missing(tmp_path, name):
    with pytest.raises(DataError) as error:
        read_benchmark(name, tmp_path)
    for part in (SOURCES[name].folder, *SOURCES[name].originals, SOURCES[name].origin, SOURCES[name].licence):
        assert part in str(error.value)


def test_an_unknown_name_lists_those_there_are(tmp_path):
    names = "mr, conll2003, ptb, ptb/02-21, ewt, gum, mr/0 to mr/9 and fdu/ with books"
    with pytest.raises(DataError, match=f"imdb: no such benchmark; there are {names}"):
        read_benchmark("imdb", tmp_path)
