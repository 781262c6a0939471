import errno
import json
import os
import shutil
from dataclasses import replace

import pytest
import torch

from sentence_state.data.example import Splits
from sentence_state.models import FolderError, Model, SequenceTagger, TextClassifier
from sentence_state.training import TrainingConfig, fit
from sentence_state.training.checkpoint import checkpoints, load_checkpoint, save_checkpoint
from sentence_state.training.run_folder import hash_examples

from ..models.synthetic import corpus, small, splits
from .small_runs import Killed

CONFIG = TrainingConfig(epochs=2, batch_size=8, learning_rate=0.01, checkpoint_seconds=0)


def train(out, config=CONFIG, data=None, fields=None, cls=TextClassifier, **options):
    data = data or splits()
    model = cls.from_examples(data.train, small(**(fields or {})))
    return model, fit(model, data, config, out=out, **options)


@pytest.fixture
def stopped(tmp_path):
    """The folder of a run that died in its first epoch."""

    def die(event):
        raise Killed

    with pytest.raises(Killed):
        train(tmp_path / "run", progress=die)
    save_checkpoint_again(tmp_path / "run")
    return tmp_path / "run"


def save_checkpoint_again(run):
    """A second checkpoint, so that there is one to fall back to."""
    save_checkpoint(run, *load_checkpoint(run))


def test_a_finished_run_has_everything_in_its_folder(tmp_path):
    model, result = train(tmp_path / "runs" / "mine")
    run = tmp_path / "runs" / "mine"
    assert sorted(path.name for path in run.iterdir()) == [
        "config.json", "labels.json", "metrics.jsonl", "model.safetensors", "result.json", "training.json",
        "versions.json", "words.json",
    ]  # fmt: skip
    saved = json.loads((run / "training.json").read_text())
    assert saved["training"] == CONFIG.to_dict()
    assert saved["data"]["train"]["sha256"] == hash_examples(splits().train)
    assert saved["data"]["dev"]["sentences"] == 12
    assert saved["reading"] == {}
    assert json.loads((run / "result.json").read_text())["test"] == result.test.to_dict()
    text = "a good film"
    assert Model.from_pretrained(run).predict([text]) == model.predict([text])


def test_the_folder_can_be_loaded_before_the_run_is_finished(tmp_path):
    seen = []

    def look(event):
        if event.record:
            seen.append(Model.from_pretrained(tmp_path / "run").predict(["a good film"]))

    train(tmp_path / "run", progress=look)
    assert len(seen) == 2


def test_an_empty_folder_is_used(tmp_path):
    (tmp_path / "run").mkdir()
    assert train(tmp_path / "run")[1].finished


def test_a_folder_that_holds_another_run_is_refused_and_left_alone(tmp_path, stopped):
    before = {path: path.read_bytes() for path in stopped.rglob("*") if path.is_file()}
    with pytest.raises(FolderError, match=r"holds a run that is not finished: --resume to go on with it, or another"):
        train(stopped)
    assert {path: path.read_bytes() for path in stopped.rglob("*") if path.is_file()} == before
    train(tmp_path / "done")
    with pytest.raises(FolderError, match="holds another run: choose another --out, or delete the folder"):
        train(tmp_path / "done")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    for resume, message in ((False, "holds something else"), (True, "holds no run to resume")):
        with pytest.raises(FolderError, match=message):
            train(tmp_path / "home", resume=resume)
    (tmp_path / "file").write_text("dear")
    with pytest.raises(FolderError, match="holds something else"):
        train(tmp_path / "file")
    assert (tmp_path / "home" / "letter.txt").read_text() == (tmp_path / "file").read_text() == "dear"


def test_resume_starts_anew_where_there_is_nothing(tmp_path):
    assert train(tmp_path / "run", resume=True)[1].finished


def test_a_finished_run_is_not_trained_again(tmp_path):
    model, result = train(tmp_path / "run")
    before = (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns
    again, second = train(tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns == before
    assert second.history == result.history
    assert (second.test, second.seconds) == (result.test, result.seconds)
    assert again.predict(["a good film"]) == model.predict(["a good film"])


def test_a_run_is_resumed_as_it_began_or_not_at_all(stopped):
    with pytest.raises(FolderError, match=r"holds a run with batch_size = 8, not 9: a run is resumed as it began"):
        train(stopped, replace(CONFIG, batch_size=9), resume=True)
    with pytest.raises(FolderError, match="holds a run of another model"):
        train(stopped, fields={"hidden_size": 13}, resume=True)
    with pytest.raises(FolderError, match="holds a run of another model"):
        train(stopped, cls=SequenceTagger, resume=True)
    other = splits()
    with pytest.raises(FolderError, match="holds a run with other data: dev has changed since it began"):
        train(stopped, data=Splits(other.train, corpus(12, 9), other.test), resume=True)
    assert train(stopped, replace(CONFIG, checkpoint_seconds=9, device="cpu"), resume=True)[1].finished


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "gone"])
def test_a_damaged_newest_checkpoint_gives_way_to_the_one_before(stopped, damage, tmp_path):
    newest = checkpoints(stopped)[-1]
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 4
    changed = {"cut": content[:-100], "flip": content, "empty": b""}
    if damage == "gone":
        newest.unlink()
    else:
        newest.write_bytes(changed[damage])
    model, _ = train(stopped, resume=True)
    expected, _ = train(tmp_path / "never killed")
    for name, tensor in expected.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)


def test_when_no_checkpoint_can_be_read_it_is_said(stopped):
    for path in checkpoints(stopped):
        path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(FolderError, match=r"no checkpoint can be read \(.*00000001\.safetensors: damaged"):
        train(stopped, resume=True)


def test_only_the_last_two_checkpoints_are_kept(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    for number in range(4):
        save_checkpoint(run, {"a": torch.tensor([number])}, {"number": number})
    assert [path.name for path in checkpoints(run)] == ["00000002.safetensors", "00000003.safetensors"]
    tensors, state = load_checkpoint(run)
    assert (tensors["a"].item(), state) == (3, {"number": 3})


def full_after(monkeypatch, calls: int):
    """A disk that is full from the given call of os.fsync on."""
    fsync, count = os.fsync, 0

    def full(descriptor):
        nonlocal count
        count += 1
        if count > calls:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)


@pytest.mark.parametrize("calls", range(0, 40, 3))
def test_a_full_disk_is_said_and_the_run_can_be_resumed_when_there_is_room(calls, tmp_path, monkeypatch):
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        full_after(patch, calls)
        with pytest.raises(FolderError, match="the disk is full; nothing half-written is left"):
            train(run)
    assert not list(tmp_path.rglob("*.unfinished"))
    if not run.exists():
        assert list(tmp_path.iterdir()) == []
    else:
        for line in (run / "metrics.jsonl").read_text().splitlines() if (run / "metrics.jsonl").exists() else ():
            json.loads(line)
    model, result = train(run, resume=True)
    expected, _ = train(tmp_path / "roomy")
    for name, tensor in expected.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)
    assert len((run / "metrics.jsonl").read_text().splitlines()) == len(result.history) == 2


def test_a_parent_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match="could not be made"):
        train(tmp_path / "file" / "run")


def test_a_folder_that_vanishes_during_the_run_is_named(tmp_path):
    def vanish(event):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)

    with pytest.raises(FolderError, match="could not be"):
        train(tmp_path / "run", progress=vanish)


def test_hashes_change_with_words_targets_and_order():
    examples = corpus(5)
    others = [
        examples[::-1],
        examples[:4],
        [replace(e, label="x") for e in examples],
        [replace(e, tags=None) for e in examples],
    ]
    hashes = {hash_examples(part) for part in (examples, *others)}
    assert len(hashes) == 5
    assert hash_examples(corpus(5)) == hash_examples([replace(e, path="elsewhere", lines=[3]) for e in examples])


@pytest.mark.parametrize(
    "change",
    [
        {"batches": {}},
        {"batches": {"epoch": "a", "index": 0}},
        {"batches": None},
        {"history": 3},
        {"metrics_size": "x"},
        {"best_score": []},
        {"junk": 1},
    ],
)
def test_a_state_that_is_none_is_refused_however_right_its_checksum(stopped, change):
    tensors, state = load_checkpoint(stopped)
    save_checkpoint(stopped, tensors, {**state, **change})
    with pytest.raises(FolderError, match="its state is not that of a run"):
        train(stopped, resume=True)


def test_tensors_that_do_not_fit_are_refused_however_right_their_checksum(stopped):
    tensors, state = load_checkpoint(stopped)
    name = next(name for name in tensors if name.startswith("model."))
    for odd in (
        {},
        {**tensors, "optimizer.0.x": torch.zeros(2)},
        {**tensors, "optimizer.0.999.exp_avg": torch.zeros(2)},
        {**tensors, "optimizer.0.0.exp_avg": torch.zeros(2)},
        {**tensors, "random.cpu": torch.zeros(1)},
        {**tensors, name: torch.zeros(1)},
    ):
        save_checkpoint(stopped, odd, state)
        with pytest.raises(FolderError, match="the checkpoint does not fit the model"):
            train(stopped, resume=True)
