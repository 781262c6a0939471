import json
import math
import multiprocessing
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sentence_state import ModelConfig
from sentence_state.data.batching import collate
from sentence_state.data.example import Splits
from sentence_state.models import JointModel, Model, SequenceTagger, TextClassifier
from sentence_state.training import Progress, TrainingConfig, TrainingError, evaluate, fit, preset
from sentence_state.training.config import suit_to_size
from sentence_state.training.interrupt import signals_request_stop
from sentence_state.training.optimizers import clip_gradients, make_optimizers
from sentence_state.training.step import pieces

from ..models.synthetic import corpus, small, splits

MODELS = [TextClassifier, SequenceTagger, JointModel]
QUICK = TrainingConfig(epochs=2, batch_size=8, learning_rate=0.01, l2=0.0)


def train(cls=TextClassifier, config=QUICK, data=None, fields=None, **options):
    """A new model, trained: (model, result)."""
    data = data or splits()
    model = cls.from_examples(data.train, small(**(fields or {})), seed=config.seed)
    return model, fit(model, data, config, **options)


def assert_same_weights(a: Model, b: Model):
    for name, tensor in a.state_dict().items():
        assert torch.equal(tensor, b.state_dict()[name]), name


def test_the_defaults_are_the_papers():
    config = TrainingConfig()
    assert (config.learning_rate, config.decay, config.clip) == (0.001, 0.97, 3.0)
    assert (config.batch_size, config.l2, config.word_rate, config.lazy_words) == (10, 0.001, 1.0, False)
    assert TrainingConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


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


def interrupted(tmp_path, at: int, number: int = signal.SIGINT, **options):
    """A run that gets Ctrl-C, or another signal, at a batch."""
    batches = 0

    def progress(event):
        nonlocal batches
        batches += 1
        if batches == at:
            signal.raise_signal(number)

    return train(out=tmp_path / "run", progress=progress, **options)


@pytest.mark.parametrize("at", [1, 3, 10, 17])
@pytest.mark.parametrize("cls", [TextClassifier, JointModel])
def test_ctrl_c_saves_and_the_resumed_run_ends_bit_equal(cls, at, tmp_path, monkeypatch):
    monkeypatch.setattr("sentence_state.training.loop.REPORTS_A_SECOND", math.inf)
    options = {"cls": cls, "config": replace(QUICK, epochs=3), "fields": {"dropout": 0.5, "word_dropout": 0.1}}
    expected, whole = train(**options)
    handler = signal.getsignal(signal.SIGINT)
    _, stopped = interrupted(tmp_path, at, **options)
    assert not stopped.finished
    assert stopped.test is None
    assert signal.getsignal(signal.SIGINT) is handler
    model, result = train(out=tmp_path / "run", resume=True, **options)
    assert result.finished
    assert_same_weights(model, expected)
    assert_same_weights(Model.from_pretrained(tmp_path / "run"), expected)
    for ours, theirs in zip(result.history, whole.history, strict=True):
        assert {**ours, "seconds": 0} == {**theirs, "seconds": 0}
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == result.history


@pytest.fixture
def python_hears_ctrl_c():
    """A shell's background job is started deaf to it, and Python then leaves it so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("python_hears_ctrl_c")
def test_a_second_ctrl_c_stops_at_once(tmp_path):
    def progress(event):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(out=tmp_path / "run", progress=progress)


@pytest.fixture
def sigterm_would_end_this():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("sigterm_would_end_this")
def test_sigterm_saves_and_the_resumed_run_ends_bit_equal(tmp_path, monkeypatch):
    monkeypatch.setattr("sentence_state.training.loop.REPORTS_A_SECOND", math.inf)
    expected, _ = train()
    _, stopped = interrupted(tmp_path, 3, signal.SIGTERM)
    assert not stopped.finished
    model, result = train(out=tmp_path / "run", resume=True)
    assert result.finished
    assert_same_weights(model, expected)


@pytest.mark.usefixtures("python_hears_ctrl_c", "sigterm_would_end_this")
def test_sigterm_twice_is_as_once_and_ctrl_c_after_it_stops_at_once():
    with signals_request_stop() as stop:
        assert not stop
        signal.raise_signal(signal.SIGTERM)
        assert stop
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("sigterm_would_end_this")
def test_sigterm_is_left_to_torchrun_and_to_those_who_treat_it_themselves():
    with signals_request_stop(together=True):
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with signals_request_stop():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    signal.signal(signal.SIGTERM, before)


def train_for_ever(began):
    train(config=replace(QUICK, epochs=10**6, patience=0), progress=lambda event: began.set())


def test_a_process_of_multiprocessing_that_is_terminated_while_it_trains_ends_at_once():
    context = multiprocessing.get_context("spawn")
    began = context.Event()
    worker = context.Process(target=train_for_ever, args=(began,))
    worker.start()
    assert began.wait(60)
    worker.terminate()
    worker.join(10)
    assert worker.exitcode == -signal.SIGTERM


def test_training_runs_in_another_thread():
    results = []
    thread = threading.Thread(target=lambda: results.append(train()[1]))
    thread.start()
    thread.join()
    assert results[0].finished


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


def test_errors_say_what_was_expected():
    with pytest.raises(ValueError, match="epochs must be at least 1, got 0"):
        TrainingConfig(epochs=0)
    with pytest.raises(ValueError, match="l2 must not be negative, got -1"):
        TrainingConfig(l2=-1)
    with pytest.raises(ValueError, match="learning_rate must be positive, got 0"):
        TrainingConfig(learning_rate=0)
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
