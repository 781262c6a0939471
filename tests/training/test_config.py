"""Defaults and presets."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sentence_state import ModelConfig
from sentence_state.training import TrainingConfig, preset
from sentence_state.training.config import suit_to_size


def test_the_defaults_are_the_papers():
    config = TrainingConfig()
    assert (config.learning_rate, config.decay, config.clip) == (0.001, 0.97, 3.0)
    assert (config.batch_size, config.l2, config.word_rate, config.lazy_words) == (10, 0.001, 1.0, False)
    assert TrainingConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize("task", ["classifier", "tagger", "joint"])
def test_presets_differ_from_the_paper_where_they_say(task):
    assert preset("paper", task) == (type(preset("paper", task)[0])(), TrainingConfig())
    model, training = preset("fast", task)
    assert model.hidden_size < 300
    assert model.num_steps < 9
    assert (model.characters != "none") == (task != "classifier")
    assert training.word_rate < 1
    assert preset("fast", task, vectors=False)[1].word_rate == 1
    with pytest.raises(ValueError, match="preset must be one of 'paper', 'best', 'fast', got 'slow'"):
        preset("slow", task)


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [(20, (8, 50, 10)), (300, (8, 40, 8)), (1374, (16, 17, 3)), (5000, (32, 15, 3)), (200_000, (32, 15, 3))],
)
def test_the_fast_preset_gets_small_batches_and_many_epochs_for_few_sentences(sentences, expected):
    usual, suited = preset("fast", "tagger")[1], preset("fast", "tagger", sentences=sentences)[1]
    assert (suited.batch_size, suited.epochs, suited.patience) == expected
    assert suited.decay**suited.epochs == pytest.approx(usual.decay**usual.epochs)
    assert (suited == usual) == (sentences >= 5000)


@pytest.mark.parametrize(("task", "data"), [("classifier", "mr"), ("tagger", "conll2003")])
def test_the_preset_best_is_what_dev_chose(task, data):
    chosen = json.loads((Path(__file__).parents[2] / f"results/tuned/{data}/s-lstm.json").read_text())
    model, training = preset("best", task)
    if task == "tagger":
        model = replace(model, readout="sentence")  # which only joint models have
    assert model == ModelConfig(**chosen["model"])
    assert replace(training, precision="bfloat16") == TrainingConfig(**chosen["training"])


def test_other_presets_stay_as_they_are_for_few_sentences():
    for name in ("paper", "best"):
        assert preset(name, "tagger", sentences=20) == preset(name, "tagger")


def test_what_is_kept_does_not_change_for_few_sentences():
    config = TrainingConfig(epochs=4, patience=2, batch_size=10, decay=0.5)
    assert suit_to_size(config, 50, keep=("epochs", "patience", "batch_size", "decay")) == config
    assert suit_to_size(config, 300, keep=("batch_size",)).epochs == 50  # of 30 updates each
    with pytest.raises(ValueError, match="sentences must be at least 1, got 0"):
        suit_to_size(config, 0)
