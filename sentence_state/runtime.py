"""Predictions of an exported model with onnxruntime and numpy alone: no torch is imported.

from sentence_state.runtime import RuntimeModel

model = RuntimeModel.from_pretrained("runs/a/onnx")
model.predict(["wake me at seven in Lisbon"])
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .data.batching import cut
from .data.case import PAD_CASE
from .data.description import CONFIG, description_hash, read_config, read_vocabularies
from .data.example import Example
from .data.files import FolderError, check_regular, read_json
from .data.indexing import IndexedExamples, Vocabularies, index_examples
from .data.predictions import Prediction, label_prediction, read_texts, span_predictions
from .data.tokenizer import Tokenizer
from .data.vocabulary import PAD_ID

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

MODEL, EXPORT = "model.onnx", "export.json"
TARGETS = {"TextClassifier": ("label",), "SequenceTagger": ("tags",), "JointModel": ("label", "tags")}
OUTPUTS = {"label": ["probabilities"], "tags": ["tags", "scores"]}
EXTERNAL = b"\x0a\x08location"  # how an ONNX file begins to name another file that holds its weights

Arrays = dict[str, NDArray[Any]]


class Session(Protocol):
    """What of an onnxruntime session a model needs."""

    def run(self, names: Sequence[str], inputs: Arrays) -> list[Any]: ...


class RuntimeModel:
    """A model as `sentence-state export --format onnx` wrote it, with the same `predict` as the model it came from.

    targets: "label", "tags" or both: what its predictions hold.
    """

    def __init__(
        self,
        session: Session,
        vocabularies: Vocabularies,
        targets: tuple[str, ...],
        tag_scheme: str | None,
        tokenizer: Tokenizer,
        boundaries: bool = True,
    ) -> None:
        self.session, self.vocabularies, self.targets = session, vocabularies, targets
        self.tag_scheme, self.tokenizer, self.boundaries = tag_scheme, tokenizer, boundaries

    @classmethod
    def from_pretrained(cls, folder: str | PathLike[str], threads: int | None = None) -> RuntimeModel:
        """An exported model; a FolderError says what is wrong with the folder. threads: all cores by default."""
        folder = Path(folder)
        if not folder.is_dir():
            raise FolderError.at(folder, "no such folder")
        if not (folder / EXPORT).exists() and (folder / CONFIG).exists():
            raise FolderError.at(folder, f"no exported model: sentence-state export {folder} --format onnx makes one")
        config = read_config(folder)
        if config["class"] not in TARGETS:
            raise FolderError.at(folder / CONFIG, f"holds a {config['class']}, no model of sentence-state")
        targets = TARGETS[config["class"]]
        vocabularies = read_vocabularies(folder, config)
        for name in ("labels",) * ("label" in targets) + ("tags",) * ("tags" in targets):
            if not getattr(vocabularies, name):
                raise FolderError.at(folder / CONFIG, f"names no vocabulary of {name}")
        session = open_session(folder, description_hash(config, vocabularies), threads)
        check_session(session, folder / MODEL, vocabularies, targets)
        tokenizer, boundaries = Tokenizer(**config["tokenizer"]), config["model"].get("boundaries") is not False
        return cls(session, vocabularies, targets, config["tag_scheme"], tokenizer, boundaries)

    def predict(self, texts: Sequence[str | Sequence[str]], batch_size: int = 32) -> list[Prediction]:
        """Answers for raw texts or for lists of words, in their order."""
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        return self.answer(read_texts(texts, self.tokenizer), batch_size)

    def answer(self, examples: Sequence[Example], batch_size: int = 32) -> list[Prediction]:
        """`predict` for texts that are cut into words already."""
        answers: list[Prediction] = [{}] * len(examples)
        if not examples:
            return answers
        indexed = index_examples(examples, self.vocabularies, boundaries=self.boundaries, targets=False)
        for rows in cut(np.argsort(indexed.lengths, kind="stable"), batch_size):
            outputs = self.run(inputs_of(indexed, rows))
            for place, row in enumerate(rows.tolist()):
                answers[row] = self.prediction(outputs, place, examples[row])
        return answers

    def run(self, inputs: Arrays) -> Arrays:
        """The graph itself: arrays of ids in, probabilities (B, K), tags and scores (B, words) out."""
        names = [output for target in self.targets for output in OUTPUTS[target]]
        return dict(zip(names, self.session.run(names, inputs), strict=True))

    def prediction(self, outputs: Arrays, place: int, example: Example) -> Prediction:
        answer: Prediction = {"label": None, "score": None, "spans": []}
        if self.vocabularies.labels is not None and "label" in self.targets:
            answer = label_prediction(outputs["probabilities"][place].tolist(), self.vocabularies.labels)
        if self.vocabularies.tags is not None and "tags" in self.targets:
            size = len(example.words)
            tags = [self.vocabularies.tags.word(tag) for tag in outputs["tags"][place, :size].tolist()]
            answer["spans"] = span_predictions(example, tags, outputs["scores"][place, :size].tolist(), self.tag_scheme)
        return answer


def inputs_of(indexed: IndexedExamples, rows: NDArray[np.int64]) -> Arrays:
    """What the graph reads of the sentences at `rows`; every spelling once."""
    inputs: Arrays = {
        "word_ids": indexed.pad(indexed.word_ids, rows, PAD_ID),
        "lengths": indexed.lengths_of(rows),
    }
    if indexed.case_ids is not None:
        inputs["case_ids"] = indexed.pad(indexed.case_ids, rows, PAD_CASE)
    if indexed.spellings is not None and indexed.characters is not None:
        words = indexed.pad(indexed.spellings, rows, len(indexed.characters) - 1)  # padding may be any word
        different, places = np.unique(words, return_inverse=True)
        spelled = indexed.characters[different]
        longest = int((spelled != PAD_ID).sum(axis=1).max())
        inputs["spellings"], inputs["spelling_ids"] = spelled[:, :longest], places.reshape(words.shape)
    return inputs


def open_session(folder: Path, description: str, threads: int | None) -> InferenceSession:
    """The graph of a folder, if it is the one that was exported with this description."""
    path = folder / MODEL
    export = read_json(folder / EXPORT)
    if not isinstance(export, dict) or not isinstance(export.get("sha256"), str):
        raise FolderError.at(folder / EXPORT, "describes no exported model")
    if export.get("format") == "torch":
        raise FolderError.at(folder, "was made for torch.export.load; here an export with --format onnx is needed")
    if export.get("description") != description:
        raise FolderError.at(path, f"belongs to another {CONFIG} or to other vocabularies")
    check_regular(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FolderError.at(path, "no such file") from None
    except OSError as error:
        raise FolderError.at(path, f"not readable ({error})") from None
    if hashlib.sha256(content).hexdigest() != export["sha256"]:
        raise FolderError.at(path, "damaged or exchanged: its content does not fit its checksum")
    if EXTERNAL in content:
        raise FolderError.at(path, "refers to other files, which an exported model never does")
    return new_session(content, path, threads)


def new_session(content: bytes, path: Path, threads: int | None = None) -> InferenceSession:
    try:
        import onnxruntime
    except ImportError:
        raise ImportError('an exported model needs onnxruntime: pip install "sentence-state[onnx]"') from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or all_cores()  # onnxruntime's own default counts physical cores only
    # threads that wait for the next call must not take the cores from whoever else works
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.log_severity_level = 4  # what goes wrong comes as an exception
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a dozen classes of them, with no other base
        raise FolderError.at(path, f"damaged, or no ONNX model ({first_line(error)})") from None


def all_cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def check_session(session: InferenceSession, path: Path, vocabularies: Vocabularies, targets: Sequence[str]) -> None:
    """Whether the graph reads what the vocabularies give, and gives what they can name."""
    wanted = {"word_ids", "lengths"} | ({"case_ids"} if vocabularies.case else set())
    wanted |= {"spellings", "spelling_ids"} if vocabularies.characters else set()
    found = {value.name for value in session.get_inputs()}
    outputs = {value.name: value.shape for value in session.get_outputs()}
    given = [output for target in targets for output in OUTPUTS[target]]
    if found != wanted or list(outputs) != given:
        raise FolderError.at(path, f"does not fit {CONFIG}: it reads {sorted(found)} and gives {list(outputs)}")
    if vocabularies.labels is not None and outputs.get("probabilities", [len(vocabularies.labels)])[-1] != len(
        vocabularies.labels
    ):
        raise FolderError.at(path, f"does not fit labels.json, which has {len(vocabularies.labels)} labels")
