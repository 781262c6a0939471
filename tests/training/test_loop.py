"""fit(): what it learns, keeps and reports."""

import gc
import math
import threading
from dataclasses import replace

import pytest
import torch
from torch.optim import Adam

from sentence_state.data.batching import collate
from sentence_state.data.example import Splits
from sentence_state.models import JointModel, SequenceTagger, TextClassifier
from sentence_state.training import Progress, TrainingConfig, TrainingError, evaluate, fit
from sentence_state.training.optimizers import clip_gradients, make_optimizers
from sentence_state.training.step import Step, pieces

from ..models.synthetic import corpus, small, splits
from .small_runs import QUICK, assert_same_weights, train

MODELS = [TextClassifier, SequenceTagger, JointModel]


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("encoder", ["S-LSTM", "BiLSTM", "CNN"])
def test_a_small_rule_is_learned(cls, encoder):
    config = replace(QUICK, epochs=12, patience=0, learning_rate=0.02)
    data = splits(train=150, test=40)
    _, result = train(cls, config, data, {"encoder": encoder, "transitions": "static"})
    losses = [record["loss"] for record in result.history]
    assert losses[-1] < 0.3 * losses[0]
    assert result.test.score > 0.9


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("lazy", [False, True])
def test_two_runs_are_equal_bit_by_bit(cls, lazy):
    config = replace(QUICK, lazy_words=lazy, l2=0.001)
    fields = {"word_dropout": 0.2, "step_dropout": 0.2, "dropout": 0.5, "characters": "CNN"}
    (a, first), (b, second) = (train(cls, config, fields=fields) for _ in range(2))
    assert_same_weights(a, b)
    assert [record["loss"] for record in first.history] == [record["loss"] for record in second.history]
    other, _ = train(cls, replace(config, seed=1), fields=fields)
    assert not torch.equal(a.encoder.W, other.encoder.W)


def test_a_run_folder_changes_no_weight(tmp_path):
    (a, _), (b, _) = train(), train(out=tmp_path / "run", config=replace(QUICK, checkpoint_seconds=0))
    assert_same_weights(a, b)


def test_random_numbers_of_the_caller_are_left_alone():
    before = torch.get_rng_state()
    train()
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("lazy", [False, True])
def test_a_batch_in_pieces_gives_the_same_step(cls, lazy):
    models = []
    for parts in (1, 3):
        config = replace(QUICK, micro_batches=parts, lazy_words=lazy, epochs=1)
        model = cls.from_examples(splits().train, small(dropout=0.0)).double()
        fit(model, splits(), config)
        models.append(model)
    for name, tensor in models[0].state_dict().items():
        torch.testing.assert_close(models[1].state_dict()[name], tensor, rtol=1e-9, atol=1e-9)  # float64


def test_pieces_of_a_batch_are_the_batch():
    model = JointModel.from_examples(corpus(10), small())
    batch = collate(corpus(10), model.vocabularies)
    parts = list(pieces(batch, 4))
    assert [len(part) for part in parts] == [3, 3, 3, 1]
    for name in ("word_ids", "lengths", "label_ids", "tag_ids", "positions"):
        assert torch.equal(torch.cat([getattr(part, name) for part in parts]), getattr(batch, name))


def test_bfloat16_trains(monkeypatch):
    monkeypatch.setattr("sentence_state.training.step.has_products_of", lambda dtype: True)
    _, result = train(JointModel, replace(QUICK, precision="bfloat16", epochs=4, patience=0))
    losses = [record["loss"] for record in result.history]
    assert losses[-1] < losses[0]


def test_bfloat16_is_float32_on_a_processor_without_fast_products_of_it(monkeypatch):
    monkeypatch.setattr("sentence_state.training.step.has_products_of", lambda dtype: False)
    notes, config = [], replace(QUICK, epochs=1)
    low, _ = train(config=replace(config, precision="bfloat16"), progress=lambda p: notes.append(p.note))
    precise, _ = train(config=config)
    assert_same_weights(low, precise)
    assert notes[0] == "epoch 1: this processor has no fast products of bfloat16: training in float32"


def test_consistency_trains_and_moves_the_weights_elsewhere():
    fields, config = {"dropout": 0.3}, replace(QUICK, epochs=4, patience=0)
    plain, _ = train(config=config, fields=fields)
    other, result = train(config=replace(config, consistency=1.0), fields=fields)
    losses = [record["loss"] for record in result.history]
    assert losses[-1] < losses[0]
    assert not torch.equal(plain.classifier.output.weight, other.classifier.output.weight)


def test_a_model_whose_loss_knows_no_consistency_trains():
    class Own(TextClassifier):
        def loss(self, batch):
            return super().loss(batch)

    _, result = train(Own)
    assert result.finished


def test_the_loop_equals_adam_written_out():
    """Three steps of Adam by hand, with clipping, L2, decay and a slower rate for words."""
    config = replace(QUICK, clip=0.01, l2=0.01, decay=0.5, word_rate=0.1, epochs=3, batch_size=100, patience=0)
    data = Splits(corpus(12), [])
    model = TextClassifier.from_examples(data.train, small(dropout=0.0)).double()
    by_hand = TextClassifier.from_examples(data.train, small(dropout=0.0)).double()
    fit(model, data, config)
    batch = collate(data.train, by_hand.vocabularies)
    moments = {name: (torch.zeros_like(p), torch.zeros_like(p)) for name, p in by_hand.named_parameters()}
    for step in range(1, 4):
        gradients = dict(
            zip(moments, torch.autograd.grad(by_hand.loss(batch), list(by_hand.parameters())), strict=True)
        )
        norm = torch.cat([g.flatten() for g in gradients.values()]).norm()
        assert norm > config.clip
        for name, parameter in by_hand.named_parameters():
            words = name == "embedding.words.weight"
            g = gradients[name] * config.clip / norm
            if parameter.dim() > 1 and not words:
                g = g + config.l2 * parameter.detach()
            m, v = moments[name]
            m.mul_(0.9).add_(0.1 * g)
            v.mul_(0.999).add_(0.001 * g**2)
            update = (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-8)
            rate = config.learning_rate * 0.5 ** (step - 1) * (0.1 if words else 1)
            parameter.data -= rate * update
    for name, tensor in by_hand.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], tensor, rtol=1e-8, atol=1e-10)  # float64


def test_lazy_words_move_only_when_they_occur_and_clip_as_dense_ones_do():
    norms = []
    for lazy in (False, True):
        config = replace(QUICK, lazy_words=lazy)
        model = TextClassifier.from_examples(corpus(20), small(dropout=0.0))
        model.embedding.words.sparse = lazy
        optimizers = make_optimizers(model, config)
        batch = collate(corpus(2), model.vocabularies)
        before = model.embedding.words.weight.detach().clone()
        for _ in range(2):
            model.loss(batch).backward()
            norms.append(float(clip_gradients(list(model.parameters()), 0.01)))
            clipped = [p.grad.to_dense() if p.grad.is_sparse else p.grad for p in model.parameters()]
            assert float(torch.cat([g.flatten() for g in clipped]).norm()) == pytest.approx(0.01, rel=1e-3)
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
        moved = (model.embedding.words.weight != before).any(dim=1).nonzero().flatten().tolist()
        assert moved == sorted(set(batch.word_ids.flatten().tolist()) - {0})
    assert norms[0] == pytest.approx(norms[2])


def test_frozen_words_stay():
    data = splits()
    for lazy in (False, True):
        model = TextClassifier.from_examples(data.train, small(freeze_words=True))
        before = model.embedding.words.weight.clone()
        fit(model, data, replace(QUICK, lazy_words=lazy))
        assert torch.equal(model.embedding.words.weight, before)


def test_the_best_weights_on_dev_are_kept_and_training_stops_early():
    data = splits(train=20)
    config = TrainingConfig(epochs=30, patience=2, batch_size=8, learning_rate=0.03)
    model, result = train(config=config, data=data)
    scores = [record["dev"]["accuracy"] for record in result.history]
    assert result.best_epoch == scores.index(max(scores)) + 1
    assert len(scores) == min(30, result.best_epoch + 2)
    assert result.best_score == max(scores) == result.dev.score == evaluate(model, data.dev).score


def test_without_dev_the_last_weights_are_kept_and_nothing_stops_early():
    data = Splits(corpus(20), [])
    _, result = train(data=data, config=replace(QUICK, epochs=4, patience=1))
    assert (result.best_epoch, result.best_score, result.dev, result.test) == (4, None, None, None)


def test_the_learning_rate_decays_once_an_epoch():
    _, result = train(config=replace(QUICK, epochs=3, patience=0, decay=0.5))
    assert [record["learning_rate"] for record in result.history] == [0.01, 0.005, 0.0025]


def test_progress_is_reported_after_batches_and_epochs():
    seen: list[Progress] = []
    _, result = train(progress=seen.append)
    assert [event.record for event in seen if event.record] == result.history
    assert {event.epoch for event in seen} == {1, 2}
    assert all(0 < event.batch <= event.batches == 8 and event.epochs == 2 for event in seen)
    assert seen[-1].best_score == result.best_score


def test_a_loss_that_is_no_number_stops_with_a_word():
    data = splits()
    model = TextClassifier.from_examples(data.train, small())
    with torch.no_grad():
        model.classifier.output.bias.fill_(math.nan)
    with pytest.raises(TrainingError, match=r"the loss is no number in epoch 1, batch 1\. Try a lower learning rate"):
        fit(model, data, QUICK)


def things_of_a_training():
    return [thing for thing in gc.get_objects() if type(thing) in (Step, Adam)]


def test_nothing_of_a_training_is_left_when_it_is_over():
    """Graphs and optimizers hold much of a card's memory, which the next training wants."""
    train()  # modules that PyTorch imports meanwhile keep what is there
    gc.collect()
    gc.disable()  # it would look for circles at any time, or not before the next training
    of_others = things_of_a_training()  # tests before this one, whose errors are kept for the report
    try:
        train()
        assert len(things_of_a_training()) == len(of_others)
    finally:
        gc.enable()


def test_training_runs_in_another_thread():
    results = []
    thread = threading.Thread(target=lambda: results.append(train()[1]))
    thread.start()
    thread.join()
    assert results[0].finished


def test_errors_say_what_was_expected():
    with pytest.raises(ValueError, match="epochs must be at least 1, got 0"):
        TrainingConfig(epochs=0)
    with pytest.raises(ValueError, match="l2 must not be negative, got -1"):
        TrainingConfig(l2=-1)
    with pytest.raises(ValueError, match="learning_rate must be positive, got 0"):
        TrainingConfig(learning_rate=0)
    for name in ("learning_rate", "decay", "l2", "clip", "consistency", "word_rate", "checkpoint_seconds"):
        with pytest.raises(ValueError, match=f"{name} must be finite, got inf"):  # JSON has no such number
            TrainingConfig(**{name: math.inf})
    with pytest.raises(ValueError, match="resume needs out"):
        train(resume=True)
    with pytest.raises(ValueError, match="there is no example to train on"):
        fit(TextClassifier.from_examples(corpus(4), small()), Splits([], []))
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="device 'cuda' was asked for, but PyTorch finds no GPU here"):
            train(config=replace(QUICK, device="cuda"))


def test_without_boundaries_no_sentence_has_start_and_end():
    examples = corpus(12)
    model = SequenceTagger.from_examples(examples, small(boundaries=False))
    batch = next(model.reading(examples, 12))
    assert not batch.boundaries
    assert batch.lengths.tolist() == sorted(len(example.words) for example in examples)
    fit(model, Splits(examples, examples), replace(QUICK, epochs=1))
    found = model.decode_all(examples).tags
    assert [len(tags) for tags in found] == [len(example.words) for example in examples]
    assert model.predict(["Mary was in Paris"])[0].keys() >= {"spans"}
