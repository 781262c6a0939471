"""What the benchmarks do without a GPU: their cases, their clock, their figures."""

import json
import statistics
import sys
import time

import numpy as np
import pytest
import torch

from benchmarks import cases, crf, embeddings, encoders, gpu, inference, measure, plots, training


def test_mr_shaped_data_have_the_shape_of_mr():
    examples, vocabulary = cases.mr_shaped_examples()
    lengths = [len(example.words) for example in examples]
    assert (len(examples), len(vocabulary)) == (8530, 20_000)
    assert statistics.mean(lengths) == pytest.approx(21.0, abs=0.3)
    assert statistics.pstdev(lengths) == pytest.approx(9.4, abs=0.3)
    assert 1 <= min(lengths) <= max(lengths) <= 59


def test_the_grid_begins_with_the_targets_and_leaves_out_what_takes_too_long():
    assert cases.grid("bfloat16")[:5] == cases.grid("float32")[:5] == cases.TARGETS
    assert sorted(cases.grid("bfloat16")) == sorted(cases.GRID)
    assert (256, 2048) not in cases.grid("float32")


def test_candidates_take_turns_until_the_time_is_up():
    calls = []
    candidates = {name: lambda name=name: (calls.append(name), time.sleep(0.01)) for name in "ab"}
    times = measure.alternately(candidates, "cpu", repeats=1000, warmup=1, seconds=0.05)
    assert calls[2:] == ["a", "b"] * len(times["a"])
    assert 3 <= len(times["a"]) == len(times["b"]) <= 7
    assert len(measure.alternately(candidates, "cpu", repeats=4, seconds=0.0)["a"]) == measure.LEAST_ROUNDS


@pytest.mark.parametrize(
    "main",
    [encoders.main, gpu.main, embeddings.main, lambda repeats: inference.main(None, None, None, repeats=repeats)],
)
def test_one_round_is_refused_before_anything_is_measured(main):
    with pytest.raises(SystemExit, match=r"--repeats must be 2 or more.* got 1"):
        main(repeats=1)


def test_a_row_names_its_commit_also_without_git(monkeypatch):
    assert measure.circumstances("cpu", "abc")["commit"] == "abc"
    monkeypatch.setattr(measure, "git_commit", lambda: None)
    monkeypatch.setenv("COMMIT", "def")
    assert measure.circumstances("cpu")["commit"] == "def"


def test_the_crf_is_compared_before_it_is_timed():
    row = crf.compare(3, 5, 4, {"repeats": 2, "seconds": 0.0}, "cpu")
    assert row["relative error"] < 1e-5
    assert {"edge", "static", "edge, reference"} <= row["loss + gradient, eager"].keys()
    right = {kind: lambda: torch.ones(3) for kind in crf.KINDS} | {crf.KINDS[1]: lambda: torch.zeros(1, 2, 3)}
    runs = {f"{name}{suffix}": right for name in ("edge", "static") for suffix in ("", ", reference")}
    assert crf.parity(runs) == 0
    for kind, message in ((crf.KINDS[0], "the CRF is off by"), (crf.KINDS[1], "find other sequences")):
        wrong = right | {kind: lambda kind=kind: right[kind]() + 1}
        with pytest.raises(AssertionError, match=message):
            crf.parity(runs | {"static": wrong})


def test_an_epoch_of_fit_is_timed():
    row = training.epoch("CNN", "float32", "cpu", sentences=30)
    assert row["batches"] == 3
    assert row["epoch, s"] > 0
    assert row["eager step, ms"] > 0


def test_figures_are_drawn_from_the_newest_rows(tmp_path):
    pytest.importorskip("matplotlib")
    rows = []
    for milliseconds in (5.0, 1.0):
        for batch, words in ((1, 24), (10, 24), (10, 256)):
            times = {name: {"ms": milliseconds * words * batch} for name in ("S-LSTM", "BiLSTM")}
            kinds = dict.fromkeys(("forward", "forward + backward"), times)
            ratios = {f"{kind}, ratio": {"BiLSTM": 1.0} for kind in kinds}
            shape = {
                "batch": batch,
                "words": words,
                "dtype": "bfloat16",
                "device": "a card",
                "date": "2026-01-01 00:00",
            }
            rows.append({**shape, **kinds, **ratios, "peak MB": {"S-LSTM": 1.0, "BiLSTM": 2.0}})
    measure.append("gpu", rows, tmp_path)
    assert [row["forward"]["S-LSTM"]["ms"] for row in plots.newest(rows, "bfloat16")] == [24, 240, 2560]
    without = {**rows[-1], "forward": {"S-LSTM": {"ms": 7.0}}}
    drawn = plots.newest([*rows, without], "bfloat16")[-1]
    assert drawn["forward"] == {"S-LSTM": {"ms": 7.0}, "BiLSTM": {"ms": 2560.0}}  # the latter as measured before
    assert measure.read("gpu", tmp_path) == json.loads(json.dumps(rows))
    plots.main(results=tmp_path, out=tmp_path / "figures")
    assert len(list((tmp_path / "figures").glob("*.png"))) == 3
    with pytest.raises(SystemExit, match="no rows of float32"):
        plots.main(dtype="float32", results=tmp_path)
    with pytest.raises(SystemExit, match=r"no rows of batch 7 and bfloat16 in .*; there are 1, 10"):
        plots.main(batch=7, results=tmp_path, out=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_our_reader_is_compared_with_the_other_one_on_the_same_file(tmp_path, monkeypatch):
    path = embeddings.generate(tmp_path / "vectors.txt", megabytes=1)
    assert path.stat().st_size == pytest.approx(1e6, rel=0.01)
    words = embeddings.words_of(path)
    vectors = np.loadtxt(path, dtype=np.float32, usecols=range(1, embeddings.DIMENSION + 1))
    monkeypatch.setattr(embeddings.metadata, "version", lambda name: "0")
    row = embeddings.measure(path, words, lambda path: (words, vectors), tmp_path, repeats=2)
    assert row["words"] == len(vectors)
    assert row["gensim / ours"].keys() == set(embeddings.OURS)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        embeddings.measure(path, words, lambda path: (words, vectors[::-1]), tmp_path, repeats=2)


def test_without_gensim_our_reader_is_timed_alone(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    embeddings.main(megabytes=1, repeats=2, save=False)
    printed = capsys.readouterr().out
    assert "gensim is missing" in printed
    assert "1,000 words, cached" in printed
