"""What a training run says of itself: while it runs, at its end, and to its checkpoints."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..data.files import FolderError
from .config import TrainingConfig
from .evaluation import Evaluation


class TrainingError(RuntimeError):
    """Training cannot go on; the message says what the user can do."""


@dataclass(frozen=True)
class Progress:
    """Where training stands: for a progress bar, about ten times a second and after every epoch."""

    epoch: int  # from 1
    epochs: int
    batch: int  # batches done in this epoch
    batches: int
    loss: float  # mean of this epoch so far
    best_score: float | None  # on dev
    record: dict[str, Any] | None = None  # after an epoch: its line of metrics.jsonl
    note: str | None = None  # something went wrong and was dealt with: a sentence for the user


@dataclass
class TrainingState:
    """What the loop knows beside weights, optimizers and random numbers; saved as JSON."""

    batches: dict[str, int] = field(default_factory=lambda: {"epoch": 0, "index": 0})
    loss_sum: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)  # the lines of metrics.jsonl
    best_epoch: int = 0
    best_score: float | None = None
    metrics_size: int = 0
    seconds: float = 0.0
    halved: bool = False  # a batch did not fit into memory: all are computed in twice as many pieces since
    skipped: int = 0  # batches left out because their loss was no number
    skipped_before: int = 0  # of these, in the epochs before this one

    def restore(self, saved: dict[str, Any]) -> None:
        """In place: a step of training knows this object."""
        for name, value in saved.items():
            setattr(self, name, value)

    def is_over(self, config: TrainingConfig) -> bool:
        stale = len(self.history) - self.best_epoch
        return len(self.history) >= config.epochs or bool(config.patience and self.history and stale >= config.patience)


def check_state(content: Any, run: Path) -> dict[str, Any]:
    """The state in a file of a run folder, which somebody else may have written."""
    found = content.get("state") if isinstance(content, dict) else None
    try:
        if isinstance(found, dict):  # runs from before this was counted: as if all had been left out before
            found = {"skipped_before": found.get("skipped", 0), **found}
        state = TrainingState(**found)  # type: ignore[arg-type]
    except TypeError as error:
        raise FolderError.at(run, f"its state is not that of a run ({error})") from None
    for name, value in asdict(TrainingState()).items():
        kind = (int, float) if isinstance(value, float) else (float, int, type(None)) if value is None else type(value)
        if not isinstance(getattr(state, name), kind):
            raise FolderError.at(run, f"its state is not that of a run: {name} is {getattr(state, name)!r}")
    if not {"epoch", "index"} <= state.batches.keys() or not all(type(n) is int for n in state.batches.values()):
        raise FolderError.at(run, f"its state is not that of a run: batches is {state.batches!r}")
    return asdict(state)


@dataclass
class TrainingResult:
    """How training went. The model holds its best weights, also when a signal stopped it (`finished` False)."""

    finished: bool
    best_epoch: int  # from 1; 0: no epoch was finished
    best_score: float | None
    history: list[dict[str, Any]]
    seconds: float
    dev: Evaluation | None = None
    test: Evaluation | None = None
