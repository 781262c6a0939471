"""How much a server takes on: what is more is refused with a message, so that memory has a bound."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Limits:
    """What is more is refused: 413 a body, 422 a text, 429 when too much waits."""

    max_batch: int = 32
    """Sentences that are computed together; 1: no batching."""
    max_wait_ms: float = 0.0
    """How long a sentence waits for company while the model is idle; while it computes, they gather by themselves."""
    max_queue: int = 1024
    """Sentences that may wait for each model."""
    max_texts: int = 256
    """Texts in one request."""
    max_words: int = 512
    """Words in one text; it may have 64 times as many characters."""
    max_body_kb: int = 1024
    """Size of a request."""
    max_connections: int = 512
    """Clients at a time; more are answered 503."""

    def check(self) -> None:
        """A ValueError for numbers with which nothing could be served."""
        for field in fields(self):
            least = 0 if field.name == "max_wait_ms" else 1
            if getattr(self, field.name) < least:
                raise ValueError(f"{field.name} must be {least} or more, got {getattr(self, field.name)}")
        if self.max_queue < self.max_texts:
            raise ValueError(
                f"max_queue must hold one request: at least max_texts = {self.max_texts}, got {self.max_queue}"
            )

    @property
    def max_characters(self) -> int:
        """Of one text: a megabyte of dots would be a million words before it is refused."""
        return 64 * self.max_words

    @property
    def max_body(self) -> int:
        """In bytes."""
        return self.max_body_kb * 1024
