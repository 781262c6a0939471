"""fit(): the only training loop. It knows `loss(batch)` and `evaluate`, not the task."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.batching import Batches, collate
from ..data.example import Example, Splits
from ..data.files import FolderError, read_json, write_json
from ..data.indexing import index_examples
from ..data.streaming import StreamedBatches, StreamedExamples
from ..models import Model
from ..models.pretrained import read_weights, save_tensors
from . import run_folder
from .averaging import WeightAverage
from .checkpoint import collect, delete_checkpoints, load_checkpoint, restore, save_checkpoint
from .config import TrainingConfig
from .distributed import Processes, joined_processes, pick_device
from .evaluation import Evaluation, check_targets, compare
from .faults import save_bad_batch
from .graphs import can_capture
from .interrupt import StopRequest, signals_request_stop
from .optimizers import set_learning_rate
from .parallel import ParallelModel, check_shares, decode_shares, whole
from .state import Progress, TrainingError, TrainingResult, TrainingState, check_state
from .step import Step

REPORTS_A_SECOND = 10
ALONE = Processes()
MEETINGS = 10  # batches after which processes with GPUs ask each other whether to stop or to save


def fit(
    model: Model,
    splits: Splits,
    config: TrainingConfig | None = None,
    out: str | PathLike[str] | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    reading: Mapping[str, Any] | None = None,
) -> TrainingResult:
    """Train a model on splits.train, keep the weights that are best on splits.dev, evaluate them on splits.test.

    out: the folder of the run, a new one. With `resume` a run that was begun there, by the same model and splits, goes
    on bit by bit as if it had never stopped; where none was begun, it begins.
    reading: how the files of the splits were read, to be saved with the run.
    Ctrl-C or SIGTERM writes a checkpoint and returns. The global random numbers are left as they were.
    Started by torchrun, all processes train one model together, each on its share of every batch; see docs/scale.md.
    """
    config = config or TrainingConfig()
    run = Path(out) if out is not None else None
    device = pick_device(config.device)
    if resume and run is None:
        raise ValueError("resume needs out, the folder of the run to go on with")
    if not splits.train:
        raise ValueError("there is no example to train on")
    with (
        joined_processes(device) as processes,
        torch.random.fork_rng([device] if device.type == "cuda" else []),
        signals_request_stop(processes.many) as stop,
    ):
        # In a frame of its own: DDP has to be gone when the processes part. Else it is the last to hold their group,
        # and ends gloo's threads while it holds Python's lock, which they may be waiting for: nobody would go on.
        return train(model, splits, config, run, resume, device, stop, progress, processes, reading or {})


def train(
    model: Model,
    splits: Splits,
    config: TrainingConfig,
    run: Path | None,
    resume: bool,
    device: torch.device,
    stop: StopRequest,
    progress: Callable[[Progress], None] | None,
    processes: Processes,
    reading: Mapping[str, Any],
) -> TrainingResult:
    torch.manual_seed(config.seed)
    loop = Loop(model, splits, config, run, device, stop, progress, processes)
    if run is not None and resume and not processes.on_first(lambda: run_folder.is_new(run)):
        loop.resume(run)
    elif run is not None:
        processes.on_first(lambda: run_folder.start_run(run, model, splits, config, reading))
        loop.save()
    try:
        return loop.run_to_end()
    finally:
        model.embedding.words.sparse = False
        loop.close()


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
        processes: Processes = ALONE,
    ) -> None:
        check_shares(model, splits, config, processes)
        self.asked_for, self.splits, self.config = model, splits, config
        self.run, self.device, self.stop, self.progress = run, device, stop, progress
        self.processes = processes
        capturable = can_capture(config, device)
        model.embedding.words.sparse = config.lazy_words and not capturable
        self.parallel = ParallelModel(model, config, processes, device)
        self.model = self.parallel.model
        self.batches = make_batches(model, splits.train, config, processes)
        self.state = TrainingState()
        self.step = Step(self.parallel, config, self.batches, self.state, device, capturable, self.say)
        if processes.many:
            sentence = collate([splits.train[0]], model.vocabularies, boundaries=model.config.boundaries)
            self.parallel.find_unused(sentence.to(device))
        self.average = WeightAverage(self.model, config.averaging) if config.averaging else None
        self.recent: list[tuple[int, int, Tensor]] = []  # epoch, batch and loss since the last look at the losses
        self.best: dict[str, Tensor] | None = None  # the best weights where there is no folder for them
        self.saved_at = self.started = time.monotonic()

    def close(self) -> None:
        """Give the memory back now: the step, its graphs and this loop know each other, and Python looks for such
        circles when it likes."""
        self.step.captured = None
        del self.step

    def run_to_end(self) -> TrainingResult:
        while not self.state.is_over(self.config):
            if self.batches.epoch == len(self.state.history):
                self.train_epoch()
            if not self.asked_to_stop():
                with self.average.in_place() if self.average else nullcontext():
                    record = self.evaluate_epoch()
                self.finish_epoch(record)
            if self.asked_to_stop():
                self.save()
                return self.result(finished=False)
        return self.finish()

    def train_epoch(self) -> None:
        """The rest of the current epoch: all of it, or what a checkpoint left."""
        self.model.train()
        set_learning_rate(self.step.optimizers, self.learning_rate())
        before = self.state.loss_sum if self.processes.rank == 0 else 0.0
        loss_sum = torch.tensor(before, dtype=torch.float64, device=self.device)
        on_cpu, many = self.device.type == "cpu", self.processes.many
        reported = 0.0
        for batch in self.batches:
            self.recent.append((self.batches.epoch, self.batches.index, self.step(batch)))
            loss_sum += self.recent[-1][2]
            if self.average:
                self.average.update()
            if many and not on_cpu and self.batches.index % MEETINGS:
                continue
            now = time.monotonic()
            due = now - reported > 1 / REPORTS_A_SECOND
            late = self.run is not None and now - self.saved_at >= self.config.checkpoint_seconds
            if not (on_cpu or many or due or late or self.stop):
                continue  # reading a loss from a GPU waits for it
            loss, stop, save = self.processes.sum([float(loss_sum), bool(self.stop), late])
            self.check_loss(loss)
            if due:
                reported = now
                self.report(self.batches.index, self.mean_loss(loss, self.batches.index))
            if stop or save:
                self.state.loss_sum = loss
                if stop:
                    return
                self.save()
        self.state.loss_sum = self.processes.sum([float(loss_sum)])[0]
        self.check_loss(self.state.loss_sum)
        epoch = len(self.state.history)
        if math.isnan(self.mean_loss(self.state.loss_sum, self.batches.count(epoch))):
            raise TrainingError(f"the loss is no number in any batch of epoch {epoch + 1}. Try a lower learning rate")

    def evaluate_epoch(self) -> dict[str, Any]:
        """Evaluate, keep the weights if they are the best so far; returns the line of metrics.jsonl."""
        state = self.state
        epoch = len(state.history) + 1
        record: dict[str, Any] = {
            "epoch": epoch,
            "loss": self.mean_loss(state.loss_sum, self.batches.count(epoch - 1)),
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
        state.loss_sum, state.skipped_before = 0.0, state.skipped
        if self.run:
            run = self.run
            state.metrics_size = self.processes.on_first(lambda: run_folder.append_metrics(run, record))
            self.save()
        self.report(self.batches.count(record["epoch"] - 1), record["loss"], record)

    def finish(self) -> TrainingResult:
        """The best weights into the model, their scores, and the folder without checkpoints."""
        result = self.result(finished=True)
        if self.splits.dev:
            result.dev = self.evaluate("dev")
        if self.splits.test:
            result.test = self.evaluate("test")
        if self.run:
            scores = {name: part.to_dict() for name, part in (("dev", result.dev), ("test", result.test)) if part}
            self.processes.on_first(lambda: self.write_result(scores))
        return result

    def write_result(self, scores: dict[str, Any]) -> None:
        if self.run and not run_folder.is_finished(self.run):
            write_json(self.run / run_folder.RESULT, {"state": asdict(self.state), **scores})
        if self.run:
            delete_checkpoints(self.run)

    def result(self, finished: bool) -> TrainingResult:
        self.recall_weights()
        self.model.eval()
        state = self.state
        seconds = state.history[-1]["seconds"] if finished else self.seconds()  # asked for again, the same
        return TrainingResult(finished, state.best_epoch, state.best_score, state.history, seconds)

    # ---- on disk --------------------------------------------------------------------------------

    def save(self) -> None:
        if self.run is None:
            return
        self.state.batches = self.batches.state()
        self.state.seconds = self.seconds()
        self.started = time.monotonic()
        run, tensors = self.run, self.collect()
        self.processes.on_first(lambda: save_checkpoint(run, tensors, asdict(self.state)))
        self.saved_at = time.monotonic()

    def collect(self) -> dict[str, Tensor]:
        average = self.average.collect() if self.average else {}
        return collect(self.model, self.step.optimizers, self.device) | average

    def resume(self, run: Path) -> None:
        """Go back to the last checkpoint, or to the end of a run that is finished."""
        tensors: dict[str, Tensor] = {}
        saved = self.processes.on_first(lambda: self.read_state(run, tensors))
        tensors = self.processes.tensors_of_first(lambda: tensors)
        if saved is None:  # killed before the first checkpoint: the model is still what it was then
            self.save()
            return
        if tensors:
            restore(tensors, self.model, self.step.optimizers, self.device)
            if self.average:
                self.average.restore(tensors)
        self.state.restore(saved)
        self.batches.restore(self.state.batches)

    def read_state(self, run: Path, tensors: dict[str, Tensor]) -> dict[str, Any] | None:
        """The state that a run is to go on from; `tensors` are filled with what belongs to it."""
        run_folder.check_same_run(run, self.asked_for, self.splits, self.config)
        run_folder.tidy(run)
        if run_folder.is_finished(run):
            return check_state(read_json(run / run_folder.RESULT), run)
        found = load_checkpoint(run)
        if found is None:
            return None
        if not found[0]:
            raise FolderError.at(run, "the checkpoint does not fit the model: it is empty")
        tensors.update(found[0])
        saved = check_state({"state": found[1]}, run)
        run_folder.cut_metrics(run, saved["metrics_size"])
        return saved

    def keep_weights(self) -> None:
        weights = {name: whole(tensor.detach()) for name, tensor in self.model.state_dict().items()}
        if self.run:
            run = self.run
            self.processes.on_first(lambda: save_tensors(self.asked_for, weights, run))
        else:
            self.best = {name: tensor.clone() for name, tensor in weights.items()}

    def recall_weights(self) -> None:
        """The best weights into the model that `fit` was given; of a sharded one, the last ones where none is best."""
        if self.run and self.state.best_epoch:
            run = self.run
            self.best = self.processes.tensors_of_first(lambda: read_weights(self.asked_for, run))
        if self.best is None and self.model is not self.asked_for:
            self.best = {name: whole(tensor.detach()) for name, tensor in self.model.state_dict().items()}
        self.model = self.asked_for.to(self.device)
        if self.best is not None:
            self.model.load_state_dict(self.best)

    # ---- small things ---------------------------------------------------------------------------

    def evaluate(self, name: str) -> Evaluation:
        """As `evaluate` does, by all processes together."""
        examples = getattr(self.splits, name)
        check_targets(self.asked_for, examples)
        decode = self.parallel.decode if self.model is self.parallel.model else None
        found = decode_shares(self.model, examples, max(32, self.config.batch_size), self.processes, decode)
        return compare(examples, found, self.model.tag_scheme)

    def asked_to_stop(self) -> bool:
        return self.processes.sum([bool(self.stop)])[0] > 0

    def say(self, note: str) -> None:
        """A sentence for the user, in the middle of an epoch."""
        self.report(self.batches.index, math.nan, note=f"epoch {len(self.state.history) + 1}: {note}")

    def mean_loss(self, total: float, batches: int) -> float:
        """Over the batches of this epoch that were not left out; no number where all of them were."""
        counted = batches - (self.state.skipped - self.state.skipped_before)
        return total / counted if counted else math.nan

    def learning_rate(self) -> float:
        return self.config.learning_rate * self.config.decay ** len(self.state.history)

    def seconds(self) -> float:
        return self.state.seconds + time.monotonic() - self.started

    def report(self, batch: int, loss: float, record: dict[str, Any] | None = None, note: str | None = None) -> None:
        if self.progress:
            epoch = record["epoch"] if record else len(self.state.history) + 1
            best, batches = self.state.best_score, self.batches.count(epoch - 1)
            self.progress(Progress(epoch, self.config.epochs, batch, batches, loss, best, record, note))

    def check_loss(self, loss_sum: float) -> None:
        """Stop where a loss since the last look was no number, and save the sentences of that batch."""
        recent, self.recent = self.recent, []
        if math.isfinite(loss_sum):
            return
        bad = [not math.isfinite(float(loss)) for _, _, loss in recent]
        epoch, index, _ = recent[min(self.processes.gather(bad.index(True) if True in bad else len(bad) - 1))]
        where = ""
        if self.run:
            run, examples = self.run, [self.splits.train[i] for i in self.batches.positions(epoch, index)]
            path = self.processes.on_first(lambda: save_bad_batch(run, examples, epoch + 1, index))
            where = f"; its sentences are in {path}"
        raise TrainingError(
            f"the loss is no number in epoch {epoch + 1}, batch {index}{where}. Try a lower learning rate, or --on-nan "
            "skip to leave such batches out"
        )


def make_batches(
    model: Model, examples: Sequence[Example], config: TrainingConfig, processes: Processes
) -> Batches | StreamedBatches:
    """Batches of examples in memory, or of those that are read from files as they are needed."""
    share, boundaries = (processes.rank, processes.size), model.config.boundaries
    if isinstance(examples, StreamedExamples):
        vocabularies, size = model.vocabularies, config.batch_size
        return StreamedBatches(examples, vocabularies, size, seed=config.seed, share=share, boundaries=boundaries)
    indexed = index_examples(examples, model.vocabularies, boundaries=boundaries)
    return Batches(indexed, config.batch_size, seed=config.seed, share=share)
