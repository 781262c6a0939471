"""One encoder for two tasks: the label of a text from `sentence`, its tags from `words`, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from ..data.batching import Batch
from ..data.example import Example
from ..data.indexing import Vocabularies
from ..data.predictions import Prediction, span_predictions
from ..encoders import Encoding
from ..heads import CRF, Classifier
from .config import ModelConfig
from .heads import (
    allowed_tags,
    best_labels,
    best_tags,
    divergence,
    label_predictions,
    tag_divergence,
    tag_scores,
    tagging_loss,
)
from .model import Decoded, Model


class JointModel(Model):
    """A classifier and a CRF on the same encoding, such as the intent and the slots of an utterance; the losses are
    added."""

    targets = ("label", "tags")

    def __init__(self, config: ModelConfig, vocabularies: Vocabularies, **options: Any) -> None:
        super().__init__(config, vocabularies, **options)
        if vocabularies.labels is None or vocabularies.tags is None:
            raise ValueError("JointModel needs vocabularies of labels and of tags")
        self.labels, self.tags = vocabularies.labels, vocabularies.tags
        size = self.encoder.output_size
        self.classifier = Classifier(size, len(self.labels), config.readout)
        self.crf = CRF(size, len(self.tags), config.transitions, allowed_tags(self.tags, self.tag_scheme))

    def forward(self, batch: Batch, encoding: Encoding | None = None) -> tuple[Tensor, Tensor]:
        """Logits (B, K) and word states (B, N, H)."""
        encoding = encoding or self.encode(batch, sentence=self.classifier.needs[1])
        return self.classifier(*encoding, batch.lengths), encoding.words

    def loss(self, batch: Batch, consistency: float = 0.0) -> Tensor:
        batch = batch.twice() if consistency else batch
        if batch.label_ids is None:
            raise ValueError("loss needs batch.label_ids, got None")
        logits, words = self(batch)
        loss = F.cross_entropy(logits.float(), batch.label_ids) + tagging_loss(self.crf, words, batch).mean()
        if consistency:
            loss = loss + consistency * (divergence(logits) + tag_divergence(self.crf, words, batch)).mean()
        return loss

    def decode(self, batch: Batch) -> Decoded:
        logits, words = self(batch)
        return Decoded(best_labels(logits, self.labels), best_tags(self.crf, words, batch, self.tags))

    def answers(self, batch: Batch, examples: Sequence[Example], encoding: Encoding | None = None) -> list[Prediction]:
        logits, words = self(batch, encoding)
        found = label_predictions(logits, self.labels)
        tags = best_tags(self.crf, words, batch, self.tags)
        scores = tag_scores(self.crf, words, batch, tags, self.tags).tolist()
        for answer, example, sentence, certain in zip(found, examples, tags, scores, strict=True):
            answer["spans"] = span_predictions(example, sentence, certain, self.tag_scheme)
        return found
