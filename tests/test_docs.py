"""The pages of docs/: every command and every line of code runs, the pages build, and they ask no other host."""

import json
import re
import subprocess
import sys
from importlib import import_module

import pytest

from .command_line import ROOT, environment, write_files
from .documents import blocks, run_all

DOCS = ROOT / "docs"
ORDER = [  # of the pages that use what another one made
    "index.md", "quickstart/practitioner.md", "quickstart/pytorch.md", "quickstart/researcher.md",
    "quickstart/engineer.md", "guide/encoder.md", "guide/files.md", "guide/production.md", "when.md", "paper.md",
    "scale.md",
]  # fmt: skip
RESOURCE = re.compile(r'<(?:script|link|img|iframe|source|use)\b[^>]*?\b(?:src|href)="((?:https?:)?//[^"]+)')
STYLE = re.compile(r"""url\(["']?(?:https?:)?//[^)]+|@import[^;]+""")


def pages() -> list[str]:
    return sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


def test_every_page_with_code_is_run():
    with_code = {page for page in pages() if blocks((DOCS / page).read_text(encoding="utf-8"))}
    assert with_code <= set(ORDER)


@pytest.mark.parametrize("package", ["data", "encoders", "heads", "models", "training"])
def test_every_public_name_is_in_the_reference_once(package):
    page = (DOCS / "reference" / f"{package}.md").read_text(encoding="utf-8")
    named = re.findall(rf"^::: sentence_state\.{package}\.(\w+)$", page, re.MULTILINE)
    named += re.findall(r"`([A-Z]{4,})`", page)  # tables of names
    assert sorted(named) == sorted(import_module(f"sentence_state.{package}").__all__)


@pytest.mark.slow
def test_every_command_and_every_line_of_code_runs_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, size=40)
    assert sum(run_all((DOCS / page).read_text(encoding="utf-8"), tmp_path, page) for page in ORDER) > 20


@pytest.mark.slow
def test_the_pages_build_and_ask_no_other_host(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    built = list((tmp_path / "site").rglob("*.html"))
    assert len(built) >= len(pages())
    for path in built:
        text = path.read_text(encoding="utf-8")
        assert not RESOURCE.findall(text), path
        assert "<!-- table" not in text, path
    for path in (tmp_path / "site").rglob("*.css"):
        assert not STYLE.findall(path.read_text(encoding="utf-8")), path


def test_the_tables_hold_the_newest_measured_numbers():
    namespace: dict = {"__file__": str(DOCS / "hooks.py"), "__name__": "hooks"}
    exec((DOCS / "hooks.py").read_text(encoding="utf-8"), namespace)
    row = json.loads((ROOT / "benchmarks/results/encoders.jsonl").read_text().splitlines()[-2])
    assert not row["backward"]
    table = namespace["on_page_markdown"]("before\n<!-- table: cpu -->\nafter")
    assert f"| {row['batch']} x {row['words']} | {row['S-LSTM']['ms']:.1f} | {row['nn.LSTM']['ms']:.2f} |" in table
    assert table.startswith("before\n| batch x words |")
    assert table.endswith("after")
