"""Sentence-State LSTM (Zhang, Liu and Song, ACL 2018): a state for every word and one for the sentence.

A public name is imported when it is first asked for: `sentence_state.runtime` and the help of the command line need no
torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_PACKAGES = ("encoders", "heads", "models", "training")  # left to right: the first that has a name is its home


def __getattr__(name: str) -> Any:
    if name in __all__:
        for package in _PACKAGES:
            home = import_module(f".{package}", __name__)
            if hasattr(home, name):
                return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
