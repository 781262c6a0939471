"""A whole model as one ONNX graph: ids of words, spellings and cases in, probabilities and tags out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...models import JointModel, Model, SequenceTagger, TextClassifier
from ...models.embedding import CharacterFeatures
from .encoders import encode
from .graph import FLOAT, INT64, OPSET, Graph, Value
from .heads import classify, decode
from .products import FloatProducts, Int8Products
from .recurrence import array

if TYPE_CHECKING:
    import onnx


def build(model: Model, quantize: str | None = None) -> onnx.ModelProto:
    """The graph of a trained model in evaluation mode, batch and length being free."""
    from onnx import helper

    op = Graph()
    products = Int8Products() if quantize == "int8" else FloatProducts()
    word_ids = op.input("word_ids", INT64, ["batch", "words"])
    lengths = op.input("lengths", INT64, ["batch"])
    x = embed(op, model, word_ids)
    classifier = model.classifier if isinstance(model, TextClassifier | JointModel) else None
    crf = model.crf if isinstance(model, SequenceTagger | JointModel) else None
    words, sentence = classifier.needs if classifier is not None else (False, False)
    every_step = sentence and model.config.readout == "steps"
    encoded = encode(op, model.encoder, x, lengths, words or crf is not None, sentence, products, every_step)
    outputs: dict[str, tuple[Value, str, list[str | int]]] = {}
    if classifier is not None:
        probabilities = classify(op, classifier, encoded, lengths)
        outputs["probabilities"] = (probabilities, FLOAT, ["batch", classifier.output.out_features])
    if crf is not None:
        inner = encoded.words
        if model.config.boundaries:  # <s> and </s> have no tag
            inner, lengths = op.slice(inner, 1, -1, 1), lengths - op.value(np.array(2))
        tags, scores = decode(op, crf, inner, lengths)
        outputs["tags"] = (tags, INT64, ["batch", "tagged"])
        outputs["scores"] = (scores, FLOAT, ["batch", "tagged"])
    graph = op.finish("sentence_state", outputs)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="sentence-state"
    )


def embed(op: Graph, model: Model, word_ids: Value) -> Value:
    """[word vector; character features; case vector]: (B, N, D)."""
    embedding = model.embedding
    features = [op("Gather", array(embedding.words.weight), word_ids)]
    if embedding.characters is not None:
        spellings = op.input("spellings", INT64, ["spellings", "characters"])
        rows = op.input("spelling_ids", INT64, ["batch", "words"])
        features.append(op("Gather", spell(op, embedding.characters, spellings), rows))
    if embedding.case is not None:
        features.append(op("Gather", array(embedding.case.weight), op.input("case_ids", INT64, ["batch", "words"])))
    return op.concat(features, 2)


def spell(op: Graph, characters: CharacterFeatures, spellings: Value) -> Value:
    """Different words (S, C) as character ids, zero behind the last -> (S, features)."""
    vectors = op("Gather", array(characters.vectors.weight), spellings)
    lengths = op.sum(op("Cast", op("Not", op("Equal", spellings, np.array(0))), to=7), 1)
    lengths = op("Max", lengths, np.array(1))
    return encode(op, characters.encoder, vectors, lengths, False, True, FloatProducts()).sentence
