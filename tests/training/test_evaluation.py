import json

import pytest

from sentence_state.data.example import Example
from sentence_state.models import Decoded, JointModel, SequenceTagger, TextClassifier
from sentence_state.training import evaluate
from sentence_state.training.metrics import Scores

from ..models.synthetic import corpus, small

EXAMPLES = [
    Example(["Mary", "sat"], label="pos", tags=["S-PER", "O"]),
    Example(["in", "New", "York"], label="neg", tags=["O", "B-LOC", "E-LOC"]),
]


def answering(cls, monkeypatch, labels, tags):
    model = cls.from_examples(corpus(20), small())
    monkeypatch.setattr(model, "decode_all", lambda examples, batch_size: Decoded(labels, tags))
    return model


def test_a_classifier_is_judged_by_accuracy(monkeypatch):
    found = evaluate(answering(TextClassifier, monkeypatch, ["pos", "pos"], None), EXAMPLES)
    assert (found.metric, found.score) == ("accuracy", 0.5)
    assert found.labels == {"label": {"neg": Scores(0, 0, 1), "pos": Scores(1, 2, 1)}}
    assert found.confusion == {"label": {"neg": {"neg": 0, "pos": 1}, "pos": {"neg": 0, "pos": 1}}}
    assert json.loads(json.dumps(found.to_dict()))["scores"]["accuracy"] == 0.5


def test_a_tagger_is_judged_by_the_f1_of_its_spans(monkeypatch):
    tags = [["S-PER", "O"], ["O", "B-LOC", "I-LOC"]]
    found = evaluate(answering(SequenceTagger, monkeypatch, None, [tags[0], ["O", "S-LOC", "O"]]), EXAMPLES)
    assert (found.metric, found.score) == ("f1", 0.5)
    assert found.scores["token_accuracy"] == pytest.approx(3 / 5)
    assert found.labels == {"tags": {"LOC": Scores(0, 1, 1), "PER": Scores(1, 1, 1)}}


def test_a_tagger_of_plain_tags_is_judged_by_the_accuracy_of_words(monkeypatch):
    plain = [Example(["a", "cat"], tags=["DT", "NN"])]
    model = SequenceTagger.from_examples(plain, small())
    monkeypatch.setattr(model, "decode_all", lambda examples, batch_size: Decoded(tags=[["DT", "DT"]]))
    found = evaluate(model, plain)
    assert (found.metric, found.score) == ("token_accuracy", 0.5)
    assert found.confusion["tags"]["NN"] == {"DT": 1, "NN": 0}


def test_a_joint_model_is_judged_by_the_mean_of_both(monkeypatch):
    tags = [["S-PER", "O"], ["O", "B-LOC", "E-LOC"]]
    found = evaluate(answering(JointModel, monkeypatch, ["pos", "pos"], tags), EXAMPLES)
    assert (found.metric, found.score) == ("mean", 0.75)
    assert (found.scores["accuracy"], found.scores["f1"], found.scores["exact"]) == (0.5, 1.0, 0.5)


def test_the_answers_are_the_models_own_in_the_order_of_the_examples():
    model = JointModel.from_examples(corpus(30), small())
    examples = corpus(25, seed=3)
    found = model.decode_all(examples, batch_size=4)
    for row, example in enumerate(examples):
        alone = model.decode_all([example])
        assert (found.labels[row], found.tags[row]) == (alone.labels[0], alone.tags[0])


def test_a_tag_that_train_never_showed_counts_as_missed():
    model = SequenceTagger.from_examples(corpus(20), small())
    found = evaluate(model, [Example(["Acme"], tags=["S-ORG"])])
    assert found.labels["tags"]["ORG"] == Scores(0, 0, 1)


def test_examples_without_targets_are_refused():
    model = TextClassifier.from_examples(corpus(20), small())
    with pytest.raises(ValueError, match="there is no example"):
        evaluate(model, [])
    with pytest.raises(ValueError, match="evaluated on examples with label, got one without"):
        evaluate(model, [Example(["a"])])
