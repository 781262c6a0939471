import json

import pytest

from sentence_state import ModelConfig, TrainingConfig
from sentence_state.cli import main
from sentence_state.experiments.experiment import Plan, configure
from sentence_state.experiments.tuning import Search, Trial, best_of, space_of, tune
from sentence_state.experiments.workers import Crew

SEARCH = Search("mr", ("S-LSTM", "BiLSTM"), trials=5, together=2)
PLAN = Plan(seeds=1, smoke=True)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    return folder, tune(SEARCH, PLAN, folder, Crew(), lambda line: None)


def trials_of(folder):
    return [json.loads(line) for line in (folder / "classification" / "trials.jsonl").read_text().splitlines()]


def test_every_encoder_gets_the_same_space_and_the_same_number_of_trials(tuned):
    folder, best = tuned
    trials = trials_of(folder)
    assert [trial["encoder"] for trial in trials] == ["S-LSTM"] * 5 + ["BiLSTM"] * 5
    space = space_of("classification")
    for trial in trials:
        assert trial["options"].keys() == space.keys()
        assert all(value in space[name] for name, value in trial["options"].items())
    assert "test" not in (folder / "runs.jsonl").read_text().replace('"test":"', "")  # hashes of the data name it
    for encoder, trial in best.items():
        assert trial.score == max(one["dev"] for one in trials if one["encoder"] == encoder)


def test_the_chosen_settings_are_read_as_settings(tuned):
    folder, best = tuned
    for encoder, trial in best.items():
        model, training = configure(str(folder), encoder, "classification")
        assert model == trial.runs[0].model
        assert training == trial.runs[0].training


def test_a_search_that_was_killed_asks_for_the_same_trials_and_repeats_none(tuned, tmp_path):
    folder, best = tuned
    lines = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "runs.jsonl").write_text("".join(lines[:7]))
    again = tune(SEARCH, PLAN, tmp_path, Crew(), lambda line: None)
    assert trials_of(tmp_path) == trials_of(folder)
    assert {encoder: trial.options for encoder, trial in again.items()} == {e: t.options for e, t in best.items()}
    keys = [json.loads(line)["key"] for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert len(keys) == len(set(keys)) == len(lines)


def test_a_trial_that_failed_is_never_the_best():
    trials = [Trial("S-LSTM", n, {}, (), score) for n, score in enumerate([None, 80.0, 82.0, 82.0, None])]
    assert best_of(trials)["S-LSTM"].number == 2
    assert best_of([Trial("CNN", 0, {}, (), None)]) == {}


def test_the_space_holds_fields_of_the_configs_only():
    fields = {**ModelConfig().to_dict(), **TrainingConfig().to_dict()}
    for task in ("classification", "tagging"):
        assert space_of(task).keys() <= fields.keys()
    assert "readout" not in space_of("tagging")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mr"], "--data-dir DIR"),
        (["mr", "--smoke", "--trials", "0"], "--trials must be 1 or more, got 0"),
        (["mr", "--smoke", "--encoders", "GRU"], "got 'GRU'"),
        (["imdb", "--smoke"], "imdb: no such set"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["tune", *arguments]) == 2
    assert message in capsys.readouterr().err
