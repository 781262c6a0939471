"""Figures: our curves with their spread, the paper's printed points beside them. They need matplotlib, an extra."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from .document import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")


@dataclass(frozen=True)
class Curve:
    """x and y, with the spread of y where there are several runs; points whose spread is no number are of one run, and
    hollow. paper: points that the paper prints."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] | None = None
    paper: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class Panel:
    """of_ratios: the axis of y begins at zero and has a line at one. ticks: on the axis of x, where a few numbers are
    all there are."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    of_ratios: bool = False
    ticks: Sequence[float] | None = None


def draw(name: str, caption: str, panels: Sequence[Panel], smoke: bool) -> Figure:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        return Figure(name, caption, b"", b"")
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": name, "font.size": 10}):
        canvas = Canvas(figsize=(5.2 * len(panels), 3.6), layout="constrained")
        for axes, panel in zip(canvas.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            draw_panel(axes, panel)
        if smoke:
            canvas.text(0.5, 0.5, "SMOKE RUN", fontsize=44, color="#c606", ha="center", va="center", rotation=20)
        return Figure(name, caption, saved(canvas, "svg"), saved(canvas, "png"), len(panels))


def draw_panel(axes: Any, panel: Panel) -> None:
    for place, curve in enumerate(panel.curves):
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(curve.x, curve.y, marker="o", markersize=4, color=colour, label=curve.label)
        if curve.spread is not None:
            low = [y - s for y, s in zip(curve.y, curve.spread, strict=True)]
            high = [y + s for y, s in zip(curve.y, curve.spread, strict=True)]
            axes.fill_between(curve.x, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.vlines(curve.x, low, high, color=colour, alpha=0.4, linewidth=1)  # no band between one point and none
            single = [(x, y) for x, y, s in zip(curve.x, curve.y, curve.spread, strict=True) if isnan(s)]
            for x, y in single:
                axes.plot([x], [y], "o", markersize=4, color=colour, markerfacecolor="white", zorder=3)
        for x, y in curve.paper:
            axes.plot([x], [y], marker="*", markersize=12, color=colour, linestyle="none", label=f"paper: {y:g}")
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
    axes.grid(alpha=0.3)
    if panel.of_ratios:
        axes.axhline(1, color="#888", linewidth=1)
        axes.set_ylim(bottom=0)
    if panel.ticks is not None:
        axes.set_xticks(panel.ticks)
    elif all(float(x).is_integer() for curve in panel.curves for x in curve.x):
        axes.xaxis.get_major_locator().set_params(integer=True)
    if panel.curves:
        axes.legend(fontsize="small", framealpha=0.6)


def saved(canvas: Any, kind: str) -> bytes:
    stream = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}  # the same file for the same numbers
    canvas.savefig(stream, format=kind, dpi=130, metadata=metadata)
    return stream.getvalue()
