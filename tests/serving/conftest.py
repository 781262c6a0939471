"""Three small models of the embedded sample, trained for a moment, in folders as `train` leaves them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sentence_state.data import Example, Splits, read_sample
from sentence_state.models import JointModel, Model, ModelConfig, SequenceTagger, TextClassifier
from sentence_state.training import TrainingConfig, fit

SMALL = ModelConfig(hidden_size=24, num_steps=4, gates="sharp", word_size=24, dropout=0.1, transitions="static")
TRAINING = TrainingConfig(epochs=8, batch_size=16, learning_rate=0.02, l2=0.0, device="cpu")


def train(cls: type[Model], encoder: str, folder: Path, epochs: int = 8) -> Path:
    sample = read_sample("bioes")
    model = cls.from_examples(sample.train[:240], ModelConfig(**{**SMALL.to_dict(), "encoder": encoder}))
    fit(model, Splits(sample.train[:240], sample.dev[:20], []), replace(TRAINING, epochs=epochs), folder)
    return folder


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> dict[str, Path]:
    """assistant: S-LSTM, label and spans; labels: BiLSTM, label; spans: S-LSTM, spans."""
    folder = tmp_path_factory.mktemp("runs")
    return {
        "assistant": train(JointModel, "S-LSTM", folder / "assistant"),
        "labels": train(TextClassifier, "BiLSTM", folder / "labels", epochs=1),
        "spans": train(SequenceTagger, "S-LSTM", folder / "spans", epochs=1),
    }


@pytest.fixture(scope="session")
def models(runs) -> dict[str, Model]:
    return {name: Model.from_pretrained(folder) for name, folder in runs.items()}


@pytest.fixture(scope="session")
def sentences() -> list[Example]:
    return read_sample("bioes").test[:60]
