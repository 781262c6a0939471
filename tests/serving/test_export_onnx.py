"""One ONNX graph answers as the model does: every model, encoder and option, any batch, any length."""

import itertools

import numpy as np
import onnx
import pytest
import torch

from sentence_state.models import FolderError, JointModel, SequenceTagger, TextClassifier
from sentence_state.ops.crf import sequence_score
from sentence_state.runtime import RuntimeModel, new_session
from sentence_state.serving.export.folder import check_close, compare, export_onnx
from sentence_state.serving.export.graph import FLOAT, OPSET, Graph
from sentence_state.serving.export.model import build
from sentence_state.serving.export.products import Int8Products, row_scales
from sentence_state.serving.export.program import wrap

from ..models.synthetic import corpus
from .exported import EXAMPLES, TEXTS, assert_same_answers, make

TOLERANCE = 2e-6  # float32, of a probability


def exported(model, quantize=None) -> RuntimeModel:
    session = new_session(build(model, quantize).SerializeToString(), "model.onnx", threads=1)
    return wrap(model, session)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gates": "paper"},
        {"num_steps": 1},
        {"num_steps": 2, "window": 2, "sentence_nodes": 2},
        {"window": 2, "sentence_nodes": 3, "gates": "paper"},
        {"sentence_nodes": 0},
        {"transitions": "static", "characters": "CNN", "case_size": 3},
        {"readout": "attention", "characters": "BiLSTM"},
        {"readout": "max", "encoder": "CNN"},
        {"readout": "steps", "boundaries": False},
        {"variant": "released", "word_size": 12},
        {"variant": "released", "word_size": 12, "window": 2, "gates": "paper"},
        {"encoder": "LSTM"},
        {"encoder": "BiLSTM", "cell": "coupled"},
        {"encoder": "LSTM", "cell": "coupled"},
        {"encoder": "3 stacked BiLSTM", "characters": "CNN"},
        {"encoder": "2 stacked CNN"},
        {"encoder": "Transformer (N=6)"},
    ],
    ids=str,
)
def test_label_and_spans_are_the_models_own(options):
    model = make(JointModel, **options)
    found = exported(model)
    texts = [*TEXTS, *(example.words for example in corpus(9, seed=5))]
    for batch_size in (1, 5):
        assert_same_answers(model.predict(texts), found.predict(texts, batch_size), TOLERANCE)


@pytest.mark.parametrize("cls", [TextClassifier, SequenceTagger])
@pytest.mark.parametrize("quantize", [None, "int8"])
def test_a_classifier_and_a_tagger_leave_out_what_they_do_not_need(cls, quantize):
    model = make(cls)
    found = exported(model, quantize).predict(TEXTS)
    assert_same_answers(model.predict(TEXTS), found, TOLERANCE if quantize is None else 0.02)
    joint = build(make(JointModel), quantize).ByteSize()
    assert build(model, quantize).ByteSize() < joint


def test_tags_of_a_plain_scheme():
    examples = corpus(20)
    for example in examples:
        example.tags = ["NN" if tag == "O" else "NNP" for tag in example.tags]
    model = SequenceTagger.from_examples(examples)
    assert_same_answers(model.predict(TEXTS), exported(model).predict(TEXTS), TOLERANCE)


@pytest.mark.parametrize("transitions", ["edge", "static"])
def test_the_graphs_tags_are_the_best_of_all_sequences_by_enumeration(transitions):
    model = make(SequenceTagger, transitions=transitions)
    example = EXAMPLES[0].words[:3]
    tags = exported(model).run(model_inputs(model, [example]))["tags"][0].tolist()
    with torch.no_grad():
        words = model(next(model.reading([model_example(example)], 1)))[:, 1:-1]
        chain, lengths = model.crf._chain(words), torch.tensor([3])
        every = list(itertools.product(range(len(model.tags)), repeat=3))
        scores = [sequence_score(chain, torch.tensor([sequence]), lengths).item() for sequence in every]
    assert tuple(tags) == every[int(np.argmax(scores))]


@pytest.mark.parametrize("transitions", ["edge", "static"])
def test_probabilities_of_tags_stay_exact_over_hundreds_of_words(transitions):
    model = make(SequenceTagger, encoder="BiLSTM", transitions=transitions)
    with torch.no_grad():
        for parameter in model.crf.parameters():
            parameter.mul_(6)  # as certain as a model that was trained for long
    text = ["the", "film", "was", "good", "Paris", "New", "York", "zzz"] * 60
    found = exported(model).predict([text])
    assert max(span["score"] for span in found[0]["spans"]) <= 1
    assert_same_answers(model.double().predict([text]), found, 2e-5)  # float32, 480 steps


def model_example(words):
    from sentence_state.data import Example

    return Example(list(words))


def model_inputs(model, sentences):
    from sentence_state.data import index_examples
    from sentence_state.runtime import inputs_of

    indexed = index_examples([model_example(words) for words in sentences], model.vocabularies, targets=False)
    return inputs_of(indexed, np.arange(len(sentences)))


# ---- int8 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"gates": "paper"}, {"window": 2, "sentence_nodes": 2}], ids=str)
def test_int8_is_close_and_does_not_depend_on_the_batch(options):
    model = make(JointModel, hidden_size=48, **options)
    found = exported(model, "int8")
    together = found.predict(TEXTS, batch_size=len(TEXTS))
    for alone, answer in zip((found.predict([text])[0] for text in TEXTS), together, strict=True):
        assert_same_answers([alone], [answer], TOLERANCE)
    for exact, rounded in zip(model.predict(TEXTS), together, strict=True):
        assert exact["probabilities"] == pytest.approx(rounded["probabilities"], abs=0.02)


@pytest.mark.parametrize("width", [64, 63])
@pytest.mark.parametrize("sign", [1, -1])
def test_int8_products_are_those_of_rounded_states_and_weights(width, sign):
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, (1, 5, width)).astype(np.float32)
    states[0, 0] = 1  # with the next line the largest sums of neighbours there are
    weight = rng.normal(size=(30, width)).astype(np.float32)
    weight[0] = sign
    op, products = Graph(), Int8Products()
    x = op.input("x", FLOAT, [1, "words", width])
    graph = op.finish("product", {"y": (products.product(op, products.read(op, x), weight), FLOAT, [1, "words", 30])})
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=8)
    found = new_session(model.SerializeToString(), "product.onnx", 1).run(None, {"x": states})[0]
    scale = row_scales(weight)[:, None]
    rounded = np.rint(127 * states) / 127 @ (np.rint(weight / scale) * scale).T
    np.testing.assert_allclose(found, rounded, rtol=1e-5, atol=1e-5)
    assert 1e-3 < np.abs(found - states @ weight.T).max() < 0.01 * width  # it is int8 indeed, and near


def test_rounded_int8_neighbours_fit_into_16_bits_with_any_states():
    weight = np.random.default_rng(0).normal(size=(2000, 64)).astype(np.float32)
    weight[0], weight[1], weight[2, 1::2] = 0, -1, 0  # nothing to scale; all of one sign; each alone in its pair
    rounded = np.rint(weight / row_scales(weight)[:, None]).reshape(2000, -1, 2)
    assert np.abs(rounded).max() == 127
    assert 255 * rounded.clip(min=0).sum(axis=2).max() <= 2**15 - 1
    assert 255 * rounded.clip(max=0).sum(axis=2).min() >= -(2**15)


def test_parity_counts_what_differs(tmp_path):
    model = make(JointModel)
    parity = export_onnx(model, tmp_path / "onnx", corpus(8, seed=3))
    assert parity.sentences == parity.same == 8
    assert parity.greatest_difference < TOLERANCE
    other = make(JointModel)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(-1)
    parity = compare(model, exported(other), corpus(8, seed=3))
    assert parity.same < parity.sentences == 8
    assert parity.greatest_difference > 0.01
    with pytest.raises(FolderError, match="answers otherwise than the model"):
        check_close(parity, tmp_path)
