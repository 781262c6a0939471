"""What the models do with a head: the classifier's answers, and the CRF's between <s> and </s>."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..data.batching import Batch
from ..data.predictions import Prediction, label_prediction
from ..data.vocabulary import Vocabulary
from ..heads import CRF, AllowedTransitions, allowed_transitions
from ..ops.equations import length_mask


def allowed_tags(tags: Vocabulary, scheme: str | None) -> AllowedTransitions | None:
    """What the scheme allows; None for tags that are no spans."""
    return allowed_transitions(tags.words, scheme.upper()) if scheme in ("bio", "bioes") else None


def inner_words(words: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """The words without <s> and </s>, and their number: what the CRF sees."""
    return (words[:, 1:-1], batch.lengths - 2) if batch.boundaries else (words, batch.lengths)


def tagging_loss(crf: CRF, words: Tensor, batch: Batch) -> Tensor:
    """-log P(tags) of each sentence, (B,)."""
    if batch.tag_ids is None:
        raise ValueError("loss needs batch.tag_ids, got None")
    tags = batch.tag_ids[:, 1:-1] if batch.boundaries else batch.tag_ids
    words, lengths = inner_words(words, batch)
    return -crf.log_likelihood(words, tags, lengths)


def best_tags(crf: CRF, words: Tensor, batch: Batch, vocabulary: Vocabulary) -> list[list[str]]:
    words, lengths = inner_words(words, batch)
    rows = crf.decode(words, lengths)[0].tolist()
    return [[vocabulary.word(tag) for tag in row[:length]] for row, length in zip(rows, lengths.tolist(), strict=True)]


def tag_scores(crf: CRF, words: Tensor, batch: Batch, tags: Sequence[Sequence[str]], vocabulary: Vocabulary) -> Tensor:
    """P(y_i) of each predicted tag, (B, N)."""
    words, lengths = inner_words(words, batch)
    marginals = crf.marginals(words, lengths)  # (B, N, K)
    ids = torch.zeros(marginals.shape[:2], dtype=torch.long)
    for row, sentence in enumerate(tags):
        ids[row, : len(sentence)] = torch.tensor([vocabulary.index[tag] for tag in sentence])
    return marginals.cpu().gather(2, ids[..., None]).squeeze(2)


def divergence(scores: Tensor) -> Tensor:
    """Kullback and Leibler's between the softmaxes of the first and the second half of a batch, the mean of both
    directions: (2 B, .., K) -> (B, ..)."""
    log_p, log_q = scores.float().log_softmax(-1).chunk(2)
    return ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1) / 2


def tag_divergence(crf: CRF, words: Tensor, batch: Batch) -> Tensor:
    """The divergence of the words' own scores for their tags, added up over each sentence: (2 B, N, H) -> (B,)."""
    words, lengths = inner_words(words, batch)
    apart = divergence(crf.local_scores(words))
    if apart.dim() == 3:
        apart = apart.mean(-1)  # over the tags of the word before
    return apart.masked_fill(~length_mask(lengths, words.shape[1]).chunk(2)[0], 0).sum(-1)


def best_labels(logits: Tensor, vocabulary: Vocabulary) -> list[str]:
    return [vocabulary.word(label) for label in logits.argmax(-1).tolist()]


def label_predictions(logits: Tensor, vocabulary: Vocabulary) -> list[Prediction]:
    """(B, K) -> the best label, its probability, and those of all labels."""
    return [label_prediction(row, vocabulary) for row in logits.float().softmax(-1).tolist()]
