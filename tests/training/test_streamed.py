"""`fit` on examples that stay on disk."""

import json
from dataclasses import replace

import pytest
import torch

from sentence_state.data import Splits, Vocabulary, blocks
from sentence_state.data.indexing import Vocabularies
from sentence_state.data.streamed_forms import table_form
from sentence_state.data.streaming import StreamedExamples
from sentence_state.models import FolderError, Model, TextClassifier
from sentence_state.training import TrainingConfig, TrainingError, fit

from ..models.synthetic import corpus, small
from .small_runs import Killed

CONFIG = TrainingConfig(epochs=2, batch_size=8, learning_rate=0.01, checkpoint_seconds=0, lazy_words=True)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 500)
    rows = [{"text": " ".join(example.words), "label": example.label} for example in corpus(120)]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path / "train.jsonl"


def train(path, config=CONFIG, patch=None, **options):
    streamed = StreamedExamples([path], table_form(path), dev_fraction=0.1)
    found = streamed.survey
    vocabularies = Vocabularies(found.vocabulary(), labels=Vocabulary.of_labels(found.labels))
    model = TextClassifier.from_vocabularies(vocabularies, small(dropout=0.3))
    if patch:
        patch(model)
    return model, fit(model, Splits(streamed, found.dev), config, **options)


def test_a_rule_is_learned_from_a_stream(path):
    _, result = train(path, replace(CONFIG, epochs=12, patience=0, learning_rate=0.02))
    assert result.dev.score > 0.9
    assert result.history[-1]["loss"] < 0.3 * result.history[0]["loss"]


@pytest.mark.parametrize("at", [2, 9, 20])
def test_a_run_that_died_goes_on_bit_by_bit(path, tmp_path, at, monkeypatch):
    monkeypatch.setattr("sentence_state.training.loop.REPORTS_A_SECOND", float("inf"))
    expected, whole = train(path)
    seen = 0

    def die(event):
        nonlocal seen
        seen += 1
        if seen == at:
            raise Killed

    with pytest.raises(Killed):
        train(path, out=tmp_path / "run", progress=die)
    model, result = train(path, out=tmp_path / "run", resume=True)
    for name, tensor in expected.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name
    assert [record["loss"] for record in result.history] == [record["loss"] for record in whole.history]
    assert Model.from_pretrained(tmp_path / "run").predict(["a good film"]) == expected.predict(["a good film"])


def test_other_files_are_refused(path, tmp_path):
    train(path, out=tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    path.write_text(path.read_text().replace("good", "bads"))
    with pytest.raises(FolderError):
        train(path, out=tmp_path / "run", resume=True)


def test_the_sentences_of_a_bad_batch_are_found_again_on_disk(path, tmp_path):
    def spoil(model):
        loss = model.loss
        model.loss = lambda batch: loss(batch) * float("nan")

    with pytest.raises(TrainingError, match="no number in epoch 1, batch 1"):
        train(path, out=tmp_path / "run", patch=spoil)
    saved = json.loads((tmp_path / "run" / "bad_batch.json").read_text())
    lines = path.read_text().splitlines()
    for sentence in saved["sentences"]:
        assert json.loads(lines[sentence["line"] - 1])["text"] == " ".join(sentence["words"])
