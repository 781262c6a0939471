"""Section 4.4, final results for sequence labelling: Figure 3, Table 6 and Table 7."""

from __future__ import annotations

from .experiment import Experiment, Plan, Row, labelled, rows_of_encoders, without_rows
from .paper_results import BEST_STEPS, NER, NER_OTHERS, POS, POS_OTHERS

BASELINE, BASIS = "BiLSTM", "9"  # what rows, and points, are compared with
STEPS = (1, 3, 5, 7, 9, 11)
SMOKE_STEPS = (1, 3)
NOT_PTB = (
    "The Penn Treebank is licensed (LDC99T42) and not in the data folder: these scores are on the English Web Treebank "
    "of Universal Dependencies (EWT, the same tag set), and cannot be compared with the paper's, which are on PTB."
)
BEST_ON_PTB = "On PTB the paper's best point is {:.2f} with {} steps.".format(*reversed(BEST_STEPS["ptb"]))


def pos_set(plan: Plan) -> str:
    """PTB where the user has it."""
    return "ptb" if "ptb" in plan.sets else "ewt"


def table_6(plan: Plan) -> Experiment:
    """Part-of-speech tagging, test accuracy."""
    data = pos_set(plan)
    paper = {encoder: printed if data == "ptb" else None for encoder, printed in POS.items()}
    steps = BEST_STEPS["ptb"][0]
    rows = rows_of_encoders(plan, data, paper, test=True, against=BASELINE, paper_steps=steps)
    others = {**without_rows(POS, rows), **POS_OTHERS}
    if data != "ptb":
        others = {f"{name}, on PTB": score for name, score in {**without_rows(POS, []), **POS_OTHERS}.items()}
    notes = () if data == "ptb" else (NOT_PTB,)
    title = f"Table 6: part-of-speech tagging, test accuracy on {data.upper()}"
    return Experiment("table6", title, "test", rows, notes, plan.times([data], rows), others=others)


def table_7(plan: Plan) -> Experiment:
    """CoNLL-2003, test F1."""
    rows = rows_of_encoders(plan, "conll2003", NER, test=True, against=BASELINE)
    others = {**without_rows(NER, rows), **NER_OTHERS}
    title = "Table 7: named entities, test F1 on CoNLL-2003"
    return Experiment("table7", title, "test", rows, times=plan.times(["conll2003"], rows), others=others)


def figure_3(plan: Plan) -> Experiment:
    """Dev scores against the number of steps, for entities and for parts of speech."""
    rows = []
    for data in ("conll2003", pos_set(plan)):
        best, score = BEST_STEPS.get(data, (0, 0.0))
        for settings in plan.settings:
            group = labelled(data, settings, plan)
            for steps in SMOKE_STEPS if plan.smoke else STEPS:
                runs = plan.runs(data, "S-LSTM", settings, False, num_steps=steps)
                printed = score if steps == best and settings == plan.settings[0] else None
                against = BASIS if steps != int(BASIS) and not plan.smoke else None
                rows.append(Row(str(steps), runs, printed, group, against, panel=data, settings=settings))
    notes = ["The paper draws curves without numbers; its text gives the best point of each."]
    if pos_set(plan) != "ptb":
        notes += [NOT_PTB, BEST_ON_PTB]
    title = "Figure 3: dev scores against steps, S-LSTM-CRF"
    return Experiment("figure3", title, "dev", tuple(rows), tuple(notes), unit="steps")
