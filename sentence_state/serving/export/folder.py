"""A trained model -> a folder that needs nothing else: the graph, config.json, vocabularies, export.json."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ...data import Example
from ...data.files import FolderError, replacing, write_json
from ...models import Model
from ...models.pretrained import fingerprint, save_description, versions
from ...runtime import EXPORT, MODEL, RuntimeModel

MOST_DIFFERENT = 1e-3  # of a probability; 6e-5 was seen in float32 after nine steps of a trained tagger
LEAST_SAME = 0.99  # of the sentences: two answers may be as good as equal


@dataclass(frozen=True)
class Parity:
    """How the exported model's answers differ from the model's own, on the same sentences."""

    sentences: int
    same: int  # sentences whose label, tags and spans are all the same
    greatest_difference: float  # of a probability of a label or of a span that both found


def export_onnx(model: Model, folder: Path, examples: Sequence[Example], quantize: str | None = None) -> Parity:
    """Write the folder, load it again and compare it with the model on `examples`. Needs the extra "onnx".

    quantize: "int8" for the products of an S-LSTM's states.
    """
    try:
        import onnx
    except ImportError:
        raise ImportError('the export needs onnx: pip install "sentence-state[onnx]"') from None
    from .model import build

    check_folder(folder)
    model.eval()
    proto = build(model, quantize)
    onnx.checker.check_model(proto)
    content = proto.SerializeToString()
    save_description(model, folder)
    with replacing(folder / MODEL) as unfinished:
        unfinished.write_bytes(content)
    write_export(folder, MODEL, "onnx", quantize, model)
    parity = compare(model, RuntimeModel.from_pretrained(folder), examples)
    write_export(folder, MODEL, "onnx", quantize, model, parity)
    return parity if quantize else check_close(parity, folder / MODEL)


def write_export(
    folder: Path, file: str, kind: str, quantize: str | None, model: Model, parity: Parity | None = None
) -> None:
    """export.json: what was made of which model, and how it compares."""
    content = {
        "format": kind,
        "quantize": quantize,
        "description": fingerprint(model),
        "sha256": hashlib.sha256((folder / file).read_bytes()).hexdigest(),
        "parity": asdict(parity) if parity else None,
        "versions": versions(),
    }
    write_json(folder / EXPORT, content)


def check_close(parity: Parity, path: Path) -> Parity:
    """Raise where a model in float32 answers otherwise than the one it came from."""
    same = parity.same >= LEAST_SAME * parity.sentences
    if same and parity.greatest_difference <= MOST_DIFFERENT:
        return parity
    raise FolderError.at(
        path,
        f"answers otherwise than the model: {parity.sentences - parity.same} of {parity.sentences} sentences, "
        f"probabilities by up to {parity.greatest_difference:.1e}; please report it",
    )


def check_folder(folder: Path) -> None:
    """Another export may be replaced, nothing else."""
    if folder.exists() and not (folder / EXPORT).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderError.at(folder, "is there already and holds something else: choose another --out")


def compare(model: Model, exported: RuntimeModel, examples: Sequence[Example]) -> Parity:
    """`predict` of both, sentence by sentence."""
    words = [example.words for example in examples]
    same, greatest = 0, 0.0
    for one, other in zip(model.predict(words), exported.predict(words), strict=True):
        spans, others = (
            {(span["start"], span["end"], span["label"]): span["score"] for span in answer["spans"]}
            for answer in (one, other)
        )
        same += one["label"] == other["label"] and spans.keys() == others.keys()
        pairs = [(spans[key], others[key]) for key in spans.keys() & others.keys()]
        probabilities = one.get("probabilities", {})
        pairs += [(probability, other["probabilities"][label]) for label, probability in probabilities.items()]
        greatest = max([greatest, *(abs(a - b) for a, b in pairs)])
    return Parity(len(words), same, greatest)
