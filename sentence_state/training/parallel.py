"""The gradient of a batch whose sentences lie on many processes: equal to the one that a single process computes.

Every process computes the loss of its share, weighted so that the sum over all is the mean over the batch. DDP adds up
dense gradients while the backward pass runs. Sparse ones, of word vectors that learn lazily, are gathered here: gloo
and NCCL then do the same, and the cost follows the words of the batch. FSDP2 (`shard`) keeps on every process a part
of the weights, of their gradients and of Adam's state.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ..data.batching import Batch
from ..data.errors import DataError
from ..data.example import Example, Splits
from ..models import Decoded, Model
from . import run_folder
from .config import TrainingConfig
from .distributed import Processes

SPARSE = "model.embedding.words.weight"


class Method(nn.Module):
    """A method of a model as a forward pass, which is where DDP and FSDP2 do their work."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, name: str, *arguments: Any, **options: Any) -> Any:
        return getattr(self.model, name)(*arguments, **options)


class ParallelModel:
    """A model on one process or on many. `model` is the one to be trained: a sharded copy where `shard` asks for it."""

    def __init__(self, model: Model, config: TrainingConfig, processes: Processes, device: torch.device) -> None:
        self.processes, self.shard = processes, config.shard and processes.many
        self.model = copy.deepcopy(model) if self.shard else model.to(device)
        self.wrapped: Any = Method(self.model)
        self.sparse = config.lazy_words and bool(model.word_parameters())
        self.options = {"consistency": config.consistency} if config.consistency else {}  # a loss may know none
        if self.shard:
            fully_shard(self.wrapped, device, processes.size)

    def find_unused(self, batch: Batch) -> None:
        """Wrap in DDP, which has to know whether there are weights that the loss does not depend on."""
        if self.shard:
            return
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        unused = None in torch.autograd.grad(self.model.loss(batch, **self.options), parameters, allow_unused=True)
        ignored = [name for name, _ in self.wrapped.named_buffers()] + [SPARSE] * self.sparse  # buffers are constants
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(self.wrapped, ignored)
        self.wrapped = DistributedDataParallel(
            self.wrapped, find_unused_parameters=unused, gradient_as_bucket_view=True
        )

    def loss(self, batch: Batch) -> Tensor:
        """The loss of this process's share as a part of the whole batch's; DDP and FSDP2 take the mean over processes,
        where a sum is wanted."""
        if not self.processes.many:
            return self.model.loss(batch, **self.options)
        loss: Tensor = self.wrapped("loss", batch, **self.options)
        return loss * (batch.weight * self.processes.size)

    @contextmanager
    def adding(self, last: bool) -> Iterator[None]:
        """Around the backward pass of each piece of a batch: only that of the last one communicates."""
        if isinstance(self.wrapped, DistributedDataParallel) and not last:
            with self.wrapped.no_sync():
                yield
            return
        if self.shard:
            self.wrapped.set_requires_gradient_sync(last)
        yield

    def finish_gradients(self) -> None:
        """Add up what DDP does not: sparse gradients."""
        if self.processes.many and self.sparse:
            for parameter in self.model.word_parameters():
                if parameter.grad is not None:
                    parameter.grad = gathered(parameter.grad, self.processes.size)

    def decode(self, batch: Batch) -> Any:
        return self.wrapped("decode", batch) if self.shard else self.model.decode(batch)


def fully_shard(wrapped: nn.Module, device: torch.device, size: int) -> None:
    """FSDP2: the word vectors, which may be most of the weights, by themselves, then everything else."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.type, (size,))
    for module in (wrapped.model.embedding.words, wrapped):  # type: ignore[union-attr]
        sharded: Any = fully_shard(module, mesh=mesh)  # type: ignore[arg-type]
        if device.type == "cpu":  # gloo takes the sum for the mean, in torch 2.7 and 2.8 at least
            if not hasattr(sharded, "set_force_sum_reduction_for_comms"):
                raise DataError(f"--shard on CPUs needs torch 2.8 or later, this is {torch.__version__}")
            sharded.set_force_sum_reduction_for_comms(True)


def gathered(gradient: Tensor, size: int) -> Tensor:
    """The mean over all processes of a sparse gradient with rows (words, D): only rows that somebody has are sent."""
    gradient = gradient.coalesce()
    rows, values = gradient.indices()[0], gradient.values()
    counts = [torch.zeros(1, dtype=torch.long, device=rows.device) for _ in range(size)]
    dist.all_gather(counts, torch.tensor([len(rows)], device=rows.device))
    most = max(int(count) for count in counts)
    all_rows = [rows.new_zeros(most) for _ in range(size)]
    all_values = [values.new_zeros(most, values.shape[1]) for _ in range(size)]
    dist.all_gather(all_rows, torch.cat([rows, rows.new_zeros(most - len(rows))]))
    dist.all_gather(all_values, torch.cat([values, values.new_zeros(most - len(rows), values.shape[1])]))
    kept = [slice(int(count)) for count in counts]
    rows = torch.cat([part[keep] for part, keep in zip(all_rows, kept, strict=True)])
    values = torch.cat([part[keep] for part, keep in zip(all_values, kept, strict=True)])
    return torch.sparse_coo_tensor(rows[None], values / size, gradient.shape, check_invariants=False).coalesce()


def decode_shares(
    model: Model,
    examples: Sequence[Example],
    batch_size: int,
    processes: Processes,
    decode: Callable[[Batch], Decoded] | None = None,
) -> Decoded:
    """`model.decode_all` by many processes: each sentence is answered by one of them, and all get all answers.

    Longest first, sentences are dealt in turn; shares are filled up to one size, so that all processes make the same
    number of calls, and what only fills up is not counted.
    """
    if not processes.many:
        return model.decode_all(examples, batch_size)
    order = sorted(range(len(examples)), key=lambda row: -len(examples[row].words))
    rounds = -(-len(order) // processes.size)
    dealt = order + order[:1] * (rounds * processes.size - len(order))
    mine = [examples[row] for row in dealt[processes.rank :: processes.size]]
    shares = processes.gather(model.decode_all(mine, batch_size, decode))
    return model.in_order(((order[rank :: processes.size], share) for rank, share in enumerate(shares)), examples)


def whole(tensor: Tensor) -> Tensor:
    """A tensor that FSDP2 keeps in parts, put together; all processes must ask for it."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def part_like(parameter: Tensor, tensor: Tensor) -> Tensor:
    """The opposite of `whole`: a tensor of a parameter's shape as the parameter is kept, any other as it is."""
    if not hasattr(parameter, "full_tensor") or tensor.shape != parameter.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    kept: Any = parameter
    return distribute_tensor(tensor.to(kept.device), kept.device_mesh, kept.placements)


def copy_into(target: Tensor, source: Tensor) -> None:
    """target = source, where the target may be kept in parts."""
    with torch.no_grad():
        target.copy_(part_like(target, source))


def check_shares(model: Model, splits: Splits, config: TrainingConfig, processes: Processes) -> None:
    """Whether the processes can train one model together: a sentence for each, and the same start for all."""
    if config.batch_size < processes.size:
        raise ValueError(
            f"a batch is shared by all processes: batch_size must be at least their number, {processes.size}, "
            f"got {config.batch_size}"
        )
    if processes.many:
        digest = hashlib.sha256(run_folder.describe_part(splits.train)["sha256"].encode())
        for tensor in model.state_dict().values():
            digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
        processes.check_same_start(digest.hexdigest())
