"""Embedding + encoder + head; each model has `loss(batch)`, `decode(batch)` and `predict(texts)`."""

from ..data.files import FolderError
from ..data.predictions import Prediction, SpanPrediction
from .config import ModelConfig
from .joint import JointModel
from .model import Decoded, Model
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
