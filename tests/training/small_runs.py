"""Models that train in a moment."""

import signal

import torch

from sentence_state.models import Model, TextClassifier
from sentence_state.training import TrainingConfig, fit

from ..models.synthetic import small, splits

QUICK = TrainingConfig(epochs=2, batch_size=8, learning_rate=0.01, l2=0.0)


class Killed(BaseException):
    """A run dies of it where a test says so."""


def train(cls=TextClassifier, config=QUICK, data=None, fields=None, **options):
    """A new model, trained: (model, result)."""
    data = data or splits()
    model = cls.from_examples(data.train, small(**(fields or {})), seed=config.seed)
    return model, fit(model, data, config, **options)


def assert_same_weights(a: Model, b: Model):
    for name, tensor in a.state_dict().items():
        assert torch.equal(tensor, b.state_dict()[name]), name


def interrupted(tmp_path, at: int, number: int = signal.SIGINT, **options):
    """A run that gets Ctrl-C, or another signal, at a batch."""
    batches = 0

    def progress(event):
        nonlocal batches
        batches += 1
        if batches == at:
            signal.raise_signal(number)

    return train(out=tmp_path / "run", progress=progress, **options)
