"""One step of training: from a batch to new weights, in a CUDA graph where that can be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from ..data.batching import Batch, Batches
from ..data.streaming import StreamedBatches
from ..ops.products import has_products_of
from ..ops.streams import Beside
from .config import TrainingConfig
from .faults import is_out_of_memory
from .graphs import CapturedSteps
from .optimizers import clip_gradients, make_optimizers
from .parallel import ParallelModel
from .state import TrainingError, TrainingState


class Step:
    """Called with a batch, it updates all weights. batches: where training stands in them; say: what the user reads."""

    def __init__(
        self,
        parallel: ParallelModel,
        config: TrainingConfig,
        batches: Batches | StreamedBatches,
        state: TrainingState,
        device: torch.device,
        capturable: bool,
        say: Callable[[str], None],
    ) -> None:
        self.parallel, self.processes, self.config = parallel, parallel.processes, config
        self.batches, self.state, self.device, self.say = batches, state, device, say
        self.optimizers: list[Optimizer] = make_optimizers(parallel.model, config, capturable)
        self.parameters = [parameter for parameter in parallel.model.parameters() if parameter.requires_grad]
        self.captured = CapturedSteps(self.update, self.parameters, device) if capturable else None
        self.low = config.precision == "bfloat16"
        if self.low and device.type == "cpu" and not has_products_of(torch.bfloat16):
            self.low = False
            say("this processor has no fast products of bfloat16: training in float32")

    def __call__(self, batch: Batch) -> Tensor:
        """The loss of this process's share, not waited for."""
        self.draw_anew()
        if self.captured:
            try:
                return self.captured(batch)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
            self.captured = None  # graphs keep memory for every shape: the batch is tried again without
            self.make_room()
        return self.update(batch.to(self.device, non_blocking=True))

    def update(self, batch: Batch) -> Tensor:
        """What a graph holds: everything from a batch on the device to new weights. No value may be read here."""
        loss = self.gradients(batch)
        self.parallel.finish_gradients()
        norm = clip_gradients(self.parameters, self.config.clip)
        if self.config.on_nan == "skip" and not self.is_number(loss, norm):
            self.skip()
            return torch.zeros_like(loss)
        self.step_optimizers()
        self.forget_gradients()
        return loss + 0 * norm  # a gradient that is no number shows at once, not in the next batch

    def step_optimizers(self) -> None:
        """Side by side in a graph, for each of them alone leaves much of the card empty."""
        beside = Beside(self.device)
        *others, last = self.optimizers
        for optimizer in others:
            with beside():
                optimizer.step()
        last.step()
        if others:
            beside.join()

    def gradients(self, batch: Batch) -> Tensor:
        """The gradient of the mean loss over a batch. The first batch that does not fit into memory is halved, and all
        after it; with many processes, the others are already waiting for a gradient, and the error stands."""
        try:
            return self.add_up(batch)
        except (RuntimeError, MemoryError) as error:
            if self.captured or not is_out_of_memory(error):
                raise
            if self.state.halved or self.processes.many or len(batch) == 1:
                raise TrainingError(
                    "there is not enough memory: try --micro-batches, or a smaller --batch-size"
                ) from None
        self.state.halved = True
        self.make_room()
        self.say(f"batch {self.batches.index} did not fit into memory: from here on batches are computed in halves")
        return self.gradients(batch)

    def add_up(self, batch: Batch) -> Tensor:
        """The gradient in one piece, or added up over several."""
        losses = []
        most = self.config.micro_batches * (1 + self.state.halved)
        parts = [(piece, len(piece) / len(batch)) for piece in pieces(batch, most)]
        if self.parallel.shard:  # FSDP2 meets in every piece: all processes have as many, some of them in vain
            parts += [(parts[0][0], 0.0)] * (most - len(parts))
        for number, (piece, weight) in enumerate(parts, start=1):
            with self.parallel.adding(last=number == len(parts)), self.precision():
                loss = self.parallel.loss(piece) * weight
                loss.backward()
            losses.append(loss.detach())
        return torch.stack(losses).sum() / self.processes.size

    def precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.low)

    def draw_anew(self) -> None:
        """Many processes draw other random numbers each, and in every step the same ones again after a restart."""
        if self.processes.many:
            place = [self.config.seed, self.batches.epoch, self.batches.index, self.processes.rank]
            torch.manual_seed(int(np.random.SeedSequence(place).generate_state(1)[0]))

    def is_number(self, loss: Tensor, norm: Tensor) -> bool:
        """The norm alone is known to all processes; one that got no number from any of them is none."""
        return math.isfinite(float(norm if self.processes.many else loss + norm))

    def skip(self) -> None:
        self.forget_gradients()
        self.state.skipped += 1
        self.say(f"the loss of batch {self.batches.index} is no number: the batch was left out")

    def make_room(self) -> None:
        """Free what a step left behind that did not fit into memory."""
        self.forget_gradients()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def forget_gradients(self) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)


def pieces(batch: Batch, number: int) -> Iterator[Batch]:
    """A batch in `number` parts of equal size, as nearly as that goes."""
    size = -(-len(batch) // number)
    if size == len(batch):
        yield batch
        return
    for start in range(0, len(batch), size):
        part = slice(start, start + size)
        yield replace(batch.map(lambda tensor: tensor[part]), positions=batch.positions[part])  # noqa: B023
