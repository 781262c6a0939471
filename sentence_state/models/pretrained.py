"""A model in a folder: config.json, model.safetensors, vocabularies as JSON, versions.json. Nothing is executed."""

from __future__ import annotations

import platform
import tempfile
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy
import safetensors
import torch
from torch import Tensor

from ..data.description import CONFIG, FORMAT_VERSION, VOCABULARIES, description_hash, read_config, read_vocabularies
from ..data.files import FolderError, write_json, write_text
from ..data.tokenizer import Tokenizer
from ..encoders import SentenceStateLSTM
from ..encoders.encoding import check_choice
from .config import ModelConfig
from .tensor_files import read_tensors, shapes_of, write_tensors

if TYPE_CHECKING:
    from .model import Model

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.float32}
MOST_STEPS = 1000
WEIGHTS, VERSIONS = "model.safetensors", "versions.json"

AnyModel = TypeVar("AnyModel", bound="Model")


def save(model: Model, folder: str | PathLike[str]) -> None:
    """The weights come last: what stands beside them is already theirs."""
    folder = Path(folder)
    save_description(model, folder)
    save_tensors(model, model.state_dict(), folder)


def save_description(model: Model, folder: Path) -> None:
    """All but the weights."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderError.at(folder, f"could not be made: {error.strerror or error}") from error
    for name in VOCABULARIES:
        vocabulary = getattr(model.vocabularies, name)
        if vocabulary is not None:
            write_text(folder / f"{name}.json", vocabulary.to_json())
    write_json(folder / VERSIONS, versions())
    write_json(folder / CONFIG, describe(model))


def save_tensors(model: Model, weights: dict[str, Tensor], folder: Path) -> None:
    """Weights that are a model's, wherever they are kept."""
    write_tensors(folder / WEIGHTS, weights, {"model": fingerprint(model)})


def describe(model: Model) -> dict[str, Any]:
    return {
        "format_version": FORMAT_VERSION,
        "class": type(model).__name__,
        "model": model.config.to_dict(),
        "tag_scheme": model.tag_scheme,
        "tokenizer": asdict(model.tokenizer),
        "vocabularies": [name for name in VOCABULARIES if getattr(model.vocabularies, name) is not None],
    }


def fingerprint(model: Model) -> str:
    """The same for models whose weights can be exchanged."""
    return description_hash(describe(model), model.vocabularies)


def versions() -> dict[str, str]:
    from .. import __version__

    return {
        "sentence_state": __version__,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "safetensors": safetensors.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": str(torch.get_num_threads()),
    }


def load(
    folder: str | PathLike[str],
    expected: type[AnyModel],
    device: torch.device | str = "cpu",
    precision: str = "float32",
) -> AnyModel:
    """A model of the class `expected`, or of any class when that is `Model` itself, in evaluation mode."""
    check_choice("precision", precision, tuple(PRECISIONS))
    folder = Path(folder)
    if not folder.is_dir():
        raise FolderError.at(folder, "no such folder")
    config = read_config(folder)
    cls = class_named(config["class"], expected, folder)
    vocabularies = read_vocabularies(folder, config)
    try:
        options = {"tag_scheme": config["tag_scheme"], "tokenizer": Tokenizer(**config["tokenizer"])}
        settings = ModelConfig.from_dict(config["model"])
        if settings.num_steps > MOST_STEPS:  # the one number that no weight bears out
            raise FolderError.at(folder / CONFIG, f"num_steps is {settings.num_steps}, at most {MOST_STEPS} are run")
        with torch.device("meta"):  # shapes without memory: a wrong config cannot ask for more than the file holds
            skeleton = cls(settings, vocabularies, **options)
        check_shapes(folder / WEIGHTS, {name: list(t.shape) for name, t in skeleton.state_dict().items()})
        with torch.random.fork_rng(devices=[]):  # the weights that are replaced below are drawn from a copy
            model = cls(settings, vocabularies, **options)
    except FolderError:
        raise
    except (ValueError, TypeError, RuntimeError, OverflowError, MemoryError) as error:
        raise FolderError.at(folder / CONFIG, f"describes no model ({error})") from None
    load_weights(model, folder)
    check_finite(model, folder)
    model = model.to(device, PRECISIONS[precision]).eval()
    if precision == "int8":
        quantize(model)
    return model


def quantize(model: Model) -> None:
    """Int8 products in the encoder; what else a model computes stays in float32."""
    if not isinstance(model.encoder, SentenceStateLSTM):
        raise ValueError(f'precision="int8" is for an S-LSTM, got {model.config.encoder}')
    model.encoder.quantize()


def load_weights(model: Model, folder: Path) -> None:
    """The weights of a folder into a model of the same description."""
    try:
        model.load_state_dict(read_weights(model, folder))
    except RuntimeError as error:
        raise FolderError.at(folder / WEIGHTS, f"does not fit {CONFIG} ({error})") from None


def read_weights(model: Model, folder: Path) -> dict[str, Tensor]:
    """The weights of a folder, for a model of the same description."""
    tensors, metadata = read_tensors(folder / WEIGHTS)
    if metadata.get("model") != fingerprint(model):
        raise FolderError.at(folder / WEIGHTS, f"belongs to another {CONFIG} or to other vocabularies")
    return tensors


def check_finite(model: Model, folder: Path) -> None:
    for name, parameter in model.named_parameters():
        if not parameter.isfinite().all():
            raise FolderError.at(folder / WEIGHTS, f"{name} holds numbers that are not finite")


def class_named(name: str, expected: type[AnyModel], folder: Path) -> type[AnyModel]:
    """The class of a saved model: `expected`, one of its subclasses, or an error."""
    classes = {cls.__name__: cls for cls in (expected, *expected.__subclasses__())}
    if name not in classes or not hasattr(classes[name], "targets"):  # `Model` itself has none
        wanted = expected.__name__ if hasattr(expected, "targets") else "model of sentence-state"
        raise FolderError.at(folder, f"holds a {name}, not a {wanted}")
    return classes[name]


def check_shapes(path: Path, expected: dict[str, list[int]]) -> None:
    found = shapes_of(path)
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise FolderError.at(
                path, f"does not fit {CONFIG}: {name} has shape {found.get(name)}, expected {expected.get(name)}"
            )


def push_to_hub(model: Model, name: str, **options: Any) -> str:
    """Upload the folder that `save` writes to huggingface.co/<name>; options go to `create_repo`."""
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise ImportError('push_to_hub needs huggingface_hub: pip install "sentence-state[hub]"') from None
    hub = HfApi()
    hub.create_repo(name, exist_ok=True, **options)
    with tempfile.TemporaryDirectory() as folder:
        save(model, folder)
        return str(hub.upload_folder(folder_path=folder, repo_id=name))
