"""A trained model for the commands that use one."""

from __future__ import annotations

from pathlib import Path

from ..models import FolderError, Model
from ..models.pretrained import CONFIG, WEIGHTS
from ..training.loop import pick_device
from .flags import UsageError


def load_model(run: Path, device: str) -> Model:
    try:
        target = pick_device(device)
    except (ValueError, RuntimeError) as error:
        raise UsageError(str(error)) from None
    if (run / CONFIG).exists() and not (run / WEIGHTS).exists():
        raise FolderError.at(run, "no epoch of this run is finished yet: there are no weights to use")
    return Model.from_pretrained(run, target)
