"""A device and a trained model, for the commands that need them."""

from __future__ import annotations

from pathlib import Path

import torch

from ..data.description import CONFIG
from ..models import FolderError, Model
from ..models.pretrained import WEIGHTS
from ..runtime import EXPORT
from ..training.distributed import pick_device
from .flags import UsageError

SHOWN = 5  # runs, where the folder that holds them was given


def load_model(run: Path, device: str, batch_size: int) -> Model:
    if batch_size < 1:
        raise UsageError(f"--batch-size must be 1 or more, got {batch_size}")
    target = check_device(device)
    if (run / EXPORT).exists():
        raise FolderError.at(run, "an exported model: give the run that it was made of")
    if (run / CONFIG).exists() and not (run / WEIGHTS).exists():
        raise FolderError.at(run, "no epoch of this run is finished yet: there are no weights to use")
    if not (run / CONFIG).exists() and (runs := runs_in(run)):
        shown = ", ".join(map(str, runs[:SHOWN])) + (", ..." if len(runs) > SHOWN else "")
        raise FolderError.at(run, f"no run, but a folder of runs: give one of them ({shown})")
    return Model.from_pretrained(run, target)


def runs_in(folder: Path) -> list[Path]:
    """The run folders inside a folder, by name."""
    return sorted(config.parent for config in folder.glob(f"*/{CONFIG}"))


def check_device(name: str) -> torch.device:
    """The device of --device, or a UsageError."""
    try:
        return pick_device(name)
    except RuntimeError:  # torch lists twenty kinds of which it has never heard either
        raise UsageError(f"device must be cpu, cuda, cuda:1, ... or auto, got {name!r}") from None
    except ValueError as error:
        raise UsageError(str(error)) from None
