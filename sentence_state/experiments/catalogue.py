"""The names that `sentence-state reproduce` knows, in the order of the paper, and what each of them needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from .analysis import figure_4, figure_5, memory, section_4, section_5, section_memory
from .claims import Cells, growth_claims, length_claims, memory_claims, score_claims, time_claims
from .classification import table_4, table_5
from .comparison import compare
from .curves import steps_figure
from .development import figure_2, table_2, table_3
from .document import Section
from .experiment import Experiment, Plan, labelled
from .grid import grid
from .labelling import figure_3, table_6, table_7
from .measurements import Measurement
from .runs import Run
from .settings import section_1, table_1
from .summaries import Records


@dataclass(frozen=True)
class Target:
    """A table or figure under a plan: what has to be run and measured, and the section that shows it."""

    name: str
    runs: list[Run]
    measurements: list[Measurement]
    section: Callable[[Records], Section]
    claims: Callable[[Records], list[Cells]] = lambda records: []  # rows of the section of claims


EXPERIMENTS: dict[str, Callable[[Plan], Experiment]] = {
    "table2": table_2,
    "figure2": figure_2,
    "table3": table_3,
    "table4": table_4,
    "table5": table_5,
    "figure3": figure_3,
    "table6": table_6,
    "table7": table_7,
    "figure4": figure_4,
}
MEASUREMENTS: dict[str, Callable[[Plan], list[Measurement]]] = {
    "table1": table_1,
    "figure5": figure_5,
    "memory": memory,
}
NAMES = (
    "table1", "table2", "figure2", "table3", "table4", "table5", "figure3", "table6", "table7", "figure4", "figure5",
    "memory",
)  # fmt: skip


def find(name: str, plan: Plan) -> Target:
    """A name of the paper, or a JSON file with rows of one's own."""
    if name in MEASUREMENTS:
        sections = {"table1": section_1, "figure5": section_5, "memory": section_memory}
        claims = {"figure5": growth_claims, "memory": memory_claims}.get(name, lambda plan, records: [])
        return Target(
            name,
            [],
            MEASUREMENTS[name](plan),
            lambda records: sections[name](plan, records),
            lambda records: claims(plan, records),
        )
    if name not in EXPERIMENTS:
        own = grid(Path(name), plan)
        return Target(name, own.runs(), [], lambda records: compare(own, records))
    experiment = EXPERIMENTS[name](plan)
    # Models of different settings do not take turns: what was measured for some is not measured again beside others.
    each = {"": experiment}
    if experiment.times and len(plan.settings) > 1:
        single = {labelled("", settings, plan): replace(plan, settings=(settings,)) for settings in plan.settings}
        each = {label: EXPERIMENTS[name](one) for label, one in single.items()}
    measurements = [one.times for one in each.values() if one.times]
    return Target(
        name,
        experiment.runs(),
        measurements,
        lambda records: section_of(experiment, each, plan, records),
        lambda records: claims_of(experiment, each, plan, records),
    )


def claims_of(experiment: Experiment, each: Mapping[str, Experiment], plan: Plan, records: Records) -> list[Cells]:
    if experiment.name == "figure4":
        return length_claims(plan, records)
    times = [row for one in each.values() for row in time_claims(one, records)]
    return [*score_claims(experiment, records), *times]


def section_of(experiment: Experiment, each: Mapping[str, Experiment], plan: Plan, records: Records) -> Section:
    if experiment.name in ("figure2", "figure3"):
        return steps_figure(experiment, records, plan.smoke)
    if experiment.name == "figure4":
        return section_4(plan, records)
    return compare(experiment, records, each)


def about(name: str) -> str:
    return ((EXPERIMENTS.get(name) or MEASUREMENTS[name]).__doc__ or "").strip()
