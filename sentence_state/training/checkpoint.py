"""Everything a run needs to go on as if it had never stopped: one safetensors file, written whole, with a checksum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer, SparseAdam

from ..data.files import UNFINISHED, FolderError, remove
from ..models.tensor_files import read_tensors, write_tensors
from .parallel import copy_into, part_like, whole

FOLDER = "checkpoints"
KEPT = 2  # when the newest cannot be read, the one before it can


def save_checkpoint(run: Path, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write the next checkpoint, then delete all but the newest two."""
    folder = run / FOLDER
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise FolderError.at(folder, f"could not be made: {error.strerror or error}") from error
    paths = checkpoints(run)
    number = number_of(paths[-1]) + 1 if paths else 0
    write_tensors(folder / f"{number:08d}.safetensors", tensors, {"state": json.dumps(state, allow_nan=False)})
    for path in paths[: 1 - KEPT]:
        remove(path)


def load_checkpoint(run: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The newest checkpoint that can be read; None when there is none; a FolderError when all are damaged."""
    error = None
    for path in reversed(checkpoints(run)):
        try:
            tensors, metadata = read_tensors(path)
            return tensors, json.loads(metadata["state"])
        except (FolderError, KeyError, ValueError) as problem:
            error = error or problem
    if error is not None:
        raise FolderError.at(run, f"no checkpoint can be read ({error})")
    return None


def delete_checkpoints(run: Path) -> None:
    """All of them, with what a killed process left unfinished."""
    for path in [*checkpoints(run), *(run / FOLDER).glob(f"*{UNFINISHED}")]:
        remove(path)
    if (run / FOLDER).is_dir():
        (run / FOLDER).rmdir()


def checkpoints(run: Path) -> list[Path]:
    """Oldest first."""
    paths = [path for path in (run / FOLDER).glob("*.safetensors") if path.stem.isdigit()]
    return sorted(paths, key=number_of)


def number_of(path: Path) -> int:
    return int(path.stem)


def collect(model: nn.Module, optimizers: list[Optimizer], device: torch.device) -> dict[str, Tensor]:
    """Weights, optimizer states and random number generators as named tensors."""
    tensors = {f"model.{name}": whole(tensor) for name, tensor in model.state_dict().items()}
    for i, optimizer in enumerate(optimizers):
        for position, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                tensors[f"optimizer.{i}.{position}.{name}"] = whole(torch.as_tensor(value))
    tensors["random.cpu"] = torch.get_rng_state()
    if device.type == "cuda":
        tensors["random.cuda"] = torch.cuda.get_rng_state(device)
    return tensors


def restore(tensors: dict[str, Tensor], model: nn.Module, optimizers: list[Optimizer], device: torch.device) -> None:
    """The opposite of `collect`."""
    for name, tensor in model.state_dict().items():
        copy_into(tensor, fitting(tensors, f"model.{name}", tensor))
    for i, optimizer in enumerate(optimizers):
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        states: dict[int, dict[str, Tensor | int]] = {}
        for name, tensor in tensors.items():
            if name.startswith(f"optimizer.{i}."):
                position, key = place_of(name, len(parameters))
                if tensor.dim():
                    fitting(tensors, name, parameters[position])
                states.setdefault(position, {})[key] = as_kept(optimizer, parameters[position], tensor)
        optimizer.load_state_dict({"state": states, "param_groups": optimizer.state_dict()["param_groups"]})
    torch.set_rng_state(fitting(tensors, "random.cpu", torch.get_rng_state()))
    if device.type == "cuda" and "random.cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random.cuda"], device)


def fitting(tensors: dict[str, Tensor], name: str, like: Tensor) -> Tensor:
    """A tensor of a checkpoint, which somebody else may have written."""
    if name not in tensors or tensors[name].shape != like.shape:
        shape = list(tensors[name].shape) if name in tensors else None
        raise FolderError(f"the checkpoint does not fit the model: {name} has shape {shape}, not {list(like.shape)}")
    return tensors[name]


def place_of(name: str, parameters: int) -> tuple[int, str]:
    """optimizer.0.3.exp_avg -> 3, exp_avg"""
    parts = name.split(".", 3)
    if len(parts) < 4 or not parts[2].isdecimal() or int(parts[2]) >= parameters:
        raise FolderError(f"the checkpoint does not fit the model: it has no place for {name}")
    return int(parts[2]), parts[3]


def as_kept(optimizer: Optimizer, parameter: Tensor, state: Tensor) -> Tensor | int:
    """SparseAdam counts its steps in an int: a tensor in its place would be computed with in float32. LazyAdam, which
    goes on with its state on a GPU, counts in a tensor."""
    if state.dim():
        return part_like(parameter, state)
    return int(state) if isinstance(optimizer, SparseAdam) else state.float()
