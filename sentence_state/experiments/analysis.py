"""Section 4.5, analysis: Figure 4, Figure 5 and the paragraph on memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .classification import table_4
from .document import Section, Table
from .drawing import Curve, Panel, draw
from .experiment import Experiment, Plan, Row, has_settings
from .labelling import table_7
from .measurements import GROUPS, Measurement
from .outcomes import score_of, unpack
from .paper_results import DOMAIN_NAMES, MEMORY
from .summaries import Records, Summary, conditions_of, measured, ratio, summarise

ENCODERS = ("S-LSTM", "BiLSTM")
BIN = 80  # test sentences


def figure_4(plan: Plan) -> Experiment:
    """Test scores against the length of sentences, on MR and CoNLL-2003."""
    rows: list[Row] = []
    for name, experiment in (("MR", table_4(plan)), ("CoNLL-2003", table_7(plan))):
        rows += [
            replace(row, group=name, paper=None, paper_times=None)
            for row in experiment.rows
            if row.runs[0].model.encoder in ENCODERS
        ]
    return Experiment("figure4", "Figure 4: test scores against sentence length", "test", tuple(rows))


def section_4(plan: Plan, records: Records) -> Section:
    """Sentences sorted by length, in bins of 80 as in the paper, or a few more: see `bins_of`."""
    experiment = figure_4(plan)
    summaries = [summary for summary in summarise(experiment, records) if len(summary.scores)]
    panels, rows = [], []
    for group in dict.fromkeys(summary.row.group for summary in summaries):
        curves = []
        for summary in (summary for summary in summaries if summary.row.group == group):
            lengths, scores = binned(summary, bins_of)
            spread = scores.std(axis=0, ddof=1).tolist() if len(scores) > 1 else None
            curves.append(Curve(summary.row.label, lengths.tolist(), scores.mean(axis=0).tolist(), spread))
            thirds = binned(summary, lambda lengths: np.array_split(np.argsort(lengths, kind="stable"), 3))[1]
            cells = [f"{mean:.2f}" for mean in thirds.mean(axis=0)]
            rows.append((group, summary.row.label, *cells, str(len(scores))))
        metric = "F1" if group.startswith("CoNLL") else "accuracy"
        panels.append(Panel(group, "words (mean of a bin)", metric, curves))
    section = Section(experiment.name, experiment.title)
    section.tables.append(Table(("set", "model", "short third", "middle third", "long third", "seeds"), tuple(rows), 2))
    section.notes.append(
        "The paper draws curves without numbers. Bins of 80 test sentences by length, with all others as long: "
        "else bins of equal length would stand in one place. Shaded: ± sd."
    )
    if panels:
        section.figures.append(draw("figure4", experiment.title, panels, plan.smoke))
    return section


def bins_of(lengths: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Places of the sentences of each bin: 80 from the shortest on, then all that are as long as the last of them; a
    rest of less than a bin joins the last."""
    order = np.argsort(lengths, kind="stable")
    ordered, ends = lengths[order], []
    end = 0
    while (end := end + BIN) <= len(order):
        end = int(np.searchsorted(ordered, ordered[end - 1], side="right"))
        ends.append(end)
    return np.split(order, ends[:-1])


def binned(
    summary: Summary, cut: Callable[[NDArray[np.int64]], Sequence[NDArray[np.int64]]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean length of each bin, and scores (seeds, bins). cut: from lengths to the places of each bin."""
    counts, lengths = summary.counts, unpack(summary.records[0]["test"]["lengths"])
    assert counts is not None
    bins = cut(lengths)
    scores = np.stack([score_of(counts[:, places]) for places in bins], axis=1)
    return np.array([lengths[places].mean() for places in bins]), scores


def figure_5(plan: Plan) -> list[Measurement]:
    """Training time against length: the sentences of all 16 sets in ten groups."""
    names = [name for name in DOMAIN_NAMES.values() if not plan.sets or name in plan.sets] or ["fdu/books"]
    sets = dict.fromkeys(plan.data(name) for name in names)
    models = tuple((encoder, plan.model(encoder, names[0])) for encoder in ENCODERS)
    groups = (0, GROUPS - 1) if plan.smoke else range(GROUPS)
    precision = plan.precision(names[0])
    return [plan.quick(Measurement("time", tuple(sets), models, group=group, precision=precision)) for group in groups]


def section_5(plan: Plan, records: Records) -> Section:
    found = measured(figure_5(plan), records)
    lengths = [record["median_length"] for record in found]
    ratios = [ratio(record, "BiLSTM", "S-LSTM", "train") for record in found]
    title = "Figure 5: training time against length, 16 sets in ten groups"
    section = Section("figure5", title)
    rows = tuple((f"{length:.0f}", f"{value:.2f}") for length, value in zip(lengths, ratios, strict=True))
    section.tables.append(Table(("median words", "BiLSTM / S-LSTM"), rows))
    section.notes.append(
        "How many times as long as the S-LSTM the BiLSTM takes for the same training steps, measured in turns in one "
        "process. The paper draws seconds without numbers, and finds the ratio growing with length."
    )
    if found:
        section.notes.append(f"Measured on {conditions_of(found[0])}.")
        curves = [Curve("BiLSTM / S-LSTM", lengths, ratios)]
        panel = Panel("", "median words", "ratio of times", curves, from_zero=True)
        section.figures.append(draw("figure5", title, [panel], plan.smoke))
    return section


def memory(plan: Plan) -> list[Measurement]:
    """Memory of a training step on MR dev."""
    known = [encoder for encoder in MEMORY if has_settings(plan.settings[0], encoder, "mr")]
    models = tuple((encoder, plan.model(encoder, "mr")) for encoder in known)
    return [plan.quick(Measurement("memory", (plan.data("mr"),), models, precision=plan.precision("mr")))]


def section_memory(plan: Plan, records: Records) -> Section:
    section = Section("memory", "Memory (Section 4.5): training on MR dev")
    found = measured(memory(plan), records)
    if not found:
        return section
    used = found[0]["megabytes"]
    rows = [
        (
            encoder,
            f"{printed}",
            f"{printed / MEMORY['BiLSTM']:.2f}",
            f"{used[encoder]:.1f}",
            f"{used[encoder] / used['BiLSTM']:.2f}",
        )
        for encoder, printed in MEMORY.items()
        if encoder in used
    ]
    columns = ("model", "paper, MB", "paper, of BiLSTM", "ours, MB", "ours, of BiLSTM")
    section.tables.append(Table(columns, tuple(rows)))
    section.notes.append(f"Ours: {found[0]['memory_of']}, batches of 10, on {conditions_of(found[0])}.")
    return section
