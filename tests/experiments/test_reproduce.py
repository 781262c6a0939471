"""sentence-state reproduce as a user types it: everything as a smoke run, its report, and wrong input."""

import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from sentence_state.cli import main
from sentence_state.commands.reproduce import find_asked
from sentence_state.data.errors import DataError
from sentence_state.experiments.catalogue import NAMES, find
from sentence_state.experiments.experiment import Plan
from sentence_state.experiments.report import commits, listed

from ..command_line import start
from ..serving.browser import chromium
from .test_runs import write_reviews

OPENING = 2  # sections before the tables: how to read them, and the paper's claims


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """`reproduce all --smoke` in an empty folder, as a process of its own."""
    folder = tmp_path_factory.mktemp("reproduce")
    process = start(["reproduce", "all", "--smoke", "--jobs", "2"], folder)
    output, error = process.communicate()
    assert process.returncode == 0, error
    return folder / "runs" / "smoke", output


@pytest.fixture
def call(capsys, monkeypatch):
    """The command in this process, in a folder: exit code, output, errors."""

    def call_in(arguments: list[str], folder: Path) -> tuple[int, str, str]:
        monkeypatch.chdir(folder)
        code = main(["reproduce", *arguments])
        return code, *capsys.readouterr()

    return call_in


@pytest.mark.slow
def test_everything_has_a_section_and_says_everywhere_that_it_is_a_smoke_run(smoke):
    folder, output = smoke
    for name in ("report.md", "report.tex"):
        text = (folder / name).read_text()
        titles = re.findall(r"^(?:## |\\heading\{)(.*)", text, re.MULTILINE)
        assert len(titles) == len(NAMES) + OPENING
        assert all(title.startswith("SMOKE RUN, NOT A RESULT: ") for title in titles)
    assert "SMOKE RUN, NOT A RESULT: Table 7" in output
    assert all(json.loads(line)["smoke"] for line in (folder / "runs.jsonl").read_text().splitlines())
    assert {path.name for path in (folder / "figures").iterdir()} == {f"figure{n}.png" for n in (2, 3, 4, 5)}


@pytest.mark.slow
def test_a_second_call_runs_nothing_and_writes_the_same_report(smoke, call):
    folder, _ = smoke
    before = {name: (folder / name).read_text() for name in ("runs.jsonl", "report.md", "report.tex", "report.html")}
    code, output, _ = call(["all", "--smoke"], folder.parents[1])
    total = re.search(r"(\d+) runs, (\d+) of them finished before", output)
    assert code == 0
    assert total[1] == total[2]
    assert before == {name: (folder / name).read_text() for name in before}


@pytest.mark.slow
def test_half_of_the_results_are_completed_to_the_same_scores(smoke, call, tmp_path):
    folder, _ = smoke
    lines = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
    part = tmp_path / "runs" / "smoke" / "runs.jsonl"
    part.parent.mkdir(parents=True)
    kept = [line for line in lines if json.loads(line)["kind"] == "training"][::2]
    part.write_text("".join(kept))
    assert call(["table4", "--smoke"], tmp_path)[0] == 0
    again = {record["key"]: record for record in map(json.loads, part.read_text().splitlines())}
    first = {record["key"]: record for record in map(json.loads, lines)}
    trained = [key for key in again if again[key]["kind"] == "training"]
    assert all(again[key]["dev"]["score"] == first[key]["dev"]["score"] for key in trained)
    assert part.read_text().startswith("".join(kept))


def outside(text: str) -> list[str]:
    """Whatever a browser would fetch: sources and links that are neither data nor places in the page."""
    found = re.findall(r'(?:src|href|srcset|action|poster|data)\s*=\s*["\']?([^"\'\s>]+)', text)
    found += re.findall(r"url\(\s*[\"']?([^)\"']+)", text) + re.findall(r"@import\s+(\S+)", text)
    return [address for address in found if not address.startswith(("data:", "#"))]


@pytest.mark.slow
def test_the_page_refers_to_nothing_outside_itself(smoke):
    text = (smoke[0] / "report.html").read_text()
    assert outside('<img src="https://example.org/a.png"><style>@import url(b.css)</style>')  # it would be found
    assert outside(text) == []
    assert "<script" not in text


@pytest.mark.slow
def test_the_page_opens_in_a_browser_without_a_request(smoke, tmp_path):
    page_file = tmp_path / "report.html"  # alone: no figures beside it
    shutil.copy(smoke[0] / "report.html", page_file)
    with chromium() as browser:
        page = browser.new_page()
        requests, errors = [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(error))
        page.goto(page_file.as_uri())
        page.wait_for_load_state("networkidle")
        assert [url for url in requests if not url.startswith("data:")] == [page_file.as_uri()]
        assert errors == []
        drawn = page.eval_on_selector_all("img", "images => images.map(i => i.complete && i.naturalWidth > 100)")
        assert drawn == [True] * 4
        assert page.locator("h2").count() == len(NAMES) + OPENING


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table8", "--smoke"], "there is no 'table8' to reproduce; there are list, table1, table2"),
        ([], "what is to be reproduced? list, table1, table2"),
        (["table4"], "--data-dir DIR: the folder with the sets"),
        (["table4", "--smoke", "--seeds", "0"], "--seeds must be 1 or more, got 0"),
        (["table4", "--smoke", "--settings", "wurst"], "wurst: neither a preset (paper, best, fast) nor a folder"),
        (
            ["all", "--smoke", "--settings", "paper", "wurst"],
            "wurst: neither a preset (paper, best, fast) nor a folder",
        ),
        (["table4", "--data-dir", "."], "the benchmark mr is not here"),
        (["table1", "--data-dir", "."], ".: none of the benchmarks is here"),
        (["table4", "--smoke", "--data-dir", "nowhere"], "nowhere: no such folder"),
        (["table4", "--smoke", "--embeddings", "nowhere.txt"], "nowhere.txt: no such file"),
        (["vectors", "--data-dir", "nowhere", "--embeddings", "wrong.json"], "nowhere: no such folder"),
        (["list", "table4"], "list goes with no other target: `sentence-state reproduce list`"),
        (["table4", "vectors", "--smoke"], "vectors goes with no other target"),
        (["table4", "--report-only"], "runs/reproduce: nothing is finished there"),
        (["table4", "--report-only", "--out", "."], ".: nothing is finished there"),
        (["grid.json", "--smoke"], "grid.json: no such file"),
        (["wrong.json", "--smoke"], "wrong.json: unknown: row; the fields are"),
        (
            ["option.json", "--smoke"],
            "option.json: row 'a': model has unknown fields: droput; the fields are boundaries",
        ),
        (["table4", "--smoke", "--settings", "best", "x/best"], "--settings best: another is called best too"),
        (["set.json", "--smoke"], "imdb: no such set; there are"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments, message, call, tmp_path):
    (tmp_path / "wrong.json").write_text('{"data": "mr", "row": []}')
    (tmp_path / "option.json").write_text('{"data": "mr", "rows": [{"label": "a", "model": {"droput": 0.1}}]}')
    (tmp_path / "set.json").write_text('{"data": "imdb", "rows": [{"label": "a"}]}')
    code, _, errors = call(arguments, tmp_path)
    assert code == 2
    assert message in errors
    assert "Traceback" not in errors
    assert sorted(path.name for path in tmp_path.iterdir()) == ["option.json", "set.json", "wrong.json"]


def test_tables_whose_sets_are_missing_are_left_out_before_anything_is_trained(call, tmp_path):
    data = write_reviews(tmp_path / "data")
    (tmp_path / "mine.json").write_text('{"data": "mr", "rows": [{"label": "a"}]}')
    arguments = ["--smoke", "--seeds", "1", "--data-dir", str(data)]
    code, output, _ = call(["table7", "mine.json", "table5", *arguments], tmp_path)
    assert code == 1  # not all that was asked for is finished
    table7, table5, *rest = [line for line in output.splitlines() if line]
    assert table7.startswith(f"left out: table7 ({data}: the benchmark conll2003 is not here. Looked for ")
    assert table5.startswith(f"left out: table5 ({data}: the benchmark fdu/books is not here. Looked for ")
    assert table5.endswith("Not here either: fdu/mr)")
    assert rest[0].startswith("mr train: ")
    assert "another release or another preparation?" in rest[0]
    assert output.count("mr train: ") == 1
    assert "| a | " in (tmp_path / "runs/smoke/report.md").read_text()
    code, output, error = call(["table7", *arguments], tmp_path)
    assert (code, output) == (2, "")
    assert error.startswith(f"error: {data}: the benchmark conll2003 is not here")


def test_what_was_finished_with_other_data_is_never_shown_as_the_users(call, tmp_path):
    (tmp_path / "mine.json").write_text('{"data": "mr", "rows": [{"label": "a"}]}')
    arguments = ["mine.json", "--smoke", "--seeds", "1", "--data-dir"]
    first, other = write_reviews(tmp_path / "first"), write_reviews(tmp_path / "other", pos=40)
    assert call([*arguments, str(first)], tmp_path)[0] == 0
    code, output, error = call([*arguments, str(other)], tmp_path)
    assert code == 2
    assert "finished before" not in output
    assert error.startswith("error: runs/smoke: finished runs of mr with vectors 'none' were made with other data")


def test_the_folder_of_results_is_not_the_one_in_which_this_projects_lie(call, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "vectors.txt").write_text("fine 1 2\n")
    data = str(write_reviews(tmp_path / "data"))
    assert call(["vectors", "--data-dir", data, "--embeddings", "vectors.txt"], tmp_path)[0] == 0
    assert call(["table1", "--data-dir", data], tmp_path)[0] == 0
    assert {path.name for path in (tmp_path / "runs/reproduce").iterdir()} >= {"vectors.npz", "runs.jsonl", "report.md"}
    assert list((tmp_path / "results").iterdir()) == []


def test_the_list_names_everything(call, tmp_path):
    output = call(["list"], tmp_path)[1]
    assert [line.split()[0] for line in output.splitlines()] == [*NAMES, "all", "vectors", "FILE.json"]


def test_rows_of_ones_own_are_run_from_a_file(call, tmp_path):
    rows = [{"label": "plain"}, {"label": "maximum", "model": {"readout": "max"}, "training": {"averaging": 0.9}}]
    content = {"title": "Two ways", "data": ["mr"], "split": "test", "against": "plain", "rows": rows}
    (tmp_path / "mine.json").write_text(json.dumps(content))
    assert call(["mine.json", "--smoke", "--seeds", "2"], tmp_path)[0] == 0
    lines = [json.loads(line) for line in (tmp_path / "runs/smoke/runs.jsonl").read_text().splitlines()]
    assert sorted(line["run"]["model"]["readout"] for line in lines) == ["max", "max", "sentence", "sentence"]
    report = (tmp_path / "runs/smoke/report.md").read_text()
    assert "Two ways" in report
    assert re.search(r"\n\| maximum \| .* ± .* \| 2 \| [+-]\d", report)
    (tmp_path / "runs/smoke/specs").mkdir()
    (tmp_path / "mine.json").rename(tmp_path / "runs/smoke/specs/mine.json")
    code, output, _ = call(["table7", "--smoke", "--report-only"], tmp_path)
    assert code == 1
    assert "table7: nothing of it is finished with --settings paper\n" in output
    assert "Two ways" in (tmp_path / "runs/smoke/report.md").read_text()  # the report of a folder has its own specs


def test_a_report_that_would_be_empty_is_not_written_over_one_that_is_not(call, tmp_path):
    data = write_reviews(tmp_path / "data")
    (tmp_path / "mine.json").write_text('{"data": "mr", "rows": [{"label": "a"}]}')
    assert call(["mine.json", "--smoke", "--seeds", "1", "--data-dir", str(data)], tmp_path)[0] == 0
    again = ["mine.json", "--report-only", "--out", "runs/smoke"]
    written = (tmp_path / "runs/smoke/report.md").read_text()
    code, _, error = call(again, tmp_path)
    assert code == 2
    assert "runs/smoke: nothing is finished there with --settings paper, without --smoke" in error
    assert (tmp_path / "runs/smoke/report.md").read_text() == written
    assert call([*again, "--smoke"], tmp_path)[0] == 0  # of the slices of the sets, though no folder is named
    assert (tmp_path / "runs/smoke/report.md").read_text() == written


def test_a_report_of_some_settings_is_not_written_over_one_of_more(call, tmp_path):
    path = tmp_path / "tuned" / "mr" / "s-lstm.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"model": {}, "training": {}}')
    small = ["--smoke", "--skip-times", "--seeds", "1"]
    assert call(["table4", *small, "--settings", "tuned"], tmp_path)[0] == 0
    (tmp_path / "mine.json").write_text('{"data": "mr", "rows": [{"label": "a"}]}')
    written = tmp_path / "runs/smoke/report.md"
    before = written.read_text()
    code, _, error = call(["table4", *small, "--report-only", "--settings", "fast"], tmp_path)
    assert (code, written.read_text()) == (2, before)
    assert "with --settings fast --smoke: the report would be empty" in error
    assert call(["mine.json", *small, "--settings", "tuned"], tmp_path)[0] == 0
    before = written.read_text()
    code, _, error = call(["mine.json", *small, "--report-only", "--settings", "fast"], tmp_path)
    assert (code, written.read_text()) == (2, before)
    assert re.search("runs/smoke: the report there has . sections, with --settings fast --smoke it has 2", error)
    code, output, _ = call(["mine.json", *small, "--settings", "fast"], tmp_path)  # what was run now is always shown
    assert code == 0
    assert "--report-only with all the --settings that were used brings them back" in output
    assert written.read_text() != before


def test_all_is_run_with_the_settings_that_there_are_for_each(tmp_path):
    path = tmp_path / "tuned" / "mr" / "s-lstm.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"model": {}, "training": {}}')
    plan = Plan(1, True, (str(tmp_path / "tuned"), "paper"))
    console = Console(file=io.StringIO(), width=10_000)
    found = {target.name: target for target in find_asked(NAMES, plan, True, console)}
    assert list(found) == list(NAMES)
    settings = {name: len(found[name].runs) for name in ("table4", "table7")}
    assert settings["table4"] > len(find("table4", replace(plan, settings=("paper",))).runs)
    assert settings["table7"] == len(find("table7", replace(plan, settings=("paper",))).runs)
    assert "left out: table7 with other settings than paper (" in console.file.getvalue()
    with pytest.raises(DataError, match="no such file"):
        find_asked(["table7"], plan, False, console)


@pytest.mark.parametrize("command", [["reproduce", "table4"], ["tune", "mr"]])
def test_results_go_to_a_folder(command, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main([*command, "--smoke", "--out", "file"]) == 2
    assert capsys.readouterr().err == "error: --out file: it is a file, and must be a folder\n"


def test_settings_that_are_no_settings_are_named(call, tmp_path):
    path = tmp_path / "tuned" / "mr" / "s-lstm.json"
    path.parent.mkdir(parents=True)
    path.write_text("[]")
    code, _, error = call(["table4", "--smoke", "--settings", "tuned"], tmp_path)
    assert (code, error) == (2, "error: tuned/mr/s-lstm.json: expected an object with the fields model and training\n")


@pytest.mark.slow
def test_of_all_there_is_what_there_are_settings_for(call, tmp_path):
    for encoder in ("s-lstm", "bilstm"):
        path = tmp_path / "tuned" / "mr" / f"{encoder}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"model": {}, "training": {}}')
    code, output, _ = call(["all", "--smoke", "--skip-times", "--seeds", "1", "--settings", "tuned"], tmp_path)
    assert code == 1  # not all of it
    left_out = re.findall(r"^left out: (\w+) ", output, re.MULTILINE)
    assert left_out == ["table5", "figure3", "table6", "table7", "figure4", "figure5"]
    report = (tmp_path / "runs/smoke/report.md").read_text()
    assert "| S-LSTM+Attention | 83.07 |" in report
    assert set(re.findall(r"\| Transformer \(N=8\) \| 81.\d+ \|(.*)\n", report)) == {"  |" * 7}  # the paper's alone


def test_a_table_with_tuned_settings_has_the_encoders_that_were_tuned(call, tmp_path):
    for encoder in ("s-lstm", "bilstm"):
        path = tmp_path / "tuned" / "classification" / f"{encoder}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"model": {"dropout": 0.3}, "training": {}}')
    arguments = ["--smoke", "--skip-times", "--seeds", "1", "--settings", "tuned"]
    assert call(["table4", *arguments], tmp_path)[0] == 0  # the report leaves out what has no settings at all
    report = (tmp_path / "runs/smoke/report.md").read_text()
    assert "| S-LSTM | 82.45 |" in report
    assert "| BiLSTM | 81.61 |" in report
    assert re.findall(r"\| CNN \|(.*)\n", report) == [" 80.35 |  |  |  |  |  |  |  |"]  # the paper's, in Table 3
    code, _, error = call(["table7", *arguments], tmp_path)
    assert code == 2
    assert "tuned/tagging/bilstm.json: no such file" in error


def test_a_report_of_several_settings_has_the_tables_that_were_run_with_each(call, tmp_path):
    for name, dropout in (("small", 0.1), ("large", 0.4)):
        path = tmp_path / name / "mr" / "s-lstm.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"model": {"dropout": dropout}, "training": {}}))
        arguments = ["--smoke", "--skip-times", "--seeds", "1", "--settings", name]
        assert call(["table4", *(["table2"] if name == "small" else []), *arguments], tmp_path)[0] == 0
    both = ["--smoke", "--seeds", "1", "--report-only", "--settings", "small", "large"]
    assert call(["table4", *both], tmp_path)[0] == 0
    report = (tmp_path / "runs/smoke/report.md").read_text()
    assert "| S-LSTM (small) | 82.45 |" in report
    assert "| S-LSTM (large) | 82.45 |" in report
    table = report.partition("Table 2")[2].partition("Figure 2")[0]
    assert "| +2 sentence nodes | 82.24 |" in table
    assert "large" not in table  # although +1 is a run of Table 4
    code, _, error = call(["table7", *both], tmp_path)
    assert code == 2
    assert "small/tagging/bilstm.json: no such file" in error


def test_a_report_says_which_word_vectors_a_table_was_run_with_where_there_are_several(call, tmp_path):
    path = tmp_path / "tuned" / "mr" / "s-lstm.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"model": {}, "training": {}}')
    options = ["--smoke", "--skip-times", "--seeds", "1", "--settings", "tuned"]
    for name in ("first", "second"):
        (tmp_path / f"{name}.txt").write_text("the 1 2\nfilm 0 1\n")
        assert call(["table4", "figure2", *options, "--embeddings", f"{name}.txt"], tmp_path)[0] == 0
    report = (tmp_path / "runs/smoke/report.md").read_text()
    assert re.findall("## .*Table 4.*; word vectors: (.*)", report) == ["first", "second"]  # as they were run
    assert re.findall("## .*Figure 2.*; word vectors: (.*)", report) == ["second"]  # a figure for the last of them
    page = (tmp_path / "runs/smoke/report.html").read_text()
    assert re.findall('href="#(.*?)"', page) == re.findall('<h2 id="(.*?)"', page)
    assert len(set(re.findall('<h2 id="(.*?)"', page))) > 2
    code, _, error = call(["table4", *options, "--embeddings", "first.txt", "second.txt"], tmp_path)
    assert code == 2
    assert "`reproduce vectors` puts several side by side" in error


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": 5}, "data must be text or a list, got 5"),
        ({"data": ["mr", 5]}, "data must be the name of a set, or a list of names"),
        ({"seeds": "a"}, "seeds must be a whole number, got 'a'"),
        ({"seeds": 0}, "seeds must be 1 or more, got 0"),
        ({"settings": 5}, "settings must be text, got 5"),
        ({"model": ["max"]}, "model must be an object, got ['max']"),
        ({"rows": 5}, "rows must be a list, got 5"),
        ({"rows": []}, "rows must be one or more"),
        ({"rows": [{"label": "a"}, {"label": "a"}]}, "each with a label of its own, got ['a', 'a']"),
        ({"rows": [{"label": "a", "encoder": "GRU"}]}, "got 'GRU'"),
        ({"against": "b"}, "against must be the label of a row (a), got 'b'"),
        ({"notes": [1]}, "notes must be a list of texts"),
        ({"sets": "mr"}, "unknown: sets"),
        ({"model": {"encoder": "BiLSTM"}}, "model has unknown fields: encoder; the fields are boundaries,"),
        ({"training": {"seed": 7}}, "training has unknown fields: seed; the fields are averaging, batch_size,"),
        ({"training": {"device": "cuda"}}, "training has unknown fields: device"),
        ({"rows": [{"label": "a", "training": {"name": 1}}]}, "row 'a': training has unknown fields: name"),
        ({"rows": [{"label": "a", "model": {"hidden_size": 0}}]}, "row 'a': settings: hidden_size must be at least 1"),
        ({"rows": [{"label": "a\nb"}]}, "title and labels must be one line each"),
    ],
)
def test_what_is_wrong_with_a_file_of_rows_is_said_in_one_line(changes, message, call, tmp_path):
    (tmp_path / "mine.json").write_text(json.dumps({"data": "mr", "rows": [{"label": "a"}]} | changes))
    code, _, error = call(["mine.json", "--smoke"], tmp_path)
    assert code == 2
    assert error.startswith("error: mine.json: ")
    assert message in error
    assert error.count("\n") == 1


def test_commits_are_shown_short_and_once_and_keep_their_mark():
    found = ["0123456789ab+", "0123456789abcdef0123456789abcdef01234567", "0123456", "unknown"]
    assert listed(commits([{"commit": one} for one in found])) == "0123456, 0123456+, unknown"
