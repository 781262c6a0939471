"""sentence-state export, as a user types it."""

import json
import re
from pathlib import Path

import pytest

from sentence_state.cli import main
from sentence_state.models import Model
from sentence_state.runtime import RuntimeModel

from .command_line import TINY, write_files
from .serving.exported import assert_same_answers


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    write_files(folder, size=60)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["train", "tagger", "--train", "train.conll", "--dev", "dev.conll", "--out", "t", *TINY]) == 0
        assert main(["train", "classifier", "--data", "sample", "--out", "b", "--encoder", "BiLSTM", *TINY]) == 0
    return folder


@pytest.fixture(autouse=True)
def folder(runs, monkeypatch):
    monkeypatch.chdir(runs)


def test_it_says_how_close_the_export_is_on_the_sentences_of_dev(capsys):
    assert main(["export", "t"]) == 0
    printed = capsys.readouterr().out
    assert re.search(
        r"compared on 60 sentences of dev\.conll: the same answer for 60, .* at most [0-9.]+e-0[5-9]", printed
    )
    assert json.loads(Path("t/onnx/export.json").read_text())["parity"]["same"] == 60
    texts = ["wake me at seven in Lisbon"]
    assert_same_answers(
        Model.from_pretrained("t").predict(texts), RuntimeModel.from_pretrained("t/onnx").predict(texts), 2e-6
    )


def test_without_its_data_a_run_is_compared_on_the_sample(capsys):
    Path("dev.conll").rename("gone.conll")
    assert main(["export", "t"]) == 0
    printed = capsys.readouterr().out
    assert "of the embedded sample (dev.conll, on which it was developed, could not be read here):" in printed
    Path("gone.conll").rename("dev.conll")


def test_int8_goes_beside_it(capsys):
    assert main(["export", "t", "--quantize", "int8"]) == 0
    assert "t/onnx-int8" in capsys.readouterr().out
    assert main(["export", "t", "--quantize", "int8"]) == 0  # again: it replaces what it made itself


def test_a_run_on_the_sample_is_compared_on_it(capsys):
    assert main(["export", "b", "--out", "elsewhere"]) == 0
    assert "sentences of the embedded sample:" in capsys.readouterr().out
    assert RuntimeModel.from_pretrained("elsewhere").predict(["play some jazz"])[0]["label"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "b", "--quantize", "int8"], "--quantize int8 is for S-LSTM as in the paper, not for BiLSTM"),
        (["export", "t", "--quantize", "int8", "--format", "torch"], "--quantize int8 goes with --format onnx"),
        (["export", "b", "--format", "torch"], "use --format onnx"),
        (["export", "nothing"], "nothing: no such folder"),
        (["export", "t", "--out", "t"], "is there already and holds something else"),
        (["export", "t", "--out", "train.conll"], "is there already and holds something else"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(arguments, message, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


@pytest.mark.parametrize("arguments", [["export", "t/exported"], ["predict", "t/exported", "wake me"]])
def test_a_command_for_a_run_says_that_it_was_given_an_export(arguments, capsys):
    assert main(["export", "t", "--out", "t/exported"]) == 0
    assert main(arguments) == 2
    assert "t/exported: an exported model: give the run that it was made of" in capsys.readouterr().err
