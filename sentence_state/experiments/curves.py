"""Figures 2 and 3: dev scores against the number of steps."""

from __future__ import annotations

from math import nan

from .comparison import compare
from .document import Section
from .drawing import Curve, Panel, draw
from .experiment import Experiment
from .summaries import Records, Summary, summarise


def steps_figure(experiment: Experiment, records: Records, smoke: bool) -> Section:
    """A panel for each data set or settings, a curve for each group, with the paper's best points; then the numbers."""
    section = compare(experiment, records)
    panels: dict[str, dict[str, list[Summary]]] = {}
    for summary in summarise(experiment, records):
        if len(summary.scores):
            panels.setdefault(summary.row.panel, {}).setdefault(summary.row.group, []).append(summary)
    drawn = [
        panel_of(name, groups)
        for name, groups in panels.items()
        if any(len(found) > 1 for found in groups.values())  # one point is no curve
    ]
    if drawn:
        caption = f"{experiment.title}; lines and shades: ± sd; hollow points are of one seed"
        section.figures.append(draw(experiment.name, caption, drawn, smoke))
    return section


def panel_of(name: str, groups: dict[str, list[Summary]]) -> Panel:
    summaries = [summary for found in groups.values() for summary in found]
    metric = "F1" if summaries[0].metric == "f1" else "accuracy"
    curves = [curve_of(group, found) for group, found in groups.items()]
    return Panel(name, "steps", f"dev {metric}", curves, ticks=sorted({x for curve in curves for x in curve.x}))


def curve_of(group: str, summaries: list[Summary]) -> Curve:
    steps = [summary.row.runs[0].model.num_steps for summary in summaries]
    spread = [nan if summary.deviation is None else summary.deviation for summary in summaries]  # nan: no band
    paper = [(x, s.row.paper) for x, s in zip(steps, summaries, strict=True) if s.row.paper is not None]
    return Curve(group, steps, [summary.mean for summary in summaries], spread, paper)
