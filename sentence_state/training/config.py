"""Section 4.1, "Hyperparameters": how a model is trained; the defaults are the paper's. Presets."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ..data.description import check_fields
from ..encoders.encoding import check_choice, check_size
from ..models.config import ModelConfig


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained."""

    epochs: int = 20
    """At most; the paper does not say."""
    patience: int = 5
    """Epochs without a better dev score before training stops; 0: never."""
    batch_size: int = 10
    learning_rate: float = 0.001
    """Adam's."""
    decay: float = 0.97
    """Factor on the learning rate after each epoch."""
    word_rate: float = 1.0
    """Factor on the learning rate of the word vectors."""
    lazy_words: bool = False
    """Update only the vectors of the words in a batch (torch's SparseAdam): faster with many words, but not what Adam
    computes, which goes on moving a vector while its word is absent."""
    clip: float = 3.0
    """Norm to which longer gradients are shortened; 0: none."""
    l2: float = 0.001
    """The loss gets l2 / 2 |theta|^2, theta being all weight matrices but the word vectors; no biases."""
    consistency: float = 0.0
    """Each batch is read twice, with other dropout, and the loss gets this times the divergence of the two answers
    (R-Drop); 0: it is read once."""
    averaging: float = 0.0
    """Share of the old average that each step keeps, such as 0.999: the exponential average of the weights is evaluated
    and kept instead of the weights; 0: no average."""
    micro_batches: int = 1
    """Pieces in which a batch is computed, one after the other: the same step in less memory."""
    shard: bool = False
    """With many processes, each keeps a part of the weights and of Adam's state (FSDP2): for word vectors that are too
    many for one GPU."""
    on_nan: Literal["stop", "skip"] = "stop"
    """When a loss or a gradient is no number: stop and save the batch, or leave the batch out."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """bfloat16: matrix products by autocast, in training only."""
    graphs: bool = True
    """CUDA only: capture the training step in CUDA graphs, one for each length to which batches are padded."""
    seed: int = 0
    device: str = "auto"
    """cpu, cuda, cuda:1, ...; auto: cuda where there is one."""
    checkpoint_seconds: float = 60.0
    """A checkpoint is written after every epoch and whenever the last one is older than this."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "micro_batches"):
            check_size(name, getattr(self, name))
        for name in ("patience", "clip", "l2", "word_rate", "consistency", "checkpoint_seconds", "seed"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        for name in ("clip", "l2", "word_rate", "consistency", "checkpoint_seconds", "learning_rate", "decay"):
            if math.isinf(getattr(self, name)):
                raise ValueError(f"{name} must be finite, got {getattr(self, name)}")
        if self.seed >= 2**63:
            raise ValueError(f"seed must be less than 2^63, got {self.seed}")
        for name in ("learning_rate", "decay"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        if not 0 <= self.averaging < 1:
            raise ValueError(f"averaging must lie in [0, 1), got {self.averaging}")
        check_choice("precision", self.precision, ("float32", "bfloat16"))
        check_choice("on_nan", self.on_nan, ("stop", "skip"))
        if self.shard and (self.lazy_words or self.averaging):
            raise ValueError("shard goes with neither lazy_words nor averaging: FSDP2 keeps every weight in parts")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TrainingConfig:
        check_fields(cls, values)
        return cls(**values)


FAST_MODEL = {
    "hidden_size": 128,
    "num_steps": 5,
    "gates": "sharp",
    "transitions": "static",
    "word_dropout": 0.05,
    "output_dropout": 0.3,
}
FAST_TRAINING = {
    "epochs": 15,
    "patience": 3,
    "batch_size": 32,
    "learning_rate": 0.002,
    "decay": 0.9,
    "word_rate": 0.1,
    "lazy_words": True,
    "l2": 0.0,
}
SPELLING = {"characters": "CNN", "character_hidden_size": 50, "case_size": 8}
# Chosen on dev, the classifier's on MR, the tagger's on CoNLL-2003 (results/tuned).
BEST_MODEL = {"gates": "sharp", "step_dropout": 0.3, "output_dropout": 0.2, "readout": "max"}
BEST_TAGGER = {
    "characters": "CNN",
    "case_size": 8,
    "num_steps": 5,
    "transitions": "static",
    "output_dropout": 0.0,
    "word_dropout": 0.05,
}
BEST_TRAINING = {
    "batch_size": 64,
    "learning_rate": 0.002,
    "decay": 0.9,
    "word_rate": 0.1,
    "l2": 0.00001,
    "consistency": 0.5,
}
BEST_TAGGER_TRAINING = {
    "epochs": 24,
    "batch_size": 16,
    "learning_rate": 0.001,
    "decay": 0.95,
    "l2": 0.0,
    "averaging": 0.99,
}
TASKS = ("classifier", "tagger", "joint")

Fields = dict[str, Any]

# name -> fields of ModelConfig and TrainingConfig that differ from the paper's, then what differs again for taggers
PRESETS: dict[str, tuple[Fields, Fields, Fields, Fields]] = {
    "paper": ({}, {}, {}, {}),
    "best": (BEST_MODEL, BEST_TRAINING, BEST_TAGGER, BEST_TAGGER_TRAINING),
    "fast": (FAST_MODEL, FAST_TRAINING, SPELLING, {}),
}


ENOUGH_UPDATES = 1500  # 300 sentences of the sample: 15 epochs of 10 updates find no slot at all, 40 of 38 half of them
MOST_EPOCHS = 50


def preset(
    name: str, task: str, vectors: bool = True, sentences: int | None = None
) -> tuple[ModelConfig, TrainingConfig]:
    """Both configs of the preset "paper", "best" or "fast" for a classifier, a tagger or a joint model.

    Without pre-trained vectors the word vectors learn at the full rate: there is nothing in them to keep. With the
    number of training sentences, "fast" is suited to it, as on the command line: where they are few, smaller batches,
    more epochs, more patience. "paper" and "best" stay as they are.
    """
    check_choice("preset", name, list(PRESETS))
    check_choice("task", task, TASKS)
    model, training, of_tagger, training_of_tagger = PRESETS[name]
    if task != "classifier":
        model, training = {**model, **of_tagger}, {**training, **training_of_tagger}
    if not vectors:
        training = {**training, "word_rate": 1.0}
    config = TrainingConfig(**training)
    if name == "fast" and sentences is not None:
        config = suit_to_size(config, sentences)
    return ModelConfig(**model), config


def suit_to_size(config: TrainingConfig, sentences: int, keep: Collection[str] = ()) -> TrainingConfig:
    """The config with at least 1,500 updates in all, at most 50 epochs; the fields named in `keep` stay."""
    check_size("sentences", sentences)
    batch_size, epochs = config.batch_size, config.epochs
    if "batch_size" not in keep:
        batch_size = min(batch_size, 8 if sentences < 500 else 16 if sentences < 1600 else batch_size)
    if "epochs" not in keep:
        epochs = max(epochs, min(MOST_EPOCHS, ENOUGH_UPDATES * batch_size // sentences))
    patience = config.patience if "patience" in keep else max(config.patience, round(epochs / 5))
    decay = config.decay if "decay" in keep else config.decay ** (config.epochs / epochs)  # in all, as much as before
    return replace(config, batch_size=batch_size, epochs=epochs, patience=patience, decay=decay)
