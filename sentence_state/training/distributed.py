"""Many processes as one: who this process is among those that torchrun started, and how they agree on something.

All of them read the same data and take the same decisions; the first one writes and prints.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from ..data.errors import DataError

T = TypeVar("T")
Variables = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # torchrun sets them


@dataclass(frozen=True)
class Processes:
    """Process `rank` of `size`; alone it is 0 of 1, and nothing here costs anything."""

    rank: int = 0
    size: int = 1

    @property
    def many(self) -> bool:
        return self.size > 1

    def on_first(self, action: Callable[[], T]) -> T:
        """What `action` returns on the first process, on all of them; an error in the data or a folder likewise."""
        if not self.many:
            return action()
        found: list[Any] = [None, None]
        if self.rank == 0:
            try:
                found[0] = action()
            except DataError as error:  # anything else ends the first process, and with it the others
                found[1] = error
        dist.broadcast_object_list(found, src=0)
        if found[1] is not None:
            raise found[1]
        return cast(T, found[0])

    def tensors_of_first(self, action: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
        """The tensors that `action` returns on the first process, on all of them, one after the other."""
        if not self.many:
            return action()
        found: dict[str, Tensor] = {}

        def describe() -> dict[str, tuple[torch.Size, torch.dtype]]:
            found.update(action())
            return {name: (tensor.shape, tensor.dtype) for name, tensor in found.items()}

        for name, (shape, dtype) in self.on_first(describe).items():
            found.setdefault(name, torch.empty(shape, dtype=dtype))
            dist.broadcast(found[name], src=0)
        return found

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """Numbers of all processes, added up place by place."""
        if not self.many:
            return list(numbers)
        total = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(total)
        return [float(number) for number in total]

    def gather(self, value: T) -> list[T]:
        """The values of all processes, by rank."""
        if not self.many:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def check_same_start(self, digest: str) -> None:
        """Raise where the processes do not start with the same data and the same weights."""
        digests = self.gather(digest)
        for rank, other in enumerate(digests):
            if other != digests[0]:
                found = f"process {rank} has other data or first weights than process 0"
                raise DataError(f"{found}: give all machines the same files")


@contextmanager
def joined_processes(device: torch.device) -> Iterator[Processes]:
    """The processes that torchrun started, gloo between CPUs and NCCL between GPUs; or this one alone.

    Where the caller has made torch's process group already, that one is used and left as it is.
    """
    if dist.is_available() and dist.is_initialized():
        yield Processes(dist.get_rank(), dist.get_world_size())
        return
    if not started_together():
        yield Processes()
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    store, rank, size = next(rendezvous("env://"))
    store = PrefixStore(f"start {restarts()}", store)  # torchrun's store still has the addresses of dead processes
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    # Held, to be the last to go: its end lets gloo's threads have Python's lock, the group's does from torch 2.8 on.
    gloo = dist.group.WORLD._get_backend(torch.device("cpu"))  # type: ignore[union-attr]  # noqa: F841
    try:
        yield Processes(rank, size)
    except BaseException:
        if device.type == "cpu":  # NCCL would wait for processes that are gone; the end of this one frees all
            dist.destroy_process_group()
        raise
    dist.barrier()  # nobody closes a connection that another is still reading from
    dist.destroy_process_group()


def started_together() -> bool:
    """Whether torchrun started this process, and others."""
    return dist.is_available() and all(name in os.environ for name in Variables) and int(os.environ["WORLD_SIZE"]) > 1


def local_rank() -> int:
    """This process among those on the same machine: which of its GPUs is its own."""
    return int(os.environ.get("LOCAL_RANK", 0)) if started_together() else 0


def is_first() -> bool:
    """Whether this process prints, asked before the processes have joined."""
    return not started_together() or int(os.environ["RANK"]) == 0


def was_restarted() -> bool:
    """Whether torchrun (--max-restarts) starts this process again after a fault: then a run goes on."""
    return started_together() and restarts() > 0


def restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))


def pick_device(name: str) -> torch.device:
    """Under torchrun, every process of a machine has a GPU of its own."""
    device = torch.device(name if name != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {name!r} was asked for, but PyTorch finds no GPU here")
    if device.type != "cuda" or not started_together():
        return device
    if local_rank() >= torch.cuda.device_count():
        raise ValueError(
            f"process {local_rank() + 1} on this machine has no GPU: there are {torch.cuda.device_count()}"
        )
    return torch.device("cuda", local_rank())
