import json
import threading
from dataclasses import replace
from itertools import pairwise

import pytest

from sentence_state import ModelConfig
from sentence_state.data import DataError, read_sample
from sentence_state.experiments import workers
from sentence_state.experiments.catalogue import find
from sentence_state.experiments.experiment import Plan
from sentence_state.experiments.material import Data, Place
from sentence_state.experiments.measurements import GROUPS, Measurement, examples_of, loop_of, take
from sentence_state.experiments.store import Store
from sentence_state.experiments.summaries import conditions_of, measured, ratio
from sentence_state.experiments.workers import measure_all

from .test_runs import write_reviews

LABELS = Data("sample/label", limit=60)
SMALL = ModelConfig(hidden_size=8, word_size=8, num_steps=2)
MODELS = (("S-LSTM", SMALL), ("BiLSTM", replace(SMALL, encoder="BiLSTM")))
TIMES = Measurement("time", (LABELS,), MODELS, batches=2, rounds=3, device="cpu")


def test_models_take_turns_and_each_round_gives_a_time():
    record = take(TIMES, Place())
    assert record["seconds"].keys() == {"S-LSTM", "BiLSTM"}
    for seconds in record["seconds"].values():
        assert [len(seconds[kind]) for kind in ("train", "decode")] == [3, 3]
        assert min(seconds["train"] + seconds["decode"]) > 0
    assert ratio(record, "S-LSTM", "S-LSTM", "train") == 1.0


@pytest.mark.parametrize("kind", ["time", "memory"])
def test_a_line_has_what_is_needed_to_measure_it_again(kind):
    measurement = replace(TIMES, kind=kind, group=-1 if kind == "memory" else 3)
    line = json.loads(json.dumps(take(measurement, Place())))
    models = tuple((label, ModelConfig(**fields)) for label, fields in line["models"].items())
    fields = {name: line[name] for name in ("kind", "batch_size", "group", "batches", "rounds", "precision")}
    again = Measurement(data=tuple(Data(**data) for data in line["data"]), models=models, device="cpu", **fields)
    assert again == measurement
    assert again.key() == line["key"]


def test_a_ratio_is_the_median_of_the_rounds():
    record = {"seconds": {"a": {"train": [2.0, 9.0, 4.0]}, "b": {"train": [1.0, 1.0, 2.0]}}}
    assert ratio(record, "a", "b", "train") == 2.0


def test_the_groups_of_figure_5_are_all_sentences_by_length():
    groups = [examples_of(replace(TIMES, group=group), Place()) for group in range(GROUPS)]
    lengths = [[len(example.words) for example in group] for group in groups]
    assert sum(map(len, groups)) == 60
    assert max(map(len, groups)) - min(map(len, groups)) <= 1
    assert all(max(shorter) <= min(longer) for shorter, longer in pairwise(lengths))


def test_memory_grows_with_layers_and_steps():
    models = (
        ("BiLSTM", replace(SMALL, encoder="BiLSTM")),
        ("4 stacked BiLSTM", replace(SMALL, encoder="4 stacked BiLSTM")),
        ("2 steps", SMALL),
        ("8 steps", replace(SMALL, num_steps=8)),
    )
    used = take(Measurement("memory", (LABELS,), models, device="cpu"), Place())["megabytes"]
    assert used["4 stacked BiLSTM"] > 3 * used["BiLSTM"] > 0
    assert used["8 steps"] > 2 * used["2 steps"] > 0


def test_statistics_are_those_of_the_files():
    counts = take(Measurement("statistics", (Data("sample/tags"),)), Place())["counts"]
    sample = read_sample()
    for split, examples in (("train", sample.train), ("dev", sample.dev), ("test", sample.test)):
        assert counts[split]["sentences"] == len(examples)


def test_what_was_measured_on_a_kind_of_device_is_not_measured_again(tmp_path):
    said = []
    for _ in range(2):
        measure_all([TIMES, replace(TIMES, device="any")], tmp_path, Place(), said.append)
    assert said == ["time on sample/label in float32: S-LSTM, BiLSTM"]
    assert TIMES.on("cuda").key() != TIMES.on("cpu").key()
    records = {TIMES.on(device).key(): {"hardware": device} for device in ("cpu", "cuda")}
    assert measured([TIMES], records) == {"float32": [{"hardware": "cuda"}], "float32, CPU": [{"hardware": "cpu"}]}
    two = [TIMES, replace(TIMES, group=1)]
    assert measured(two, records).keys() == {"float32"}, "one of two on the other device"


@pytest.mark.parametrize("kind", ["statistics", "memory", "time"])
def test_what_was_measured_with_other_data_is_not_taken_for_this(tmp_path, kind):
    first, other = write_reviews(tmp_path / "first"), write_reviews(tmp_path / "other", pos=40)
    wanted = replace(TIMES, kind=kind, data=(LABELS, Data("mr")) if kind == "time" else (Data("mr"),))
    out, said = tmp_path / "out", []
    for _ in range(2):
        measure_all([wanted], out, Place(first), said.append)
    assert len(said) == 1
    before = (out / "runs.jsonl").read_text()
    new = replace(wanted, kind="statistics", data=(LABELS,))
    with pytest.raises(DataError, match=r"measurements of mr were made with other data \(.*train.*\); --out names"):
        measure_all([new, wanted], out, Place(other), said.append)
    assert (out / "runs.jsonl").read_text() == before


def test_a_line_from_before_hashes_were_kept_is_not_measured_again(tmp_path):
    kept = Measurement("statistics", (Data("mr"),))
    assert kept.key() == "a4e07eaddc1ec18a"  # of results/runs.jsonl
    Store(tmp_path).append({"key": kept.key()})
    said = []
    measure_all([kept], tmp_path, Place(write_reviews(tmp_path / "data")), said.append)
    assert said == []


def test_who_measures_waits_for_others_who_do_and_repeats_nothing_of_theirs(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "POLL", 0.01)
    other, said = Store(tmp_path), []
    wanted = [TIMES, replace(TIMES, rounds=1)]
    with other.claim(workers.MEASURING):
        thread = threading.Thread(target=measure_all, args=(wanted, tmp_path, Place(), said.append))
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
        assert other.records() == {}
        other.append({"key": TIMES.key(), "hardware": "another's"})
    thread.join()
    assert said == ["time on sample/label in float32: S-LSTM, BiLSTM"]
    records = other.records()
    assert records.keys() == {one.key() for one in wanted}
    assert records[TIMES.key()]["hardware"] == "another's"


def test_measurements_of_a_figure_are_shown_in_each_precision_of_one_device():
    meant = [replace(TIMES, group=group, precision="bfloat16") for group in range(2)]
    plain = [replace(one, precision="float32") for one in meant]
    assert len({one.on("cuda").key() for one in (*meant, *plain)}) == 4
    card = {"hardware": "a card", "commit": "0123456789ab+"}
    records = {one.on("cuda").key(): card for one in plain} | {meant[0].on("cpu").key(): {"hardware": "no card"}}
    assert measured(meant, records) == {"float32": [card] * 2}
    half = card | {"precision": "bfloat16"}
    records |= {one.on("cuda").key(): half for one in meant}
    found = measured(meant, records)
    assert list(found) == ["bfloat16", "float32"]  # first what was meant
    assert [conditions_of(line) for line in found["bfloat16"]] == ["a card, bfloat16, commit 0123456+"] * 2
    assert [conditions_of(line) for line in found["float32"]] == ["a card, float32, commit 0123456+"] * 2
    assert measured(meant, {}) == {}


def test_times_are_taken_in_the_precision_that_settings_train_in(tmp_path):
    (tmp_path / "classification").mkdir()
    for encoder in ("s-lstm", "bilstm"):
        settings = {"model": {}, "training": {"precision": "bfloat16"}}
        (tmp_path / "classification" / f"{encoder}.json").write_text(json.dumps(settings))
    plan = Plan(seeds=1, sets=frozenset({"mr"}))
    for name in ("table4", "memory", "figure5"):
        tuned = find(name, replace(plan, settings=(str(tmp_path),)))
        assert {one.precision for one in tuned.measurements} == {"bfloat16"}
        assert {one.precision for one in find(name, plan).measurements} == {"float32"}
    times = replace(TIMES, precision="bfloat16")
    loop = loop_of(times, MODELS[0][1], examples_of(times, Place()), Place())
    assert loop.config.precision == "bfloat16"


@pytest.mark.parametrize("smoke", [True, False])
def test_the_models_of_a_table_are_timed_by_the_labels_of_its_rows(smoke):
    plan = Plan(seeds=1, smoke=smoke, sets=frozenset({"mr"}))
    from sentence_state.experiments.classification import table_4

    experiment = table_4(plan)
    assert [label for label, _ in experiment.times.models] == [row.label for row in experiment.rows]
    assert experiment.times.smoke is smoke


def test_times_are_those_of_each_settings():
    """What was measured for one is found again in a table of two."""
    plan = Plan(seeds=1, smoke=True, settings=("paper", "best"))
    both, alone = find("table4", plan), find("table4", replace(plan, settings=("paper",)))
    assert both.measurements[0] == alone.measurements[0]
    assert len(both.measurements) == 2
    seconds = {label: {"train": [1.0], "decode": [2.0]} for label, _ in alone.measurements[0].models}
    seconds["BiLSTM"]["train"] = [3.0]
    records = {alone.measurements[0].on("cpu").key(): {"seconds": seconds, "hardware": "a card", "commit": "0"}}
    _, times = both.section(records).tables
    shown = {row[0]: row[times.columns.index("train: ours")] for row in times.rows}
    assert shown["S-LSTM (paper)"] == "1.00"
    assert shown["BiLSTM (paper)"] == "3.00"
    assert len(alone.section(records).tables) == 2
