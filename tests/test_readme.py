"""The README's commands and code, run in order in an empty folder, as a new user would.

The folder first gets the files that the README speaks of: reviews.csv, train.conll, dev.conll, test.conll, intents.txt
and glove.txt, written out of the embedded sample.
"""

import os
import subprocess
from pathlib import Path

import pytest

from .command_line import ROOT, environment, write_files
from .documents import commands, run_all


@pytest.mark.slow
def test_every_command_and_every_line_of_code_in_the_readme_runs_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, size=40)
    run_all((ROOT / "README.md").read_text(encoding="utf-8"), tmp_path)


def test_blocks_are_found_and_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "# A\n```bash\nmake test\npip install x\necho one \\\n  two > a  # why\n```\ntext\n"
    text += (
        "```python\nx = open('a').read()\n```\n```text\nnot run\n```\n```python\nopen('b', 'w').write(x.upper())\n```\n"
    )
    assert run_all(text, tmp_path) == 3
    assert Path("b").read_text() == "ONE TWO\n"


def test_a_command_that_fails_is_named_with_its_line(tmp_path):
    with pytest.raises(AssertionError, match=r"README\.md:2: exit code 3"):
        run_all("```bash\nexit 3\n```\n", tmp_path)


def test_a_skipped_command_is_the_only_one_that_is_skipped():
    code = "make demo\nmakefile\ngit clone x\nsentence-state demo\nsentence-state predict a \\\n  b\n"
    assert commands(code).split("\n") == ["makefile", "sentence-state predict a    b"]


def test_the_command_is_installed_beside_python():
    """`sentence-state` of the README, not only `python -m sentence_state`."""
    done = subprocess.run(["sentence-state", "--help"], env=environment(), capture_output=True, cwd=os.sep, timeout=60)
    assert done.returncode == 0
