"""MR in ten parts: every sentence is tested once, however its files lie."""

import gzip
import json
import random
from collections import Counter

from sentence_state.data.benchmarks import MR_FOLDS, SOURCES, read_benchmark
from sentence_state.data.example import Example, Splits
from sentence_state.data.folds import fold_counts, fold_of

EXAMPLES = [Example([f"{label}{number}"], label) for label in ("pos", "neg") for number in range(53)]


def words(examples):
    return [example.words[0] for example in examples]


def test_every_sentence_is_tested_once_and_is_in_one_split_of_each_fold():
    folds = [fold_of(Splits(EXAMPLES[:80], EXAMPLES[80:90], EXAMPLES[90:]), fold) for fold in range(10)]
    assert sorted(word for fold in folds for word in words(fold.test)) == sorted(words(EXAMPLES))
    for place, fold in enumerate(folds):
        assert sorted(words([*fold.train, *fold.dev, *fold.test])) == sorted(words(EXAMPLES))
        assert words(fold.dev) == words(folds[(place + 1) % 10].test)


def test_labels_have_their_share_of_every_part():
    for fold in range(10):
        counts = Counter(example.label for example in fold_of(Splits(EXAMPLES, []), fold).test)
        assert set(counts.values()) <= {5, 6}


def test_the_order_of_the_files_does_not_matter():
    shuffled = random.Random(1).sample(EXAMPLES, len(EXAMPLES))
    assert fold_of(Splits(shuffled, []), 3) == fold_of(Splits(EXAMPLES, []), 3)


def test_counts_are_those_of_the_parts():
    for fold in range(10):
        splits = fold_of(Splits(EXAMPLES, []), fold)
        assert fold_counts(len(EXAMPLES), fold) == (len(splits.train), len(splits.dev), len(splits.test))


def test_mr_has_the_same_folds_in_our_layout_and_in_its_makers(tmp_path):
    lines = {"pos": [f"it's good {i}" for i in range(25)], "neg": [f"bad  {i} " for i in range(25)]}
    makers = tmp_path / "makers"
    makers.mkdir()
    for label, texts in lines.items():
        (makers / f"rt-polarity.{label}").write_text("\n".join(texts))
    rows = [json.dumps({"text": " ".join(text.split()), "label": label}) for label in lines for text in lines[label]]
    ours = tmp_path / "ours" / SOURCES["mr"].folder
    ours.mkdir(parents=True)
    for split, part in (("train", rows[:30]), ("dev", rows[30:40]), ("test", rows[40:])):
        (ours / f"{split}.jsonl.gz").write_bytes(gzip.compress("\n".join(part).encode()))
    for name in MR_FOLDS:
        one, other = (read_benchmark(name, tmp_path / place).splits for place in ("makers", "ours"))
        for split in ("train", "dev", "test"):
            found = [[(e.words, e.label) for e in getattr(splits, split)] for splits in (one, other)]
            assert found[0] == found[1]
    about_test = read_benchmark("mr/9", makers).description[2]
    assert about_test.startswith("mr/9 test: 5 sentences, 13 words, expected 1,066 sentences: another release")
