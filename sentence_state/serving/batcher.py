"""Requests of many clients -> batches of sentences of similar length, computed in one thread for each model."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ..data.example import Example
from ..data.predictions import Prediction
from .limits import Limits

LOG = logging.getLogger(__name__)
SPREAD = 1.5  # the longest and the shortest sentence of a batch are at most about this far apart ...
SLACK = 4  # ... and this many words

Answer = Callable[[Sequence[Example]], list[Prediction]]
Watch = Callable[[int, int, float], None]


class QueueFull(Exception):
    """There is no room for a request: it should come again later."""


class Closed(Exception):
    """The server is stopping and takes no new work."""


@dataclass(eq=False)
class Request:
    """The sentences of one request, and the answers that are there already."""

    answers: list[Any]
    missing: int
    future: Future[list[Any]] = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.future.set_running_or_notify_cancel()  # from here on nobody can cancel it while it is being answered

    def give(self, row: int, answer: Any) -> None:
        self.answers[row] = answer
        self.missing -= 1
        if not self.missing and not self.future.done():
            self.future.set_result(self.answers)

    def fail(self, error: BaseException) -> None:
        with suppress(InvalidStateError):  # it has failed already, perhaps this moment in another thread
            self.future.set_exception(error)


@dataclass(eq=False)
class Sentence:
    """One sentence that waits."""

    request: Request
    row: int
    example: Example
    arrived: float

    @property
    def length(self) -> int:
        return len(self.example.words)


class Batcher:
    """A queue with an end, and the thread that empties it.

    answer: what the model says of some examples; it is called in this thread only.
    prepare: called once in the thread before anything else.
    watch: told of every batch: sentences, words, seconds.
    """

    def __init__(
        self, answer: Answer, limits: Limits, prepare: Callable[[], None] | None = None, watch: Watch | None = None
    ) -> None:
        self.answer, self.limits, self.prepare, self.watch = answer, limits, prepare, watch
        self.waiting: list[Sentence] = []  # the oldest first
        self.calls: list[tuple[Callable[[], Any], Future[Any]]] = []
        self.closed = False
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.run, name="model", daemon=True)
        self.thread.start()

    def submit(self, examples: Sequence[Example]) -> Future[list[Prediction]]:
        """The answers for a request's examples, in their order; QueueFull when they do not all fit."""
        request = Request([None] * len(examples), len(examples))
        now = time.monotonic()
        with self.changed:
            self.refuse_when_full(len(examples))
            self.waiting.extend(Sentence(request, row, example, now) for row, example in enumerate(examples))
            self.changed.notify()
        return request.future

    def call(self, function: Callable[[], Any]) -> Future[Any]:
        """Something else to do with the model, in its thread, between two batches."""
        future: Future[Any] = Future()
        with self.changed:
            self.refuse_when_full(1)
            self.calls.append((function, future))
            self.changed.notify()
        return future

    def refuse_when_full(self, more: int) -> None:
        if self.closed:
            raise Closed("the server is stopping")
        if self.depth + more > self.limits.max_queue:
            raise QueueFull(f"{self.depth} sentences are waiting already, {self.limits.max_queue} may")

    @property
    def depth(self) -> int:
        """Sentences that wait; something else to do counts as one."""
        return len(self.waiting) + len(self.calls)

    @property
    def alive(self) -> bool:
        return self.thread.is_alive() and not self.closed

    def close(self) -> None:
        """Take nothing new, refuse what waits, and end the thread after the batch that is being computed."""
        self.give_up(Closed("the server is stopping"))
        self.thread.join()

    # ---- in the thread ----------------------------------------------------------------------------

    def run(self) -> None:
        try:
            if self.prepare:
                self.prepare()
        except Exception as error:
            LOG.exception("the model failed before its first request")
            self.give_up(error)
            return
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting or self.calls or self.closed)
                if self.closed:
                    return
                call = self.calls.pop(0) if self.calls else None  # one: closing has to wait for what is taken
                batch = self.gather() if self.waiting else []
            if call:
                perform(*call)
            if batch:
                self.compute(batch)

    def give_up(self, error: Exception) -> None:
        """Nobody will answer: say so to those who wait, and to all who come."""
        with self.changed:
            self.closed = True
            waiting, self.waiting, calls, self.calls = self.waiting, [], self.calls, []
            self.changed.notify()
        for sentence in waiting:
            sentence.request.fail(error)
        for _, future in calls:
            if future.set_running_or_notify_cancel():
                future.set_exception(error)

    def gather(self) -> list[Sentence]:
        """Wait for company, then take the oldest sentence and those that are about as long."""
        deadline = self.waiting[0].arrived + self.limits.max_wait_ms / 1e3
        while len(self.waiting) < self.limits.max_batch and not self.calls and not self.closed:
            left = deadline - time.monotonic()
            if left <= 0 or not self.changed.wait(left):
                break
        if self.closed:
            return []  # nobody waits any more
        batch = similar(self.waiting, self.limits.max_batch)
        taken = set(map(id, batch))
        self.waiting = [sentence for sentence in self.waiting if id(sentence) not in taken]
        return batch

    def compute(self, batch: list[Sentence]) -> None:
        start = time.monotonic()
        try:
            answers = self.answer([sentence.example for sentence in batch])
        except Exception as error:
            if len(batch) == 1:
                LOG.exception("the model failed on a sentence of %d words", batch[0].length)
                batch[0].request.fail(error)
            else:  # one sentence must not take the others with it
                for sentence in batch:
                    self.compute([sentence])
            return
        if self.watch:
            self.watch(len(batch), sum(sentence.length for sentence in batch), time.monotonic() - start)
        for sentence, answer in zip(batch, answers, strict=True):
            sentence.request.give(sentence.row, answer)


def similar(waiting: Sequence[Sentence], most: int) -> list[Sentence]:
    """The oldest sentence, and of those within SPREAD and SLACK of its length the nearest: nobody waits for ever, and
    nobody is padded to several times his length."""
    length = waiting[0].length
    low, high = length / SPREAD - SLACK, length * SPREAD + SLACK
    near = [sentence for sentence in waiting if low <= sentence.length <= high]
    near.sort(key=lambda sentence: abs(sentence.length - length))  # the oldest stays first among equals
    return near[:most]


def perform(function: Callable[[], Any], future: Future[Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return  # whoever asked has left
    try:
        future.set_result(function())
    except Exception as error:
        LOG.exception("the model failed")
        future.set_exception(error)
