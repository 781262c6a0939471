"""Section 4.3, final results for classification: Table 4 and Table 5."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import mean

from .experiment import Experiment, Plan, Row, rows_of_encoders, without_rows
from .paper_results import (
    DOMAIN_AVERAGES,
    DOMAIN_AVERAGES_OF_THE_TEXT,
    DOMAIN_NAMES,
    DOMAINS,
    MOVIE_REVIEW,
    MOVIE_REVIEW_OTHERS,
    THREE_STACKED_TRAIN,
    Timed,
)

BASELINE = "BiLSTM"
SMOKE_DOMAINS = ("Books", "MR")


def table_4(plan: Plan) -> Experiment:
    """MR, test accuracy."""
    rows = rows_of_encoders(plan, "mr", MOVIE_REVIEW, test=True, against=BASELINE)
    times = plan.times(["mr"], rows)
    others = {**without_rows(MOVIE_REVIEW, rows), **MOVIE_REVIEW_OTHERS}
    return Experiment("table4", "Table 4: test accuracy on MR", "test", rows, times=times, others=others)


def table_5(plan: Plan) -> Experiment:
    """The 16 sets, test accuracy; the report adds averages, and scores without what also stands in train."""
    rows: list[Row] = []
    domains = {name: data for name, data in DOMAIN_NAMES.items() if not plan.smoke or name in SMOKE_DOMAINS}
    for name, data in domains.items():
        paper = {encoder: scores[name] for encoder, scores in DOMAINS.items()}
        rows += rows_of_encoders(plan, data, paper, test=True, against=BASELINE, group=name)
    averages = {encoder: average(scores) for encoder, scores in DOMAINS.items()}
    timed = rows_of_encoders(plan, next(iter(domains.values())), averages, test=True, against=BASELINE)
    times = plan.times(list(domains.values()), timed)
    notes = (
        contradictions(averages),
        '"Without repeats" leaves out the test reviews that stand word for word in train.',
    )
    return Experiment("table5", "Table 5: test accuracy on the 16 sets", "test", tuple(rows), notes, times, timed)


def average(scores: Mapping[str, Timed]) -> Timed:
    """Of the paper's rows."""
    return Timed(*(mean(values) for values in zip(*scores.values(), strict=True)))


def contradictions(averages: Mapping[str, Timed]) -> str:
    """What the paper prints as averages of its rows, and what they are."""
    printed = list(DOMAIN_AVERAGES.values())
    rows = [averages[encoder] for encoder in DOMAIN_AVERAGES]
    text = DOMAIN_AVERAGES_OF_THE_TEXT
    return (
        f'The paper\'s row "Average" says {in_line(one.score for one in printed)}, trained in '
        f"{in_line(one.train for one in printed)} seconds; the rows above it, with which ours are compared, average "
        f"{in_line(one.score for one in rows)} and {in_line(one.train for one in rows)}. Its text says "
        f"{text['S-LSTM']} and {text['2 stacked BiLSTM']}, and {text['3 stacked BiLSTM']} with {THREE_STACKED_TRAIN} "
        "seconds for 3 stacked BiLSTMs."
    )


def in_line(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)
