"""sentence-state predict, evaluate and demo, on runs that were trained through the command line."""

import csv
import io
import json
import os
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from sentence_state.cli import main
from sentence_state.commands import demo
from sentence_state.commands.console import coloured
from sentence_state.data import read_marked, tags_to_spans
from sentence_state.models import Model

from .command_line import TINY, environment, said, start, write_files

needs_posix = pytest.mark.skipif(os.name != "posix", reason="needs pipes, links and rights as POSIX has them")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with the files and three runs: c, t and j."""
    folder = tmp_path_factory.mktemp("runs")
    write_files(folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main(["train", "classifier", "--train", "reviews.csv", "--out", "c", *TINY]) == 0
        assert main(["train", "tagger", "--train", "train.conll", "--dev", "dev.conll", "--out", "t", *TINY]) == 0
        assert main(["train", "joint", "--train", "intents.txt", "--out", "j", *TINY]) == 0
    finally:
        os.chdir(before)
    return folder


@pytest.fixture(autouse=True)
def folder(runs, monkeypatch):
    monkeypatch.chdir(runs)
    return runs


def test_texts_on_the_command_line(capsys):
    printed = said(capsys, "predict", "c", "a gorgeous , witty film", "play [some] jazz :)")
    label = Model.from_pretrained("c").predict(["a gorgeous , witty film"])[0]["label"]
    first, second = printed.splitlines()
    assert first.startswith(f"{label} 0.")
    assert first.endswith("a gorgeous , witty film")
    assert second.endswith("play [some] jazz :)")


@pytest.mark.parametrize("run", ["c", "t", "j"])
def test_json_lines_are_what_the_model_answers(capsys, run):
    text = "wake me at seven , it's late"
    found = json.loads(said(capsys, "predict", run, text, "--json"))
    assert found == {"text": text, **Model.from_pretrained(run).predict([text])[0]}


def test_standard_input_goes_through_line_by_line(folder):
    process = start(["predict", "c", "--json"], folder)
    printed, error = process.communicate("play jazz\n\nset a timer\r\n", timeout=60)
    assert (process.returncode, error) == (0, "1 lines without text left out (the first is line 2)\n")
    assert [json.loads(line)["text"] for line in printed.splitlines()] == ["play jazz", "set a timer"]


def test_standard_input_that_is_not_utf8(folder):
    process = start(["predict", "c"], folder, text=False)
    _, error = process.communicate(b"play jazz\ncaf\xe9 bar\n", timeout=60)
    assert process.returncode == 2
    assert error.decode().startswith("error: standard input:2: byte 0xe9 is not UTF-8")


def test_a_reader_that_has_seen_enough_is_no_error(folder):
    process = start(["predict", "c", "--input", "reviews.csv", "--json"], folder)
    process.stdout.close()
    error = process.stderr.read()
    assert process.wait(timeout=60) == 141
    found = "reviews.csv: 160 examples (comma-separated, a header, UTF-8)\ntext from column 'text'\n"
    assert error == found


def test_tables_in_and_out(folder, capsys):
    said(capsys, "predict", "c", "--input", "reviews.csv", "--output", "answers.csv")
    with open("reviews.csv", newline="") as asked, open("answers.csv", newline="") as answered:
        questions, answers = list(csv.DictReader(asked)), list(csv.DictReader(answered))
    assert [row["text"] for row in answers] == [row["text"] for row in questions]
    assert list(answers[0]) == ["text", "label", "score"]
    assert all(0 < float(row["score"]) <= 1 for row in answers)
    said(capsys, "predict", "j", "--input", "reviews.csv", "--output", "answers.tsv")
    assert (folder / "answers.tsv").read_text().startswith("text\tlabel\tscore\tspans\n")


def test_a_first_row_that_looks_like_a_header_can_be_a_text(folder, capsys):
    (folder / "short.csv").write_text("Great,excellent\nfilm number 1,bad\nfilm number 2,bad\n")
    predict = ("predict", "c", "--input", "short.csv", "--json")
    assert len(said(capsys, *predict).splitlines()) == 2
    assert json.loads(said(capsys, *predict, "--header", "no").splitlines()[0])["text"] == "Great"


def test_rows_without_a_text_get_no_answer_and_it_is_said(folder, capsys):
    (folder / "gaps.csv").write_text("text,label\nplay jazz,a\n,b\n  ,c\nset a timer,d\n")
    assert main(["predict", "c", "--input", "gaps.csv", "--output", "ANSWERS.CSV"]) == 0
    assert "2 rows without text or label left out (the first on line 3)" in capsys.readouterr().err
    first, *lines = (folder / "ANSWERS.CSV").read_text().splitlines()
    assert first == "text,label,score"
    assert [line.split(",")[0] for line in lines] == ["play jazz", "set a timer"]


def test_columns_and_lines_in_json_out(folder, capsys):
    said(capsys, "predict", "t", "--input", "test.conll", "--output", "answers.jsonl")
    lines = (folder / "answers.jsonl").read_text().splitlines()
    assert len(lines) == 160
    (folder / "lines.txt").write_text("play jazz\n\nset a timer\n")
    assert main(["predict", "t", "--input", "lines.txt", "--json"]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 2
    assert printed.err == "lines.txt: 2 lines (UTF-8)\n1 lines without text left out (the first is line 2)\n"


def test_a_tagger_knows_files_like_those_that_it_was_trained_on_by_their_content(folder, capsys):
    (folder / "columns.txt").write_text((folder / "test.conll").read_text())
    answers = said(capsys, "predict", "t", "--input", "columns.txt", "--json")
    assert answers == said(capsys, "predict", "t", "--input", "test.conll", "--json")
    (folder / "texts.txt").write_text("wake me at seven\nwake me at eight\nplan B or O\n")
    assert len(said(capsys, "predict", "t", "--input", "texts.txt", "--json").splitlines()) == 3


def test_answers_replace_no_input_and_are_no_archive(folder, capsys):
    before = (folder / "reviews.csv").read_text()
    for output, message in (
        ("./reviews.csv", "this is the input, which would be lost"),
        ("answers.csv.gz", "answers are written as .csv, .tsv or .jsonl"),
        ("answers.xlsx", "answers are written as .csv, .tsv or .jsonl"),
    ):
        assert main(["predict", "c", "--input", "reviews.csv", "--output", output]) == 2
        assert message in capsys.readouterr().err
    assert (folder / "reviews.csv").read_text() == before


@needs_posix
def test_answers_go_into_a_pipe_that_stays_one(folder, capsys):
    pipe, received = folder / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()), daemon=True)
    reader.start()
    said(capsys, "predict", "c", "play jazz", "--output", "pipe")
    assert pipe.is_fifo()
    reader.join(timeout=60)
    assert json.loads(received[0])["text"] == "play jazz"


@needs_posix
def test_a_reader_that_leaves_a_pipe_is_no_error(folder):
    pipe = folder / "left"
    os.mkfifo(pipe)
    process = start(["predict", "c", "--input", "reviews.csv", "--output", "left"], folder)
    threading.Thread(target=lambda: pipe.open().close(), daemon=True).start()
    assert process.wait(timeout=60) == 141
    assert "Error" not in process.stderr.read()


@needs_posix
def test_a_closed_standard_input_is_said(folder):
    command = [sys.executable, "-m", "sentence_state", "predict", "c"]
    shell = ["sh", "-c", '"$@" <&-', "sh", *command]
    done = subprocess.run(shell, cwd=folder, env=environment(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (2, "error: standard input: is closed\n")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs /dev/fd")
@pytest.mark.parametrize("output", ["/dev/fd/1", "far"])
def test_answers_follow_what_others_wrote_to_an_open_file(folder, output):
    (folder / "log.txt").unlink(missing_ok=True)
    for link, target in (("far", "near"), ("near", os.path.relpath("/dev/stdout", os.path.realpath(folder)))):
        (folder / link).unlink(missing_ok=True)
        (folder / link).symlink_to(target)
    with open(folder / "log.txt", "a") as log:
        log.write("before\n")
        log.flush()
        command = [sys.executable, "-m", "sentence_state", "predict", "c", "play jazz", "--output", output]
        subprocess.run(command, cwd=folder, env=environment(), stdout=log, check=True, timeout=60)
        log.write("after\n")
    before, answer, after = (folder / "log.txt").read_text().splitlines()
    assert (before, json.loads(answer)["text"], after) == ("before", "play jazz", "after")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs /dev/fd")
def test_a_descriptor_that_is_not_open_is_said(capsys):
    assert main(["predict", "c", "play jazz", "--output", "/dev/fd/987"]) == 2
    assert capsys.readouterr().err == "error: /dev/fd/987: could not be written: Bad file descriptor\n"


@needs_posix
def test_answers_go_where_a_link_leads_and_files_keep_their_mode(folder, capsys):
    (folder / "elsewhere").mkdir()
    target, link = folder / "elsewhere/real.jsonl", folder / "link.csv"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to("elsewhere/real.jsonl")
    said(capsys, "predict", "c", "play jazz", "--output", "link.csv")
    assert link.is_symlink()
    assert target.read_text().startswith("text,label,score\nplay jazz,")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in (folder / "elsewhere").iterdir()] == ["real.jsonl"]


@needs_posix
def test_a_table_comes_through_standard_input_by_its_name(folder):
    process = start(["predict", "c", "--input", "/dev/stdin", "--json"], folder)
    printed, error = process.communicate((folder / "reviews.csv").read_text(), timeout=60)
    assert process.returncode == 0, error
    with open(folder / "reviews.csv", newline="") as file:
        assert [json.loads(line)["text"] for line in printed.splitlines()] == [r["text"] for r in csv.DictReader(file)]


def test_a_text_that_begins_as_the_header_of_training_is_one(folder, capsys):
    (folder / "begins.txt").write_text("text, call or mail me\ngood film\n")
    answers = said(capsys, "predict", "c", "--input", "begins.txt", "--json").splitlines()
    assert [json.loads(line)["text"] for line in answers] == ["text, call or mail me", "good film"]


def test_a_text_of_several_lines_is_answered_on_one(folder, capsys):
    (answer,) = said(capsys, "predict", "c", "two\nlines\u2028here").splitlines()
    assert answer.endswith("two lines here")


def test_evaluate_equals_what_training_reported(folder, capsys):
    reported = json.loads((folder / "t/result.json").read_text())["dev"]
    assert json.loads(said(capsys, "evaluate", "t", "dev.conll", "--json")) == reported
    printed = said(capsys, "evaluate", "t", "dev.conll")
    assert "t on dev.conll: F1 " in printed
    assert "precision" in printed


@pytest.mark.parametrize(("run", "file"), [("c", "reviews.csv"), ("j", "intents.txt")])
def test_evaluate_reads_the_file_as_the_model_was_trained(capsys, run, file):
    assert f"{run} on {file}: " in said(capsys, "evaluate", run, file)


@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_a_joint_model_is_measured_on_the_words_that_it_is_asked_about(folder, capsys, stream):
    lines = ["play\tI'd love some [jazz](genre)!", "stop\tI don't love some [jazz](genre).", "ask\twhat's it like?"]
    (folder / "spoken.txt").write_text("\n".join(lines * 20))
    out = f"spoken{len(stream)}"
    said(capsys, "train", "joint", "--train", "spoken.txt", "--out", out, *TINY, "--epochs", "9", *stream)
    measured = json.loads(said(capsys, "evaluate", out, "spoken.txt", "--json"))["scores"]
    model = Model.from_pretrained(out)
    corpus = read_marked("spoken.txt", target_scheme="bioes")
    answers = model.predict([example.text for example in corpus.examples])
    right = [answer["label"] == example.label for answer, example in zip(answers, corpus.examples, strict=True)]
    assert sum(right) / len(right) == measured["accuracy"]
    assert {"I", "do", "n't", "'d", "'s", ".", "?"} <= set(model.vocabularies.words.words)
    found = [[(span["start"], span["end"]) for span in answer["spans"]] for answer in answers]
    marked = [spans_of(example) for example in corpus.examples]
    assert (found == marked) == (measured["f1"] == 1)


def test_columns_that_were_found_in_training_are_looked_for_in_other_files(folder, capsys):
    rows = "".join(
        f"{i};{'pos' if i % 2 else 'neg'};film {i % 2};a longer remark of the clerk {i}\n" for i in range(40)
    )
    (folder / "found.csv").write_text("nr;verdict;tale_text;clerk\n" + rows)
    (folder / "dev.csv").write_text("body;tale_text;verdict\nnot this;film 1;pos\nnor this;film 0;neg\n")
    train = ("train", "classifier", "--train", "found.csv", "--dev", "dev.csv", "--out", "found", *TINY)
    assert said(capsys, *train).count("text from column 'tale_text', label from column 'verdict'") == 2
    saved = json.loads((folder / "found/training.json").read_text())["reading"]
    assert saved == {"usual_text": "tale_text", "usual_label": "verdict"}

    (folder / "new.csv").write_text("tale_text,comment\nfilm 1,a much longer comment\nfilm 0,another long one\n")
    (folder / "one.csv").write_text("tale_text\nfilm 1\nfilm 0\n")
    for name in ("new.csv", "one.csv"):
        answers = said(capsys, "predict", "found", "--input", name, "--json").splitlines()
        assert [json.loads(line)["text"] for line in answers] == ["film 1", "film 0"]
    (folder / "other.csv").write_text("comment,id\nfilm 1,1\nfilm 0,2\n")
    assert main(["predict", "found", "--input", "other.csv", "--json"]) == 0
    assert "text from column 'comment'" in capsys.readouterr().err


def test_a_column_whose_name_occurs_twice_is_found_again_by_what_it_holds(folder, capsys):
    rows = "".join(f"u{i},a film that is {i % 2},{'pos' if i % 2 else 'neg'}\n" for i in range(20))
    (folder / "twice.csv").write_text("col,col,verdict\n" + rows)
    said(capsys, "train", "classifier", "--train", "twice.csv", "--out", "twice", *TINY)
    assert "more than one column is called 'col': number 2 is read" in said(capsys, "evaluate", "twice", "twice.csv")
    answers = said(capsys, "predict", "twice", "--input", "twice.csv", "--json").splitlines()
    assert json.loads(answers[0])["text"] == "a film that is 0"


def test_columns_that_were_counted_in_training_have_names_in_json(folder, capsys):
    rows = "".join(f"{'pos' if i % 2 else 'neg'},film {i % 2}\n" for i in range(20))
    (folder / "counted.csv").write_text(rows)
    columns = ("--text-column", "2", "--label-column", "1")
    said(capsys, "train", "classifier", "--train", "counted.csv", "--out", "counted", *columns, *TINY)
    (folder / "named.jsonl").write_text('{"label": "pos", "id": "a longer name", "text": "film 1"}\n')
    assert main(["predict", "counted", "--input", "named.jsonl", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["text"] == "film 1"
    assert "read as in training" not in captured.err
    assert main(["predict", "counted", "--input", "counted.csv", "--json"]) == 0
    assert "read as in training: --text-column 2" in capsys.readouterr().err


def test_a_joint_model_reads_its_own_files_without_labels_and_marks(folder, capsys):
    answers = said(capsys, "predict", "j", "--input", "intents.txt", "--json").splitlines()
    expected = [example.text for example in read_marked("intents.txt").examples]
    assert [json.loads(line)["text"] for line in answers] == expected


def test_answers_in_a_table_are_one_row_each_whatever_breaks_their_lines(folder, capsys):
    text = "good\rbad\nfilm \u2028 x"
    (folder / "breaks.jsonl").write_text(json.dumps({"text": text}) + "\n")
    assert main(["predict", "c", "--input", "breaks.jsonl", "--output", "breaks.csv"]) == 0
    content = (folder / "breaks.csv").read_bytes().decode()
    assert content.startswith("text,label,score\n")
    _, row = csv.reader(io.StringIO(content, newline=""))
    assert row[0] == text


def test_streamed_training_finds_columns_for_other_files_too(folder, capsys):
    rows = "".join(f"{'pos' if i % 2 else 'neg'};film {i % 2};a long remark of the clerk {i}\n" for i in range(40))
    (folder / "streamed.csv").write_text("verdict;tale_text;clerk\n" + rows)
    said(capsys, "train", "classifier", "--train", "streamed.csv", "--stream", "--out", "streamed", *TINY)
    saved = json.loads((folder / "streamed/training.json").read_text())["reading"]
    assert saved == {"usual_text": "tale_text", "usual_label": "verdict"}


def test_files_are_read_in_the_encoding_of_training(folder, capsys):
    rows = "".join(f"film {i % 2},{'świetny' if i % 2 else 'zły'}\n" for i in range(40))
    (folder / "polish.csv").write_bytes(f"text,label\n{rows}".encode("cp1250"))
    said(capsys, "train", "classifier", "--train", "polish.csv", "--encoding", "cp1250", "--out", "polish", *TINY)
    printed = said(capsys, "evaluate", "polish", "polish.csv")
    assert "read as in training: --encoding cp1250" in printed
    assert "is not one of the model's" not in printed
    assert main(["predict", "polish", "--input", "polish.csv", "--output", "polish.jsonl"]) == 0
    assert "read as in training: --encoding cp1250" in capsys.readouterr().err
    assert main(["evaluate", "polish", "polish.csv", "--encoding", "cp1252"]) == 2
    error = "no label, such as 'z³y', is one of the model's (zły, świetny): try another --label-column or --encoding"
    assert error in capsys.readouterr().err
    (folder / "polish-8.csv").write_text(f"text,label\n{rows}", encoding="utf-8")
    printed = said(capsys, "evaluate", "polish", "polish-8.csv")
    assert "polish-8.csv: UTF-8, not --encoding cp1250 as in training" in printed
    assert main(["evaluate", "polish", "polish.csv", "--encoding", "undefined"]) == 2
    assert "polish.csv: cannot be read as undefined" in capsys.readouterr().err


@needs_posix
def test_a_pipe_is_evaluated_as_its_file_is(folder, capsys):
    rows = "".join(f"film {i % 2},{'świetny' if i % 2 else 'zły'}\n" for i in range(40))
    (folder / "piped.csv").write_bytes(rows.encode("cp1250"))
    columns = ("--encoding", "cp1250", "--text-column", "1", "--label-column", "2")
    said(capsys, "train", "classifier", "--train", "piped.csv", "--out", "piped", *columns, *TINY)
    objects = "".join(json.dumps({"label": "zły", "text": f"film {i}"}, ensure_ascii=False) + "\n" for i in range(9))
    for name, text in (("utf8.csv", rows), ("utf8.jsonl", objects)):
        (folder / name).write_text(text, encoding="utf-8")
        process = start(["evaluate", "piped", "/dev/stdin", "--json"], folder)
        printed, notes = process.communicate(text, timeout=60)
        assert process.returncode == 0, notes
        assert "/dev/stdin: UTF-8, not --encoding cp1250 as in training" in notes
        assert printed == said(capsys, "evaluate", "piped", name, "--json")


def spans_of(example):
    spans = tags_to_spans(example.tags, "bioes")
    return [(example.offsets[span.start][0], example.offsets[span.end - 1][1]) for span in spans]


def test_files_are_read_with_the_columns_of_training(folder, capsys):
    rows = "".join(f"{i};{'pos' if i % 2 else 'neg'};a longer title {i};film {i % 2}\n" for i in range(40))
    (folder / "wide.csv").write_text("nr;verdict;title;what\n" + rows)
    columns = ("--text-column", "what", "--label-column", "verdict", "--delimiter", ";")
    said(capsys, "train", "classifier", "--train", "wide.csv", "--out", "wide", *TINY, *columns)
    assert json.loads((folder / "wide/training.json").read_text())["reading"] == {
        "text_column": "what",
        "label_column": "verdict",
        "delimiter": ";",
    }
    printed = said(capsys, "evaluate", "wide", "wide.csv")
    assert "read as in training: --text-column what --label-column verdict --delimiter ;" in printed
    assert "text from column 'what', label from column 'verdict'" in printed
    assert "text from column 'title'" in said(capsys, "evaluate", "wide", "wide.csv", "--text-column", "title")
    answers = said(capsys, "predict", "wide", "--input", "wide.csv", "--json").splitlines()
    assert json.loads(answers[0])["text"] == "film 0"


def test_tags_are_read_from_the_column_of_training(folder, capsys):
    row = "{0}\t{1}\t{1}\tX{2}\tY{2}\t_\t0\troot\t_\t_\n"
    trees = "\n".join("".join(row.format(i + 1, f"w{i}", i % 2) for i in range(4)) for _ in range(20))
    (folder / "trees.conllu").write_text(trees)
    train = ("train", "tagger", "--train", "trees.conllu", "--out", "upos", *TINY, "--tag-column", "upos")
    said(capsys, *train, "--dev", "trees.conllu")
    printed = said(capsys, "evaluate", "upos", "trees.conllu")
    assert "read as in training: --tag-column upos" in printed
    assert "not one of the model's" not in printed
    wrong = said(capsys, "evaluate", "upos", "trees.conllu", "--tag-column", "xpos")
    assert "tag 'Y0' is not one of the model's: 40 words count as wrong" in wrong


def test_words_are_read_from_the_column_of_training(folder, capsys):
    (folder / "numbered.conll").write_text("1 Anna B-PER\n2 sleeps O\n\n1 Rome B-LOC\n" * 9)
    files = ("--train", "numbered.conll", "--dev", "numbered.conll", "--word-column", "1")
    said(capsys, "train", "tagger", *files, "--out", "numbered", *TINY)
    predict = ("predict", "numbered", "--json", "--input")
    assert json.loads(said(capsys, *predict, "numbered.conll").splitlines()[0])["text"] == "Anna sleeps"
    (folder / "bare.conll").write_text("Anna\nsleeps\n")
    assert json.loads(said(capsys, *predict, "bare.conll", "--word-column", "0"))["text"] == "Anna sleeps"


def test_plain_tags_are_refused_for_a_model_of_spans(folder, capsys):
    (folder / "plain.conll").write_text("Anna NNP\nsleeps VBZ\n")
    assert main(["evaluate", "t", "plain.conll"]) == 2
    message = "plain.conll:1: tags such as 'NNP' are no spans, which this model finds: choose another --tag-column"
    assert message in capsys.readouterr().err


def test_of_many_unknown_labels_ten_are_named(folder, capsys):
    (folder / "strange.csv").write_text(
        "text,label\nplay jazz,play_music\n" + "".join(f"text {i},new {i}\n" for i in range(120))
    )
    printed = said(capsys, "evaluate", "c", "strange.csv")
    assert printed.count("is not one of the model's") == 10
    assert "and 110 more labels, of 110 examples" in printed


def test_evaluate_says_which_labels_the_model_does_not_know(folder, capsys):
    (folder / "other.csv").write_text("text,label\nplay jazz,play_music\nbuy milk,shopping\n")
    assert "label 'shopping' is not one of the model's: 1 examples count as wrong" in said(
        capsys, "evaluate", "c", "other.csv"
    )


def test_spans_are_coloured_on_a_terminal_and_marked_elsewhere():
    span = {"start": 5, "end": 9, "label": "genre", "text": "jazz", "score": 0.5}
    answer = {"label": "play", "score": 0.75, "spans": [span]}
    printed = {}
    for terminal in (True, False):
        out = io.StringIO()
        shown = Console(file=out, force_terminal=terminal, color_system="standard" if terminal else None)
        shown.print(coloured("play jazz [now]", answer, shown, {"genre": "cyan"}))
        printed[terminal] = out.getvalue()
    assert printed[False] == "play 0.75  play [jazz](genre) [now]\n"
    assert "\x1b[1;30;46m jazz \x1b[0m" in printed[True]
    assert "[now]" in printed[True]


def test_demo_shows_both_tasks_beside_its_baselines(capsys, monkeypatch):
    monkeypatch.setattr(demo, "TRAINING", replace(demo.TRAINING, epochs=1))
    monkeypatch.setattr(demo, "MODEL", replace(demo.MODEL, hidden_size=8, word_size=8, num_steps=1))
    printed = said(capsys, "demo", "--out", "demo")
    rows = {line.split("  ")[1]: line for line in printed.splitlines() if line.count("%") == 2 and "epoch" not in line}
    assert set(rows) == {"most frequent", "BiLSTM", "S-LSTM"}
    assert "S-LSTM on test utterances" in printed
    assert len(said(capsys, "predict", "demo", "wake me at seven")) > 10
