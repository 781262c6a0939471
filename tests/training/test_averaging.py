import math
from dataclasses import replace

import pytest
import torch

from sentence_state.models import JointModel, TextClassifier
from sentence_state.training import TrainingConfig
from sentence_state.training.averaging import WeightAverage

from ..models.synthetic import corpus, small
from .small_runs import QUICK, assert_same_weights, interrupted, train


def test_the_average_equals_a_loop_over_scalars():
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1, bias=False).double()
    average = WeightAverage(model, decay=0.5)
    expected = model.weight.item()
    for t in range(20):
        value = math.sin(t)
        with torch.no_grad():
            model.weight.fill_(value)
        average.update()
        kept = min(0.5, (1 + t) / (10 + t))
        expected = kept * expected + (1 - kept) * value
    with average.in_place():
        assert model.weight.item() == pytest.approx(expected, abs=1e-12)
    assert model.weight.item() == math.sin(19)


def test_frozen_weights_are_left_out():
    model = TextClassifier.from_examples(corpus(8), small(freeze_words=True))
    assert "embedding.words.weight" not in WeightAverage(model, 0.9).averages


def test_the_averaged_weights_are_evaluated_and_kept():
    config = replace(QUICK, epochs=1)
    plain, without = train(config=config)
    averaged, result = train(config=replace(config, averaging=0.99))
    assert result.history[0]["loss"] == without.history[0]["loss"]  # training itself is the same
    assert not torch.equal(plain.encoder.W, averaged.encoder.W)
    nearly, _ = train(config=replace(config, averaging=1e-9))  # no memory: the weights themselves
    torch.testing.assert_close(nearly.encoder.W, plain.encoder.W)


@pytest.mark.parametrize("at", [3, 12])
def test_a_resumed_run_with_an_average_ends_bit_equal(at, tmp_path, monkeypatch):
    monkeypatch.setattr("sentence_state.training.loop.REPORTS_A_SECOND", math.inf)
    options = {"cls": JointModel, "config": replace(QUICK, epochs=3, averaging=0.9), "fields": {"dropout": 0.5}}
    expected, _ = train(**options)
    _, stopped = interrupted(tmp_path, at, **options)
    assert not stopped.finished
    model, result = train(out=tmp_path / "run", resume=True, **options)
    assert result.finished
    assert_same_weights(model, expected)


def test_a_share_outside_its_range_is_refused():
    with pytest.raises(ValueError, match=r"averaging must lie in \[0, 1\), got 1"):
        TrainingConfig(averaging=1)
