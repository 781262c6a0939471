"""Verdicts about the paper's claims from scores and times that are known."""

from dataclasses import replace

import pytest

from sentence_state import ModelConfig, TrainingConfig
from sentence_state.experiments.analysis import figure_5, memory
from sentence_state.experiments.claims import (
    growth_claims,
    length_claims,
    memory_claims,
    score_claims,
    section_of_claims,
    time_claims,
    verdict,
)
from sentence_state.experiments.classification import table_4, table_5
from sentence_state.experiments.experiment import Experiment, Plan, Row
from sentence_state.experiments.material import Data
from sentence_state.experiments.outcomes import pack
from sentence_state.experiments.runs import Run

PLAN = Plan(seeds=5)
LOW, HIGH = (70, 71, 72, 71, 71), (80, 81, 82, 81, 81)


def line(run, right, of=100):
    """The kept line of a run that was right at the first of some sentences, of growing length."""
    counts = pack([(int(place < right), 1, 1) for place in range(of)])
    measured = {"score": right / of, "counts": counts, "lengths": pack(range(1, of + 1)), "metric": "accuracy"}
    return {"key": run.key(), "kind": "training", "run": run.describe(), "test": measured, "dev": measured}


def records_of(rows, right):
    """right: for a row, how many sentences each of its seeds gets right."""
    return {run.key(): line(run, number) for row in rows for run, number in zip(row.runs, right(row), strict=False)}


def only(rows):
    (row,) = rows
    return row


@pytest.mark.parametrize(
    ("gain", "p", "over_sentences", "expected"),
    [
        (1, 0.04, 0.04, "holds"),
        (-1, 0.04, 0.04, "does not hold"),
        (1, 0.04, 0.05, "holds, over seeds"),
        (-1, 0.04, 0.5, "does not hold, over seeds"),
        (1, 0.06, 0.04, "not decided"),
        (-1, 0.06, 0.04, "not decided"),
        (1, None, 0.04, "not decided"),
    ],
)
def test_a_sign_is_believed_where_p_is_below_a_twentieth(gain, p, over_sentences, expected):
    assert verdict(gain, p, over_sentences) == expected


@pytest.mark.parametrize(
    ("s_lstm", "seeds", "expected"),
    [
        ((80, 81, 82, 81, 81), "5 / 5", "holds"),
        ((60, 61, 62, 61, 61), "5 / 5", "does not hold"),
        ((70, 72, 73, 72, 71), "5 / 5", "not decided"),
        ((90, 71), "2 / 5", "not decided"),
    ],
)
def test_a_claim_about_two_rows_has_the_papers_scores_ours_and_a_verdict(s_lstm, seeds, expected):
    experiment = table_4(PLAN)
    rows = [row for row in experiment.rows if row.label in ("S-LSTM", "BiLSTM")]
    records = records_of(rows, lambda row: s_lstm if row.label == "S-LSTM" else (70, 71, 72, 71, 71))
    place, settings, claim, found, paper, ours, shown_seeds, _, _ = only(score_claims(experiment, records))
    assert (place, settings, claim) == ("Table 4", "paper, none", "S-LSTM is better than BiLSTM")
    assert paper == "82.45 / 81.61"
    assert ours == f"{sum(s_lstm) / len(s_lstm):.2f} / 71.00"
    assert (shown_seeds, found) == (seeds, expected)


def test_a_claim_without_runs_of_both_rows_is_left_out():
    experiment = table_4(PLAN)
    assert score_claims(experiment, {}) == []
    assert score_claims(experiment, records_of(experiment.rows[:1], lambda row: LOW)) == []


def test_the_16_sets_are_judged_together_and_only_when_all_are_there():
    experiment = table_5(PLAN)
    rows = [row for row in experiment.rows if row.label in ("S-LSTM", "BiLSTM")]
    records = records_of(rows, lambda row: HIGH if row.label == "S-LSTM" else LOW)
    found = only(score_claims(experiment, records))
    assert found[2:6] == ("S-LSTM is better than BiLSTM", "holds", "85.62 / 84.25", "81.00 / 71.00")
    for run in rows[0].runs:
        del records[run.key()]
    assert score_claims(experiment, records) == []


def test_that_more_is_no_better_holds_where_it_is_worse():
    rows = [
        Row(f"+{nodes} sentence nodes", runs_of(ModelConfig(sentence_nodes=nodes)), group="nodes") for nodes in (1, 2)
    ]
    records = records_of(rows, lambda row: LOW if row.label.startswith("+2") else HIGH)
    found = only(score_claims(Experiment("table2", "Table 2: dev", "dev", tuple(rows)), records))
    assert found[0] == "Table 2, dev"
    assert found[2:4] == ("Two sentence nodes are no better than one", "holds")


def runs_of(model):
    return tuple(Run(Data("mr"), model, TrainingConfig(seed=seed)) for seed in range(5))


def test_robustness_is_the_longest_third_less_the_shortest():
    rows = [row for row in table_4(PLAN).rows if row.label in ("S-LSTM", "BiLSTM")]
    records = records_of(rows, lambda row: LOW if row.label == "S-LSTM" else (94, 95, 96, 95, 95))
    found = only(length_claims(PLAN, records))  # all short sentences are right, and 4 or 28 of the 33 longest
    assert found[0] == "Figure 4, MR"
    assert float(found[5].partition(" / ")[0]) < float(found[5].partition(" / ")[2])
    assert found[3] == "does not hold"


def test_robustness_over_seeds_may_be_chance_over_sentences():
    """One long sentence of a hundred is always right for one, and never for the other."""
    rows = [row for row in table_4(PLAN).rows if row.label in ("S-LSTM", "BiLSTM")]
    right = {"S-LSTM": (91, 92, 92, 92, 92), "BiLSTM": (90, 91, 91, 91, 91)}
    found = only(length_claims(PLAN, records_of(rows, lambda row: right[row.label])))
    assert found[3] == "holds, over seeds"
    assert float(found[-1]) > 0.2


@pytest.mark.parametrize(
    ("rounds", "expected"), [([1.2, 1.1], "holds"), ([0.9, 0.8], "does not hold"), ([0.9, 1.2], "not decided")]
)
def test_faster_is_faster_in_every_round(rounds, expected):
    experiment = table_4(PLAN)
    seconds = {label: {"train": [1.0, 1.0], "decode": [1.0, 1.0]} for label, _ in experiment.times.models}
    seconds["BiLSTM"] = {"train": rounds, "decode": [2.0, 2.0]}
    records = {replace(experiment.times, device="cuda").key(): {"seconds": seconds}}
    train, test = time_claims(experiment, records)
    assert train[:5] == ("Table 4", "paper, float32", "S-LSTM trains faster than BiLSTM", expected, "1.24")
    assert test[3:] == ("holds", "1.06", "2.00", "", "", "")


@pytest.mark.parametrize(("last", "expected"), [(3.0, "holds"), (1.5, "does not hold")])
def test_an_advantage_grows_if_every_group_has_a_larger_one(last, expected):
    ratios = [1.0 + place / 10 for place in range(9)] + [last]
    records = {
        replace(one, device="cuda").key(): {
            "median_length": 10.0 * place,
            "seconds": {"BiLSTM": {"train": [ratio]}, "S-LSTM": {"train": [1.0]}},
        }
        for place, (one, ratio) in enumerate(zip(figure_5(PLAN), ratios, strict=True))
    }
    found = only(growth_claims(PLAN, records))
    assert found[3:6] == (expected, "", f"1.00 to {last:.2f}")
    records.popitem()
    assert growth_claims(PLAN, records) == [], "nine of ten groups"


def test_memory_is_compared_with_that_of_the_bilstm():
    (one,) = memory(PLAN)
    records = {replace(one, device="cuda").key(): {"megabytes": {"S-LSTM": 30.0, "BiLSTM": 20.0}}}
    assert only(memory_claims(PLAN, records))[3:] == ("holds", "2.83", "1.50", "", "", "")


def test_a_claim_that_two_tables_make_with_the_same_numbers_stands_there_once():
    row = ("Table 7", "tuned, float32", "S-LSTM trains faster than BiLSTM", "holds", "1.04", "1.03", "", "", "")
    assert section_of_claims([row, row]).tables[0].rows == (row,)
