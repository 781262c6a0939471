"""Runs: their identity, their line, and that killing and restarting loses and repeats nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sentence_state.data import DataError
from sentence_state.data.vector_archives import write_archive
from sentence_state.experiments import runs as runs_module
from sentence_state.experiments import workers
from sentence_state.experiments.experiment import Plan, shrink
from sentence_state.experiments.material import Data, Place, load
from sentence_state.experiments.measurements import Measurement
from sentence_state.experiments.outcomes import score_of, unpack_counts
from sentence_state.experiments.runs import Run, execute, satisfies
from sentence_state.experiments.store import Store
from sentence_state.experiments.workers import Crew, device_of, leave_group, measure_all, run_all, work_as_process
from sentence_state.models import ModelConfig
from sentence_state.training import TrainingConfig

from ..command_line import environment

LABELS, TAGS = Data("sample/label", limit=40), Data("sample/tags", limit=40)


def small_run(data=LABELS, seed=0, test=True, **fields):
    model, training = shrink(ModelConfig(**fields), TrainingConfig(seed=seed))
    return Run(data, model, training, test=test)


def test_the_key_says_what_is_computed_and_not_where():
    run = small_run()
    assert run.key() == small_run().key()
    assert run.key() == replace(run, training=replace(run.training, device="cuda", checkpoint_seconds=5.0)).key()
    others = [
        small_run(seed=1),
        small_run(TAGS),
        small_run(encoder="BiLSTM"),
        small_run(replace(LABELS, contractions=False)),
        replace(run, vectors="glove.6B.300d"),
        replace(run, training=replace(run.training, word_rate=0.1)),
    ]
    assert len({run.key(), *(other.key() for other in others)}) == 7


def test_a_whole_number_in_a_json_file_is_the_same_number_with_a_point():
    whole, with_point = (
        Plan(seeds=1).runs("mr", "S-LSTM", "paper", False, dropout=zero, word_rate=zero) for zero in (0, 0.0)
    )
    assert whole[0].key() == with_point[0].key()


def test_options_that_an_encoder_or_a_task_does_not_read_make_no_other_run():
    assert small_run(encoder="BiLSTM").key() == small_run(encoder="BiLSTM", gates="sharp", step_dropout=0.3).key()
    assert small_run().key() == small_run(cell="coupled", transitions="static").key()
    assert small_run(TAGS).key() == small_run(TAGS, readout="max").key()
    assert small_run().key() != small_run(readout="max").key()
    assert small_run(encoder="BiLSTM").key() != small_run(encoder="BiLSTM", cell="coupled").key()


def test_the_key_of_a_run_stays_the_same_from_release_to_release():
    run = Run(Data("mr"), ModelConfig(gates="sharp"), TrainingConfig(seed=3), "glove.840B.300d")
    assert run.key() == "72d3996943e29605"


@pytest.mark.parametrize("data", [LABELS, TAGS], ids=["label", "tags"])
def test_a_line_has_what_is_needed_to_repeat_it_and_to_compute_its_scores_again(data):
    run = small_run(data)
    record = json.loads(json.dumps(execute(run, Place())))
    assert record["key"] == run.key()
    assert record["run"]["model"] == run.model.to_dict()
    assert record["run"]["training"]["seed"] == 0
    assert record["smoke"] is True
    for field in ("versions", "hardware", "commit", "seconds", "peak_memory_mb", "parameters", "history", "best_epoch"):
        assert record[field], field
    assert set(record["data"]) == {"train", "dev", "test"}
    for split in ("dev", "test"):
        assert score_of(unpack_counts(record[split]["counts"])) == pytest.approx(100 * record[split]["score"])


def test_a_run_is_the_same_again():
    first, second = (execute(small_run(), Place()) for _ in range(2))
    for name in ("history", "data", "best_epoch"):
        assert first[name] == second[name]
    assert first["test"]["counts"] == second["test"]["counts"]


def test_the_test_set_is_read_only_where_that_is_asked_for():
    record = execute(small_run(test=False), Place())
    assert "test" not in record
    assert satisfies(record, small_run(test=False))
    assert not satisfies(record, small_run(test=True))


def test_word_vectors_are_known_by_their_name_and_hashed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "glove.tiny.txt"
    path.write_text("".join(f"{word} {' '.join(['0.5'] * 12)}\n" for word in ("play", "some", "jazz", "the", "a")))
    run = replace(small_run(), vectors="glove.tiny")
    record = execute(run, Place(embeddings=path))
    assert set(record["data"]) == {"train", "dev", "test", "vectors"}


def test_vectors_as_text_and_those_that_reproduce_vectors_writes_of_them_are_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text, archive, other = (tmp_path / name for name in ("glove.txt", "glove.npz", "other.txt"))
    text.write_text("".join(f"{word} 0.12345 -1.2345 {number}\n" for number, word in enumerate(("play", "jazz", "a"))))
    other.write_text(text.read_text().replace("0.12345", "0.12445"))
    write_archive([text], ["play", "jazz", "a"], archive)
    one, same, another = (load(LABELS, Place(embeddings=path)).hashes["vectors"] for path in (text, archive, other))
    assert one == same != another


def test_finished_runs_are_never_repeated_and_all_jobs_share_the_work(tmp_path, capfd):
    runs = [small_run(seed=seed) for seed in range(4)]
    assert run_all(runs[:2], tmp_path, Crew()) == []
    assert run_all(runs, tmp_path, Crew(jobs=2)) == []
    lines = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert Counter(line["key"] for line in lines) == {run.key(): 1 for run in runs}
    assert [line["jobs"] for line in lines] == [1, 1, 2, 2]
    assert not list((tmp_path / "claims").iterdir())
    assert "4 runs, 2 of them finished before" in capfd.readouterr().out


def write_reviews(folder, **numbers):
    """MR as its makers ship it, in miniature; `numbers` of sentences that differ."""
    folder.mkdir()
    for name, word in (("pos", "fine"), ("neg", "bad")):
        lines = [f"a {word} film number {number % numbers.get(name, 50)}\n" for number in range(60)]
        (folder / f"rt-polarity.{name}").write_text("".join(lines))
    return folder


def write_vectors(folder, value):
    folder.mkdir()
    lines = [f"{word} {' '.join([str(value)] * 12)}\n" for word in ("fine", "bad", "film")]
    (folder / "glove.txt").write_text("".join(lines))
    return folder / "glove.txt"


def test_runs_that_were_finished_with_other_data_or_vectors_are_not_taken_for_these(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first, other = write_reviews(tmp_path / "first"), write_reviews(tmp_path / "other", pos=40)
    vectors, other_vectors = (write_vectors(tmp_path / name, value) for name, value in (("a", 0.5), ("b", 0.1)))
    run, lines = replace(small_run(Data("mr")), vectors="glove"), []
    out = tmp_path / "out"
    assert run_all([run], out, Crew(place=Place(first, vectors)), lines.append) == []
    before = (out / "runs.jsonl").read_text()
    assert run_all([run], out, Crew(place=Place(first, vectors)), lines.append) == []
    assert "1 runs, 1 of them finished before" in lines[-1]
    with pytest.raises(DataError, match=r"mr .* were made with other data or vectors \(.*train.*\); --out names"):
        run_all([run], out, Crew(place=Place(other, vectors)), lines.append)
    with pytest.raises(DataError, match=r"were made with other data or vectors \(vectors\); --out names"):
        run_all([run], out, Crew(place=Place(first, other_vectors)), lines.append)
    with pytest.raises(DataError, match="no such file"):
        run_all([run], out, Crew(place=Place(first, tmp_path / "glove.txt")), lines.append)
    assert (out / "runs.jsonl").read_text() == before
    (unexpected, *_) = json.loads(before)["unexpected"]
    assert unexpected.startswith("mr train: ")
    assert "expected 8,530 sentences and 179,037 words" in unexpected


def test_a_set_that_is_missing_is_said_before_anything_is_trained(tmp_path):
    place = Place(write_reviews(tmp_path / "data"))
    runs = [small_run(Data("mr")), small_run(Data("conll2003"))]
    for jobs in (1, 2):
        with pytest.raises(DataError, match="the benchmark conll2003 is not here"):
            run_all(runs, tmp_path / "out", Crew(jobs, place), print)
    assert not (tmp_path / "out" / "runs.jsonl").exists()


def test_a_worker_says_what_is_wrong_with_the_data_without_a_traceback(tmp_path, capsys):
    (tmp_path / "data").mkdir()
    work_as_process([small_run(Data("mr"))], tmp_path, Place(tmp_path / "data"), Counter(), 1)
    error = capsys.readouterr().err
    assert error.startswith(f"error: {tmp_path / 'data'}: the benchmark mr is not here")
    assert "Traceback" not in error


def test_the_seconds_of_a_run_are_without_those_of_reading_the_data(monkeypatch):
    def slow(data, place):
        time.sleep(1)
        return load(data, place)

    monkeypatch.setattr(runs_module, "load", slow)
    started = time.perf_counter()
    record = execute(small_run(), Place())
    assert record["training_seconds"] <= record["seconds"] < time.perf_counter() - started - 0.9


def dies_at_first(runs, folder, *others):
    """A worker that finds no GPU, say, and finds it later."""
    try:
        (folder / "died").touch(exist_ok=False)
    except FileExistsError:
        work_as_process(runs, folder, *others)
    else:
        os._exit(1)


def test_a_worker_that_dies_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "work_as_process", dies_at_first)
    monkeypatch.setattr(workers, "POLL", 0.01)
    assert run_all([small_run(seed=seed) for seed in range(2)], tmp_path, Crew(jobs=2)) == []
    assert (tmp_path / "died").exists()


def test_a_run_that_diverges_is_noted_and_the_others_go_on(tmp_path):
    wild = replace(small_run(), training=replace(small_run().training, learning_rate=1e30, clip=0.0))
    left = run_all([wild, small_run()], tmp_path, Crew(), lambda line: None)
    assert left == [wild]
    records = Store(tmp_path).records()
    assert "loss is" in records[wild.key()]["error"]
    assert satisfies(records[small_run().key()], small_run())


def waits_its_turn(runs, folder, *others):
    """A worker that begins when another has ended."""
    with workers.wait_for_claim("turn", Store(folder)):
        work_as_process(runs, folder, *others)


def test_a_run_that_failed_is_tried_again_by_the_next_command_and_by_no_other_worker_of_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "work_as_process", waits_its_turn)
    wild = [
        replace(run, training=replace(run.training, learning_rate=1e30, clip=0.0))
        for run in (small_run(seed=0), small_run(seed=1))
    ]
    for commands in (1, 2):
        assert run_all(wild, tmp_path, Crew(jobs=2), lambda line: None) == wild
        lines = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
        assert all("error" in line for line in lines)
        assert Counter(line["key"] for line in lines) == {run.key(): commands for run in wild}


WORKER = """
import sys
from pathlib import Path
from tests.experiments.test_runs import small_run
from sentence_state.experiments.workers import Crew, run_all
if __name__ == "__main__":
    run_all([small_run(seed=seed) for seed in range(12)], Path(sys.argv[1]), Crew(jobs=2))
"""


def test_killing_and_restarting_loses_no_finished_run_and_repeats_none(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    lines = tmp_path / "out" / "runs.jsonl"
    for enough in (2, 7, None):
        command = [sys.executable, str(script), str(tmp_path / "out")]
        process = subprocess.Popen(
            command, env=environment(), start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        while process.poll() is None and (enough is None or number_of_lines(lines) < enough):
            time.sleep(0.005)
        if enough is not None:
            os.killpg(process.pid, signal.SIGKILL)  # with its workers
        error = process.communicate()[1]
    assert process.returncode == 0, error
    keys = [json.loads(line)["key"] for line in lines.read_text().splitlines()]
    assert Counter(keys) == {small_run(seed=seed).key(): 1 for seed in range(12)}


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_when_the_process_that_started_them_does(tmp_path, end):
    script, out = tmp_path / "worker.py", tmp_path / "out"
    script.write_text(WORKER.replace("range(12)", "range(100)"))
    process = subprocess.Popen([sys.executable, str(script), str(out)], env=environment(), stderr=subprocess.DEVNULL)
    while number_of_lines(out / "runs.jsonl") < 1:
        time.sleep(0.005)
    process.send_signal(end)  # to it alone
    process.wait()
    left = wait_until_still(out / "runs.jsonl")
    assert left < 20
    assert not any(Store(out).is_claimed(small_run(seed=seed).key()) for seed in range(100))


def wait_until_still(path: Path, seconds: float = 4) -> int:
    """The number of lines once none was added for a while."""
    count, since = number_of_lines(path), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.05)
        if number_of_lines(path) > count:
            count, since = number_of_lines(path), time.monotonic()
    return count


def number_of_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_plan_without_data_runs_on_the_embedded_sample_when_it_is_a_smoke_run():
    plan = Plan(seeds=2, smoke=True)
    runs = plan.runs("conll2003", "BiLSTM", "paper", True)
    assert [run.data.name for run in runs] == ["sample/tags"] * 2
    assert [run.seed for run in runs] == [0, 1]
    assert all(run.smoke for run in runs)
    whole = Plan(seeds=1, sets=frozenset({"mr"})).runs("mr", "S-LSTM", "paper", True)[0]
    assert (whole.data, whole.model, whole.smoke) == (Data("mr"), ModelConfig(), False)


def test_scores_of_counts_are_accuracy_and_f1():
    labels = np.array([[1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 1, 1]])
    spans = np.array([[1, 2, 1], [0, 0, 3]])
    assert score_of(labels) == 75.0
    assert score_of(spans) == pytest.approx(100 * 2 * 1 / (2 + 4))


def test_under_torchrun_every_process_works_alone(monkeypatch):
    for name, value in (("RANK", "3"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "4")):
        monkeypatch.setenv(name, value)
    assert leave_group() == (3, 1)
    assert "WORLD_SIZE" not in os.environ
    assert leave_group() == (0, 0)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert [device_of("cuda", number) for number in range(3)] == ["cuda:0", "cuda:1", "cuda:0"]
    assert device_of("cuda:1", 0) == "cuda:1"
    assert device_of("cpu", 5) == "cpu"


@pytest.mark.gpu
def test_runs_and_measurements_work_on_a_gpu_side_by_side(tmp_path):
    runs = [small_run(data, seed=seed) for data in (LABELS, TAGS) for seed in range(2)]
    place = Place(device="cuda")
    assert run_all(runs, tmp_path, Crew(jobs=2, place=place)) == []
    records = Store(tmp_path).records()
    assert all(records[run.key()]["memory_of"] == "GPU" for run in runs)
    models = (("S-LSTM", runs[0].model), ("BiLSTM", replace(runs[0].model, encoder="BiLSTM")))
    wanted = [Measurement(kind, (LABELS,), models, batches=3, rounds=2) for kind in ("time", "memory")]
    measure_all(wanted, tmp_path, place)
    times, memory = (Store(tmp_path).records()[one.on("cuda").key()] for one in wanted)
    assert len(times["seconds"]["S-LSTM"]["train"]) == 2
    assert memory["memory_of"] == "peak of the GPU"
    assert all(value > 0 for value in memory["megabytes"].values())
