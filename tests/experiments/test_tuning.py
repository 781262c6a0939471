import json
import re
import shutil
from dataclasses import replace

import pytest

from sentence_state import ModelConfig, TrainingConfig
from sentence_state.cli import main
from sentence_state.commands.reproduce import UNFINISHED
from sentence_state.data.errors import DataError
from sentence_state.experiments import experiment, tuning
from sentence_state.experiments.experiment import Plan, configure, name_of
from sentence_state.experiments.material import Data
from sentence_state.experiments.runs import Run
from sentence_state.experiments.tuning import Search, Trial, best_of, better_half, make_trial, score_of, space_of, tune
from sentence_state.experiments.workers import Crew

SEARCH = Search(("mr",), ("S-LSTM", "BiLSTM"), trials=5, together=2)
PLAN = Plan(seeds=1, smoke=True)


def test_all_16_sets_have_a_name_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["tune", "fdu", "--smoke", "--trials", "1", "--encoders", "BiLSTM", "--device", "cpu"]) == 0
    chosen = json.loads((tmp_path / "runs/smoke/tuned/fdu/bilstm.json").read_text())
    assert len(chosen["data"]) == 16
    assert (chosen["data"][0], chosen["seeds"]) == ("fdu/books", 1)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    return folder, tune(SEARCH, PLAN, folder, Crew(), lambda line: None)


def longer(shrink):
    """Smoke runs of five epochs, so that a quarter of them is not all."""

    def shrunk(model, training):
        model, training = shrink(model, training)
        return model, replace(training, epochs=5)

    return shrunk


def trials_of(folder):
    return [json.loads(line) for line in (folder / "mr" / "trials.jsonl").read_text().splitlines()]


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
        model, training = configure(str(folder), encoder, "mr", smoke=True)
        assert model == trial.runs[0].model
        assert training == trial.runs[0].training


def test_what_a_smoke_search_chose_is_for_smoke_runs_only(tuned):
    folder, _ = tuned
    with pytest.raises(DataError, match=r"mr/s-lstm\.json: chosen by a smoke search \(tune --smoke\)"):
        configure(str(folder), "S-LSTM", "mr")


def test_settings_are_called_as_their_folder_the_working_directory_too(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    assert [name_of(settings) for settings in ("paper", "results/tuned/", ".")] == ["paper", "tuned", "mine"]


def test_a_search_that_was_killed_asks_for_the_same_trials_and_repeats_none(tuned, tmp_path):
    folder, best = tuned
    lines = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "runs.jsonl").write_text("".join(lines[:7]))
    again = tune(SEARCH, PLAN, tmp_path, Crew(), lambda line: None)
    assert trials_of(tmp_path) == trials_of(folder)
    assert {encoder: trial.options for encoder, trial in again.items()} == {e: t.options for e, t in best.items()}
    keys = [json.loads(line)["key"] for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert len(keys) == len(set(keys)) == len(lines)


def test_a_search_goes_on_with_more_trials(tuned, tmp_path):
    shutil.copytree(tuned[0], tmp_path, dirs_exist_ok=True)
    before, lines = trials_of(tmp_path), []
    tune(replace(SEARCH, trials=6), PLAN, tmp_path, Crew(), lines.append)
    after = trials_of(tmp_path)
    assert [trial for trial in after if trial["trial"] < 4] == [trial for trial in before if trial["trial"] < 4]
    assert {trial["trial"] for trial in after} == set(range(6))
    assert sum(line.startswith("[") for line in lines) <= 4  # trials 4 and 5 of both: the pair was asked for one by one


def test_the_first_trial_is_what_the_search_starts_from(tmp_path):
    chosen = {"learning_rate": 0.002, "batch_size": 16, "hidden_size": 400, "readout": "max", "consistency": 2.0}
    model = {name: chosen[name] for name in ("hidden_size", "readout")}
    training = {name: value for name, value in chosen.items() if name not in model}
    (tmp_path / "mr").mkdir()
    (tmp_path / "mr" / "bilstm.json").write_text(json.dumps({"model": model, "training": training, "data": "mr"}))
    search = replace(SEARCH, encoders=("BiLSTM",), trials=1, settings=str(tmp_path))
    found = tune(search, PLAN, tmp_path / "out", Crew(), lambda line: None)
    assert chosen.items() <= found["BiLSTM"].options.items()


def test_sets_that_are_tuned_together_get_one_setting_by_their_mean_dev_score():
    search = replace(SEARCH, data=("fdu/books", "fdu/dvd"))
    trial = make_trial(search, Plan(seeds=2), "S-LSTM", 0, {"dropout": 0.3})
    assert [(run.data.name, run.seed) for run in trial.runs] == [
        ("fdu/books", 0), ("fdu/books", 1), ("fdu/dvd", 0), ("fdu/dvd", 1),
    ]  # fmt: skip
    assert {run.model.dropout for run in trial.runs} == {0.3}
    dev = dict(zip((run.key() for run in trial.runs), (0.8, 0.9, 0.6, 0.7), strict=True))
    records = {key: {"key": key, "dev": {"score": score}} for key, score in dev.items()}
    assert score_of(trial.runs, records) == pytest.approx(75.0)
    assert score_of(trial.runs, dict(list(records.items())[:3])) is None


def test_the_first_look_is_at_a_quarter_of_the_sets_or_of_the_epochs():
    training = TrainingConfig(epochs=15)
    runs = tuple(Run(Data(f"fdu/{name}"), training=training) for name in ("books", "dvd", "music", "imdb", "mr"))
    assert Trial("S-LSTM", 0, {}, runs).first_look() == list(runs[:2])
    (short,) = Trial("S-LSTM", 0, {}, runs[:1]).first_look()
    assert short == replace(runs[0], training=replace(training, epochs=4))


def test_the_better_half_of_each_encoder_goes_on():
    looks = [81.0, 83.0, 82.0, None, 83.0]
    own = [Trial("S-LSTM", number, {}, (), look=look) for number, look in enumerate(looks)]
    others = [Trial("BiLSTM", number, {}, (), look=look) for number, look in enumerate([70.0, 71.0])]
    kept = [(trial.encoder, trial.number) for trial in better_half([*own, *others])]
    assert kept == [("S-LSTM", 1), ("S-LSTM", 4), ("S-LSTM", 2), ("BiLSTM", 1)]


def test_what_is_pruned_is_never_run_to_the_end_and_never_the_best(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "shrink", longer(experiment.shrink))
    search = replace(SEARCH, trials=6, together=4, prune=True)
    best = tune(search, PLAN, tmp_path, Crew(), lambda line: None)
    records = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    epochs = {record["key"]: record["run"]["training"]["epochs"] for record in records}
    trials = trials_of(tmp_path)
    assert [trial["encoder"] for trial in trials] == ["S-LSTM"] * 6 + ["BiLSTM"] * 6
    for encoder in search.encoders:
        own = [trial for trial in trials if trial["encoder"] == encoder]
        to_the_end = [trial for trial in own if trial["dev"] is not None]
        assert len(to_the_end) == 3  # two of the first four, one of the two after them
        assert {epochs[key] for trial in to_the_end for key in trial["runs"]} == {5}
        assert all(key not in epochs for trial in own if trial["dev"] is None for key in trial["runs"])
        assert all(trial["first_look"] is not None for trial in own)
        assert best[encoder].score == max(trial["dev"] for trial in to_the_end)
    assert sorted(epochs.values()) == [2] * 12 + [5] * 6
    settings = json.loads((tmp_path / "mr" / "bilstm.json").read_text())
    assert (settings["trials"], settings["pruned"], settings["seeds"]) == (6, 3, 1)
    again = tune(search, PLAN, tmp_path, Crew(), lambda line: None)
    assert {encoder: trial.options for encoder, trial in again.items()} == {e: t.options for e, t in best.items()}
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == len(records)


def test_finalists_are_run_with_more_seeds_and_only_they_can_win(tmp_path):
    search, lines = replace(SEARCH, finalists=2, final_seeds=3), []
    tune(SEARCH, PLAN, tmp_path, Crew(), lambda line: None)
    best = tune(search, PLAN, tmp_path, Crew(), lines.append)
    trials = trials_of(tmp_path)
    for encoder, trial in best.items():
        own = [one for one in trials if one["encoder"] == encoder]
        finalists = [one for one in own if "final" in one]
        others = [one for one in own if "final" not in one]
        assert max((one["dev"] for one in others), default=0.0) <= sorted(one["dev"] for one in finalists)[-2]
        assert all(len(one["runs"]) == 3 for one in finalists)
        assert trial.final == max(one["final"] for one in finalists)
        chosen = json.loads((tmp_path / "mr" / f"{experiment.slug(encoder)}.json").read_text())
        assert (chosen["dev"], chosen["finalists"], chosen["seeds"]) == (trial.final, len(finalists), 3)
        assert chosen["taken_from"] == trial.taken_from
    runs = sum(len(one["runs"]) for one in trials if "final" in one)
    assert any(line.startswith(f"{runs} runs, ") for line in lines)


def test_every_encoder_is_given_the_finalists_of_the_others(tmp_path, monkeypatch):
    found = {"S-LSTM": [{"dropout": 0.2}, {"dropout": 0.3}], "BiLSTM": [{"dropout": 0.3}, {"dropout": 0.6}]}
    trials = [
        replace(make_trial(SEARCH, PLAN, encoder, number, options), score=80.0 + number)
        for encoder, tried in found.items()
        for number, options in enumerate(tried)
    ]
    monkeypatch.setattr(tuning, "run_all", lambda runs, *rest: None)
    monkeypatch.setattr(tuning, "score_of", lambda runs, records: 81.0)
    search = replace(SEARCH, encoders=tuple(found), finalists=1, final_seeds=2)
    after = tuning.run_finalists(search, PLAN, trials, tmp_path, Crew(), print)
    finals = [(one.encoder, one.number, one.options["dropout"], one.taken_from) for one in after if one.final]
    assert finals == [
        ("S-LSTM", 1, 0.3, None),
        ("BiLSTM", 0, 0.3, None),
        ("BiLSTM", 1, 0.6, None),
        ("S-LSTM", 2, 0.6, "BiLSTM"),
    ]
    assert all(len(one.runs) == 2 for one in after if one.final)
    assert after[-1].line()["taken_from"] == "BiLSTM"


def test_what_was_chosen_on_other_sets_is_not_written_over(tmp_path):
    search = Search(("fdu/books", "fdu/dvd"), ("CNN",), trials=1)
    tune(search, PLAN, tmp_path, Crew(), lambda line: None)
    before = (tmp_path / "fdu" / "cnn.json").read_text()
    with pytest.raises(DataError, match="were chosen on fdu/books, fdu/dvd; --out names a folder for others"):
        tune(replace(search, data=("fdu/books", "fdu/mr")), PLAN, tmp_path, Crew(), lambda line: None)
    assert (tmp_path / "fdu" / "cnn.json").read_text() == before


def test_what_was_chosen_of_more_trials_is_not_written_over(tuned, tmp_path):
    shutil.copytree(tuned[0], tmp_path, dirs_exist_ok=True)
    before = {path: path.read_text() for path in (tmp_path / "mr").iterdir()}
    fewer = replace(SEARCH, trials=1, encoders=("BiLSTM",))
    with pytest.raises(DataError, match="these settings are the best of 5 trials, got --trials 1; --trials 5 or"):
        tune(fewer, PLAN, tmp_path, Crew(), lambda line: None)
    assert {path: path.read_text() for path in (tmp_path / "mr").iterdir()} == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vectors": "glove"}, "chosen with vectors glove, got vectors none"),
        ({"settings": "results/settings"}, "chosen with settings results/settings, got settings paper"),
        ({"smoke": False}, "chosen with smoke False, got smoke True"),
        ({"finalists": 4}, "best of 4 finalists of each encoder, got --finalists 0; --finalists 4 or more"),
        ({"seeds": 3}, "best by 3 seeds, got --seeds 1; --seeds 3 or more"),
    ],
)
def test_what_was_chosen_in_another_way_or_with_more_is_not_written_over(change, message, tuned, tmp_path):
    shutil.copytree(tuned[0], tmp_path, dirs_exist_ok=True)
    path = tmp_path / "mr" / "bilstm.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    before = path.read_text()
    with pytest.raises(DataError, match=re.escape(message)):
        tune(replace(SEARCH, encoders=("BiLSTM",)), PLAN, tmp_path, Crew(), lambda line: None)
    assert path.read_text() == before


def test_settings_that_were_written_by_hand_are_not_written_over(tmp_path):
    path = tmp_path / "mr" / "bilstm.json"
    path.parent.mkdir()
    path.write_text('{"model": {"dropout": 0.2}, "training": {}}')
    with pytest.raises(DataError, match="written by hand, not by a search"):
        tune(SEARCH, PLAN, tmp_path, Crew(), lambda line: None)
    assert json.loads(path.read_text())["model"] == {"dropout": 0.2}


def test_a_longer_search_that_is_killed_on_its_way_leaves_what_there_was(tuned, tmp_path):
    """Its trials are kept as runs; the choice is written when it is of as many trials and seeds as the one before."""
    shutil.copytree(tuned[0], tmp_path, dirs_exist_ok=True)
    before = {path: path.read_text() for path in (tmp_path / "mr").iterdir()}

    def killed(line):
        if line.startswith("[") and ("seed 1" in line or "seed 2" in line):
            raise KeyboardInterrupt

    batches = []

    def killed_later(line):
        if line.endswith("runs.jsonl"):  # the first of each batch of trials
            batches.append(line)
        if len(batches) == 3:
            raise KeyboardInterrupt

    for say in (killed, killed_later):
        with pytest.raises(KeyboardInterrupt):
            tune(SEARCH, replace(PLAN, seeds=2), tmp_path, Crew(), say)
        assert {path: path.read_text() for path in (tmp_path / "mr").iterdir()} == before
    with pytest.raises(KeyboardInterrupt):
        tune(replace(SEARCH, finalists=2, final_seeds=3), PLAN, tmp_path, Crew(), killed)
    kept = json.loads((tmp_path / "mr" / "bilstm.json").read_text())
    assert (kept["trials"], kept["seeds"]) == (5, 1)


def test_a_search_without_a_finished_trial_says_so_with_the_error(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    wild = {"model": {}, "training": {"learning_rate": 1e30, "clip": 0.0}}
    (tmp_path / "wild" / "mr").mkdir(parents=True)
    (tmp_path / "wild" / "mr" / "bilstm.json").write_text(json.dumps(wild))
    monkeypatch.setitem(tuning.SPACE, "learning_rate", (1e30,))
    arguments = ["--encoders", "BiLSTM", "--settings", "wild", "--trials", "1", "--device", "cpu"]
    assert main(["tune", "mr", "--smoke", *arguments]) == UNFINISHED
    said = " ".join(capsys.readouterr().out.split())
    assert "SMOKE RUN, NOT A RESULT: BiLSTM: no trial finished; the last error: " in said
    assert not (tmp_path / "runs/smoke/tuned/mr/bilstm.json").exists()


def test_the_log_keeps_the_trials_of_other_encoders(tuned, tmp_path):
    shutil.copytree(tuned[0], tmp_path, dirs_exist_ok=True)
    before = trials_of(tmp_path)
    for _ in range(2):
        tune(replace(SEARCH, trials=1, encoders=("CNN",)), PLAN, tmp_path, Crew(), lambda line: None)
        assert trials_of(tmp_path)[:-1] == before
    assert trials_of(tmp_path)[-1]["encoder"] == "CNN"


def test_settings_are_those_of_the_set_else_of_its_group_else_of_its_task(tmp_path):
    for place, dropout in (("fdu/books", 0.1), ("fdu", 0.2), ("classification", 0.3)):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        content = {"model": {"dropout": dropout}, "training": {}}
        (tmp_path / place / "s-lstm.json").write_text(json.dumps(content))
    sets = {"fdu/books": 0.1, "fdu/dvd": 0.2, "mr": 0.3}
    assert {name: configure(str(tmp_path), "S-LSTM", name)[0].dropout for name in sets} == sets


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
        (["mr", "--smoke", "--data-dir", "nowhere"], "nowhere: no such folder"),
        (["mr", "--smoke", "--embeddings", "nowhere.txt"], "nowhere.txt: no such file"),
        (["mr", "--data-dir", ".", "--jobs", "2"], ".: the benchmark mr is not here"),
        (["imdb", "--smoke"], "imdb: no such set"),
        (["--smoke"], "on what is to be tuned?"),
        (["fdu/books", "ewt", "--smoke"], "fdu/books (classification), ewt (tagging)"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["tune", *arguments]) == 2
    assert message in capsys.readouterr().err
