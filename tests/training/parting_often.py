"""Two processes that join, train and part again and again: `python -m tests.training.parting_often FOLDER RUNS`.

gloo's threads run only where nothing else does, so that they are still busy with the last message when the processes
part. Hangs where something waits for them while it keeps Python's lock.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

import torch
import torch.distributed as dist

from sentence_state.models import TextClassifier
from sentence_state.training import TrainingConfig, fit

from ..models.synthetic import small, splits
from .many_processes import free_port, in_many

CONFIG = TrainingConfig(epochs=1, patience=0, batch_size=30)


def slow_threads(init_process_group):
    def init(*arguments, **options):
        init_process_group(*arguments, **options)
        cores = sorted(os.sched_getaffinity(0))
        with suppress(OSError):  # where the system does not let us, the threads are as fast as they are
            os.sched_setaffinity(0, {cores[int(os.environ["RANK"]) % len(cores)]})
            for thread in map(int, os.listdir("/proc/self/task")):
                if thread != os.getpid():
                    os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))

    return init


def main(folder: Path, runs: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group = slow_threads(dist.init_process_group)
    data = splits(61, 13, 1)
    heard, said = os.pipe()

    def work(rank: int) -> None:
        for run in range(runs):
            port = str(free_port()) if rank == 0 else os.read(heard, 5).decode()  # five digits
            if rank == 0:
                os.write(said, port.encode())
            os.environ["MASTER_PORT"] = port
            fit(TextClassifier.from_examples(data.train, small()), data, CONFIG, folder / str(run))

    in_many(2, work)
    print("parted", runs, "times")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
