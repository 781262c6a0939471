"""What can go wrong in a training step: memory runs out, or a loss is no number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from ..data.example import Example
from ..data.files import write_json

BAD_BATCH = "bad_batch.json"


def is_out_of_memory(error: BaseException) -> bool:
    """On a GPU there is an error for it; on a CPU torch has a message only."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def save_bad_batch(run: Path, examples: Sequence[Example], epoch: int, batch: int) -> Path:
    """Write the sentences of a batch, so that the user can look at them."""
    sentences = [
        {
            "file": example.path,
            "line": example.lines[0] if example.lines else None,
            "words": example.words,
            "label": example.label,
            "tags": example.tags,
        }
        for example in examples
    ]
    write_json(run / BAD_BATCH, {"epoch": epoch, "batch": batch, "sentences": sentences})
    return run / BAD_BATCH
