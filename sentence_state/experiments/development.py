"""Section 4.2, development experiments on MR: Table 2, Figure 2 and Table 3."""

from __future__ import annotations

from typing import Any

from .experiment import (
    Experiment,
    Plan,
    Row,
    has_settings,
    labelled,
    name_of,
    printed_row,
    rows_of_encoders,
    without_rows,
)
from .paper_results import (
    BEST_STEPS,
    BOUNDARIES,
    DEVELOPMENT,
    DEVELOPMENT_WITH_ATTENTION,
    HIDDEN_SIZES,
    SENTENCE_NODES,
    Developed,
)

BASELINE, BASIS = "BiLSTM", "9"  # what rows, and points, are compared with
BASES = {"nodes": "+1 sentence nodes", "size": "Hidden size 300", "boundaries": "With <s>, </s>"}
WINDOWS, STEPS = (1, 2, 3, 4), (1, 3, 5, 7, 9, 11)
SMOKE_WINDOWS, SMOKE_STEPS = (1, 2), (1, 3)


def table_2(plan: Plan) -> Experiment:
    """Sentence nodes, hidden sizes, boundary words of the S-LSTM."""
    varied: list[tuple[str, str, dict[str, Any], Developed]] = [
        *(("nodes", f"+{k} sentence nodes", {"sentence_nodes": k}, paper) for k, paper in SENTENCE_NODES.items()),
        *(("size", f"Hidden size {size}", {"hidden_size": size}, paper) for size, paper in HIDDEN_SIZES.items()),
        *(
            ("boundaries", f"{'With' if given else 'Without'} <s>, </s>", {"boundaries": given}, paper)
            for given, paper in BOUNDARIES.items()
        ),
    ]
    rows = [
        printed_row(
            labelled(label, settings, plan),
            plan.runs("mr", "S-LSTM", settings, False, **options),
            paper,
            settings,
            group,
            labelled(BASES[group], settings, plan) if label != BASES[group] else None,
        )
        for settings in plan.settings
        for group, label, options, paper in varied
    ]
    title = "Table 2: dev accuracy on MR, S-LSTM"
    return Experiment("table2", title, "dev", tuple(rows), (), plan.times(["mr"], rows))


def figure_2(plan: Plan) -> Experiment:
    """Dev accuracy against the number of steps, for several windows."""
    best, score = BEST_STEPS["mr"]
    rows = []
    for settings in plan.settings:
        for window in SMOKE_WINDOWS if plan.smoke else WINDOWS:
            group = labelled(f"window {window}", settings, plan)
            for steps in SMOKE_STEPS if plan.smoke else STEPS:
                runs = plan.runs("mr", "S-LSTM", settings, False, window=window, num_steps=steps)
                printed = score if (window, steps) == (1, best) else None
                panel = name_of(settings) if len(plan.settings) > 1 else ""
                against = BASIS if steps != int(BASIS) and not plan.smoke else None
                rows.append(Row(str(steps), runs, printed, group, against, panel=panel, settings=settings))
    notes = ("The paper draws curves without numbers; its text gives the best point.",)
    title = "Figure 2: dev accuracy on MR against steps and window"
    return Experiment("figure2", title, "dev", tuple(rows), notes, unit="steps")


def table_3(plan: Plan) -> Experiment:
    """All encoders, and two of them with attention."""
    rows = list(rows_of_encoders(plan, "mr", DEVELOPMENT, test=False, against=BASELINE))
    for settings in plan.settings:
        for encoder, printed in DEVELOPMENT_WITH_ATTENTION.items():
            if not has_settings(settings, encoder, "mr"):
                continue  # as in the rows above
            label = labelled(f"{encoder}+Attention", settings, plan)
            against = labelled(f"{BASELINE}+Attention", settings, plan)
            runs = plan.runs("mr", encoder, settings, False, readout="attention")
            rows.append(printed_row(label, runs, printed, settings, against=against if label != against else None))
    others, times = without_rows(DEVELOPMENT, rows), plan.times(["mr"], rows)
    return Experiment("table3", "Table 3: dev accuracy on MR", "dev", tuple(rows), times=times, others=others)
