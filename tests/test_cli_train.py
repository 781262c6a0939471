"""sentence-state train, from a user's files to a run folder."""

import json
import shlex
import signal
import sys
import time
from types import ModuleType

import pytest

from sentence_state.cli import main
from sentence_state.models import JointModel, SequenceTagger, TextClassifier

from .command_line import TINY, said, start, write_files


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    write_files(tmp_path)
    return tmp_path


def test_classifier_from_one_csv(folder, capsys):
    printed = said(capsys, "train", "classifier", "--train", "reviews.csv", "--out", "runs/reviews", *TINY)
    for found_out in (
        "reviews.csv: 160 examples (comma-separated, a header, UTF-8)",
        "text from column 'text', label from column 'label'",
        "16 labels: ",
        "no dev set given: 16 of 160 examples split off at random (--seed 0)",
        "S-LSTM of size 8: ",
        "epoch 2/2  loss ",
        "dev accuracy ",
        "pictures: runs/reviews/learning_curves.png, runs/reviews/confusion_label.png",
    ):
        assert found_out in printed
    names = {path.name for path in (folder / "runs/reviews").iterdir()}
    assert names >= {"config.json", "model.safetensors", "metrics.jsonl", "result.json", "training.json", "words.json"}
    assert names >= {"learning_curves.png", "confusion_label.png"}
    assert "checkpoints" not in names
    assert len(TextClassifier.from_pretrained("runs/reviews").predict(["wake me at seven"])) == 1


def test_the_next_command_can_be_typed_as_it_is_printed(capsys):
    printed = said(capsys, "train", "classifier", "--train", "reviews.csv", "--out", "runs/my reviews", *TINY)
    program, *arguments = shlex.split(printed.strip().splitlines()[-1])
    assert program in ("sentence-state", "python")
    assert arguments[-3:-1] == ["predict", "runs/my reviews"]
    assert said(capsys, *arguments[-3:])


def test_tagger_with_dev_test_and_vectors(folder, capsys):
    files = ["--train", "train.conll", "--dev", "dev.conll", "--test", "test.conll", "--embeddings", "glove.txt"]
    printed = said(capsys, "train", "tagger", *files, "--out", "runs/ner", *TINY)
    assert "train.conll: tags are BIO, as found out" in printed
    assert "glove.txt: 20-d vectors for " in printed
    assert "test after the best epoch" in printed
    assert "confusion_tags.png" in printed
    result = json.loads((folder / "runs/ner/result.json").read_text())
    assert result["test"]["metric"] == "f1"
    tagger = SequenceTagger.from_pretrained("runs/ner")
    assert tagger.tag_scheme == "bioes"
    assert tagger.config.word_size == 20


def test_words_of_dev_are_known_where_they_have_a_vector(folder, capsys):
    (folder / "t.conll").write_text("Anna B-PER\nsleeps O\n\nRome B-LOC\n")
    (folder / "d.conll").write_text("Bert B-PER\nsnores O\n")
    (folder / "v.txt").write_text("Anna 1 2\nBert 2 1\nRome 3 3\n")
    files = ["--train", "t.conll", "--dev", "d.conll", "--embeddings", "v.txt"]
    assert "for 3 of 5 words" in said(capsys, "train", "tagger", *files, "--out", "x", *TINY)
    words = SequenceTagger.from_pretrained("x").vocabularies.words.words
    assert "Bert" in words
    assert "sleeps" in words
    assert "snores" not in words


def test_joint_from_marked_lines_and_from_the_sample(capsys):
    printed = said(capsys, "train", "joint", "--train", "intents.txt", "--out", "a", *TINY)
    assert "16 labels: " in printed
    assert "confusion_label.png, a/confusion_tags.png" in printed
    assert JointModel.from_pretrained("a").targets == ("label", "tags")
    printed = said(capsys, "train", "joint", "--data", "sample", "--out", "b", *TINY[:-4], "--epochs", "1")
    assert "1,374 train, 225 dev, 288 test" in printed


def test_sets_for_another_task_are_refused(capsys):
    assert main(["train", "joint", "--data", "mr", "--out", "x"]) == 2
    assert "train joint knows the set sample only" in capsys.readouterr().err


def test_flags_go_over_the_preset(folder, capsys):
    more = ["--patience", "0", "--dropout", "0", "--encoder", "BiLSTM", "--seed", "3", "--l2", "0.5"]
    said(capsys, "train", "classifier", "--train", "reviews.csv", "--out", "x", *TINY, *more)
    training = json.loads((folder / "x/training.json").read_text())["training"]
    assert {name: training[name] for name in ("patience", "seed", "l2", "epochs")} == {
        "patience": 0,
        "seed": 3,
        "l2": 0.5,
        "epochs": 2,
    }
    model = json.loads((folder / "x/config.json").read_text())["model"]
    assert (model["dropout"], model["encoder"], model["hidden_size"]) == (0, "BiLSTM", 8)


def test_few_sentences_change_the_preset_but_not_what_the_user_chose(folder, capsys):
    train = ["train", "classifier", "--train", "reviews.csv"]
    printed = said(capsys, *train, "--out", "x", *TINY[:-2])
    assert "144 sentences are few: batches of 8, at most 2 epochs, patience 3" in printed
    settings = json.loads((folder / "x/training.json").read_text())["training"]
    assert (settings["batch_size"], settings["epochs"]) == (8, 2)
    assert "are few" not in said(capsys, *train, "--out", "y", *TINY)


def test_labels_are_drawn_as_they_are_written(folder, capsys, recwarn):
    prices = ["$", "$$", r"$\no$", "\u597d"]
    rows = [f"a dinner for {i} people,{prices[i % 4]}\n" for i in range(80)]
    (folder / "prices.csv").write_text("text,label\n" + "".join(rows), encoding="utf-8")
    assert main(["train", "classifier", "--train", "prices.csv", "--out", "r", *TINY]) == 0
    assert "pictures: r/learning_curves.png, r/confusion_label.png" in capsys.readouterr().out
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]


def test_without_matplotlib_it_says_how_to_get_pictures(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    printed = said(capsys, "train", "classifier", "--train", "reviews.csv", "--out", "x", *TINY)
    assert 'no pictures: matplotlib is missing. pip install "sentence-state[plots]"' in printed
    assert not list((folder / "x").glob("*.png"))


def test_track_without_tensorboard_says_how_to_get_it(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    assert main(["train", "classifier", "--train", "reviews.csv", "--out", "x", "--track"]) == 2
    assert '--track needs TensorBoard: pip install "sentence-state[track]"' in capsys.readouterr().err
    assert not (folder / "x").exists()


def test_track_writes_every_epoch(capsys, monkeypatch):
    written = []

    class SummaryWriter:
        def __init__(self, folder, purge_step):
            written.append((folder, purge_step))

        def add_scalar(self, name, value, epoch):
            written.append((name, epoch))

        def flush(self):
            pass

    module = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    said(capsys, "train", "classifier", "--train", "reviews.csv", "--out", "x", "--track", *TINY)
    assert written[0] == ("x/tensorboard", 1)
    assert {("loss", 1), ("loss", 2), ("dev/accuracy", 2)} <= set(written)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_save_and_say_how_to_go_on(number, folder, capsys):
    arguments = ["train", "classifier", "--train", "reviews.csv", "--out", "runs/x", *TINY[:6], "--epochs", "1000"]
    arguments += ["--patience", "0"]
    process = start(arguments, folder)
    while "epoch 2/" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(number)
    printed, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error == ""
    stopped, command = printed.strip().splitlines()[-2:]
    assert "everything is saved in runs/x. To go on:" in stopped
    assert shlex.split(command) == ["python", "-m", "sentence_state", *arguments, "--resume"]
    resumed = start(shlex.split(command)[3:], folder)
    line = resumed.stdout.readline()
    while "epoch " not in line:
        line = resumed.stdout.readline()
    assert int(line.split()[1].split("/")[0]) > 1, "resumed from the beginning"
    resumed.send_signal(signal.SIGINT)
    resumed.communicate(timeout=60)
    assert resumed.returncode == 130
    assert main(["predict", "runs/x", "a text"]) == 0, "a stopped run can be used"


def test_resume_of_a_finished_run_says_the_same_again(capsys):
    arguments = ["train", "classifier", "--train", "reviews.csv", "--out", "x", *TINY]
    first = said(capsys, *arguments)
    again = said(capsys, *arguments, "--resume")
    assert first[first.index("\ndev after ") :] == again[again.index("\ndev after ") :]


def test_help_is_short_and_quick(folder):
    began = time.monotonic()
    process = start(["--help"], folder)
    printed, _ = process.communicate(timeout=60)
    assert time.monotonic() - began < 10  # about 1.6 s on a quiet machine, all of it torch
    assert process.returncode == 0
    assert all(name in printed for name in ("train", "evaluate", "predict", "demo"))
    assert "settings." not in printed
