"""The README's commands and code, run in order in an empty folder, as a new user would.

The folder first gets the files that the README speaks of: reviews.csv, train.conll, dev.conll, test.conll, intents.txt
and glove.txt, written out of the embedded sample. Of the bash blocks every command is run but those of SKIPPED: they
set up the machine, which the test runs on already, take minutes, or need data that cannot be here. Python blocks share
their names, as in one session.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from .command_line import ROOT, environment, write_files

SKIPPED = (
    "make ",
    "make\n",
    "pip ",
    "git ",
    "cd ",
    "python -m benchmarks",
    "sentence-state demo",
    "sentence-state reproduce",
)
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    code: str
    line: int  # of the README


def blocks(text: str) -> list[Block]:
    return [Block(match[1], match[2], text.count("\n", 0, match.start()) + 2) for match in BLOCK.finditer(text)]


def commands(code: str) -> str:
    """A bash block without what is skipped; a command may go over several lines that end with a backslash."""
    joined = code.replace("\\\n", " ")
    return "\n".join(line for line in joined.splitlines() if not f"{line.lstrip()}\n".startswith(SKIPPED))


def run_bash(block: Block, folder: Path) -> None:
    environ = {**environment(), "XDG_CACHE_HOME": str(folder / ".cache")}
    script = f"set -euo pipefail\n{commands(block.code)}"
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"README.md:{block.line}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"


def run_python(block: Block, names: dict[str, object]) -> None:
    padded = "\n" * (block.line - 1) + block.code  # so that a traceback names the line of the README
    exec(compile(padded, "README.md", "exec"), names)


def run_all(text: str, folder: Path) -> int:
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(text):
        if block.language == "bash":
            run_bash(block, folder)
        else:
            run_python(block, names)
    return len(blocks(text))


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
