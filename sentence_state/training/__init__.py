"""Section 4.1, "Hyperparameters": configs, the loop, checkpoints, metrics."""

from .config import PRESETS, TrainingConfig, preset
from .evaluation import Evaluation, evaluate
from .loop import fit
from .state import Progress, TrainingError, TrainingResult

__all__ = [
    "PRESETS",
    "Evaluation",
    "Progress",
    "TrainingConfig",
    "TrainingError",
    "TrainingResult",
    "evaluate",
    "fit",
    "preset",
]
