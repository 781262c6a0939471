"""Section 4.5, analysis: Figure 4, Figure 5 and the paragraph on memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .classification import table_4
from .descriptions import counted, settings_note, sizes_note
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
    panels, rows, words = [], [], {}
    for group in dict.fromkeys(summary.row.group for summary in summaries):
        curves = []
        for summary in (summary for summary in summaries if summary.row.group == group):
            lengths, scores = binned(summary, bins_of)
            spread = scores.std(axis=0, ddof=1).tolist() if len(scores) > 1 else None
            curves.append(Curve(summary.row.label, lengths.tolist(), scores.mean(axis=0).tolist(), spread))
            words[group] = lengths_of_thirds(summary)
            cells = [f"{mean:.2f}" for mean in thirds_of(summary).mean(axis=0)]
            if len(cells) == 3:
                rows.append((group, summary.row.label, *cells, str(len(scores))))
        metric = "F1" if group.startswith("CoNLL") else "accuracy"
        panels.append(Panel(group, "words (mean of a bin)", metric, curves))
    section = Section(experiment.name, experiment.title)
    section.tables.append(Table(("set", "model", "short third", "middle third", "long third", "seeds"), tuple(rows), 2))
    section.notes.append(
        f"The paper draws curves without numbers. Bins of {BIN} test sentences or more by length: sentences of equal "
        "length stay in one bin, and in one third. Shaded: ± sd."
    )
    section.notes += [f"Words of the thirds, {group}: {found}." for group, found in words.items()]
    section.details.append(settings_note(experiment, summaries))
    if panels:
        section.figures.append(draw("figure4", experiment.title, panels, plan.smoke))
    return section


def thirds_of(summary: Summary) -> NDArray[np.float64]:
    """Scores (seeds, 3) of the shortest third of the sentences, the middle one and the longest; fewer columns where
    there are too few lengths."""
    return binned(summary, thirds)[1]


def thirds(lengths: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Places of the sentences of each third, cut between two lengths."""
    order = np.argsort(lengths, kind="stable")
    cuts = np.flatnonzero(np.diff(lengths[order])) + 1
    nearest = {int(min(cuts, key=lambda cut: abs(cut - k * len(order) / 3))) for k in (1, 2) if len(cuts)}
    return np.split(order, sorted(nearest))


def lengths_of_thirds(summary: Summary) -> str:
    lengths = lengths_of(summary)
    return ", ".join(f"{lengths[places].min()} to {lengths[places].max()}" for places in thirds(lengths))


def lengths_of(summary: Summary) -> NDArray[np.int64]:
    return unpack(summary.records[0]["test"]["lengths"])


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
    counts, lengths = summary.counts, lengths_of(summary)
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
    measurements = figure_5(plan)
    found = {precision: ratios_of(lines) for precision, lines in measured(measurements, records).items()}
    title = f"Figure 5: training time against length, {counted(len(measurements[0].data), 'set')} in ten groups"
    section = Section("figure5", title)
    lengths = sorted({length for ratios in found.values() for length in ratios})
    cells = [[f"{ratios[n]:.2f}" if n in ratios else "" for ratios in found.values()] for n in lengths]
    rows = tuple((f"{length:.0f}", *row) for length, row in zip(lengths, cells, strict=True))
    section.tables.append(Table(("median words", *(f"BiLSTM / S-LSTM, {precision}" for precision in found)), rows))
    section.notes.append(
        "How many times as long as the S-LSTM the BiLSTM takes for the same training steps, measured in turns in one "
        "process. The paper draws seconds without numbers, and finds the ratio growing with length."
    )
    section.notes.append(measured_note(measurements, records))
    if found:
        curves = [Curve(precision, list(ratios), list(ratios.values())) for precision, ratios in found.items()]
        panel = Panel("", "median words", "time of BiLSTM / S-LSTM", curves, of_ratios=True)
        section.figures.append(draw("figure5", title, [panel], plan.smoke))
    return section


def ratios_of(lines: Sequence[dict[str, Any]]) -> dict[float, float]:
    """From the median length of a group to how many times as long the BiLSTM takes."""
    return {line["median_length"]: ratio(line, "BiLSTM", "S-LSTM", "train") for line in lines}


def measured_note(measurements: Sequence[Measurement], records: Records) -> str:
    conditions = dict.fromkeys(
        conditions_of(line) for lines in measured(measurements, records).values() for line in lines
    )
    return f"Measured on {'; '.join(conditions)}. {sizes_note(measurements[0].models)}."


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
    used = {precision: line["megabytes"] for precision, (line,) in found.items()}
    rows = [
        (
            encoder,
            *memory_cells(MEMORY, encoder, 0),
            *(cell for each in used.values() for cell in memory_cells(each, encoder, 1)),
        )
        for encoder in MEMORY
    ]
    columns = [cell for whose in ("paper", *used) for cell in (f"{whose}, MB", f"{whose}, of BiLSTM")]
    section.tables.append(Table(("model", *columns), tuple(rows)))
    what = "; ".join(dict.fromkeys(line["memory_of"] for (line,) in found.values()))
    section.notes.append(f"Ours: {what}, batches of 10. {measured_note(memory(plan), records)}")
    section.notes.append(
        'S-LSTM with memory="auto", the default, which spends memory of a GPU for speed; memory="low" takes a fifth of '
        "it on long texts."
    )
    return section


def memory_cells(megabytes: Mapping[str, float], encoder: str, digits: int) -> tuple[str, str]:
    if encoder not in megabytes:
        return "", ""
    return f"{megabytes[encoder]:.{digits}f}", f"{megabytes[encoder] / megabytes['BiLSTM']:.2f}"
