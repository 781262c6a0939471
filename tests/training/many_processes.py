"""Trains in one process and in several: `python -m tests.training.many_processes FOLDER [DEVICE [CASE ...]]`.

One process imports torch and forks. On a GPU all share the one there is: each says that it is on a machine of its own,
since NCCL refuses two processes of one machine on one GPU. Prints a JSON object: for every case the largest difference
between the weights of one process and of many, and what else there is to compare.
"""

import json
import os
import random
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from torch.distributed.fsdp import FSDPModule

from sentence_state.models import JointModel, SequenceTagger, TextClassifier
from sentence_state.training import TrainingConfig, fit

from ..models.synthetic import small, splits

CONFIG = TrainingConfig(epochs=7, patience=0, batch_size=8, learning_rate=0.01, l2=0.001)  # 7 epochs of 8 batches
CASES = {
    "classifier": (TextClassifier, {}, {}, 2),
    "tagger": (SequenceTagger, {"characters": "CNN"}, {}, 2),
    "joint, sparse words": (JointModel, {}, {"lazy_words": True}, 2),
    "joint, three processes, in pieces": (JointModel, {}, {"lazy_words": True, "micro_batches": 2}, 3),
    "weights that are not used": (  # slowly: a bias of the attention has gradients near 0, which Adam enlarges
        TextClassifier,
        {"num_steps": 1, "readout": "attention"},
        {"l2": 0.0, "learning_rate": 0.001},
        2,
    ),
}
CAN_SHARD = hasattr(FSDPModule, "set_force_sum_reduction_for_comms")  # on CPUs: from torch 2.8 on
if CAN_SHARD:
    CASES["sharded"] = (JointModel, {"characters": "CNN"}, {"shard": True}, 2)
    CASES["sharded, in pieces"] = (SequenceTagger, {}, {"shard": True, "micro_batches": 4}, 2)


def train(case: str, device: str, **options):
    cls, fields, training, _ = CASES[case]
    data = splits(61, 13, 1)  # the last batch has 5 sentences; 13 and 1 do not divide by 2 or 3
    model = cls.from_examples(data.train, small(**{"dropout": 0.0, **fields}))
    result = fit(model, data, TrainingConfig(**{**CONFIG.to_dict(), **training, "device": device}), **options)
    return model.cpu(), result


def free_port() -> int:
    """One that the system gives to nobody who asks for any: no other test takes it before we do."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as place, suppress(OSError):
            place.bind(("127.0.0.1", port))
            return port


def in_many(size: int, work: Callable[[int], None], device: str = "cpu") -> None:
    """Fork as torchrun does: a rank for each, and a port to meet at."""
    port, children, on_gpu = free_port(), [], device == "cuda"
    for rank in range(size):
        children.append(os.fork())
        if children[-1] == 0:
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": "0" if on_gpu else str(rank), "WORLD_SIZE": str(size)}
            os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            os.environ |= {"NCCL_HOSTID": f"machine {rank}", "NCCL_SOCKET_IFNAME": "lo"} if on_gpu else {}
            try:
                work(rank)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * size


def compare(case: str, folder: Path, device: str) -> dict[str, float]:
    def work(rank: int, name: str) -> None:
        model, found = train(case, device, out=folder / name)
        scores = [found.history, found.dev.to_dict(), found.test.to_dict(), found.finished]
        torch.save((model.state_dict(), scores), folder / f"{name}.{rank}")

    size = CASES[case][3]
    in_many(1, lambda rank: work(rank, f"{case}, alone"))
    in_many(size, lambda rank: work(rank, case), device)
    here, (ours, *expected, _) = torch.load(folder / f"{case}, alone.0")
    answers = [torch.load(folder / f"{case}.{rank}") for rank in range(size)]
    losses = zip(ours, answers[0][1][0], strict=True)
    return {
        "weights": max(float((there[name] - here[name]).abs().max()) for there, _ in answers for name in here),
        "between processes": max(
            float((there[name] - answers[0][0][name]).abs().max()) for there, _ in answers for name in here
        ),
        "losses": max(abs(a["loss"] - b["loss"]) for a, b in losses),
        "same scores": expected == answers[0][1][1:3] == answers[-1][1][1:3],
        "steps": len(ours) * 8,
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, device, *cases = Path(sys.argv[1]), *(sys.argv[2:] or ["cpu"])
    print(json.dumps({case: compare(case, folder, device) for case in cases or CASES}))
