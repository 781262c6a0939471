"""A table of scores: the paper's, ours, their difference, and how far each is from the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .descriptions import settings_note, sizes_note
from .document import Section, Table, without_empty_columns
from .experiment import Experiment, Row
from .significance import Strata, approximate_randomisation, paired_bootstrap, t_test
from .summaries import Records, Summary, conditions_of, measured, ratio, summarise, without

AGAINST = "Over baseline, and p: each row against {baseline}."
OTHERS = (
    "Rows without a score of ours are what the paper has beside it: encoders that were not run here, and other systems "
    "with the scores that it cites."
)
TIMED = "Times as ratios to {first}, on {conditions}. {sizes}."


def compare(experiment: Experiment, records: Records, each: Mapping[str, Experiment] | None = None) -> Section:
    """The section of an experiment: scores, then times and parameters where the paper prints them. each: the experiment
    with one of its settings only, by what these add to its labels, where times are those of each."""
    summaries = summarise(experiment, records)
    baselines = list(dict.fromkeys(row.against for row in experiment.rows if row.against))
    section = Section(experiment.name, experiment.title, list(experiment.notes))
    scores = score_table(summaries, bool(baselines), experiment.unit, experiment.others)
    section.is_own = experiment.is_own
    section.tables.append(without_empty_columns(scores))
    if experiment.others:
        section.notes.append(OTHERS)
    if baselines:
        unit = "" if experiment.unit == "model" else f" {experiment.unit}"
        section.notes.append(AGAINST.format(baseline=" or ".join(baselines) + unit))
    section.details.append(settings_note(experiment, summaries))
    for settings, one in (each or {"": experiment}).items():
        for (record,) in measured([one.times], records).values() if one.times else ():
            table = time_table(one, summaries, record, settings)
            section.tables.append(without_empty_columns(table))
    return section


@dataclass(frozen=True)
class Versus:
    """A row against its baseline."""

    gain: float
    t: float | None
    bootstrap: float
    randomisation: float

    def cells(self) -> list[str]:
        return [f"{self.gain:+.2f}", *map(shown_p, (self.t, self.bootstrap, self.randomisation))]


def shown_p(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def versus(own: Sequence[Summary], baseline: Sequence[Summary]) -> Versus | None:
    """One row against another; several of each are several sets, of which the mean score is compared."""
    if not own or not all(len(summary.scores) for summary in (*own, *baseline)):
        return None
    ours, theirs = mean_of_sets(own), mean_of_sets(baseline)
    strata = strata_of(own, baseline)
    gain = float(np.mean([a.mean - b.mean for a, b in zip(own, baseline, strict=True)]))
    return Versus(gain, t_test(ours, theirs), paired_bootstrap(strata), approximate_randomisation(strata))


def strata_of(own: Sequence[Summary], baseline: Sequence[Summary]) -> Strata:
    """What the tests over sentences compare, a stratum for each set."""
    return [(mean_counts(a), mean_counts(b)) for a, b in zip(own, baseline, strict=True)]


def mean_of_sets(summaries: Sequence[Summary]) -> NDArray[np.float64]:
    """A score for every seed; all sets have the same ones."""
    return np.asarray(np.mean([summary.scores for summary in summaries], axis=0))


def mean_counts(summary: Summary) -> NDArray[np.float64]:
    assert summary.counts is not None
    return np.asarray(summary.counts.mean(axis=0))


def score_table(
    summaries: Sequence[Summary], compared: bool, unit: str = "model", others: Mapping[str, float] | None = None
) -> Table:
    """others: scores that only the paper has, in rows of their own at the end."""
    places = {(summary.row.group, summary.row.label): summary for summary in summaries}
    grouped = len({summary.row.group for summary in summaries}) > 1
    repeats = any(repeated_in(summary) for summary in summaries)
    rows, bold = [], set()
    for summary in summaries:
        row = summary.row
        other = places.get((row.group, row.against)) if row.against else None
        against = versus([summary], [other]) if other else None
        rows.append(cells_of(summary, against, grouped, compared, clean_score(summary) if repeats else None))
    if grouped and unit == "model":  # of steps, the groups are no sets
        for cells in average_rows(summaries, compared, repeats):
            bold.add(len(rows))
            rows.append(cells)
    names = ["group"] * grouped + [unit]
    columns = [*names, "paper", "ours", "difference", "seeds"]
    columns += ["without repeats"] * repeats
    columns += ["over baseline", "p: t", "p: bootstrap", "p: randomisation"] * compared
    for name, score in (others or {}).items():
        of_paper = [""] * grouped + [name, f"{score:.2f}"]
        rows.append((*of_paper, *[""] * (len(columns) - len(of_paper))))
    return Table(tuple(columns), tuple(rows), len(names), frozenset(bold))


def cells_of(
    summary: Summary, against: Versus | None, grouped: bool, compared: bool, clean: str | None
) -> tuple[str, ...]:
    """clean: the score without repeats, None where the table has no such column."""
    row = summary.row
    cells = [row.group] * grouped + [row.label, f"{row.paper:.2f}" if row.paper is not None else "", summary.shown()]
    difference = f"{summary.mean - row.paper:+.2f}" if row.paper is not None and len(summary.scores) else ""
    cells += [difference, str(len(summary.scores))]
    cells += [clean] if clean is not None else []
    if compared:
        cells += against.cells() if against else [""] * 4
    return tuple(cells)


def clean_score(summary: Summary) -> str:
    """Without the test sentences that stand in train; empty where there are none."""
    places = repeated_in(summary)
    return shown_clean(without(summary.counts, places)) if places and summary.counts is not None else ""


def repeated_in(summary: Summary) -> list[int]:
    """Places of the test sentences that stand in train; none where the scores are those of dev."""
    if summary.split != "test" or not summary.records:
        return []
    return list(summary.records[0]["test"].get("in_train", []))


def shown_clean(scores: NDArray[np.float64]) -> str:
    spread = f" ± {scores.std(ddof=1):.2f}" if len(scores) > 1 else ""
    return f"{scores.mean():.2f}{spread}"


def average_rows(summaries: Sequence[Summary], compared: bool, repeats: bool) -> list[tuple[str, ...]]:
    """The average of all groups for each label, as far as every group is finished; none of different metrics."""
    if len({summary.metric for summary in summaries if summary.records}) > 1:
        return []
    groups = list(dict.fromkeys(summary.row.group for summary in summaries))
    by_label: dict[str, list[Summary]] = {}
    for summary in summaries:
        if len(summary.scores):
            by_label.setdefault(summary.row.label, []).append(summary)
    complete = {label: with_common_seeds(found) for label, found in by_label.items() if len(found) == len(groups) > 1}
    complete = {label: found for label, found in complete.items() if len(found[0].scores)}
    return [average_row(label, found, complete, compared, repeats) for label, found in complete.items()]


def with_common_seeds(summaries: Sequence[Summary]) -> list[Summary]:
    """Each set with the seeds that all of them have."""
    common = set.intersection(*(set(summary.seeds) for summary in summaries))
    return [summary.only(common) for summary in summaries]


def average_row(
    label: str, found: Sequence[Summary], complete: dict[str, list[Summary]], compared: bool, repeats: bool
) -> tuple[str, ...]:
    scores = mean_of_sets(found)
    papers = [summary.row.paper for summary in found]
    paper = float(np.mean([p for p in papers if p is not None])) if None not in papers else None
    row = Row(label, (), paper, "average")
    baseline = found[0].row.against
    against = versus(found, complete[baseline]) if baseline in complete else None
    clean = [without(summary.counts, repeated_in(summary)) for summary in found if summary.counts is not None]
    shown = shown_clean(np.mean(clean, axis=0)) if repeats else None
    return cells_of(Summary(row, scores, None, ()), against, True, compared, shown)


def time_table(experiment: Experiment, summaries: Sequence[Summary], record: dict[str, Any], settings: str) -> Table:
    """Ratios of times, and parameters. settings: what they add to a label."""
    assert experiment.times is not None
    timed = experiment.timed or experiment.rows
    first = next((row for row in timed if row.runs[0].model.encoder == "S-LSTM"), timed[0])
    sizes = {summary.row.label: summary.records[0]["parameters"] for summary in summaries if summary.records}
    rows = []
    for row in timed:
        printed = [""] * 2
        if row.paper_times and first.paper_times:
            pairs = zip(row.paper_times, first.paper_times, strict=True)
            printed = [f"{own / base:.2f}" if own is not None and base else "" for own, base in pairs]
        ours = [f"{ratio(record, row.label, first.label, kind):.2f}" for kind in ("train", "decode")]
        parameters = f"{row.paper_parameters:,}K" if row.paper_parameters else ""
        label = row.label + settings
        own_parameters = f"{sizes[label] / 1000:,.0f}K" if parameters and label in sizes else ""
        rows.append((label, printed[0], ours[0], printed[1], ours[1], parameters, own_parameters))
    columns = (
        "model", "train: paper", "train: ours", "test: paper", "test: ours", "parameters: paper", "parameters: ours"
    )  # fmt: skip
    models = [(f"{label}{settings}", model) for label, model in experiment.times.models]
    first_label = first.label + settings
    caption = TIMED.format(first=first_label, conditions=conditions_of(record), sizes=sizes_note(models))
    return Table(columns, tuple(rows), caption=caption)
