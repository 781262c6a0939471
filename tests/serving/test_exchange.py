import pytest
import torch

from sentence_state.data import Example
from sentence_state.data.batching import collate
from sentence_state.data.predictions import example_of
from sentence_state.encoders import sentence_state_lstm
from sentence_state.models import JointModel, ModelConfig, SequenceTagger, TextClassifier
from sentence_state.serving.exchange import SOURCES, can_trace, trace

from ..models.synthetic import corpus
from .exported import assert_same_answers, make

WORDS = ["Mary", "saw", "a", "good", "film"]


def model(**fields) -> JointModel:
    config = {"hidden_size": 12, "word_size": 12, "num_steps": 3, "dropout": 0.0, **fields}
    return JointModel.from_examples(corpus(20), ModelConfig(**config)).eval()


@pytest.mark.parametrize(
    "fields",
    [{}, {"gates": "sharp"}, {"window": 2}, {"sentence_nodes": 2}, {"sentence_nodes": 0},
     {"window": 3, "sentence_nodes": 3}, {"variant": "released"}, {"variant": "released", "window": 2}],
    ids=str,
)  # fmt: skip
def test_shares_are_the_encoders_gates_and_sum_to_one(fields):
    one = model(**fields)
    found = trace(one, Example(WORDS))
    assert found["words"] == ["<s>", *WORDS, "</s>"]
    assert found["offsets"][0] is found["offsets"][-1] is None
    assert found["sources"] == SOURCES
    assert len(found["steps"]) == 3
    with torch.no_grad():
        batch = collate([Example(WORDS)], one.vocabularies, targets=False)
        gates = one.encoder.trace(one.embedding(batch), batch.lengths).word_gates[:, 0].mean(-1)  # (T, N, 2w+2+k)
    nodes = fields.get("sentence_nodes", 1)
    side = 1 if fields.get("variant") else fields.get("window", 1)
    for t, step in enumerate(found["steps"]):
        for word, shares in enumerate(step["words"]):
            assert sum(shares) == pytest.approx(1, abs=1e-5)
            row = gates[t, word].tolist()
            expected = [row[0], sum(row[1 : 1 + side]), row[1 + side], sum(row[2 + side : 2 + 2 * side])]
            assert shares == pytest.approx([*expected, sum(row[2 + 2 * side :])], abs=1e-6)
        if nodes:
            assert sum(step["sentence_read"]) + step["sentence_kept"] == pytest.approx(1, abs=1e-5)
        else:
            assert step["sentence_read"] == [0] * 7
            assert all(shares[4] == 0 for shares in step["words"])


@pytest.mark.parametrize("cls", [TextClassifier, SequenceTagger, JointModel])
@pytest.mark.parametrize(
    "fields",
    [{"transitions": "edge"}, {"readout": "attention"}, {"readout": "max"}, {"readout": "steps"}, {"window": 2},
     {"sentence_nodes": 2}, {"sentence_nodes": 0}, {"boundaries": False}, {"variant": "released", "word_size": 12}],
    ids=str,
)  # fmt: skip
def test_what_is_said_after_each_step_is_what_a_run_of_so_many_steps_says(cls, fields):
    one, text = make(cls, **fields), "the film was good in New York"
    found = trace(one, example_of(text, 0, one.tokenizer))
    expected = []
    for one.encoder.num_steps in (1, 2, 3):
        expected += one.predict([text])
    assert_same_answers(expected, [step["prediction"] for step in found["steps"]], 1e-6)  # float32


def test_the_states_are_computed_once(monkeypatch):
    one, runs = model(), []
    step = sentence_state_lstm.step
    monkeypatch.setattr(sentence_state_lstm, "step", lambda *args, **named: (runs.append(1), step(*args, **named))[1])
    monkeypatch.setattr(sentence_state_lstm, "recurrence", None)
    trace(one, Example(WORDS))
    assert len(runs) == 3


def test_what_is_said_after_the_last_step_is_what_the_model_says():
    one = model()
    found = trace(one, Example(WORDS))
    assert_same_answers(one.predict([WORDS]), [found["steps"][-1]["prediction"]], 1e-6)  # float32
    assert found["steps"][0]["prediction"] != one.predict([WORDS])[0]
    assert one.encoder.num_steps == 3


def test_change_is_relative_to_the_new_state():
    one = model()
    with torch.no_grad():
        batch = collate([Example(WORDS)], one.vocabularies, targets=False)
        states = one.encoder.trace(one.embedding(batch), batch.lengths).words[:, 0]
    step = trace(one, Example(WORDS))["steps"][1]
    expected = [float((states[2, i] - states[1, i]).norm() / states[2, i].norm()) for i in range(7)]
    assert step["words_moved"] == pytest.approx(expected, rel=1e-5)


def test_other_encoders_have_no_exchange():
    other = model(encoder="BiLSTM")
    assert not can_trace(other)
    with pytest.raises(ValueError, match="BiLSTM has no exchange of states"):
        trace(other, Example(WORDS))
