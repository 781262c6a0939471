"""Training steps in CUDA graphs. On the CPU a recorder that runs the step again stands for the graph: buckets, static
buffers, capturable optimizers and the fall-back are the same."""

import gc
import math
import warnings
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch

from sentence_state.data.batching import collate
from sentence_state.encoders import ENCODERS
from sentence_state.models import JointModel, SequenceTagger, TextClassifier
from sentence_state.training import TrainingConfig, fit, graphs, loop, step
from sentence_state.training.checkpoint import collect, restore
from sentence_state.training.graphs import (
    MOST_GRAPHS,
    CapturedSteps,
    Recorder,
    StaticBatch,
    bucket,
    join,
    no_collection,
    to_bucket,
)
from sentence_state.training.optimizers import LazyAdam, SparseAdam, make_optimizers

from ..models.synthetic import corpus, small, splits

MODELS = [TextClassifier, SequenceTagger, JointModel]
CONFIG = TrainingConfig(epochs=4, patience=0, batch_size=8, learning_rate=0.01, decay=0.5, word_rate=0.3)
SPELLED = {"characters": "CNN", "case_size": 3}


class Playback(graphs.Recorder):
    """A graph's part on the CPU: `replay` computes the recorded step from its static batch."""

    def __init__(self, device=None):
        self.warmed_up = self.recorded = 0

    def warm_up(self, step):
        self.warmed_up += 1
        return step()

    def record(self, step):
        self.recorded += 1
        loss = torch.zeros(())
        return lambda: loss.copy_(step()), loss


@pytest.fixture
def played_back(monkeypatch):
    """`fit` takes the way of CUDA graphs on the CPU; gives the object that holds them."""
    made = []

    class Kept(CapturedSteps):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(graphs, "Recorder", Playback)
    monkeypatch.setattr(step, "CapturedSteps", Kept)
    monkeypatch.setattr(loop, "can_capture", lambda config, device: config.graphs)
    return made


def train(cls=TextClassifier, config=CONFIG, fields=None, dtype=torch.float64, device="cpu", **options):
    data, config = splits(), replace(config, device=device)
    model = cls.from_examples(data.train, small(**{"dropout": 0.0, **(fields or {})}), seed=config.seed).to(dtype)
    return model, fit(model, data, config, **options)


def assert_near(found, expected, tolerance):
    for name, tensor in expected.state_dict().items():
        error = (found.state_dict()[name] - tensor).norm() / tensor.norm().clamp(min=1e-3)
        assert error < tolerance, f"{name}: {error:.1e}"


def test_buckets_are_few_and_always_leave_room():
    lengths = range(1, 2049)
    buckets = [bucket(length) for length in lengths]
    assert all(size > length and size % 8 == 0 for size, length in zip(buckets, lengths, strict=True))
    assert all(size <= 1.25 * length + 8 for size, length in zip(buckets, lengths, strict=True))
    assert len({bucket(length) for length in range(1, 64)}) == 8  # MR: at most 61 positions
    assert len(set(buckets)) < MOST_GRAPHS


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("encoder", ["S-LSTM", "BiLSTM", "2 stacked CNN", "Transformer (N=6)"])
def test_more_padding_changes_neither_loss_nor_gradient(cls, encoder):
    model = cls.from_examples(corpus(9), small(encoder=encoder, **SPELLED)).double().eval()
    batch = collate(corpus(9), model.vocabularies)
    padded, shape = to_bucket(batch)
    assert shape == (9, 16, 8) == (*padded.word_ids.shape, padded.character_ids.shape[2])
    results = []
    for version in (batch, padded):
        loss = model.loss(version)
        results.append((loss, *torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)))
    for found, expected in zip(results[1], results[0], strict=True):
        if expected is not None:
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)  # float64


def test_a_static_batch_holds_what_it_was_filled_with_last():
    model = JointModel.from_examples(corpus(20), small(**SPELLED))
    batches = [to_bucket(collate(corpus(5, seed), model.vocabularies))[0] for seed in (0, 1)]
    place = StaticBatch(batches[0], torch.device("cpu"))
    addresses = [tensor.data_ptr() for tensor in place.batch.tensors().values()]
    for batch in batches:
        place.fill(batch)
        for name, tensor in batch.tensors().items():
            assert torch.equal(getattr(place.batch, name), tensor), name
    assert addresses == [tensor.data_ptr() for tensor in place.batch.tensors().values()]
    assert len(join(batches[0])) == len(place.ids)


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("lazy", [False, True])
def test_training_in_graphs_equals_eager_training(cls, lazy, played_back):
    config = replace(CONFIG, lazy_words=lazy, micro_batches=2)
    ours, result = train(cls, config, SPELLED)
    expected, expected_result = train(cls, replace(config, graphs=False), SPELLED)
    assert_near(ours, expected, 1e-6)  # the learning rate is a tensor of float32
    assert [r["loss"] for r in result.history] == pytest.approx([r["loss"] for r in expected_result.history], rel=1e-6)
    (steps,) = played_back
    assert steps.recorder.recorded == len(steps.graphs) > 0
    assert steps.recorder.warmed_up == len(steps.places) >= len(steps.graphs)


def test_a_step_that_cannot_be_captured_is_computed_without_graphs(played_back, monkeypatch):
    def fail(self, step):
        for parameter in played_back[0].parameters:
            parameter.grad = torch.ones_like(parameter)  # a capture that breaks off leaves gradients behind
        raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nmore\nand more")

    monkeypatch.setattr(Playback, "record", fail)
    with pytest.warns(UserWarning, match=r"without CUDA graphs: .* \(CUDA error: .* capturing\)$") as caught:
        ours, _ = train()
    assert len(caught) == 1
    expected, _ = train(config=replace(CONFIG, graphs=False))
    assert_near(ours, expected, 1e-6)
    assert not played_back[0].graphs


def test_beyond_the_limit_shapes_stay_eager(played_back, monkeypatch):
    monkeypatch.setattr(graphs, "MOST_GRAPHS", 1)
    ours, _ = train()
    assert len(played_back[0].graphs) == 1 < len(played_back[0].places)
    assert_near(ours, train(config=replace(CONFIG, graphs=False))[0], 1e-6)


@pytest.mark.parametrize("lazy", [False, True])
def test_a_resumed_run_in_graphs_ends_equal(lazy, played_back, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "REPORTS_A_SECOND", math.inf)
    config = replace(CONFIG, lazy_words=lazy)
    fields = {"dropout": 0.4, "word_dropout": 0.1}
    expected, _ = train(config=config, fields=fields)
    stop_in_the_second_epoch(tmp_path / "run", config, fields)
    resumed, result = train(config=config, fields=fields, out=tmp_path / "run", resume=True)
    assert result.finished
    assert_near(resumed, expected, 1e-12)  # float64


def stop_in_the_second_epoch(run, config, fields, **options):
    """Die there, with a checkpoint of the batch before."""

    def stop(progress):
        if progress.epoch == 2 and progress.batch >= 3:
            raise InterruptedError

    config = replace(config, checkpoint_seconds=0.0)
    with pytest.raises(InterruptedError):
        train(config=config, fields=fields, out=run, progress=stop, **options)


class Cycle:
    """Garbage that only Python's collector finds, and what it holds."""

    def __init__(self, held=None):
        self.held, self.itself = held, self


def make_work_for_the_collector():
    return [[] for _ in range(100_000)]


def test_no_cycle_is_collected_while_a_step_is_captured():
    with no_collection():
        gone = weakref.ref(Cycle())
        make_work_for_the_collector()
        assert gone() is not None
    assert gc.isenabled()
    make_work_for_the_collector()
    assert gone() is None
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_lazy_adam_equals_sparse_adam():
    rng = np.random.default_rng(0)
    weights = [torch.nn.Parameter(torch.ones(6, 3, dtype=torch.float64)) for _ in range(2)]
    ours = LazyAdam([{"params": weights[:1], "lr": torch.tensor(0.01, dtype=torch.float64)}])
    torchs = SparseAdam(weights[1:], lr=0.01)
    for _ in range(6):
        rows = torch.tensor(rng.choice(6, 3, replace=False))
        gradient = torch.zeros(6, 3, dtype=torch.float64)
        gradient[rows] = torch.tensor(rng.normal(size=(3, 3)))
        weights[0].grad, weights[1].grad = gradient, gradient.to_sparse(1)
        ours.step()
        torchs.step()
        torch.testing.assert_close(weights[0], weights[1], rtol=1e-6, atol=1e-9)  # steps are counted in float32


def test_rows_with_a_gradient_are_updated_by_one_kernel():
    """In Triton's interpreter, or on a card."""
    lazy_adam = pytest.importorskip("sentence_state.ops.fused.lazy_adam")
    rng, device = np.random.default_rng(0), "cuda" if torch.cuda.is_available() else "cpu"
    weights, mean, square = (torch.tensor(rng.normal(size=(5, 3))).float().abs() for _ in range(3))
    gradient = torch.tensor(rng.normal(size=(5, 3))).float()
    gradient[[0, 3]] = 0
    gradient[4, :2] = 0
    gradient[2, 1] = torch.nan
    size, betas, least = torch.tensor(0.01), (0.9, 0.999), 1e-8
    found = [tensor.to(device, copy=True) for tensor in (weights, gradient, mean, square)]
    lazy_adam.update_rows(*found, size.to(device), betas, least)
    new_mean, new_square = mean.lerp(gradient, 0.1), square.lerp(gradient.square(), 0.001)
    wanted = weights - size * new_mean / (new_square.sqrt() + least), gradient, new_mean, new_square
    for old, new, one in zip((weights, gradient, mean, square), wanted, found, strict=True):
        torch.testing.assert_close(one.cpu()[[1, 2, 4]], new[[1, 2, 4]], equal_nan=True)
        assert torch.equal(one.cpu()[[0, 3]], old[[0, 3]])


# ---- on a card ----------------------------------------------------------------------------------


@pytest.fixture
def captured(monkeypatch):
    """Real graphs; gives the objects that hold them. A step that cannot be captured is an error."""
    made = []

    class Kept(CapturedSteps):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(step, "CapturedSteps", Kept)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="training goes on without CUDA graphs")
        yield made


@pytest.mark.parametrize(("before", "after"), [(False, True), (True, False)], ids=["to graphs", "from graphs"])
def test_lazily_learned_words_go_on_with_the_other_optimizer(before, after):
    """A run may be begun on a CPU, with SparseAdam, and resumed on a GPU, with LazyAdam, or the other way round."""
    config = replace(CONFIG, lazy_words=True)
    device, batch = torch.device("cpu"), None

    def trained(capturable, saved=None):
        nonlocal batch
        model = TextClassifier.from_examples(splits().train, small(dropout=0.0), seed=0)
        batch = collate(splits().train[:8], model.vocabularies)
        model.embedding.words.sparse = not capturable
        optimizers = make_optimizers(model, config, capturable)
        if saved is not None:
            restore(saved, model, optimizers, device)
        for _ in range(2):
            model.loss(batch).backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
        return model, collect(model, optimizers, device)

    expected, _ = trained(before, trained(before)[1])
    found, _ = trained(after, trained(before)[1])
    assert_near(found, expected, 1e-5)


ON_A_CARD = {"dtype": torch.float32, "device": "cuda"}
FAMILIES = ["S-LSTM", "BiLSTM", "CNN", "Transformer (N=6)"]


@pytest.mark.gpu
@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("encoder", FAMILIES)
def test_captured_training_equals_eager_training_on_a_card(cls, encoder, captured, monkeypatch):
    fields = {"encoder": encoder, "hidden_size": 32, **SPELLED}
    fused = encoder == "S-LSTM"  # its kernels know no float64, in which Adam has no rounding to enlarge
    place, tolerance = {**ON_A_CARD, "dtype": torch.float32 if fused else torch.float64}, 1e-5 if fused else 1e-9
    ours, result = train(cls, fields=fields, **place)
    monkeypatch.setattr(graphs, "MOST_GRAPHS", 0)
    expected, expected_result = train(cls, fields=fields, **place)
    assert len(captured[0].graphs) > 0 == len(captured[1].graphs)
    assert_near(ours, expected, tolerance)
    losses, expected_losses = ([record["loss"] for record in r.history] for r in (result, expected_result))
    assert losses == pytest.approx(expected_losses, rel=tolerance)
    if encoder.startswith("Transformer"):  # its own dropout draws other masks for batches of other widths
        return
    _, unpadded = train(cls, replace(CONFIG, graphs=False), fields, **place)
    assert losses == pytest.approx([record["loss"] for record in unpadded.history], rel=1e-2 if fused else 1e-7)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("encoder", "precision"), [(e, "float32") for e in ENCODERS] + [(e, "bfloat16") for e in FAMILIES]
)
def test_every_encoder_is_captured_with_dropout_on_a_card(encoder, precision, captured):
    fields = {"encoder": encoder, "dropout": 0.3, "word_dropout": 0.1, "step_dropout": 0.1, "output_dropout": 0.1}
    config = replace(CONFIG, precision=precision, lazy_words=True, epochs=6)
    _, result = train(JointModel, config, {**fields, "characters": "BiLSTM"}, **ON_A_CARD)
    assert captured[0].graphs
    losses = [record["loss"] for record in result.history]
    assert losses[-1] < losses[0]


@pytest.mark.gpu
@pytest.mark.parametrize("fields", [{"cell": "coupled", "encoder": "BiLSTM"}, {"variant": "released"}, {"window": 2}])
def test_rare_configurations_are_captured_on_a_card(fields, captured):
    train(SequenceTagger, fields={"word_size": 12, **fields}, **ON_A_CARD)
    assert captured[0].graphs


@pytest.mark.gpu
@pytest.mark.parametrize("lazy", [False, True])
def test_a_resumed_run_goes_on_as_if_never_stopped_on_a_card(lazy, captured, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "REPORTS_A_SECOND", math.inf)
    config, fields = replace(CONFIG, lazy_words=lazy), {"dropout": 0.4, "word_dropout": 0.1}
    expected, _ = train(config=config, fields=fields, **ON_A_CARD)
    stop_in_the_second_epoch(tmp_path / "run", config, fields, **ON_A_CARD)
    resumed, _ = train(config=config, fields=fields, out=tmp_path / "run", resume=True, **ON_A_CARD)
    assert_near(resumed, expected, 1e-5)  # float32: the same random numbers


@pytest.mark.gpu
def test_a_step_that_waits_for_the_gpu_is_computed_without_graphs_on_a_card(monkeypatch):
    class Waiting(TextClassifier):
        def loss(self, batch):
            loss = super().loss(batch)
            float(loss)
            return loss

    fields = {"dropout": 0.3}
    with pytest.warns(UserWarning, match="without CUDA graphs"):
        ours, result = train(Waiting, fields=fields, **ON_A_CARD)
    monkeypatch.setattr(graphs, "MOST_GRAPHS", 0)
    expected, _ = train(TextClassifier, fields=fields, **ON_A_CARD)
    assert result.finished
    assert_near(ours, expected, 1e-5)  # float32: the failed capture drew no random number


@pytest.mark.gpu
def test_graphs_of_a_model_that_is_gone_do_not_spoil_a_capture_on_a_card():
    number, old = torch.zeros((), device="cuda"), []

    def step():
        if old:
            Cycle(old.pop())
            make_work_for_the_collector()
        return number + 1

    old.append(Recorder(torch.device("cuda")).record(step)[0])
    replay, loss = Recorder(torch.device("cuda")).record(step)
    assert not old
    replay()
    assert loss.item() == 1
