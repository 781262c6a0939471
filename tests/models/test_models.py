import json
import random
from dataclasses import replace

import pytest
import torch

from sentence_state.data.batching import collate, widen
from sentence_state.data.example import Example
from sentence_state.data.predictions import example_of
from sentence_state.data.tag_schemes import breaks
from sentence_state.data.tokenizer import Tokenizer
from sentence_state.models import JointModel, ModelConfig, SequenceTagger, TextClassifier

from .synthetic import corpus, small

MODELS = [TextClassifier, SequenceTagger, JointModel]
ENCODERS = ["S-LSTM", "BiLSTM", "2 stacked BiLSTM", "CNN", "Transformer (N=6)"]
SPELLING = {"characters": "CNN", "case_size": 3, "character_size": 5, "character_hidden_size": 6}

every_model = pytest.mark.parametrize("cls", MODELS)
every_encoder = pytest.mark.parametrize("encoder", ENCODERS)


def model_of(cls, train=None, seed=0, **fields):
    return cls.from_examples(train or corpus(20), small(**fields), seed=seed).eval()


def perturb(model):
    """Biases and initial states that are not zero."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def test_the_defaults_are_the_papers():
    config = ModelConfig()
    assert (config.encoder, config.hidden_size, config.num_steps, config.window) == ("S-LSTM", 300, 9, 1)
    assert (config.sentence_nodes, config.gates, config.dropout, config.transitions) == (1, "paper", 0.5, "edge")
    assert ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@every_model
@every_encoder
def test_every_parameter_gets_a_gradient(cls, encoder):
    model = perturb(model_of(cls, encoder=encoder, **SPELLING)).train()
    model.loss(collate(corpus(8), model.vocabularies)).backward()
    silent = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert silent == []


@every_model
@pytest.mark.parametrize("readout", ["sentence", "attention", "max", "steps"])
def test_the_loss_of_a_batch_is_the_mean_over_its_sentences_alone(cls, readout):
    model = perturb(model_of(cls, readout=readout, **SPELLING)).double()
    examples = corpus(7)
    alone = [model.loss(collate([example], model.vocabularies)) for example in examples]
    torch.testing.assert_close(model.loss(collate(examples, model.vocabularies)), torch.stack(alone).mean())


@every_model
@pytest.mark.parametrize("transitions", ["edge", "static"])
def test_consistency_compares_two_readings_of_a_batch(cls, transitions):
    model = perturb(model_of(cls, dropout=0.4, output_dropout=0.4, transitions=transitions))
    batch = collate(corpus(8), model.vocabularies)
    torch.testing.assert_close(model.loss(batch, 2.0), model.loss(batch))  # without dropout both are the same
    model.train()
    torch.manual_seed(3)
    found = model.loss(batch, 100.0)
    torch.manual_seed(3)
    output = model(batch.twice())
    torch.manual_seed(3)
    plain = model.loss(batch.twice())
    logits, words = {TextClassifier: (output, None), SequenceTagger: (None, output)}.get(cls, output)
    apart = torch.zeros(8) if logits is None else both_ways(*logits.softmax(-1).chunk(2))
    if words is not None:
        layer = model.crf.edge if transitions == "edge" else model.crf.emission
        scores = layer(words).unflatten(-1, (-1, len(model.tags)))  # (2 B, N, 1 or K, K)
        for row, length in enumerate(batch.lengths.tolist()):
            pair = [scores[place, 1 : length - 1].softmax(-1) for place in (row, row + 8)]
            apart[row] = apart[row] + both_ways(*pair).mean(-1).sum()
    assert 100.0 * apart.mean() > 0.01
    torch.testing.assert_close(found, plain + 100.0 * apart.mean())


def both_ways(p, q):
    return ((p * (p / q).log()).sum(-1) + (q * (q / p).log()).sum(-1)) / 2


@every_model
@every_encoder
def test_padding_changes_neither_loss_nor_gradients(cls, encoder):
    model = perturb(model_of(cls, encoder=encoder, characters="BiLSTM")).double()
    results = []
    batch = collate(corpus(5), model.vocabularies)
    for one in (batch, widen(batch, 40, 16)):
        model.zero_grad()
        loss = model.loss(one)
        loss.backward()
        results.append([loss.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)])
    for plain, padded in zip(*results, strict=True):
        torch.testing.assert_close(padded, plain)


@every_model
@every_encoder
def test_a_sentence_gets_the_same_answer_alone_and_among_others(cls, encoder):
    model = perturb(model_of(cls, encoder=encoder, **SPELLING))
    texts = [" ".join(example.words) for example in corpus(9, seed=5)]
    together, alone = model.predict(texts, batch_size=4), [model.predict([text])[0] for text in texts]
    for a, b in zip(together, alone, strict=True):
        assert a["label"] == b["label"]
        assert a["score"] == pytest.approx(b["score"], abs=1e-5)
        assert [{**span, "score": 0} for span in a["spans"]] == [{**span, "score": 0} for span in b["spans"]]
        assert [s["score"] for s in a["spans"]] == pytest.approx([s["score"] for s in b["spans"]], abs=1e-5)


@every_model
def test_answers_have_one_shape_and_are_json(cls):
    for answer in model_of(cls).predict(["Mary saw New York .", ["a", "good", "film"]]):
        assert json.loads(json.dumps(answer)) == answer
        assert {"label", "score", "spans"} <= answer.keys()
        assert (answer["label"] is None) == (cls is SequenceTagger)
        for span in answer["spans"]:
            assert span.keys() == {"start", "end", "label", "text", "score"}
            assert 0 <= span["score"] <= 1


def test_probabilities_sum_to_one_and_the_label_has_the_greatest():
    answer = perturb(model_of(TextClassifier)).predict(["a good film"])[0]
    assert sum(answer["probabilities"].values()) == pytest.approx(1)
    assert answer["probabilities"][answer["label"]] == answer["score"] == max(answer["probabilities"].values())


def test_spans_are_where_they_are_in_the_text():
    text = "\tShe didn't see  New York, Mary!"
    model = perturb(model_of(SequenceTagger))
    for seed in range(5):
        torch.manual_seed(seed)
        torch.nn.init.normal_(model.crf.edge.bias)
        for span in model.predict([text])[0]["spans"]:
            assert text[span["start"] : span["end"]] == span["text"]
            assert span["text"].strip() == span["text"] != ""


def test_spans_of_word_lists_count_in_the_words_joined_by_spaces():
    model = model_of(SequenceTagger, transitions="static")
    with torch.no_grad():
        model.crf.emission.weight.zero_()
        model.crf.emission.bias.zero_()[model.tags.id("S-LOC")] = 9
    spans = model.predict([["in", "Paris"]])[0]["spans"]
    assert [(span["start"], span["end"], span["text"]) for span in spans] == [(0, 2, "in"), (3, 8, "Paris")]


def test_plain_tags_are_spans_of_one_word():
    tagged = [Example(["a", "cat", "sat"], tags=["DT", "NN", "VBD"]), Example(["cats"], tags=["NNS"])]
    model = model_of(SequenceTagger, tagged)
    assert model.tag_scheme == "plain"
    spans = model.predict(["a  cat"])[0]["spans"]
    assert [(span["start"], span["end"]) for span in spans] == [(0, 1), (3, 6)]
    assert {span["label"] for span in spans} <= {"DT", "NN", "VBD", "NNS"}


@pytest.mark.parametrize("cls", [SequenceTagger, JointModel])
@pytest.mark.parametrize("transitions", ["edge", "static"])
def test_predicted_tags_never_break_their_scheme(cls, transitions):
    model = model_of(cls, transitions=transitions)
    for seed in range(5):
        torch.manual_seed(seed)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter)
        for tags in model.decode_all(corpus(20, seed)).tags:
            assert list(breaks(tags, "bioes")) == []


def test_a_tagger_trained_without_o_can_still_tag_any_length():
    model = model_of(SequenceTagger, [Example(["New", "York"], tags=["B-LOC", "E-LOC"])])
    assert len(model.decode_all([Example(["Paris"])]).tags[0]) == 1


def test_the_joint_loss_is_the_sum_of_both():
    joint = perturb(model_of(JointModel))
    batch = collate(corpus(6), joint.vocabularies)
    parts = []
    for cls, head in ((TextClassifier, "classifier"), (SequenceTagger, "crf")):
        part = model_of(cls)
        own = {name: value for name, value in joint.state_dict().items() if name in part.state_dict()}
        assert any(name.startswith(head) for name in own)
        part.load_state_dict(own)
        parts.append(part.loss(batch))
    torch.testing.assert_close(joint.loss(batch), sum(parts))


def test_the_encoder_is_asked_only_for_what_is_read(monkeypatch):
    asked = []
    for cls, fields in (
        (TextClassifier, {}),
        (TextClassifier, {"readout": "attention"}),
        (SequenceTagger, {}),
        (JointModel, {}),
    ):
        model = model_of(cls, **fields)
        forward = model.encoder.forward

        def spy(*args, forward=forward, **options):
            asked.append((options["need_words"], options["need_sentence"]))
            return forward(*args, **options)

        monkeypatch.setattr(model.encoder, "forward", spy)
        model.predict(["a good film"])
    assert asked == [(False, True), (True, False), (True, False), (True, True)]


def test_boundary_words_never_reach_the_crf():
    model = perturb(model_of(SequenceTagger))
    example = corpus(1)[0]
    batch = collate([example], model.vocabularies)
    words = model(batch)[:, 1 : len(example.words) + 1]
    tags = torch.tensor([model.tags.ids(example.tags)])
    torch.testing.assert_close(model.loss(batch), -model.crf.log_likelihood(words, tags).mean())


def test_predictions_leave_mode_and_random_numbers_alone_and_need_no_gradient():
    model = model_of(TextClassifier, dropout=0.5).train()
    before = torch.get_rng_state()
    first, second = (model.predict(["a good film"]) for _ in range(2))
    assert first == second
    assert model.training
    assert torch.equal(before, torch.get_rng_state())


def test_the_same_seed_builds_the_same_model_and_leaves_random_numbers_alone():
    before = torch.get_rng_state()
    a, b, c = (model_of(JointModel, seed=seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(a["encoder.W"], c["encoder.W"])


def test_raw_text_is_cut_by_the_models_tokenizer():
    model = TextClassifier.from_examples(corpus(9), small(), tokenizer=Tokenizer(whitespace=True, contractions=False))
    assert example_of("it's good,", 0, model.tokenizer).words == ["it's", "good,"]


def test_order_is_kept_whatever_the_lengths():
    model = perturb(model_of(TextClassifier))
    texts = [" ".join(random.Random(i).choices(["good", "bad", "film"], k=1 + i * 7 % 12)) for i in range(30)]
    alone = [model.predict([text])[0]["score"] for text in texts]
    assert [answer["score"] for answer in model.predict(texts, batch_size=4)] == pytest.approx(alone, abs=1e-5)
    assert model.predict([]) == []


def test_errors_say_what_was_expected():
    model = model_of(TextClassifier)
    with pytest.raises(ValueError, match=r"expected a list of texts, got one string: predict\(\['a film'\]\)"):
        model.predict("a film")
    with pytest.raises(ValueError, match="text 1 has no words: '  '"):
        model.predict(["a", "  "])
    with pytest.raises(ValueError, match=r"encoder must be one of 'S-LSTM', .* got 'GRU'"):
        ModelConfig(encoder="GRU")
    with pytest.raises(ValueError, match=r"dropout must lie in \[0, 1\), got 1"):
        ModelConfig(dropout=1)
    with pytest.raises(ValueError, match="missing or unknown: depth"):
        ModelConfig.from_dict({**ModelConfig().to_dict(), "depth": 3})
    with pytest.raises(ValueError, match="hidden_size must be of type int, got '300'"):
        ModelConfig.from_dict({**ModelConfig().to_dict(), "hidden_size": "300"})
    with pytest.raises(ValueError, match="with labels, got one without"):
        TextClassifier.from_examples([replace(corpus(1)[0], label=None)], small())
    with pytest.raises(ValueError, match="with tags, got one without"):
        SequenceTagger.from_examples([*corpus(3), Example(["x"])], small())
    with pytest.raises(ValueError, match=r"loss needs batch\.label_ids"):
        model.loss(collate([Example(["x"])], model.vocabularies, targets=False))
