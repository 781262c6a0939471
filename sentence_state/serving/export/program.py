"""A trained model as one program of torch.export: it runs wherever torch does, without this package."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from ...data import Batch, Example, collate
from ...data.files import FolderError, replacing
from ...data.indexing import LONGEST_WORD
from ...encoders import LSTM
from ...heads import CRF
from ...models import JointModel, Model, SequenceTagger, TextClassifier
from ...models.pretrained import save_description
from ...runtime import Arrays, RuntimeModel, Session
from .folder import Parity, check_close, check_folder, compare, write_export

PROGRAM = "model.pt2"
MOST_SENTENCES, MOST_WORDS = 4096, 65536


def export_torch(model: Model, folder: Path, examples: Sequence[Example]) -> Parity:
    """Write the folder, load the program again and compare it with the model on `examples`."""
    refuse_unrolled(model, folder)
    check_folder(folder)
    program = export_program(model, examples)
    save_description(model, folder)
    logging.getLogger("torch._export.serde.serialize").setLevel(logging.ERROR)  # warns of empty lists, which are fine
    content = io.BytesIO()
    torch.export.save(program, content)
    with replacing(folder / PROGRAM) as unfinished:
        unfinished.write_bytes(content.getvalue())
    session = ProgramSession(torch.export.load(folder / PROGRAM).module())
    exported = wrap(model, session)
    parity = compare(model, exported, examples)
    write_export(folder, PROGRAM, "torch", None, model, parity)
    return check_close(parity, folder / PROGRAM)


def wrap(model: Model, session: Session) -> RuntimeModel:
    """`predict` of the model, computed by the session."""
    boundaries = model.config.boundaries
    return RuntimeModel(session, model.vocabularies, model.targets, model.tag_scheme, model.tokenizer, boundaries)


def refuse_unrolled(model: Model, folder: Path) -> None:
    """torch.export writes the loop of an LSTM out word by word, for one number of words."""
    characters = model.embedding.characters
    for encoder in (model.encoder, *([characters.encoder] if characters is not None else [])):
        if isinstance(encoder, LSTM):
            raise FolderError.at(folder, "torch.export fixes the number of words of an LSTM; use --format onnx")


def export_program(model: Model, examples: Sequence[Example]) -> ExportedProgram:
    """The program for any batch and length; two of the examples are traced."""
    model.eval()
    batch = collate([*examples, *examples][:2], model.vocabularies, boundaries=model.config.boundaries, targets=False)
    least = 3 if model.config.boundaries else 1  # positions: one word, between <s> and </s> where they are
    sentences, words = Dim("batch", min=1, max=MOST_SENTENCES), Dim("words", min=least, max=MOST_WORDS)
    characters = Dim("characters", min=1, max=LONGEST_WORD)
    inputs = {
        "word_ids": (batch.word_ids, {0: sentences, 1: words}),
        "lengths": (batch.lengths, {0: sentences}),
        "character_ids": (batch.character_ids, {0: sentences, 1: words, 2: characters}),
        "case_ids": (batch.case_ids, {0: sentences, 1: words}),
    }
    given = {name: pair for name, pair in inputs.items() if pair[0] is not None}
    with torch.no_grad():
        return torch.export.export(
            Program(model),
            (),
            {name: tensor for name, (tensor, _) in given.items()},
            dynamic_shapes={name: shape for name, (_, shape) in given.items()},
            strict=False,
        )


class Program(nn.Module):
    """word_ids (B, N), lengths (B,) and, where the model reads them, character_ids (B, N, C) and case_ids (B, N) ->
    probabilities (B, K), then tags (B, N-1), -1 behind the words, and scores (B, N-1): of these what the model has."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, word_ids: Tensor, lengths: Tensor, character_ids: Tensor | None = None, case_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        model = self.model
        batch = Batch(word_ids, lengths, model.config.boundaries, lengths, character_ids, case_ids)
        if isinstance(model, TextClassifier):
            return (model(batch).softmax(-1),)
        if isinstance(model, JointModel):
            logits, words = model(batch)
            return (logits.softmax(-1), *self.decode(model.crf, words, lengths))
        if isinstance(model, SequenceTagger):
            return self.decode(model.crf, model(batch), lengths)
        raise TypeError(f"no program for {type(model).__name__}")

    def decode(self, crf: CRF, words: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """</s> stays behind the words as padding: torch.export takes one word for a length that never changes."""
        if self.model.config.boundaries:
            words, lengths = words[:, 1:], lengths - 2
        tags, _ = crf.decode(words, lengths)
        scores = crf.marginals(words, lengths).gather(2, tags.clamp(min=0)[..., None]).squeeze(2)
        return tags, scores


class ProgramSession:
    """The program behind the interface of an onnxruntime session."""

    def __init__(self, program: Any) -> None:
        self.program = program

    def run(self, names: Sequence[str], inputs: Arrays) -> list[Any]:
        given = {"word_ids": inputs["word_ids"], "lengths": inputs["lengths"]}
        if "spellings" in inputs:
            given["character_ids"] = inputs["spellings"][inputs["spelling_ids"]]
        if "case_ids" in inputs:
            given["case_ids"] = inputs["case_ids"]
        with torch.no_grad():
            outputs = self.program(**{name: torch.from_numpy(ids) for name, ids in given.items()})
        return [output.numpy() for output in outputs]
