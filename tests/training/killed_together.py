"""torchrun's agent with two workers that are killed: `python -m tests.training.killed_together FOLDER KILLS [shard]`.

The agent runs in this process and forks its workers, which have torch then: twenty restarts take seconds. Prints the
hash of the weights that the run ended with, and that of a run never killed.
"""

import os
import random
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from sentence_state.data.batching import Batch
from sentence_state.models import JointModel, Model
from sentence_state.training import TrainingConfig, fit
from sentence_state.training.checkpoint import checkpoints
from sentence_state.training.distributed import was_restarted

from ..models.synthetic import small, splits
from .killed_runs import FIELDS, hash_of

CONFIG = TrainingConfig(
    epochs=6, patience=0, batch_size=6, learning_rate=0.01, checkpoint_seconds=0.01, lazy_words=True
)


def work(out: str, kills: int, shard: bool) -> str:
    """A worker: one of the two dies at a random moment, as long as there are kills left."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # forked, it has the agent's handler
    restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    rng = random.Random(restarts)
    if restarts < kills and int(os.environ["RANK"]) == rng.randrange(2):
        if restarts % 2:
            die_in_step(rng.randint(2, 12))
        else:
            threading.Thread(target=die, args=(rng.uniform(0.02, 0.8),), daemon=True).start()
    if os.environ["RANK"] == "0":
        with open(f"{out}.starts", "a") as file:  # where the kills hit: the newest checkpoint at every start
            file.write(f"{[path.stem for path in checkpoints(Path(out))][-1:]}\n")
    torch.set_num_threads(1)
    data = splits()
    model = JointModel.from_examples(data.train, small(**FIELDS))
    config = replace(CONFIG, shard=True, lazy_words=False, epochs=2) if shard else CONFIG
    result = fit(model, data, config, out=out, resume=was_restarted())
    if restarts < kills:  # it came to its end before it was killed: the kill counts nevertheless, as one after the end
        os.kill(os.getpid(), signal.SIGKILL)
    assert result.finished
    return hash_of(model)


def die(moment: float) -> None:
    time.sleep(moment)
    os.kill(os.getpid(), signal.SIGKILL)


def die_in_step(number: int) -> None:
    """So that some kills hit in the middle of training, however slow the machine is."""
    loss, calls = JointModel.loss, 0

    def counted(model: JointModel, batch: Batch) -> Tensor:
        nonlocal calls
        calls += 1
        if calls == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return loss(model, batch)

    JointModel.loss = counted


def launch(out: Path, kills: int, shard: bool) -> list[str]:
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=2,
        run_id=out.name,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=kills,
        monitor_interval=0.02,
        start_method="fork",
    )
    return list(elastic_launch(config, work)(str(out), kills, shard).values())


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    shard = "shard" in sys.argv
    never_killed = launch(folder / "never_killed", 0, shard)
    killed = launch(folder / "killed", int(sys.argv[2]), shard)
    assert len({*never_killed, *killed}) == 1, (never_killed, killed)
    print(killed[0], hash_of(Model.from_pretrained(folder / "killed")))
