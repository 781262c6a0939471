"""Embedding + encoder + head; each model has `loss(batch)`, `decode(batch)` and `predict(texts)`."""

from .config import ModelConfig
from .files import FolderError
from .joint import JointModel
from .model import Decoded, Model, Prediction, SpanPrediction
from .sequence_tagger import SequenceTagger
from .text_classifier import TextClassifier

__all__ = [
    "Decoded",
    "FolderError",
    "JointModel",
    "Model",
    "ModelConfig",
    "Prediction",
    "SequenceTagger",
    "SpanPrediction",
    "TextClassifier",
]
