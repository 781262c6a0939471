"""Scores for TensorBoard, an extra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .flags import UsageError

FOLDER = "tensorboard"


class Tracker:
    """Writes the record of every epoch into <run>/tensorboard, which is made with the first one."""

    def __init__(self, run: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise UsageError('--track needs TensorBoard: pip install "sentence-state[track]"') from None
        self.run, self.make = run, SummaryWriter
        self.writer: Any = None

    def __call__(self, record: dict[str, Any]) -> None:
        epoch = record["epoch"]
        if self.writer is None:  # purge_step: a resumed run takes back what was written after its checkpoint
            self.writer = self.make(str(self.run / FOLDER), purge_step=epoch)
        for name in ("loss", "learning_rate"):
            self.writer.add_scalar(name, record[name], epoch)
        for name, value in record.get("dev", {}).items():
            self.writer.add_scalar(f"dev/{name}", value, epoch)
        self.writer.flush()
