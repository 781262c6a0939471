"""A training step that fails: memory runs out, a loss is no number, a folder cannot be written."""

import json
import math
import os
import shutil
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from sentence_state.models import FolderError, TextClassifier
from sentence_state.training import TrainingConfig, TrainingError, fit
from sentence_state.training.state import TrainingState, check_state

from ..models.synthetic import small, splits

CONFIG = TrainingConfig(epochs=2, batch_size=8, learning_rate=0.01, checkpoint_seconds=0)
CPU_MESSAGE = "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 99999999 bytes"


def train(out=None, config=CONFIG, patch=None, **options):
    """A run whose model computes its loss by `patch(loss, batch)`; returns model, result and what was said."""
    data = splits(64)
    model = TextClassifier.from_examples(data.train, small(dropout=0.0))
    if patch:
        loss = model.loss
        model.loss = lambda batch: patch(loss, batch)
    notes = []
    result = fit(model, data, config, out=out, progress=lambda event: notes.append(event.note), **options)
    return model, result, [note for note in notes if note]


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory"), MemoryError(), RuntimeError(CPU_MESSAGE)]
)
def test_a_batch_that_does_not_fit_into_memory_is_halved_and_training_goes_on(error, tmp_path):
    def small_memory(loss, batch):
        if len(batch) > 4:
            raise error
        return loss(batch)

    model, result, notes = train(tmp_path / "run", patch=small_memory)
    assert notes == ["epoch 1: batch 1 did not fit into memory: from here on batches are computed in halves"]
    expected, whole, _ = train(config=replace(CONFIG, micro_batches=2))
    assert [record["loss"] for record in result.history] == [record["loss"] for record in whole.history]
    for name, tensor in expected.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name])


def test_a_batch_is_halved_only_once(tmp_path):
    def smaller_memory(loss, batch):
        if len(batch) > 2:
            raise MemoryError
        return loss(batch)

    with pytest.raises(TrainingError, match="not enough memory: try --micro-batches, or a smaller --batch-size"):
        train(tmp_path / "run", patch=smaller_memory)


def test_other_errors_are_not_taken_for_a_lack_of_memory():
    def broken(loss, batch):
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes do not fit"):
        train(patch=broken)


def spoil(where: int, how: str):
    """Make the loss, or only its gradient, no number when it is asked for the given time."""
    calls = 0

    def patch(loss, batch):
        nonlocal calls
        calls += 1
        value = loss(batch)
        if calls != where:
            return value
        return value * math.nan if how == "loss" else value + 0 * (value - value.detach()).sqrt()

    return patch


@pytest.mark.parametrize("how", ["loss", "gradient"])
def test_a_loss_that_is_no_number_stops_and_the_batch_is_saved(how, tmp_path):
    message = r"no number in epoch 2, batch 3; its sentences are in .*bad_batch\.json\. Try a lower .* or --on-nan skip"
    with pytest.raises(TrainingError, match=message):
        train(tmp_path / "run", patch=spoil(11, how))
    saved = json.loads((tmp_path / "run" / "bad_batch.json").read_text())
    assert (saved["epoch"], saved["batch"], len(saved["sentences"])) == (2, 3, 8)
    words = [example.words for example in splits(64).train]
    assert all(sentence["words"] in words for sentence in saved["sentences"])


def test_after_a_loss_that_is_no_number_the_run_can_be_resumed_from_before_it(tmp_path):
    with pytest.raises(TrainingError):
        train(tmp_path / "run", patch=spoil(11, "loss"))
    model, _, _ = train(tmp_path / "run", config=replace(CONFIG, on_nan="skip"), resume=True)
    expected, _, _ = train()
    for name, tensor in expected.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name])


@pytest.mark.parametrize("how", ["loss", "gradient"])
def test_a_batch_whose_loss_is_no_number_is_left_out_where_that_is_wanted(how):
    config = replace(CONFIG, on_nan="skip")
    model, result, notes = train(config=config, patch=spoil(3, how))
    assert notes == ["epoch 1: the loss of batch 3 is no number: the batch was left out"]
    assert all(math.isfinite(record["loss"]) for record in result.history)
    assert all(tensor.isfinite().all() for tensor in model.state_dict().values())


def test_the_loss_of_an_epoch_is_the_mean_over_the_batches_that_were_not_left_out():
    config = replace(CONFIG, on_nan="skip", epochs=1)
    first = {}

    def only_the_first(loss, batch):
        first.setdefault("loss", value := loss(batch))
        return value if value is first["loss"] else value * math.nan

    _, result, notes = train(config=config, patch=only_the_first)
    assert len(notes) == 7
    assert result.history[0]["loss"] == pytest.approx(float(first["loss"]))
    with pytest.raises(TrainingError, match=r"no number in any batch of epoch 1\. Try a lower learning rate"):
        train(config=config, patch=lambda loss, batch: loss(batch) * math.nan)


def test_what_was_left_out_of_one_epoch_does_not_count_in_the_next():
    losses = []

    def without_the_first_four(loss, batch):
        losses.append(loss(batch))
        return losses[-1] * math.nan if len(losses) <= 4 else losses[-1]

    _, result, _ = train(config=replace(CONFIG, on_nan="skip"), patch=without_the_first_four)
    for epoch, counted in enumerate([losses[4:8], losses[8:]]):
        assert result.history[epoch]["loss"] == pytest.approx(sum(map(float, counted)) / len(counted))


def test_a_run_from_before_it_was_counted_by_epoch_goes_on():
    old = asdict(TrainingState(skipped=3)) | {"batches": {"epoch": 1, "index": 0}}
    del old["skipped_before"]
    assert check_state({"state": old}, Path("run"))["skipped_before"] == 3


@pytest.fixture
def guest_folder():
    """A folder for a user without special rights: root may write anywhere."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield folder
    if user == 0:
        os.seteuid(0)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o777)
    shutil.rmtree(folder)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX rights")
def test_a_folder_that_may_not_be_written_is_named_before_training(guest_folder):
    (guest_folder / "runs").mkdir(mode=0o555)
    with pytest.raises(FolderError, match=r"runs/mine.*could not be made: Permission denied"):
        train(guest_folder / "runs" / "mine")
    assert list((guest_folder / "runs").iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX rights")
def test_a_folder_that_becomes_read_only_stops_the_run_which_goes_on_later(guest_folder):
    run = guest_folder / "run"

    def lock(loss, batch):
        (run / "checkpoints").chmod(0o555)
        return loss(batch)

    with pytest.raises(FolderError, match=r"could not be written: Permission denied; nothing half-written is left"):
        train(run, patch=lock)
    assert not list(run.rglob("*.unfinished"))
    (run / "checkpoints").chmod(0o777)
    model, _, _ = train(run, resume=True)
    expected, _, _ = train()
    for name, tensor in expected.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name])


@pytest.mark.gpu
def test_on_a_gpu_a_batch_that_does_not_fit_is_tried_without_graphs_and_then_in_halves():
    def small_memory(loss, batch):
        if len(batch) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return loss(batch)

    _, result, notes = train(config=replace(CONFIG, device="cuda"), patch=small_memory)
    assert notes == ["epoch 1: batch 1 did not fit into memory: from here on batches are computed in halves"]
    assert result.finished


@pytest.mark.gpu
def test_on_a_gpu_the_batch_whose_loss_is_no_number_is_found_afterwards(tmp_path):
    with pytest.raises(TrainingError, match="no number in epoch 2, batch 3"):
        train(tmp_path / "run", replace(CONFIG, device="cuda", graphs=False), patch=spoil(11, "loss"))
