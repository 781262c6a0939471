"""What /metrics tells Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from .batcher import Watch
from .service import Service

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128)
NAME = "sentence_state"


class Metrics:
    """Counts of one server, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # memory, open files
        registry = self.registry
        self.requests = Counter(f"{NAME}_requests", "Answers, by status.", ["path", "status"], registry=registry)
        self.seconds = Histogram(
            f"{NAME}_request_seconds", "Time to an answer.", ["path"], buckets=SECONDS, registry=registry
        )
        self.batches = Histogram(
            f"{NAME}_batch_sentences", "Sentences of a batch.", ["model"], buckets=SENTENCES, registry=registry
        )
        self.batch_seconds = Histogram(
            f"{NAME}_batch_seconds", "Time to compute a batch.", ["model"], buckets=SECONDS, registry=registry
        )
        self.words = Counter(f"{NAME}_words", "Words that were read.", ["model"], registry=registry)
        self.queue = Gauge(f"{NAME}_queue_sentences", "Sentences that wait.", ["model"], registry=registry)

    def watch(self, model: str) -> Watch:
        """To be told of the batches of a model."""

        def batch(sentences: int, words: int, seconds: float) -> None:
            self.batches.labels(model).observe(sentences)
            self.batch_seconds.labels(model).observe(seconds)
            self.words.labels(model).inc(words)

        return batch

    def watch_queues(self, services: Sequence[Service]) -> None:
        def depth(service: Service) -> Callable[[], float]:
            return lambda: float(service.batcher.depth)

        for service in services:
            self.queue.labels(service.name).set_function(depth(service))

    def request(self, path: str, status: int, seconds: float) -> None:
        self.requests.labels(path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)
