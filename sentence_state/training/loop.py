"""fit(): the only training loop. It knows `loss(batch)` and `evaluate`, not the task."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..data.batching import Batch, Batches
from ..data.example import Splits
from ..data.indexing import index_examples
from ..models import Model
from ..models.files import read_json, write_json
from ..models.pretrained import load_weights, save_weights
from . import run_folder
from .averaging import WeightAverage
from .checkpoint import collect, delete_checkpoints, load_checkpoint, restore, save_checkpoint
from .config import TrainingConfig
from .evaluation import Evaluation, evaluate
from .graphs import CapturedSteps, can_capture
from .interrupt import StopRequest, ctrl_c_requests_stop
from .optimizers import clip_gradients, make_optimizers, set_learning_rate
from .state import Progress, TrainingError, TrainingResult, TrainingState

REPORTS_A_SECOND = 10


def fit(
    model: Model,
    splits: Splits,
    config: TrainingConfig | None = None,
    out: str | PathLike[str] | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> TrainingResult:
    """Train a model on splits.train, keep the weights that are best on splits.dev, evaluate them on splits.test.

    out: the folder of the run, a new one. With `resume` a run that was begun there, by the same model and splits, goes
    on bit by bit as if it had never stopped; where none was begun, it begins.
    Ctrl-C writes a checkpoint and returns. The global random numbers are left as they were.
    """
    config = config or TrainingConfig()
    run = Path(out) if out is not None else None
    device = pick_device(config.device)
    if resume and run is None:
        raise ValueError("resume needs out, the folder of the run to go on with")
    if not splits.train:
        raise ValueError("there is no example to train on")
    model.to(device)
    with torch.random.fork_rng([device] if device.type == "cuda" else []), ctrl_c_requests_stop() as stop:
        torch.manual_seed(config.seed)
        loop = Loop(model, splits, config, run, device, stop, progress)
        if run is not None and resume and not run_folder.is_new(run):
            loop.resume(run)
        elif run is not None:
            run_folder.start_run(run, model, splits, config)
            loop.save()
        try:
            return loop.run_to_end()
        finally:
            model.embedding.words.sparse = False


class Loop:
    """The variables of `fit`, which its steps share."""

    def __init__(
        self,
        model: Model,
        splits: Splits,
        config: TrainingConfig,
        run: Path | None,
        device: torch.device,
        stop: StopRequest,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.model, self.splits, self.config = model, splits, config
        self.run, self.device, self.stop, self.progress = run, device, stop, progress
        capturable = can_capture(config, device)
        model.embedding.words.sparse = config.lazy_words and not capturable
        self.optimizers: list[Optimizer] = make_optimizers(model, config, capturable)
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.captured = CapturedSteps(self.update, self.parameters, device) if capturable else None
        train = index_examples(splits.train, model.vocabularies, boundaries=model.config.boundaries)
        self.batches = Batches(train, config.batch_size, seed=config.seed)
        self.average = WeightAverage(model, config.averaging) if config.averaging else None
        self.state = TrainingState()
        self.best: dict[str, Tensor] | None = None  # the best weights where there is no folder for them
        self.saved_at = self.started = time.monotonic()

    def run_to_end(self) -> TrainingResult:
        while not self.state.is_over(self.config):
            if self.batches.epoch == len(self.state.history):
                self.train_epoch()
            if not self.stop:
                with self.average.in_place() if self.average else nullcontext():
                    record = self.evaluate_epoch()
                self.finish_epoch(record)
            if self.stop:
                self.save()
                return self.result(finished=False)
        return self.finish()

    def train_epoch(self) -> None:
        """The rest of the current epoch: all of it, or what a checkpoint left."""
        self.model.train()
        set_learning_rate(self.optimizers, self.learning_rate())
        loss_sum = torch.tensor(self.state.loss_sum, dtype=torch.float64, device=self.device)
        reported = 0.0
        for batch in self.batches:
            loss_sum += self.step(batch)
            if self.average:
                self.average.update()
            now = time.monotonic()
            due = now - reported > 1 / REPORTS_A_SECOND
            if due or self.device.type == "cpu":  # reading a loss from a GPU waits for it
                self.check_loss(float(loss_sum))
            if due:
                reported = now
                self.report(self.batches.index, float(loss_sum) / self.batches.index)
            if self.stop or (self.run and now - self.saved_at >= self.config.checkpoint_seconds):
                self.state.loss_sum = float(loss_sum)
                if self.stop:
                    return
                self.save()
        self.state.loss_sum = float(loss_sum)
        self.check_loss(self.state.loss_sum)

    def step(self, batch: Batch) -> Tensor:
        """One update of all weights, in a CUDA graph where that can be; returns the loss, not waited for."""
        if self.captured:
            return self.captured(batch)
        return self.update(batch.to(self.device, non_blocking=True))

    def update(self, batch: Batch) -> Tensor:
        """What a graph holds: everything from a batch on the device to new weights. No value may be read here."""
        loss = self.gradients(batch)
        clip_gradients(self.parameters, self.config.clip)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return loss

    def gradients(self, batch: Batch) -> Tensor:
        """The gradient of the mean loss over a batch, in one piece or added up over several."""
        losses = []
        for piece in pieces(batch, self.config.micro_batches):
            with self.precision():
                loss = self.model.loss(piece) * (len(piece) / len(batch))
            loss.backward()
            losses.append(loss.detach())
        return torch.stack(losses).sum() if len(losses) > 1 else losses[0]

    def evaluate_epoch(self) -> dict[str, Any]:
        """Evaluate, keep the weights if they are the best so far; returns the line of metrics.jsonl."""
        state = self.state
        epoch = len(state.history) + 1
        record: dict[str, Any] = {
            "epoch": epoch,
            "loss": state.loss_sum / len(self.batches),
            "learning_rate": self.learning_rate(),
        }
        score = None
        if self.splits.dev:
            evaluation = self.evaluate("dev")
            score = evaluation.score
            record |= {"metric": evaluation.metric, "dev": evaluation.scores}
        record["seconds"] = round(self.seconds(), 3)
        if score is None or state.best_score is None or score > state.best_score:
            state.best_score, state.best_epoch = score, epoch
            self.keep_weights()
        return record

    def finish_epoch(self, record: dict[str, Any]) -> None:
        """Note and save."""
        state = self.state
        state.history.append(record)
        state.loss_sum = 0.0
        if self.run:
            state.metrics_size = run_folder.append_metrics(self.run, record)
            self.save()
        self.report(len(self.batches), record["loss"], record)

    def finish(self) -> TrainingResult:
        """The best weights into the model, their scores, and the folder without checkpoints."""
        result = self.result(finished=True)
        if self.splits.dev:
            result.dev = self.evaluate("dev")
        if self.splits.test:
            result.test = self.evaluate("test")
        if self.run and not run_folder.is_finished(self.run):
            scores = {name: part.to_dict() for name, part in (("dev", result.dev), ("test", result.test)) if part}
            write_json(self.run / run_folder.RESULT, {"state": asdict(self.state), **scores})
        if self.run:
            delete_checkpoints(self.run)
        return result

    def result(self, finished: bool) -> TrainingResult:
        self.recall_weights()
        self.model.eval()
        state = self.state
        return TrainingResult(finished, state.best_epoch, state.best_score, state.history, self.seconds())

    # ---- on disk --------------------------------------------------------------------------------

    def save(self) -> None:
        if self.run is None:
            return
        self.state.batches = self.batches.state()
        self.state.seconds = self.seconds()
        self.started = time.monotonic()
        save_checkpoint(self.run, self.collect(), asdict(self.state))
        self.saved_at = time.monotonic()

    def collect(self) -> dict[str, Tensor]:
        average = self.average.collect() if self.average else {}
        return collect(self.model, self.optimizers, self.device) | average

    def resume(self, run: Path) -> None:
        """Go back to the last checkpoint, or to the end of a run that is finished."""
        run_folder.check_same_run(run, self.model, self.splits, self.config)
        run_folder.tidy(run)
        if run_folder.is_finished(run):
            saved: dict[str, Any] = read_json(run / run_folder.RESULT)["state"]
        else:
            found = load_checkpoint(run)
            if found is None:  # killed before the first checkpoint: the model is still what it was then
                self.save()
                return
            tensors, saved = found
            restore(tensors, self.model, self.optimizers, self.device)
            if self.average:
                self.average.restore(tensors)
        self.state = TrainingState(**saved)
        self.batches.restore(self.state.batches)
        run_folder.cut_metrics(run, self.state.metrics_size)

    def keep_weights(self) -> None:
        if self.run:
            save_weights(self.model, self.run)
        else:
            self.best = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}

    def recall_weights(self) -> None:
        if self.run and self.state.best_epoch:
            load_weights(self.model, self.run)
        elif self.best is not None:
            self.model.load_state_dict(self.best)

    # ---- small things ---------------------------------------------------------------------------

    def evaluate(self, name: str) -> Evaluation:
        return evaluate(self.model, getattr(self.splits, name), max(32, self.config.batch_size))

    def learning_rate(self) -> float:
        return self.config.learning_rate * self.config.decay ** len(self.state.history)

    def seconds(self) -> float:
        return self.state.seconds + time.monotonic() - self.started

    def report(self, batch: int, loss: float, record: dict[str, Any] | None = None) -> None:
        if self.progress:
            epoch = record["epoch"] if record else len(self.state.history) + 1
            best = self.state.best_score
            self.progress(Progress(epoch, self.config.epochs, batch, len(self.batches), loss, best, record))

    def check_loss(self, loss_sum: float) -> None:
        if not math.isfinite(loss_sum):
            raise TrainingError(
                f"the loss is {loss_sum} in epoch {len(self.state.history) + 1}, at batch {self.batches.index} or "
                "shortly before: try a lower learning rate"
            )

    @contextmanager
    def precision(self) -> Iterator[None]:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"):
            yield


def pick_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {name!r} was asked for, but PyTorch finds no GPU here")
    return device


def pieces(batch: Batch, number: int) -> Iterator[Batch]:
    """A batch in `number` parts of equal size, as nearly as that goes."""
    size = -(-len(batch) // number)
    if size == len(batch):
        yield batch
        return
    for start in range(0, len(batch), size):
        part = slice(start, start + size)
        yield replace(batch.map(lambda tensor: tensor[part]), positions=batch.positions[part])  # noqa: B023
