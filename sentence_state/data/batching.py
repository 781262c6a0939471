"""Batch: sentences of similar length together, padded. Batches: the same order again for the same seed and epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .case import PAD_CASE
from .example import Example
from .indexing import NO_TAG, Ids, IndexedExamples, Vocabularies, index_examples
from .vocabulary import PAD_ID

if TYPE_CHECKING:  # `sentence_state.runtime` reads its texts without torch
    import torch
    from torch import Tensor

WINDOW = 50  # batches whose sentences are sorted by length together


@dataclass(frozen=True)
class Batch:
    """B sentences of up to N positions. With boundaries, position 0 is <s> and the last of a sentence is </s>."""

    word_ids: Tensor  # (B, N)
    lengths: Tensor  # (B,), with <s> and </s>
    boundaries: bool
    positions: Tensor  # (B,) places of the sentences among the examples, always on the CPU
    character_ids: Tensor | None = None  # (B, N, C)
    case_ids: Tensor | None = None  # (B, N)
    label_ids: Tensor | None = None  # (B,)
    tag_ids: Tensor | None = None  # (B, N), -100 at padding, <s> and </s>
    weight: float = 1.0  # of its mean loss, where it is one process's share of a batch

    def __len__(self) -> int:
        return len(self.lengths)

    def tensors(self) -> dict[str, Tensor]:
        """All but `positions`."""
        names = (field.name for field in fields(self) if field.name not in ("positions", "boundaries", "weight"))
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def map(self, function: Callable[[Tensor], Tensor]) -> Batch:
        """The batch with every tensor but `positions` replaced."""
        changed: dict[str, Any] = {name: function(tensor) for name, tensor in self.tensors().items()}
        return replace(self, **changed)

    def twice(self) -> Batch:
        """All sentences, then all of them again; `positions` stay."""
        return self.map(lambda tensor: tensor.repeat(2, *[1] * (tensor.dim() - 1)))

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Batch:
        return self.map(lambda tensor: tensor.to(device, non_blocking=non_blocking))


def collate(
    examples: Sequence[Example],
    vocabularies: Vocabularies,
    *,
    boundaries: bool = True,
    targets: bool = True,
) -> Batch:
    """One batch of all examples, in their order."""
    indexed = index_examples(examples, vocabularies, boundaries=boundaries, targets=targets)
    return make_batch(indexed, np.arange(len(indexed)))


def make_batch(examples: IndexedExamples, positions: Ids) -> Batch:
    """The batch of the examples at `positions`."""
    import torch

    def pad(values: Ids, filling: int) -> Tensor:
        return torch.from_numpy(examples.pad(values, positions, filling))

    character_ids = None
    if examples.characters is not None and examples.spellings is not None:
        spellings = examples.pad(examples.spellings, positions, -1)
        character_ids = torch.from_numpy(pad_characters(examples.characters, spellings))
    return Batch(
        word_ids=pad(examples.word_ids, PAD_ID),
        lengths=torch.from_numpy(examples.lengths_of(positions)),
        boundaries=examples.boundaries,
        positions=torch.from_numpy(np.asarray(positions)),
        character_ids=character_ids,
        case_ids=pad(examples.case_ids, PAD_CASE) if examples.case_ids is not None else None,
        label_ids=torch.from_numpy(examples.label_ids[positions]) if examples.label_ids is not None else None,
        tag_ids=pad(examples.tag_ids, NO_TAG) if examples.tag_ids is not None else None,
    )


def make_share(examples: IndexedExamples, positions: Ids, share: tuple[int, int]) -> Batch:
    """The part of a batch that process `rank` of `size` computes; one that gets no sentence computes one in vain."""
    mine = share_of(examples.lengths_of(positions), *share)
    batch = make_batch(examples, positions[mine] if len(mine) else positions[:1])
    return replace(batch, weight=len(mine) / len(positions))


def share_of(lengths: Ids, rank: int, size: int) -> Ids:
    """Which sentences are dealt to process `rank`: longest first, to and fro, so that all have about as many words."""
    if size == 1:
        return np.arange(len(lengths))
    order = np.argsort(-lengths, kind="stable")
    turn, place = np.divmod(np.arange(len(lengths)), size)
    owner = np.where(turn % 2 == 0, place, size - 1 - place)
    return np.sort(order[owner == rank])


def widen(batch: Batch, positions: int, characters: int) -> Batch:
    """The same sentences with more padding: up to so many positions, and so many characters of a word."""
    from torch.nn import functional as F

    more = positions - batch.word_ids.shape[1]
    of_positions = {"word_ids": PAD_ID, "case_ids": PAD_CASE, "tag_ids": NO_TAG}
    changed: dict[str, Any] = {
        name: F.pad(tensor, (0, more), value=filling)
        for name, filling in of_positions.items()
        if (tensor := getattr(batch, name)) is not None
    }
    if batch.character_ids is not None:
        more_characters = characters - batch.character_ids.shape[2]
        changed["character_ids"] = F.pad(batch.character_ids, (0, more_characters, 0, more), value=PAD_ID)
    return replace(batch, **changed)


def pad_characters(table: Ids, spellings: Ids) -> Ids:
    """(B, N, C) characters of the spellings (B, N), -1 being padding; C is the longest word of this batch."""
    characters = table[spellings]  # (B, N, longest of all)
    characters[spellings < 0] = PAD_ID
    used = int((characters != PAD_ID).any(axis=(0, 1)).sum())
    return np.ascontiguousarray(characters[:, :, :used])


class Batches:
    """An endless supply of epochs: iterating gives the rest of the current epoch and moves on to the next.

    Sentences are shuffled by (seed, epoch), sorted by length within windows of 50 batches, cut into batches of
    `batch_size`, and the batches shuffled. `epoch` and `index` say which batch comes next: `state` and `restore` go
    back to any moment exactly. Without `shuffle`, all sentences sorted by length, for evaluation.
    share: (rank, size) gives one process of many its share of every batch, with about as many words as the others'.
    """

    def __init__(
        self,
        examples: IndexedExamples,
        batch_size: int,
        *,
        seed: int = 0,
        shuffle: bool = True,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self.examples = examples
        self.batch_size = batch_size
        self.seed = seed
        self.shuffle = shuffle
        self.share = share
        self.epoch = 0
        self.index = 0

    def __len__(self) -> int:
        return self.count(self.epoch)

    def count(self, epoch: int) -> int:
        """Batches of an epoch."""
        return -(-len(self.examples) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        order = self.order(self.epoch)
        while self.index < len(order):
            self.index += 1  # before the batch is used: what is saved after a step names the next batch
            yield make_share(self.examples, order[self.index - 1], self.share)
        self.epoch, self.index = self.epoch + 1, 0

    def order(self, epoch: int) -> list[NDArray[np.int64]]:
        """The positions of the sentences of every batch of an epoch."""
        lengths = self.examples.lengths
        if not self.shuffle:
            return cut(np.argsort(lengths, kind="stable"), self.batch_size)
        generator = np.random.default_rng([self.seed, epoch])
        shuffled = generator.permutation(len(lengths))
        windows = cut(shuffled, self.batch_size * WINDOW)
        batches = [
            batch
            for window in windows
            for batch in cut(window[np.argsort(lengths[window], kind="stable")], self.batch_size)
        ]
        return [batches[i] for i in generator.permutation(len(batches))]

    def positions(self, epoch: int, index: int) -> list[int]:
        """The sentences of batch `index`, counted from 1, in all processes' shares."""
        return [int(position) for position in self.order(epoch)[index - 1]]

    def state(self) -> dict[str, int]:
        return {"epoch": self.epoch, "index": self.index}

    def restore(self, state: dict[str, int]) -> None:
        self.epoch, self.index = state["epoch"], state["index"]


def cut(positions: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    return [positions[start : start + size] for start in range(0, len(positions), size)]
