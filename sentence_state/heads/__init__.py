"""Section 3.3: from an encoding to a task."""

from .attention import AdditiveAttention
from .classifier import Classifier
from .crf import CRF, AllowedTransitions, allowed_transitions

__all__ = ["CRF", "AdditiveAttention", "AllowedTransitions", "Classifier", "allowed_transitions"]
