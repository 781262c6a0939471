"""On CUDA, a whole training step as one CUDA graph for each shape of batch, so that no kernel waits for its launch.

Batches are padded to a few lengths. The first batch of a shape runs as it is, which warms up everything that it calls;
at the second one the step is captured: forward and backward pass, clipping, the optimizers' step. Graphs share their
memory and never run at once. Where a capture fails, training goes on without graphs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress

import torch
from torch import Tensor, nn

from ..data.batching import Batch, widen
from ..data.collection import no_collection
from .config import TrainingConfig

MOST_GRAPHS = 64
CHARACTERS = 8  # words are padded to a multiple of this many

Shape = tuple[int, int, int]  # sentences, positions, characters of a word


def can_capture(config: TrainingConfig, device: torch.device) -> bool:
    """Many processes meet during a step, and one that may be skipped is looked at: a graph can hold neither."""
    alone = not (torch.distributed.is_available() and torch.distributed.is_initialized())
    return config.graphs and device.type == "cuda" and alone and config.on_nan == "stop"


def bucket(longest: int) -> int:
    """Positions to which a batch is padded: a multiple of 8, beyond 64 of an eighth of the next power of two. Always
    more than the longest sentence has, for without any padding the step would be another program."""
    size = longest + 1
    step = max(8, (1 << (size - 1).bit_length()) // 8)
    return -(-size // step) * step


def to_bucket(batch: Batch) -> tuple[Batch, Shape]:
    """The batch with more padding, and its shape."""
    positions, characters = bucket(batch.word_ids.shape[1]), 0
    if batch.character_ids is not None:
        characters = -(-batch.character_ids.shape[2] // CHARACTERS) * CHARACTERS
    return widen(batch, positions, characters), (len(batch), positions, characters)


class StaticBatch:
    """The place from which a graph reads its batch: one buffer of ids, a view of it for each tensor."""

    def __init__(self, batch: Batch, device: torch.device) -> None:
        self.ids = torch.empty_like(join(batch), device=device)
        views = iter(self.ids.split([tensor.numel() for tensor in batch.tensors().values()]))
        self.batch = batch.map(lambda tensor: next(views).view(tensor.shape))

    def fill(self, batch: Batch) -> None:
        ids = join(batch)
        if self.ids.is_cuda:
            ids = ids.pin_memory()  # from other memory the copy would wait for the GPU
        self.ids.copy_(ids, non_blocking=True)


def join(batch: Batch) -> Tensor:
    """All tensors of a batch in one row."""
    return torch.cat([tensor.flatten() for tensor in batch.tensors().values()])


class Recorder:
    """The stream on which steps are warmed up and captured, and the memory that their graphs share."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device)
        self.pool = torch.cuda.graph_pool_handle()

    def warm_up(self, step: Callable[[], Tensor]) -> Tensor:
        """Run the step as it is, where it will be captured."""
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            loss = step()
        current.wait_stream(self.stream)
        return loss

    def record(self, step: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
        """What runs the step again, and where it leaves its loss. Nothing is computed yet."""
        graph = torch.cuda.CUDAGraph()
        current = torch.cuda.current_stream(self.device)
        generator = torch.cuda.default_generators[current.device_index]
        random = generator.clone_state()
        try:
            capture = torch.cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local")
            # a graph that is destroyed spoils another's capture, and those of a model that is no longer used are
            # destroyed whenever Python looks for circles
            with no_collection(), capture:
                loss = step()
        except BaseException:
            torch.cuda.set_stream(current)
            generator.graphsafe_set_state(random)
            self.close_pool(current.device_index)
            raise
        return graph.replay, loss

    def close_pool(self, device_index: int) -> None:
        """After a failed capture torch leaves three things as they were in it: the current stream, the random numbers,
        and the allocator, which here stops waiting for the end of the capture."""
        names = ("_cuda_endAllocateToPool", "_cuda_endAllocateCurrentStreamToPool")  # the latter in older versions
        end = next(getattr(torch._C, name) for name in names if hasattr(torch._C, name))
        with suppress(RuntimeError):  # it has stopped already where the error was none of CUDA's
            end(device_index, self.pool)


class CapturedSteps:
    """step(batch on the device) -> loss, called with batches on the CPU: captured where that can be done.

    The step must leave no gradient behind, and read no value of a tensor.
    """

    def __init__(
        self,
        step: Callable[[Batch], Tensor],
        parameters: Sequence[nn.Parameter],
        device: torch.device,
    ) -> None:
        self.step, self.parameters, self.device = step, parameters, device
        self.recorder: Recorder | None = Recorder(device)  # None once a capture has failed
        self.places: dict[Shape, StaticBatch] = {}
        self.graphs: dict[Shape, tuple[Callable[[], None], Tensor]] = {}

    def __call__(self, batch: Batch) -> Tensor:
        batch, shape = to_bucket(batch)
        known = shape in self.places
        place = self.places[shape] if known else self.places.setdefault(shape, StaticBatch(batch, self.device))
        place.fill(batch)
        if known and shape not in self.graphs and len(self.graphs) < MOST_GRAPHS:
            self.capture(shape, place)
        if shape in self.graphs:
            replay, loss = self.graphs[shape]
            replay()
            return loss.clone()  # the next batch of this shape leaves its loss in the same place
        if self.recorder is None:
            return self.step(place.batch)
        return self.recorder.warm_up(lambda: self.step(place.batch))

    def capture(self, shape: Shape, place: StaticBatch) -> None:
        if self.recorder is None:
            return
        try:
            self.graphs[shape] = self.recorder.record(lambda: self.step(place.batch))
        except Exception as error:  # an error of the step itself comes again when it runs as it is
            reason = str(error).strip().partition("\n")[0]
            warnings.warn(
                f"training goes on without CUDA graphs: a step could not be captured ({reason})", stacklevel=2
            )
            self.recorder = None
            self.graphs.clear()
            for parameter in self.parameters:
                parameter.grad = None
