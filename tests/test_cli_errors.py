"""What a user can get wrong: exit code 2, one message with file and line, no traceback, nothing half-written."""

import errno
import os
import shutil
import subprocess
import sys

import pytest
import torch

from sentence_state.cli import main

from .command_line import TINY, start, write_files

CSV = "text,label\nfine film,pos\nbad film,neg\nfine plot,pos\nbad plot,neg\n"
CONLL = "Anna B-PER\nsleeps O\n\nin O\nRome B-LOC\n\nRome B-LOC\nsleeps O\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "good.csv").write_text(CSV)
    (tmp_path / "good.conll").write_text(CONLL)
    return tmp_path


def refused(capsys, *arguments: str) -> str:
    """The message of a command that must fail as the user's error."""
    before = sorted(os.walk("."))
    assert main(list(arguments)) == 2
    message = capsys.readouterr().err.strip()
    assert message.startswith("error: ")
    assert "Traceback" not in message
    assert "\n" not in message
    assert sorted(os.walk(".")) == before, "something was left behind"
    return message.removeprefix("error: ")


def classifier(capsys, path: str, *more: str) -> str:
    return refused(capsys, "train", "classifier", "--train", path, "--out", "runs/x", *TINY, *more)


def tagger(capsys, path: str, *more: str) -> str:
    return refused(capsys, "train", "tagger", "--train", path, "--out", "runs/x", *TINY, *more)


def test_missing_column_lists_the_columns_there_are(folder, capsys):
    (folder / "train.csv").write_text(CSV.replace("label", "sentiment"))
    message = classifier(capsys, "train.csv", "--label-column", "label")
    assert message == "train.csv:1: no column 'label'. Columns: text, sentiment. Try --label-column sentiment"


def test_ragged_conll_line(folder, capsys):
    (folder / "train.conll").write_text(CONLL.replace("sleeps O\n\nin", "John\n\nin"))
    assert tagger(capsys, "train.conll") == 'train.conll:2: expected 2 columns or more, got 1 ("John")'


def test_unknown_label_in_dev(folder, capsys):
    (folder / "dev.csv").write_text("text,label\nfine film,pos\nso so,NEU\n")
    message = classifier(capsys, "good.csv", "--dev", "dev.csv")
    assert message == "dev.csv:3: label 'NEU' never occurs in good.csv (labels: neg, pos)"


@pytest.mark.parametrize("task", [classifier, tagger])
def test_empty_file(folder, capsys, task):
    (folder / "empty").write_text("")
    assert task(capsys, "empty") == "empty:1: the file is empty"


def test_missing_file(capsys):
    assert classifier(capsys, "nowhere.csv") == "nowhere.csv: no such file"


def test_empty_sentence(folder, capsys):
    (folder / "train.csv").write_text(CSV + " ,pos\n")
    assert classifier(capsys, "train.csv") == "train.csv:6: empty text (--skip-empty to leave such rows out)"
    assert main(["train", "classifier", "--train", "train.csv", "--out", "x", *TINY, "--skip-empty"]) == 0


def test_only_one_class(folder, capsys):
    (folder / "train.csv").write_text(CSV.replace("neg", "pos"))
    message = classifier(capsys, "train.csv")
    assert message == "train.csv:2: only one class: every label is 'pos'; a classifier needs two or more"


def test_binary_file(folder, capsys):
    (folder / "train.csv").write_bytes(b"PK\x03\x04" + bytes(range(256)))
    assert "train.csv:1: this is an Excel workbook" in classifier(capsys, "train.csv")
    (folder / "train.conll").write_bytes(b"Anna B-PER\nsl\0eps O\n")
    assert "train.conll:2: a NUL byte: this is a binary file" in tagger(capsys, "train.conll")


def test_invalid_utf8(folder, capsys):
    (folder / "train.csv").write_bytes(CSV.encode() + b"caf\x81 \xff,pos\n")
    assert classifier(capsys, "train.csv") == "train.csv:6: byte 0x81 is not UTF-8 (--encoding to choose another one)"


def test_broken_tag_sequence(folder, capsys):
    (folder / "train.conll").write_text(
        CONLL.replace("Rome B-LOC\nsleeps O", "Rome B-LOC\nsleeps I-PER") + "\n" + CONLL
    )
    message = tagger(capsys, "train.conll")
    assert message.startswith("train.conll:8: I-PER after B-LOC: not BIO; --tag-scheme to choose another scheme")
    assert "--broken-tags repair" in message
    assert main(["train", "tagger", "--train", "train.conll", "--out", "x", *TINY, "--broken-tags", "repair"]) == 0


def test_glove_line_of_the_wrong_width(folder, capsys):
    (folder / "glove.txt").write_text("film 0.1 0.2 0.3\nfine 0.1 0.2\nbad 0.3 0.2 0.1\n")
    message = classifier(capsys, "good.csv", "--embeddings", "glove.txt")
    assert message == "glove.txt:2: expected a word and 3 numbers, got 2 numbers (after 'fine')"


def test_output_folder_that_holds_another_run(capsys):
    assert main(["train", "classifier", "--train", "good.csv", "--out", "runs/x", *TINY]) == 0
    capsys.readouterr()
    assert classifier(capsys, "good.csv") == "runs/x: holds another run: choose another --out, or delete the folder"
    message = classifier(capsys, "good.csv", "--resume", "--seed", "7")
    assert message == "runs/x: holds a run with seed = 0, not 7: a run is resumed as it began"


def test_output_folder_that_holds_something_else(folder, capsys):
    (folder / "runs/x").mkdir(parents=True)
    (folder / "runs/x/thesis.tex").write_text("")
    message = classifier(capsys, "good.csv")
    assert message == "runs/x: is there already and holds something else: choose another --out"


@pytest.mark.parametrize("written", [0, 1, 2, 7, 11])
def test_full_disk(folder, capsys, monkeypatch, written):
    """The disk is full after so many files: what is there is whole, and the run can be resumed once there is room."""
    left, sync = [written], os.fsync

    def fsync(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    assert main(["train", "classifier", "--train", "good.csv", "--out", "x", *TINY]) == 2
    assert "the disk is full; nothing half-written is left" in capsys.readouterr().err
    assert not list(folder.rglob("*.unfinished"))
    monkeypatch.setattr(os, "fsync", sync)
    assert main(["train", "classifier", "--train", "good.csv", "--out", "x", *TINY, "--resume"]) == 0


def test_full_disk_of_a_kernel(folder):
    """The same with a file system that is really full, where one may be mounted."""
    (folder / "disk").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(folder / "disk")]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no right to mount a file system")
    try:
        process = start(["train", "classifier", "--train", "good.csv", "--out", "disk/x", *TINY], folder)
        output, error = process.communicate(timeout=60)
        assert process.returncode == 2, output
        assert "the disk is full" in error
        assert "Traceback" not in error
        assert not list((folder / "disk").rglob("*.unfinished"))
    finally:
        subprocess.run(["umount", str(folder / "disk")], check=True)


def test_too_little_memory(capsys, monkeypatch):
    def out_of_memory(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr("sentence_state.commands.train.fit", out_of_memory)
    assert classifier(capsys, "good.csv").startswith("there is not enough memory: try a smaller --batch-size")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--train", "good.csv", "--encoder", "Mamba"], "encoder must be one of 'S-LSTM', 'LSTM'"),
        (["--train", "good.csv", "--dropout", "1.5"], "dropout must lie in [0, 1), got 1.5"),
        (["--train", "good.csv", "--epochs", "0"], "epochs must be"),
        (["--train", "good.csv", "--device", "gpu"], "device must be cpu, cuda, "),
        (["--train", "good.csv", "--delimiter", "::"], "--delimiter must be one character, or tab, got '::'"),
        (["--train", "good.csv", "--dev-fraction", "2"], "--dev-fraction must lie between 0 and 1, got 2.0"),
        ([], "give either --train FILE or --data NAME"),
        (["--data", "mr"], "--data mr needs --data-dir DIR"),
        (["--data", "mr", "--data-dir", "."], ".: the benchmark mr is not here. Looked for"),
        (["--data", "mr", "--test", "good.csv"], "--dev and --test go with --train"),
    ],
)
def test_flags_that_are_wrong_together(capsys, arguments, message):
    assert refused(capsys, "train", "classifier", "--out", "runs/x", *arguments).startswith(message)


def test_a_set_of_the_hub_without_its_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    message = refused(capsys, "train", "classifier", "--data", "hub:imdb", "--out", "runs/x")
    assert message == 'imdb: data sets of the hub need the package datasets: pip install "sentence-state[hub]"'


@pytest.mark.parametrize(
    "arguments",
    [[], ["train"], ["train", "poet"], ["train", "classifier"], ["evaluate", "x"], ["demo", "--fast"]],
)
def test_wrong_flags_exit_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_run_that_is_none(folder, capsys):
    assert refused(capsys, "predict", "runs/none", "fine film") == "runs/none: no such folder"
    assert refused(capsys, "evaluate", ".", "good.csv") == "config.json: no such file"


def test_a_folder_of_runs_names_them(folder, capsys):
    for name in ("reviews", "assistant"):
        assert (
            main(["train", "classifier", "--train", "good.csv", "--dev", "good.csv", "--out", f"runs/{name}", *TINY])
            == 0
        )
    capsys.readouterr()
    expected = "runs: no run, but a folder of runs: give one of them (runs/assistant, runs/reviews)"
    assert refused(capsys, "serve", "runs", "--port", "0") == expected
    assert refused(capsys, "predict", "runs", "fine film") == expected


def test_a_folder_is_served_once(capsys):
    message = refused(capsys, "serve", "runs/a", "runs/b", "runs/../runs/a", "--port", "0")
    assert message == "runs/a is given twice"


def test_ctrl_c_while_torch_is_imported_is_no_traceback(folder):
    (folder / "torch.py").write_text("raise KeyboardInterrupt")  # the working folder comes first
    process = start(["predict", "runs/none", "fine film"], folder)
    assert process.communicate(timeout=60) == ("", "\nstopped\n")
    assert process.returncode == 130


def test_ctrl_c_that_an_import_would_swallow_ends_the_process(folder):
    (folder / "torch.py").write_text(
        "import os, signal, time\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(60)\n"
        "except BaseException:\n    time.sleep(60)\n"
    )
    process = start(["predict", "runs/none", "fine film"], folder)
    assert process.communicate(timeout=60) == ("", "\nstopped\n")
    assert process.returncode == 130


def test_a_folder_without_a_name(folder, capsys, monkeypatch):
    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    message = refused(capsys, "train", "classifier", "--train", "../good.csv", "--out", ".", *TINY)
    assert message == ".: give the new folder a name: choose another --out"


def test_unwritable_answers(folder, capsys):
    write_files(folder, 40)
    assert main(["train", "classifier", "--train", "reviews.csv", "--out", "x", *TINY]) == 0
    capsys.readouterr()
    assert "there is no folder nowhere" in refused(capsys, "predict", "x", "fine", "--output", "nowhere/a.csv")
    assert refused(capsys, "predict", "x", "fine", "--output", ".") == ".: this is a folder: give --output a file"
    assert refused(capsys, "predict", "x", "fine", os.fsdecode(b"caf\xe9")) == "text 2 is not UTF-8: 'caf\\udce9'"
    assert refused(capsys, "predict", "x", "fine", "--batch-size", "0") == "--batch-size must be 1 or more, got 0"
    assert refused(capsys, "predict", "x", "fine", "  ") == "text 2 has no words: '  '"
    assert refused(capsys, "predict", "x", "fine", "--input", "reviews.csv").startswith("give either texts or --input")
    (folder / "bad.txt").write_bytes(b"fine\n\x81\xff\n")
    message = refused(capsys, "predict", "x", "--input", "bad.txt", "--output", "answers.jsonl")
    assert message.startswith("bad.txt:2: byte 0x81 is not UTF-8")
