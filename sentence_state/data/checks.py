"""What must hold of the data before a model is trained on them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .example import Example

SHOWN = 20


def check_training_data(train: Sequence[Example], *others: Sequence[Example]) -> list[str]:
    """Raise where training cannot work: no examples, one class, a class in dev or test that train never shows.
    Returns remarks for the user: tags that occur in dev or test only, which no model can predict."""
    if not train:
        raise Example([]).error("there is no example to train on")
    if train[0].label is not None:
        check_labels(train, others)
    if train[0].tags is not None:
        return check_tags(train, others)
    return []


def check_labels(train: Sequence[Example], others: Sequence[Sequence[Example]]) -> None:
    labels = {example.label for example in train}
    if len(labels) == 1:
        raise train[0].error(f"only one class: every label is {train[0].label!r}; a classifier needs two or more")
    if len(train) >= 20 and len(labels) > len(train) / 2:
        message = (
            f"{len(labels):,} labels in {len(train):,} examples, such as {train[0].label!r}: is that the right column?"
        )
        raise train[0].error(f"{message} (--label-column to choose)")
    refuse_unknown_labels(labels, train[0].path or "train", others)


def refuse_unknown_labels(labels: Collection[str | None], path: str, others: Sequence[Sequence[Example]]) -> None:
    for example in (example for other in others for example in other):
        if example.label not in labels:
            known = ", ".join(sorted(filter(None, labels))[:SHOWN]) + (", ..." if len(labels) > SHOWN else "")
            raise example.error(f"label {example.label!r} never occurs in {path} (labels: {known})")


def check_tags(train: Sequence[Example], others: Sequence[Sequence[Example]]) -> list[str]:
    tags = {tag for example in train for tag in example.tags or ()}
    if len(tags) == 1:
        raise train[0].error(f"every tag is {tags.pop()!r}: there is nothing to learn")
    return unknown_tags(tags, train[0].path or "train", others)


def unknown_tags(tags: Collection[str], path: str, others: Sequence[Sequence[Example]]) -> list[str]:
    """A remark about each tag of dev or test that train never shows."""
    remarks: dict[str, str] = {}
    for example in (example for other in others for example in other):
        for position, tag in enumerate(example.tags or ()):
            if tag not in tags and tag not in remarks:
                message = f"tag {tag!r} never occurs in {path}: it will not be predicted"
                remarks[tag] = str(example.error(message, position))
    return list(remarks.values())
