"""The fast preset for few sentences: smaller batches, more epochs, more patience."""

from __future__ import annotations

from dataclasses import replace

from ..training import TrainingConfig
from .flags import Settings

ENOUGH_UPDATES = 1500  # 300 sentences of the sample: 15 epochs of 10 updates find no slot at all, 40 of 38 half of them
MOST_EPOCHS = 50


def suit_to_size(config: TrainingConfig, settings: Settings, sentences: int) -> tuple[TrainingConfig, list[str]]:
    """The preset with at least 1,500 updates in all, and what to tell the user; what the user chose stays."""
    batch_size = config.batch_size
    if settings.batch_size is None:
        batch_size = min(batch_size, 8 if sentences < 500 else 16 if sentences < 1600 else batch_size)
    epochs = config.epochs
    if settings.epochs is None:
        epochs = max(epochs, min(MOST_EPOCHS, ENOUGH_UPDATES * batch_size // sentences))
    more = epochs / config.epochs
    suited = replace(
        config,
        batch_size=batch_size,
        epochs=epochs,
        patience=config.patience if settings.patience is not None else max(config.patience, round(epochs / 5)),
        decay=config.decay if settings.decay is not None else config.decay ** (1 / more),  # in all, as much as before
    )
    if suited == config:
        return config, []
    chosen = f"batches of {suited.batch_size}, at most {suited.epochs} epochs, patience {suited.patience}"
    return suited, [f"{sentences:,} sentences are few: {chosen} (--batch-size, --epochs, --patience to choose)"]
