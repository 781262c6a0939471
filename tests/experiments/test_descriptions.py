"""What a report says about the settings of its rows and the models that were timed."""

import json
from dataclasses import replace

from sentence_state import ModelConfig, TrainingConfig
from sentence_state.experiments.descriptions import listed_together, settings_note, sizes_note
from sentence_state.experiments.experiment import Experiment, Row
from sentence_state.experiments.material import Data
from sentence_state.experiments.outcomes import pack
from sentence_state.experiments.runs import Run
from sentence_state.experiments.summaries import summarise

SHARP = ModelConfig(gates="sharp", num_steps=7)


def row(label, model, settings="paper", data="mr", **training):
    return Row(label, (Run(Data(data), model, TrainingConfig(**training)),), settings=settings)


def note(*rows):
    experiment = Experiment("t", "T", "dev", rows)
    return settings_note(experiment, summarise(experiment, {}))


def test_what_differs_from_the_paper_is_said_for_each_encoder_and_settings():
    bilstm = replace(SHARP, encoder="BiLSTM")  # it has neither gates nor steps
    rows = (row("a", SHARP, "x/tuned", l2=0.0), row("b", bilstm, "x/tuned"), row("c", ModelConfig()))
    assert note(*rows) == (
        "Settings: tuned, paper; word vectors: none; data: mr (dev). Not as in the paper: "
        "S-LSTM (tuned): num steps 7, gates sharp, l2 0; BiLSTM (tuned), S-LSTM (paper): nothing. "
        "How they were chosen: S-LSTM (tuned), BiLSTM (tuned): not said; S-LSTM (paper): a preset."
    )


def test_an_option_that_differs_between_rows_is_said_with_all_its_values():
    rows = [row(str(steps), replace(SHARP, num_steps=steps)) for steps in (11, 1, 9)]
    assert note(*rows).endswith("Not as in the paper: num steps 1 or 9 or 11, gates sharp.")
    rows = [row(str(given), replace(SHARP, boundaries=given)) for given in (True, False)]
    assert "boundaries no or yes" in note(*rows)


def test_few_sets_are_told_apart_and_many_are_counted():
    rows = [row("a", SHARP, data="mr"), row("a", ModelConfig(), data="fdu/mr")]
    assert note(*rows).endswith("S-LSTM on mr: num steps 7, gates sharp; S-LSTM on fdu/mr: nothing.")
    rows += [row("a", SHARP, data=f"fdu/{name}") for name in ("books", "dvd", "baby")]
    assert "data: 5 sets (dev). Not as in the paper: num steps 7 or 9, gates paper or sharp." in note(*rows)


def test_the_size_of_a_model_is_its_units_and_the_steps_of_the_s_lstm():
    models = (("S-LSTM", ModelConfig(num_steps=1)), ("BiLSTM", ModelConfig("BiLSTM", hidden_size=400)))
    assert sizes_note(models) == "S-LSTM: 300 units, 1 step; BiLSTM: 400 units"


def test_names_of_one_description_stand_together_and_many_are_all_others():
    assert listed_together([("a", "x"), ("b", "y"), ("c", "x")]) == "a, c: x; b: y"
    many = [(name, "x") for name in "abcde"]
    assert (
        listed_together([*many, *zip("fghij", "54321", strict=True)]) == "f: 5; g: 4; h: 3; i: 2; j: 1; all others: x"
    )
    assert listed_together([("a", "x"), ("b", "x")]) == "x"


def test_what_a_file_of_settings_says_of_their_choice_is_said(tmp_path):
    folder = tmp_path / "tuned"
    (folder / "mr").mkdir(parents=True)
    (folder / "mr/s-lstm.json").write_text('{"model": {}, "training": {}, "note": "not searched"}')
    (folder / "mr/bilstm.json").write_text('{"model": {}, "training": {}, "trials": 8}')
    found = {"model": {}, "training": {}, "trials": 16, "finalists": 4, "seeds": 5, "taken_from": "BiLSTM"}
    (folder / "mr/cnn.json").write_text(json.dumps(found))
    models = (SHARP, ModelConfig("BiLSTM"), ModelConfig("CNN"))
    assert note(*(row("a", model, str(folder)) for model in models)).endswith(
        "How they were chosen: S-LSTM: not searched; BiLSTM: the best of 8 trials on dev; CNN: the best of 4 finalists "
        "by the mean of 5 seeds on dev, after 16 trials, drawn in the search of BiLSTM."
    )


def test_settings_of_rows_without_a_score_are_not_described_beside_others():
    rows = (row("a", SHARP), row("b", ModelConfig(hidden_size=5)))
    experiment = Experiment("t", "T", "dev", rows)
    run = rows[0].runs[0]
    kept = {"score": 0.5, "counts": pack([1, 1, 1]), "metric": "accuracy"}
    found = summarise(experiment, {run.key(): {"run": run.describe(), "test": kept, "dev": kept}})
    assert settings_note(experiment, found).endswith("Not as in the paper: num steps 7, gates sharp.")
