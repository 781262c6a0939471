"""What the paper claims, and whether our numbers say the same: a verdict by a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .analysis import figure_4, figure_5, lengths_of, memory, ratios_of, thirds, thirds_of
from .comparison import mean_counts, mean_of_sets, shown_p, strata_of, with_common_seeds
from .document import Section, Table
from .experiment import Experiment, Plan, Row, name_of
from .paper_results import MEMORY
from .significance import Strata, paired_bootstrap, t_test
from .summaries import Records, Summary, measured, rounds_of, summarise

LEVEL = 0.05
HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"
RULES = (
    "Scores: a claim holds if the difference has the sign that it says and p < 0.05, by the t-tests over seeds; it "
    "does not hold if the sign is the other one and p < 0.05; else it is not decided. The paper itself asks for "
    'p < 0.01. "Over seeds" is said where the paired bootstrap over sentences has p >= 0.05: on other sentences it '
    "might be otherwise. Scores on dev are of the set on which settings were chosen. With length: the score of the "
    "longest third of the test sentences less that of the shortest, by the same rule. Times: it holds if the ratio is "
    "above one in every round, and does not if it is below one in every round. Growth: it holds if every number is "
    "above the one before. Memory: it holds if the ratio is above one, and does not else.",
    "The models are those of the tables below, under which stands where they are not the paper's. Claims for which "
    "there are no runs are left out. Of Table 5 the average is compared.",
)
TAGGED = ("conll2003", "ptb", "ewt")  # sets of Figure 3


@dataclass(frozen=True)
class Claim:
    """That one row has a higher score than another, or that it does not. group: where several groups have both rows;
    otherwise their mean is compared."""

    experiment: str
    text: str
    first: str
    second: str
    higher: bool = True
    group: str = ""


CLAIMS = (
    Claim("table2", "One sentence node is better than none", "+1 sentence nodes", "+0 sentence nodes"),
    Claim("table2", "Two sentence nodes are no better than one", "+2 sentence nodes", "+1 sentence nodes", False),
    Claim("table2", "300 units are better than 100", "Hidden size 300", "Hidden size 100"),
    Claim("table2", "600 units are no better than 300", "Hidden size 600", "Hidden size 300", False),
    Claim("table2", "<s> and </s> help", "With <s>, </s>", "Without <s>, </s>"),
    Claim("figure2", "9 steps are better than 1", "9", "1", group="window 1"),
    Claim("figure2", "11 steps are no better than 9", "11", "9", False, "window 1"),
    Claim("table3", "BiLSTM is better than LSTM", "BiLSTM", "LSTM"),
    Claim("table3", "2 stacked BiLSTM are better than one", "2 stacked BiLSTM", "BiLSTM"),
    Claim("table3", "3 stacked BiLSTM are no better than 2", "3 stacked BiLSTM", "2 stacked BiLSTM", False),
    Claim("table3", "S-LSTM is better than BiLSTM", "S-LSTM", "BiLSTM"),
    Claim("table3", "S-LSTM is better than 2 stacked BiLSTM", "S-LSTM", "2 stacked BiLSTM"),
    Claim("table3", "S-LSTM is better than 3 stacked CNN", "S-LSTM", "3 stacked CNN"),
    Claim("table3", "S-LSTM is better than Transformer (N=8)", "S-LSTM", "Transformer (N=8)"),
    Claim("table3", "BiLSTM is better with attention", "BiLSTM+Attention", "BiLSTM"),
    Claim("table3", "S-LSTM is better with attention", "S-LSTM+Attention", "S-LSTM"),
    Claim("table3", "With attention, S-LSTM is better than BiLSTM", "S-LSTM+Attention", "BiLSTM+Attention"),
    Claim("table4", "S-LSTM is better than BiLSTM", "S-LSTM", "BiLSTM"),
    Claim("table5", "S-LSTM is better than BiLSTM", "S-LSTM", "BiLSTM"),
    Claim("table5", "S-LSTM is better than 2 stacked BiLSTM", "S-LSTM", "2 stacked BiLSTM"),
    *(Claim("figure3", f"9 steps are better than 1 ({data})", "9", "1", group=data) for data in TAGGED),
    Claim("table6", "S-LSTM is better than BiLSTM", "S-LSTM", "BiLSTM"),
    Claim("table7", "S-LSTM is better than BiLSTM", "S-LSTM", "BiLSTM"),
)
LONGER = "S-LSTM loses less than BiLSTM with length"

Cells = tuple[str, ...]
COLUMNS = ("where", "settings", "claim", "verdict", "paper", "ours", "seeds", "p: t", "p: bootstrap")


def section_of_claims(rows: Sequence[Cells]) -> Section:
    table = Table(COLUMNS, tuple(dict.fromkeys(rows)), 4)
    return Section("claims", "The paper's claims, measured", list(RULES), tables=[table])


def verdict(gain: float, p: float | None, over_sentences: float) -> str:
    if p is None or p >= LEVEL:
        return OPEN
    found = HOLDS if gain > 0 else FAILS
    return found if over_sentences < LEVEL else f"{found}, over seeds"


def where(experiment: Experiment) -> str:
    """Table 4"""
    return experiment.title.partition(":")[0]


def plain(text: str, row: Row) -> str:
    """A label without the name of the settings."""
    return text.removesuffix(f" ({name_of(row.settings)})")


# ---- scores -----------------------------------------------------------------------------------------


def score_claims(experiment: Experiment, records: Records) -> list[Cells]:
    """A row for each claim about this table or figure, and each of its settings."""
    summaries = [summary for summary in summarise(experiment, records) if len(summary.scores)]
    rows: list[Cells] = []
    for settings in dict.fromkeys(row.settings for row in experiment.rows):
        own = [summary for summary in summaries if summary.row.settings == settings]
        groups = len({row.group for row in experiment.rows if row.settings == settings})
        for claim in (claim for claim in CLAIMS if claim.experiment == experiment.name):
            first, second = (with_label(own, label, claim.group) for label in (claim.first, claim.second))
            complete = len(first) == len(second) == (groups if experiment.name == "table5" else 1)
            if complete:
                place = where(experiment) + (", dev" if experiment.split == "dev" else "")
                rows.append(score_row(place, claim, first, second))
    return rows


def with_label(summaries: Sequence[Summary], label: str, group: str) -> list[Summary]:
    """The rows of this label: one, or one for each group; each with the seeds that all of them have."""
    found = [summary for summary in summaries if plain(summary.row.label, summary.row) == label]
    found = [summary for summary in found if not group or plain(summary.row.group, summary.row) == group]
    return with_common_seeds(found) if found else []


def score_row(place: str, claim: Claim, first: Sequence[Summary], second: Sequence[Summary]) -> Cells:
    ours, theirs = mean_of_sets(first), mean_of_sets(second)
    papers = [[summary.row.paper for summary in summaries] for summaries in (first, second)]
    printed = [np.mean([p for p in scores if p is not None]) for scores in papers if None not in scores]
    sign, *cells = compared(ours, theirs, strata_of(first, second), claim.higher)
    return (place, settings_of(first[0]), claim.text, sign, beside(printed) if len(printed) == 2 else "", *cells)


def compared(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], strata: Strata, higher: bool = True
) -> tuple[str, ...]:
    """The verdict, both means, the numbers of seeds, p over seeds and over sentences."""
    gain, p, over_sentences = float(ours.mean() - theirs.mean()), t_test(ours, theirs), paired_bootstrap(strata)
    found = verdict(gain if higher else -gain, p, over_sentences)
    seeds = f"{len(ours)} / {len(theirs)}"
    return (found, beside([ours.mean(), theirs.mean()]), seeds, shown_p(p), shown_p(over_sentences))


def beside(numbers: Sequence[Any]) -> str:
    return " / ".join(f"{number:.2f}" for number in numbers)


def settings_of(summary: Summary) -> str:
    return f"{name_of(summary.row.settings)}, {summary.row.runs[0].vectors}"


def length_claims(plan: Plan, records: Records) -> list[Cells]:
    """Figure 4: the longest third less the shortest, for each seed."""
    experiment = figure_4(plan)
    found: dict[tuple[str, str], dict[str, Summary]] = {}
    for summary in summarise(experiment, records):
        if len(summary.scores):
            kinds = found.setdefault((summary.row.group, summary.row.settings), {})
            kinds[summary.row.runs[0].model.encoder] = summary
    rows: list[Cells] = []
    for (group, _), pair in found.items():
        if {"S-LSTM", "BiLSTM"} <= pair.keys():
            own, other = pair["S-LSTM"], pair["BiLSTM"]
            sign, *cells = compared(change(own), change(other), strata_of_change(own, other))
            rows.append((f"{where(experiment)}, {group}", settings_of(own), LONGER, sign, "", *cells))
    return rows


def change(summary: Summary) -> NDArray[np.float64]:
    scores = thirds_of(summary)
    return np.asarray(scores[:, -1] - scores[:, 0])


def strata_of_change(own: Summary, other: Summary) -> Strata:
    """Own less other of the long sentences, other less own of the short: in sum, the difference of the changes."""
    ours, theirs = mean_counts(own), mean_counts(other)
    parts = thirds(lengths_of(own))
    short, long = parts[0], parts[-1]
    return [(ours[long], theirs[long]), (theirs[short], ours[short])]


# ---- times and memory -------------------------------------------------------------------------------


def time_claims(experiment: Experiment, records: Records) -> list[Cells]:
    """That the S-LSTM is faster than the BiLSTM, as ratios, in each precision; of an experiment with one settings."""
    timed = {row.label: row for row in experiment.timed or experiment.rows}
    if experiment.times is None or not {"S-LSTM", "BiLSTM"} <= dict(experiment.times.models).keys():
        return []
    own, other = timed["S-LSTM"], timed["BiLSTM"]
    rows: list[Cells] = []
    for precision, (record,) in measured([experiment.times], records).items():
        for place, (kind, what) in enumerate((("train", "trains"), ("decode", "predicts"))):
            ratios = rounds_of(record, "BiLSTM", "S-LSTM", kind)
            pairs = [row.paper_times[place] for row in (other, own) if row.paper_times]
            printed = f"{pairs[0] / pairs[1]:.2f}" if pairs and pairs[0] and pairs[1] else ""
            settings = f"{name_of(own.settings)}, {precision}"
            claim = f"S-LSTM {what} faster than BiLSTM"
            found = (by_rounds(ratios), printed, f"{np.median(ratios):.2f}")
            rows.append((where(experiment), settings, claim, *found, "", "", ""))
    return rows


def by_rounds(ratios: NDArray[np.float64]) -> str:
    if (ratios > 1).all():
        return HOLDS
    return FAILS if (ratios < 1).all() else OPEN


def growth_claims(plan: Plan, records: Records) -> list[Cells]:
    """Figure 5: the ratios of the groups, where all are measured."""
    claim = "S-LSTM's advantage in training grows with length"
    rows: list[Cells] = []
    groups = figure_5(plan)
    for precision, lines in measured(groups, records).items():
        if len(lines) < len(groups):
            continue
        ratios = [ratio for _, ratio in sorted(ratios_of(lines).items())]
        shown = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        grows = HOLDS if all(np.diff(ratios) > 0) else FAILS
        rows.append(("Figure 5", f"{name_of(plan.settings[0])}, {precision}", claim, grows, "", shown, "", "", ""))
    return rows


def memory_claims(plan: Plan, records: Records) -> list[Cells]:
    rows: list[Cells] = []
    for precision, (line,) in measured(memory(plan), records).items():
        used = line["megabytes"]
        ours, printed = used["S-LSTM"] / used["BiLSTM"], MEMORY["S-LSTM"] / MEMORY["BiLSTM"]
        settings = f"{name_of(plan.settings[0])}, {precision}"
        found = HOLDS if ours > 1 else FAILS
        claim = "S-LSTM takes more memory than BiLSTM"
        rows.append(("Memory", settings, claim, found, f"{printed:.2f}", f"{ours:.2f}", "", "", ""))
    return rows
