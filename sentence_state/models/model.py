"""What all models share: embedding and encoder, vocabularies, predictions for raw text, a folder on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self, cast

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..data.batching import Batch, Batches
from ..data.example import Example
from ..data.indexing import Vocabularies, index_examples
from ..data.predictions import Prediction, read_texts
from ..data.tag_schemes import detect_scheme
from ..data.tokenizer import Tokenizer
from ..data.vocabulary import Vocabulary
from ..encoders import ENCODERS, Encoding, SentenceStateLSTM
from ..encoders.sentence_state_lstm import check_halting
from . import pretrained
from .config import ModelConfig
from .embedding import WordEmbedding


class Decoded(NamedTuple):
    """The best answers for a batch, one for each sentence: what metrics compare with the targets of the examples."""

    labels: list[str] | None = None
    tags: list[list[str]] | None = None


class Model(nn.Module):
    """Embedding and encoder. A subclass adds its head, `loss(batch)`, `decode(batch)` and `answers(batch, examples)`.

    tag_scheme: "bio" or "bioes" where tags are spans, "plain" where they are not, None without tags.
    tokenizer: how raw text for `predict` is cut into words; that of the training data.
    """

    targets: ClassVar[tuple[str, ...]]  # "label", "tags": what an example must have, and what `decode` gives

    def __init__(
        self,
        config: ModelConfig,
        vocabularies: Vocabularies,
        *,
        tag_scheme: str | None = None,
        tokenizer: Tokenizer | None = None,
        vectors: NDArray | Tensor | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.vocabularies = vocabularies
        self.tag_scheme = tag_scheme
        self.tokenizer = tokenizer or Tokenizer()
        self.embedding = WordEmbedding(config, vocabularies, vectors)
        make = ENCODERS[config.encoder]
        self.encoder = make(self.embedding.output_size, config.hidden_size, **config.encoder_options())
        self.output_dropout = nn.Dropout(config.output_dropout)

    @classmethod
    def from_examples(
        cls,
        examples: Sequence[Example],
        config: ModelConfig | None = None,
        *,
        words: Vocabulary | None = None,
        vectors: NDArray | Tensor | None = None,
        tokenizer: Tokenizer | None = None,
        seed: int = 0,
    ) -> Self:
        """A new model for the training examples, the same for the same seed.

        words, vectors: a vocabulary and a row of start values for each of its words, as `data.embeddings` reads them.
        """
        config = config or ModelConfig()
        if vectors is not None:
            config = ModelConfig(**{**config.to_dict(), "word_size": int(vectors.shape[1])})
        tag_scheme = scheme_of(examples) if "tags" in cls.targets else None
        vocabularies = Vocabularies(
            words=words or Vocabulary.of_words(example.words for example in examples),
            characters=Vocabulary.of_characters(e.words for e in examples) if config.characters != "none" else None,
            labels=label_vocabulary(examples) if "label" in cls.targets else None,
            tags=tag_vocabulary(examples, tag_scheme) if tag_scheme else None,
            case=config.case_size > 0,
        )
        return cls.from_vocabularies(
            vocabularies, config, tag_scheme=tag_scheme, tokenizer=tokenizer, vectors=vectors, seed=seed
        )

    @classmethod
    def from_vocabularies(
        cls, vocabularies: Vocabularies, config: ModelConfig | None = None, *, seed: int = 0, **options: Any
    ) -> Self:
        """A new model for what is known of its examples, such as those that are streamed; options are the model's."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(config or ModelConfig(), vocabularies, **options)

    # ---- what a training loop needs -------------------------------------------------------------

    def loss(self, batch: Batch, consistency: float = 0.0) -> Tensor:
        """The mean over the sentences of -log P(targets).

        consistency: weight of the divergence between two readings of the batch, which differ by their dropout: of the
        labels' probabilities, and of those that each word by itself gives to its tags; 0: it is read once.
        """
        raise NotImplementedError

    def decode(self, batch: Batch) -> Decoded:
        """The best answers; no targets are read."""
        raise NotImplementedError

    def word_parameters(self) -> list[nn.Parameter]:
        """The word vectors, which may learn at a rate of their own; empty when they are frozen."""
        return [vectors for vectors in self.embedding.words.parameters() if vectors.requires_grad]

    def encode(self, batch: Batch, *, words: bool = True, sentence: bool = True) -> Encoding:
        """Batch -> words (B, N, H) and sentence (B, H), with output dropout; what is not asked for may be None.
        readout="steps": the sentence vectors of all steps, (B, T, H)."""
        x = self.embedding(batch)
        if isinstance(self.encoder, SentenceStateLSTM) and self.config.readout == "steps" and sentence:
            found = self.encoder.encode_steps(x, batch.lengths)
        elif isinstance(self.encoder, SentenceStateLSTM):
            found = self.encoder(x, batch.lengths, need_words=words, need_sentence=sentence)
        else:
            found = self.encoder(x, batch.lengths)
        fields = ((found.words, words), (found.sentence, sentence))
        return Encoding(*(self.output_dropout(field) if needed else cast(Tensor, None) for field, needed in fields))

    # ---- predictions ----------------------------------------------------------------------------

    def predict(
        self, texts: Sequence[str | Sequence[str]], batch_size: int = 32, *, halting: float = 0.0
    ) -> list[Prediction]:
        """Answers for raw texts or for lists of words, in their order.

        halting: an S-LSTM takes no further step for a sentence whose state changes by no more than this; 0: all steps.
        """
        with self.halting(halting):
            return self.answer(read_texts(texts, self.tokenizer), batch_size)

    @contextmanager
    def halting(self, threshold: float) -> Iterator[None]:
        """While it lasts, the encoder stops early (`SentenceStateLSTM.halting`); 0 leaves it as it is."""
        if not threshold:
            yield
            return
        if not isinstance(self.encoder, SentenceStateLSTM) or self.config.readout == "steps":
            what = "a read-out of all steps" if self.config.readout == "steps" else self.config.encoder
            raise ValueError(f"halting is for an S-LSTM, whose steps it saves; got {what}")
        before = self.encoder.halting
        self.encoder.halting = check_halting(threshold, self.config.variant, self.config.sentence_nodes)
        try:
            yield
        finally:
            self.encoder.halting = before

    def answer(self, examples: Sequence[Example], batch_size: int = 32) -> list[Prediction]:
        """`predict` for texts that are cut into words already."""
        answers: list[Prediction] = [{}] * len(examples)
        for batch in self.reading(examples, batch_size):
            rows = batch.positions.tolist()
            found = self.answers(batch, [examples[row] for row in rows])
            for row, answer in zip(rows, found, strict=True):
                answers[row] = answer
        return answers

    def answers(self, batch: Batch, examples: Sequence[Example], encoding: Encoding | None = None) -> list[Prediction]:
        """Predictions with scores for the examples of a batch; encoding: what the head reads instead of `encode`'s."""
        raise NotImplementedError

    def decode_all(
        self, examples: Sequence[Example], batch_size: int = 32, decode: Callable[[Batch], Decoded] | None = None
    ) -> Decoded:
        """`decode`, the model's own or the one given, for any number of examples, in their order."""
        decode, batches = decode or self.decode, self.reading(examples, batch_size)
        return self.in_order(((batch.positions.tolist(), decode(batch)) for batch in batches), examples)

    def in_order(self, parts: Iterable[tuple[Sequence[int], Decoded]], examples: Sequence[Example]) -> Decoded:
        """The answers of many parts, each with the places of its examples, in the order of the examples."""
        labels: list[str] = [""] * len(examples)
        tags: list[list[str]] = [[]] * len(examples)
        for rows, found in parts:
            for place, row in enumerate(rows):
                if found.labels is not None:
                    labels[row] = found.labels[place]
                if found.tags is not None:
                    tags[row] = found.tags[place]
        return Decoded(labels if "label" in self.targets else None, tags if "tags" in self.targets else None)

    def reading(self, examples: Sequence[Example], batch_size: int) -> Iterator[Batch]:
        """Batches of similar length without targets, on the model's device, while the model is in evaluation mode."""
        if not examples:
            return
        indexed = index_examples(examples, self.vocabularies, boundaries=self.config.boundaries, targets=False)
        device = self.embedding.words.weight.device
        training = self.training
        self.eval()
        try:
            with torch.no_grad():
                for batch in Batches(indexed, batch_size, shuffle=False):
                    yield batch.to(device)
        finally:
            self.train(training)

    # ---- on disk --------------------------------------------------------------------------------

    def save_pretrained(self, folder: str | PathLike[str]) -> None:
        """Write config.json, model.safetensors, vocabularies and versions.json, each whole or not at all."""
        pretrained.save(self, folder)

    @classmethod
    def from_pretrained(
        cls, folder: str | PathLike[str], device: torch.device | str = "cpu", precision: str = "float32"
    ) -> Self:
        """A model as it was saved; a FolderError says what is wrong with the folder.

        precision: "float32"; to predict with, "bfloat16" (weights and states of half the bytes; the CRF and the
        probabilities stay in float32) or, for an S-LSTM on a CPU, "int8" (the products of its recurrence).
        """
        return pretrained.load(folder, cls, device, precision)

    def push_to_hub(self, name: str, **options: Any) -> str:
        """Upload to the Hugging Face hub (the extra "hub"); returns the address."""
        return pretrained.push_to_hub(self, name, **options)


def scheme_of(examples: Sequence[Example]) -> str:
    """bio, bioes or plain; other schemes are to be converted first."""
    scheme = detect_scheme([example.tags or [] for example in examples])
    if scheme not in ("bio", "bioes", "plain"):
        raise ValueError(f"tags must be BIO, BIOES or plain, got {scheme}: convert them with data.tag_schemes.convert")
    return scheme


def label_vocabulary(examples: Sequence[Example]) -> Vocabulary:
    for example in examples:
        if example.label is None:
            raise example.error("a classifier is trained on examples with labels, got one without")
    return Vocabulary.of_labels(str(example.label) for example in examples)


def tag_vocabulary(examples: Sequence[Example], scheme: str) -> Vocabulary:
    """The tags of the examples; spans also get O, with which every sentence has an allowed sequence."""
    for example in examples:
        if example.tags is None:
            raise example.error("a tagger is trained on examples with tags, got one without")
    tags = [tag for example in examples for tag in example.tags or ()]
    return Vocabulary.of_labels(tags if scheme == "plain" or "O" in tags else [*tags, "O"])
