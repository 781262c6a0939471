"""Sentence-State LSTM (Zhang, Liu and Song, ACL 2018): a state for every word and one for the sentence."""

from .encoders import CNN, ENCODERS, LSTM, BiLSTM, DropInLSTM, Encoding, SentenceStateLSTM, Trace, Transformer
from .heads import CRF, AdditiveAttention, Classifier, allowed_transitions
from .models import JointModel, ModelConfig, SequenceTagger, TextClassifier
from .training import TrainingConfig, evaluate, fit, preset

__all__ = [
    "CNN",
    "CRF",
    "ENCODERS",
    "LSTM",
    "AdditiveAttention",
    "BiLSTM",
    "Classifier",
    "DropInLSTM",
    "Encoding",
    "JointModel",
    "ModelConfig",
    "SentenceStateLSTM",
    "SequenceTagger",
    "TextClassifier",
    "Trace",
    "TrainingConfig",
    "Transformer",
    "allowed_transitions",
    "evaluate",
    "fit",
    "preset",
]
__version__ = "0.1.0"
