"""Section 3.2's x_i: the vector of a word, with features of its characters and its case beside it."""

from __future__ import annotations

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..data.batching import Batch
from ..data.case import CASES, PAD_CASE
from ..data.indexing import Vocabularies
from ..data.vocabulary import END_ID, PAD_ID, UNKNOWN_ID
from ..encoders import CNN, BiLSTM
from .config import ModelConfig

# A standard deviation of 0.4. Joint dev score on the sample corpus, S-LSTM of 64, 10 epochs, mean of 3 seeds:
# 0.125 gives 46.6, 0.4 gives 51.6, 1.0 gives 49.9.
SPREAD = 0.7


class WordEmbedding(nn.Module):
    """Batch -> x (B, N, D): [word vector; character features; case vector] with dropout.

    vectors: (words of the vocabulary, word_size) to start from. The character weights need `vocabularies.characters`.
    """

    def __init__(
        self, config: ModelConfig, vocabularies: Vocabularies, vectors: NDArray | Tensor | None = None
    ) -> None:
        super().__init__()
        shape = (len(vocabularies.words), config.word_size)
        self.words = nn.Embedding(*shape, padding_idx=PAD_ID)
        self.reset_words(vectors)
        self.words.weight.requires_grad = not config.freeze_words
        self.characters = self.case = None
        self.output_size = config.word_size
        if config.characters != "none":
            if vocabularies.characters is None:
                raise ValueError(f'characters="{config.characters}" needs a vocabulary of characters, got None')
            self.characters = CharacterFeatures(config, len(vocabularies.characters))
            self.output_size += self.characters.output_size
        if config.case_size:
            self.case = nn.Embedding(len(CASES), config.case_size, padding_idx=PAD_CASE)
            self.output_size += config.case_size
        self.word_dropout = config.word_dropout
        self.dropout = nn.Dropout(config.dropout)

    def reset_words(self, vectors: NDArray | Tensor | None) -> None:
        """The given vectors, or random ones with about the spread of GloVe's; <pad> is zero."""
        weight = self.words.weight
        with torch.no_grad():
            if vectors is None:
                weight.uniform_(-SPREAD, SPREAD)
            elif tuple(vectors.shape) != tuple(weight.shape):
                raise ValueError(f"vectors must have shape {tuple(weight.shape)}, got {tuple(vectors.shape)}")
            else:
                weight.copy_(torch.as_tensor(vectors))
            weight[PAD_ID] = 0

    def forward(self, batch: Batch) -> Tensor:
        features = [self.words(self.drop_words(batch.word_ids))]
        if self.characters is not None:
            features.append(self.characters(given(batch.character_ids, "character_ids")))
        if self.case is not None:
            features.append(self.case(given(batch.case_ids, "case_ids")))
        x: Tensor = self.dropout(torch.cat(features, dim=-1) if len(features) > 1 else features[0])
        return x  # (B, N, D)

    def drop_words(self, word_ids: Tensor) -> Tensor:
        """In training, words that become <unk>; <s>, </s> and padding never do."""
        if not self.training or not self.word_dropout:
            return word_ids
        dropped = torch.rand(word_ids.shape, device=word_ids.device) < self.word_dropout
        return word_ids.masked_fill(dropped & (word_ids > END_ID), UNKNOWN_ID)


class CharacterFeatures(nn.Module):
    """Character ids (B, N, C) -> (B, N, features): the last states of a BiLSTM over each word, or the maximum of a
    convolution; the same encoders that read sentences read words here."""

    def __init__(self, config: ModelConfig, num_characters: int) -> None:
        super().__init__()
        self.vectors = nn.Embedding(num_characters, config.character_size, padding_idx=PAD_ID)
        nn.init.uniform_(self.vectors.weight, -((3 / config.character_size) ** 0.5), (3 / config.character_size) ** 0.5)
        encoder = BiLSTM if config.characters == "BiLSTM" else CNN
        self.encoder = encoder(config.character_size, config.character_hidden_size)
        self.output_size = self.encoder.output_size

    def forward(self, character_ids: Tensor) -> Tensor:
        words = character_ids.flatten(0, 1)  # (B * N, C)
        if character_ids.is_cuda or torch.compiler.is_compiling():  # all: shapes that do not depend on values
            features = self.spell(words)
        else:
            words, rows = words.unique(dim=0, return_inverse=True)  # a third to a half of the words stand there twice
            features = self.spell(words)[rows]
        return features.view(*character_ids.shape[:2], -1)

    def spell(self, words: Tensor) -> Tensor:
        """(words, C) character ids -> (words, features)."""
        lengths = (words != PAD_ID).sum(1).clamp(min=1)  # padding is a word of one <pad>
        features: Tensor = self.encoder(self.vectors(words), lengths).sentence
        return features


def given(ids: Tensor | None, name: str) -> Tensor:
    if ids is None:
        raise ValueError(f"the model reads batch.{name}, got None: was the batch made with its vocabularies?")
    return ids
