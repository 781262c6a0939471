"""Runs the code of a document: bash and python blocks in order, as a reader would type them.

Of the bash blocks every command is run but those of SKIPPED: they set up the machine, which the test runs on already,
take minutes, or need data that cannot be here. Python blocks share their names, as in one session.
"""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from .command_line import environment

SKIPPED = (
    "make ",
    "make\n",
    "pip ",
    "git ",
    "cd ",
    "docker ",
    "python -m benchmarks",
    "sentence-state demo",
    "sentence-state reproduce",
)
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    code: str
    line: int  # of the document


def blocks(text: str) -> list[Block]:
    return [Block(match[1], match[2], text.count("\n", 0, match.start()) + 2) for match in BLOCK.finditer(text)]


def commands(code: str) -> str:
    """A bash block without what is skipped; a command may go over several lines that end with a backslash."""
    joined = code.replace("\\\n", " ")
    return "\n".join(line for line in joined.splitlines() if not f"{line.lstrip()}\n".startswith(SKIPPED))


def run_bash(block: Block, folder: Path, name: str) -> None:
    environ = {**environment(), "XDG_CACHE_HOME": str(folder / ".cache")}
    script = f"set -euo pipefail\n{commands(block.code)}"
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{name}:{block.line}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"


def run_python(block: Block, names: dict[str, object], name: str) -> None:
    padded = "\n" * (block.line - 1) + block.code  # so that a traceback names the line of the document
    exec(compile(padded, name, "exec"), names)


def run_all(text: str, folder: Path, name: str = "README.md") -> int:
    """Every block in order; returns how many there were."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(text):
        if block.language == "bash":
            run_bash(block, folder, name)
        else:
            run_python(block, names, name)
    return len(blocks(text))
