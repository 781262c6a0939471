import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sentence_state.data import Example
from sentence_state.serving.batcher import Batcher, Closed, QueueFull
from sentence_state.serving.limits import Limits


def of_length(length: int, name: str = "w") -> Example:
    return Example([name] * length)


class Recorder:
    """A model that answers a sentence with its words, notes its batches, and can be held up."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.threads: set[int] = set()
        self.go = threading.Event()
        self.go.set()
        self.entered = threading.Event()

    def __call__(self, examples):
        self.entered.set()
        assert self.go.wait(10)
        self.threads.add(threading.get_ident())
        self.batches.append([len(example.words) for example in examples])
        if any("poison" in example.words for example in examples):
            raise RuntimeError("poison")
        return [{"label": " ".join(example.words)} for example in examples]


@pytest.fixture
def model():
    return Recorder()


def make(model, **limits) -> Batcher:
    return Batcher(model, Limits(**{"max_wait_ms": 0, **limits}))


def hold_up(batcher: Batcher, model: Recorder):
    """Keep the thread busy with one sentence, so that what comes next has to wait."""
    model.go.clear()
    model.entered.clear()
    first = batcher.submit([of_length(1)])
    assert model.entered.wait(10)
    return first


def test_every_request_gets_its_own_answers_in_its_order(model):
    batcher = make(model, max_wait_ms=1)
    with ThreadPoolExecutor(16) as clients:

        def ask(client):
            texts = [f"{client}-{row}" for row in range(client % 5 + 1)]
            answers = batcher.submit([of_length(1 + (client + i) % 7, text) for i, text in enumerate(texts)]).result(10)
            return [answer["label"].split()[0] for answer in answers] == texts

        assert all(clients.map(ask, range(200)))
    assert len(model.threads) == 1
    assert sum(map(len, model.batches)) == sum(client % 5 + 1 for client in range(200))
    batcher.close()


def test_sentences_of_similar_length_are_computed_together_the_oldest_first(model):
    batcher = make(model, max_batch=4)
    hold_up(batcher, model)
    futures = [batcher.submit([of_length(length)]) for length in (40, 3, 41, 4, 100, 39, 42, 5, 38)]
    model.go.set()
    for future in futures:
        future.result(10)
    assert model.batches == [[1], [40, 41, 39, 42], [3, 4, 5], [100], [38]]
    batcher.close()


def test_a_sentence_waits_for_company_but_not_longer_than_it_may(model):
    batcher = make(model, max_wait_ms=2000, max_batch=3)
    start = time.monotonic()
    futures = [batcher.submit([of_length(2)]) for _ in range(3)]
    for future in futures:
        future.result(10)
    full = time.monotonic()
    assert full - start < 1.9  # three are a full batch: nobody waits on
    batcher.submit([of_length(2)]).result(10)
    assert model.batches == [[2, 2, 2], [2]]
    assert 2 <= time.monotonic() - full < 8
    batcher.close()


def test_a_request_that_does_not_fit_into_the_queue_is_refused_whole(model):
    batcher = make(model, max_queue=4, max_texts=4)
    first = hold_up(batcher, model)
    waiting = batcher.submit([of_length(1)] * 3)
    assert batcher.depth == 3
    with pytest.raises(QueueFull, match="3 sentences are waiting already, 4 may"):
        batcher.submit([of_length(1)] * 2)
    assert batcher.depth == 3
    model.go.set()
    assert len(first.result(10)) == 1
    assert len(waiting.result(10)) == 3
    batcher.close()


def test_closing_ends_after_the_batch_that_is_computed_and_refuses_the_rest(model):
    batcher = make(model, max_batch=2)
    first = hold_up(batcher, model)
    waiting = [*(batcher.submit([of_length(9)]) for _ in range(7)), batcher.call(lambda: "called")]
    closing = threading.Thread(target=batcher.close)
    closing.start()
    for future in waiting:
        with pytest.raises(Closed, match="the server is stopping"):
            future.result(10)  # they hear of it at once
    with pytest.raises(Closed):
        batcher.submit([of_length(1)])
    assert closing.is_alive()
    model.go.set()
    closing.join(10)
    assert len(first.result(0)) == 1
    assert model.batches == [[1]]
    assert not batcher.thread.is_alive()
    batcher.close()  # twice is once


def test_closing_waits_for_one_call_and_not_for_those_behind_it(model):
    batcher, holding, running, go = make(model), threading.Event(), threading.Event(), threading.Event()
    batcher.call(lambda: go.wait(10))
    runs = batcher.call(lambda: (running.set(), holding.wait(10)))
    behind = batcher.call(lambda: "called")
    go.set()
    assert running.wait(10)
    closing = threading.Thread(target=batcher.close)
    closing.start()
    with pytest.raises(Closed):
        behind.result(10)
    holding.set()
    closing.join(10)
    assert runs.result(0) == (None, True)


def test_closing_does_not_wait_for_company(model):
    batcher = make(model, max_wait_ms=60_000)
    alone = batcher.submit([of_length(2)])
    time.sleep(0.1)  # it waits for others now
    start = time.monotonic()
    batcher.close()
    assert time.monotonic() - start < 10
    with pytest.raises(Closed):
        alone.result(0)
    assert model.batches == []


def test_a_sentence_on_which_the_model_fails_does_not_take_the_others_with_it(model):
    batcher = make(model)
    hold_up(batcher, model)
    good, bad, also_good = (batcher.submit([of_length(2, name)]) for name in ("a", "poison", "b"))
    model.go.set()
    assert good.result(10) == [{"label": "a a"}]
    assert also_good.result(10) == [{"label": "b b"}]
    with pytest.raises(RuntimeError, match="poison"):
        bad.result(10)
    assert batcher.submit([of_length(1)]).result(10) == [{"label": "w"}]
    batcher.close()


def test_something_else_is_done_in_the_models_thread_between_batches(model):
    batcher = make(model)
    batcher.submit([of_length(1)]).result(10)
    assert {batcher.call(threading.get_ident).result(10)} == model.threads
    with pytest.raises(ZeroDivisionError):
        batcher.call(lambda: 1 // 0).result(10)
    assert batcher.alive
    batcher.close()


def test_a_model_that_fails_at_the_start_refuses_instead_of_keeping_requests(model):
    started = threading.Event()

    def prepare():
        assert started.wait(10)
        raise RuntimeError("no memory")

    batcher = Batcher(model, Limits(max_wait_ms=0), prepare)
    waiting, asked = batcher.submit([of_length(2)]), batcher.call(lambda: 1)
    started.set()
    for future in (waiting, asked):
        with pytest.raises(RuntimeError, match="no memory"):
            future.result(10)
    batcher.thread.join(10)
    assert not batcher.alive
    with pytest.raises(Closed):
        batcher.submit([of_length(1)])


def test_clients_that_leave_do_not_stop_the_model(model):
    batcher = make(model)
    first = hold_up(batcher, model)
    left, called = batcher.submit([of_length(3)]), batcher.call(lambda: 1)
    assert not left.cancel()  # it is computed, and nobody reads it
    assert called.cancel()
    model.go.set()
    assert first.result(10)
    assert left.result(10)
    assert batcher.submit([of_length(2, "still")]).result(10)[0]["label"] == "still still"
    batcher.close()
