"""Trains in child processes that are killed, as `python -m tests.training.killed_runs FOLDER random|crash KILLS`.

One process imports torch and forks: twenty kills take seconds. Prints the hash of the weights that the run ended with.
"""

import hashlib
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import torch

from sentence_state.models import JointModel, Model, tensor_files
from sentence_state.training import TrainingConfig, fit

from ..models.synthetic import small, splits

CONFIG = TrainingConfig(
    epochs=8, patience=0, batch_size=6, learning_rate=0.01, checkpoint_seconds=0.01, lazy_words=True
)
FIELDS = {"dropout": 0.5, "word_dropout": 0.1, "step_dropout": 0.1, "characters": "CNN"}


def train(out: Path | None, resume: bool = False) -> JointModel:
    data = splits()
    model = JointModel.from_examples(data.train, small(**FIELDS))
    result = fit(model, data, CONFIG, out=out, resume=resume)
    assert result.finished
    return model


def hash_of(model: Model) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


def in_child(out: Path, crash_at: int | None) -> int:
    """Resume the run in a new process. With `crash_at` it dies at that call that `crash` counts."""
    pid = os.fork()
    if pid == 0:
        try:
            if crash_at is not None:
                crash(crash_at)
            train(out, resume=True)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return pid


def crash(at: int) -> None:
    """Die as by a power cut, sometimes right before and sometimes right after the call."""
    calls = 0

    def dying(function):
        def call(*arguments):
            nonlocal calls
            calls += 1
            if calls == at and at % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            result = function(*arguments)
            if calls == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for name in ("fsync", "replace", "truncate"):
        setattr(os, name, dying(getattr(os, name)))
    tensor_files.save_file = beside(dying(tensor_files.save_file))


def beside(save_file):
    """safetensors writes under a name of its own and renames; so does this, but with a kill in between."""

    def save(tensors, path, metadata):
        written = Path(path).parent / ".tmpAbCdEf"
        written.touch()
        save_file(tensors, path, metadata)
        written.unlink()

    return save


def main(folder: str, mode: str, kills: int) -> None:
    torch.set_num_threads(1)
    out = Path(folder)
    never_killed = hash_of(train(None))  # first: children inherit what torch imports at its first step
    rng = random.Random(kills)
    killed = 0
    while killed < kills:
        pid = in_child(out, 3 * killed + 1 if mode == "crash" else None)  # making the folder alone takes 30 calls
        if mode == "random":
            time.sleep(rng.uniform(0.0, 0.15))
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        killed += os.WIFSIGNALED(status)
        if not os.WIFSIGNALED(status):  # it came to its end: the next kills hit a new run
            assert os.WEXITSTATUS(status) == 0
            assert hash_of(Model.from_pretrained(out)) == never_killed
            shutil.rmtree(out)
    pid = in_child(out, None)
    assert os.waitpid(pid, 0)[1] == 0
    print(hash_of(Model.from_pretrained(out)), never_killed)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
