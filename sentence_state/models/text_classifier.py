"""Embedding -> encoder -> classifier: one label for a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from ..data.batching import Batch
from ..data.example import Example
from ..data.indexing import Vocabularies
from ..data.predictions import Prediction
from ..encoders import Encoding
from ..heads import Classifier
from .config import ModelConfig
from .heads import best_labels, divergence, label_predictions
from .model import Decoded, Model


class TextClassifier(Model):
    """Section 3.3, classification: y = softmax(W g + b), g being what the read-out makes of the encoding."""

    targets = ("label",)

    def __init__(self, config: ModelConfig, vocabularies: Vocabularies, **options: Any) -> None:
        super().__init__(config, vocabularies, **options)
        if vocabularies.labels is None:
            raise ValueError("TextClassifier needs a vocabulary of labels, got None")
        self.labels = vocabularies.labels
        self.classifier = Classifier(self.encoder.output_size, len(self.labels), config.readout)

    def forward(self, batch: Batch, encoding: Encoding | None = None) -> Tensor:
        """Logits (B, K)."""
        needs_words, needs_sentence = self.classifier.needs
        encoding = encoding or self.encode(batch, words=needs_words, sentence=needs_sentence)
        logits: Tensor = self.classifier(*encoding, batch.lengths)
        return logits

    def loss(self, batch: Batch, consistency: float = 0.0) -> Tensor:
        batch = batch.twice() if consistency else batch
        if batch.label_ids is None:
            raise ValueError("loss needs batch.label_ids, got None")
        logits = self(batch)
        loss = F.cross_entropy(logits.float(), batch.label_ids)
        return loss + consistency * divergence(logits).mean() if consistency else loss

    def decode(self, batch: Batch) -> Decoded:
        return Decoded(labels=best_labels(self(batch), self.labels))

    def answers(self, batch: Batch, examples: Sequence[Example], encoding: Encoding | None = None) -> list[Prediction]:
        return label_predictions(self(batch, encoding), self.labels)
