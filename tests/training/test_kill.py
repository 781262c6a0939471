import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
@pytest.mark.parametrize(("mode", "kills"), [("random", 20), ("crash", 20)])
def test_a_run_killed_again_and_again_ends_bit_equal_to_one_never_killed(mode, kills, tmp_path):
    command = [sys.executable, "-m", "tests.training.killed_runs", str(tmp_path / "run"), mode, str(kills)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    resumed, never_killed = done.stdout.split()
    assert resumed == never_killed
    left = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert left == [
        "characters.json", "config.json", "labels.json", "metrics.jsonl", "model.safetensors", "result.json",
        "tags.json", "training.json", "versions.json", "words.json",
    ]  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 8
