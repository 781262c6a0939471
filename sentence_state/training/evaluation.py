"""A model's answers against the targets of examples: every score there is, one of them the main one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..data.example import Example
from ..models import Decoded, Model
from .metrics import Scores, accuracy, confusion, label_scores, span_scores, token_accuracy, total


@dataclass(frozen=True)
class Evaluation:
    """scores: name -> value in 0 .. 1; scores[metric] is the one by which models are chosen.
    labels: a table for each target ("label", "tags"), label -> precision, recall and F1 from counts.
    confusion: gold -> predicted -> count, for each target that is no span."""

    metric: str
    scores: dict[str, float]
    labels: dict[str, dict[str, Scores]] = field(default_factory=dict)
    confusion: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)

    @property
    def score(self) -> float:
        return self.scores[self.metric]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        tables = {name: {label: s.to_dict() for label, s in table.items()} for name, table in self.labels.items()}
        return {"metric": self.metric, "scores": self.scores, "labels": tables, "confusion": self.confusion}


def evaluate(model: Model, examples: Sequence[Example], batch_size: int = 32) -> Evaluation:
    """Accuracy for labels and plain tags, F1 for spans; for a joint model both, their mean as the main score."""
    if not examples:
        raise ValueError("there is no example to evaluate on")
    check_targets(model, examples)
    return compare(examples, model.decode_all(examples, batch_size), model.tag_scheme)


def compare(examples: Sequence[Example], found: Decoded, tag_scheme: str | None) -> Evaluation:
    """Answers with the targets of their examples."""
    parts = []
    if found.labels is not None:
        parts.append(evaluate_labels([str(example.label) for example in examples], found.labels))
    if found.tags is not None:
        parts.append(evaluate_tags([example.tags or [] for example in examples], found.tags, tag_scheme))
    if len(parts) == 1:
        return parts[0]
    together = [(example.label, example.tags) for example in examples]
    return join(parts, exact=accuracy(together, list(zip(found.labels or (), found.tags or (), strict=True))))


def evaluate_labels(gold: Sequence[str], predicted: Sequence[str]) -> Evaluation:
    table = label_scores(gold, predicted)
    macro = sum(scores.f1 for scores in table.values()) / len(table)
    scores = {"accuracy": accuracy(gold, predicted), "macro_f1": macro}
    return Evaluation("accuracy", scores, {"label": table}, {"label": confusion(gold, predicted)})


def evaluate_tags(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], scheme: str | None) -> Evaluation:
    of_tokens = token_accuracy(gold, predicted)
    if scheme == "plain":
        flat = [tag for tags in gold for tag in tags], [tag for tags in predicted for tag in tags]
        scores = {"token_accuracy": of_tokens}
        return Evaluation("token_accuracy", scores, {"tags": label_scores(*flat)}, {"tags": confusion(*flat)})
    table = span_scores(gold, predicted)
    overall = total(table.values())
    scores = {"f1": overall.f1, "precision": overall.precision, "recall": overall.recall, "token_accuracy": of_tokens}
    return Evaluation("f1", scores, {"tags": table})


def join(parts: Sequence[Evaluation], exact: float) -> Evaluation:
    """Two targets in one; `exact` is the share of sentences in which everything is right."""
    scores = {"mean": sum(part.score for part in parts) / len(parts), "exact": exact}
    labels: dict[str, dict[str, Scores]] = {}
    tables: dict[str, dict[str, dict[str, int]]] = {}
    for part in parts:
        scores.update(part.scores)
        labels.update(part.labels)
        tables.update(part.confusion)
    return Evaluation("mean", scores, labels, tables)


def check_targets(model: Model, examples: Sequence[Example]) -> None:
    for example in examples:
        for target in model.targets:
            if getattr(example, target) is None:
                raise example.error(f"a {type(model).__name__} is evaluated on examples with {target}, got one without")
