"""Embedding -> encoder -> CRF: a tag for every word, spans of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from ..data.batching import Batch
from ..data.example import Example
from ..data.indexing import Vocabularies
from ..data.predictions import Prediction, span_predictions
from ..encoders import Encoding
from ..heads import CRF
from .config import ModelConfig
from .heads import allowed_tags, best_tags, tag_divergence, tag_scores, tagging_loss
from .model import Decoded, Model


class SequenceTagger(Model):
    """Section 3.3, sequence labelling: a CRF over the word states between <s> and </s>."""

    targets = ("tags",)

    def __init__(self, config: ModelConfig, vocabularies: Vocabularies, **options: Any) -> None:
        super().__init__(config, vocabularies, **options)
        if vocabularies.tags is None:
            raise ValueError("SequenceTagger needs a vocabulary of tags, got None")
        self.tags = vocabularies.tags
        allowed = allowed_tags(self.tags, self.tag_scheme)
        self.crf = CRF(self.encoder.output_size, len(self.tags), config.transitions, allowed)

    def forward(self, batch: Batch, encoding: Encoding | None = None) -> Tensor:
        """Word states (B, N, H), <s> and </s> among them."""
        return (encoding or self.encode(batch, sentence=False)).words

    def loss(self, batch: Batch, consistency: float = 0.0) -> Tensor:
        batch = batch.twice() if consistency else batch
        words = self(batch)
        loss = tagging_loss(self.crf, words, batch).mean()
        return loss + consistency * tag_divergence(self.crf, words, batch).mean() if consistency else loss

    def decode(self, batch: Batch) -> Decoded:
        return Decoded(tags=best_tags(self.crf, self(batch), batch, self.tags))

    def answers(self, batch: Batch, examples: Sequence[Example], encoding: Encoding | None = None) -> list[Prediction]:
        words = self(batch, encoding)
        tags = best_tags(self.crf, words, batch, self.tags)
        scores = tag_scores(self.crf, words, batch, tags, self.tags).tolist()
        rows = zip(examples, tags, scores, strict=True)
        return [{"label": None, "score": None, "spans": span_predictions(*row, self.tag_scheme)} for row in rows]
