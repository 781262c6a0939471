"""Tensors with a checksum, in safetensors files that are there whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ..data.files import UNFINISHED, FolderError, check_regular, remove, replacing, writing_error


def write_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """A safetensors file whose metadata hold a checksum of all that is in it."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # safetensors writes under random names beside its place: in a folder of our own nothing of that is ever left over
    folder = path.with_name(f"{path.name}.folder{UNFINISHED}")
    with replacing(path) as unfinished:
        try:
            unfinished.touch()
            mode = unfinished.stat().st_mode
            remove(folder)
            folder.mkdir()
            save_file(tensors, folder / path.name, metadata={**metadata, "sha256": checksum(tensors, metadata)})
            (folder / path.name).chmod(mode)  # safetensors leaves files that only their owner can read
            os.replace(folder / path.name, unfinished)
        except SafetensorError as error:
            raise writing_error(path, error) from error
        finally:
            remove(folder)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata as they were written; a FolderError when the file is missing, cut off or changed."""
    check_regular(path)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise FolderError.at(path, "no such file") from None
    except (OSError, SafetensorError, ValueError, RuntimeError) as error:
        raise FolderError.at(path, f"damaged, or no safetensors file ({error})") from None
    if metadata.pop("sha256", None) != checksum(tensors, metadata):
        raise FolderError.at(path, "damaged: its content does not fit its checksum")
    return tensors, metadata


def shapes_of(path: Path) -> dict[str, list[int]]:
    """Names and shapes of the tensors, from the header alone."""
    check_regular(path)
    try:
        with safe_open(path, framework="pt") as file:
            return {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise FolderError.at(path, "no such file") from None
    except (OSError, SafetensorError) as error:
        raise FolderError.at(path, f"damaged, or no safetensors file ({error})") from None


def checksum(tensors: dict[str, Tensor], metadata: dict[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(sorted(metadata.items())).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
