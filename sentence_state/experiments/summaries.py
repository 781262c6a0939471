"""From lines of results to the numbers of a row: mean and standard deviation over seeds, in percent."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.errors import DataError
from .experiment import Experiment, Row
from .measurements import Measurement
from .outcomes import Counts, score_of, unpack_counts
from .runs import Run, satisfies

DEVICES = {"cuda": "GPU", "cpu": "CPU"}
Records = Mapping[str, dict[str, Any]]


@dataclass(frozen=True)
class Summary:
    """A row of an experiment as far as it is finished. counts: (seeds, sentences, 3) where runs kept them."""

    row: Row
    scores: NDArray[np.float64]  # one a finished run, in percent
    counts: NDArray[np.int64] | None
    records: tuple[dict[str, Any], ...]
    metric: str = ""
    split: str = "test"

    @property
    def seeds(self) -> list[int]:
        return [record["run"]["training"]["seed"] for record in self.records]

    def only(self, seeds: Collection[int]) -> Summary:
        places = [place for place, seed in enumerate(self.seeds) if seed in seeds]
        counts = None if self.counts is None else self.counts[places]
        return replace(self, scores=self.scores[places], counts=counts, records=tuple(self.records[i] for i in places))

    @property
    def mean(self) -> float:
        return float(self.scores.mean())

    @property
    def deviation(self) -> float | None:
        """Of the sample; None for fewer than two runs."""
        return float(self.scores.std(ddof=1)) if len(self.scores) > 1 else None

    def shown(self) -> str:
        """82.45 ± 0.31"""
        if not len(self.scores):
            return "–"
        spread = f" ± {self.deviation:.2f}" if self.deviation is not None else ""
        return f"{self.mean:.2f}{spread}"


def summarise(experiment: Experiment, records: Records) -> list[Summary]:
    return [summarise_row(row, experiment.split, records) for row in experiment.rows]


def summarise_row(row: Row, split: str, records: Records) -> Summary:
    found = tuple(record for run in row.runs if (record := finished(run, records)) is not None)
    counts = [unpack_counts(record[split]["counts"]) for record in found]
    sizes = sorted({len(sentences) for sentences in counts})
    if len(sizes) > 1:
        wrong = f"the runs of {row.label} had different data, {split} sets of {' and '.join(map(str, sizes))} texts"
        raise DataError.at(row.runs[0].data.name, wrong)
    scores = np.array([100 * record[split]["score"] for record in found])
    metric = found[0][split]["metric"] if found else ""
    return Summary(row, scores, np.stack(counts) if counts else None, found, metric, split)


def variants(measurement: Measurement) -> list[Measurement]:
    """On a GPU or else on a CPU, in the precision that was meant or else in float32."""
    precisions = dict.fromkeys((measurement.precision, "float32"))
    return [replace(measurement.on(device), precision=one) for device in ("cuda", "cpu") for one in precisions]


def measured(measurements: Sequence[Measurement], records: Records) -> dict[str, list[dict[str, Any]]]:
    """The lines of measurements that belong together, by their precision: those that were meant first, of the device
    that most were taken on; then of another device that all were taken on, which the precision says."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for kind in zip(*map(variants, measurements), strict=True):
        lines = [records[one.key()] for one in kind if one.key() in records]
        if lines:
            found.setdefault(kind[0].device, {})[kind[0].precision] = lines
    devices = sorted(found, key=lambda device: max(map(len, found[device].values())), reverse=True)
    return {
        precision if device == devices[0] else f"{precision}, {DEVICES[device]}": lines
        for device in devices
        for precision, lines in found[device].items()
        if device == devices[0] or len(lines) == len(measurements)
    }


def conditions_of(record: dict[str, Any]) -> str:
    """Where and how it was measured."""
    precision = record.get("precision", "float32")
    return f"{record['hardware']}, {precision}, commit {shortened(record['commit'])}"


def shortened(commit: str) -> str:
    """As git shortens it; "+" stays."""
    return re.sub(r"^([0-9a-f]{7})[0-9a-f]+", r"\1", commit)


def ratio(record: dict[str, Any], label: str, to: str, kind: str) -> float:
    """How many times as long one model takes as another: the median over the rounds in which they took turns."""
    return float(np.median(rounds_of(record, label, to, kind)))


def rounds_of(record: dict[str, Any], label: str, to: str, kind: str) -> NDArray[np.float64]:
    """The same, for each round."""
    seconds = record["seconds"]
    return np.asarray(np.divide(seconds[label][kind], seconds[to][kind]))


def finished(run: Run, records: Records) -> dict[str, Any] | None:
    record = records.get(run.key())
    return record if satisfies(record, run) else None


def without(counts: Counts, places: list[int]) -> NDArray[np.float64]:
    """Scores of (seeds, sentences, 3) counts when some sentences are left out."""
    return score_of(np.delete(counts, places, axis=1))
