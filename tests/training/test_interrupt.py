"""Ctrl-C and SIGTERM save, and a resumed run ends where it would have ended."""

import json
import math
import multiprocessing
import signal
from dataclasses import replace

import pytest

from sentence_state.models import JointModel, Model, TextClassifier
from sentence_state.training.interrupt import signals_request_stop

from .small_runs import QUICK, assert_same_weights, interrupted, train


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
