"""The wheel, installed without the source tree: it holds all it needs to run the demo and the server."""

import json
import os
import subprocess
import sys
import time
import urllib.request
import zipfile
from pathlib import Path

import pytest

from .command_line import ROOT

DEMO = """
from dataclasses import replace
from sentence_state.cli import main
from sentence_state.commands import demo
demo.TRAINING = replace(demo.TRAINING, epochs=1)  # the wheel is tested here, not the model
raise SystemExit(main(["demo", "--out", "run"]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """An empty folder with the wheel in it, and the environment that finds it there: the dependencies are those of this
    Python, since a second PyTorch would take minutes."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*command, str(folder / "packages"), str(wheel)], check=True, capture_output=True, timeout=120)
    path = str(folder / "packages")
    environ = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    where = run(["-c", "import sentence_state; print(sentence_state.__file__)"], folder, environ)
    assert where.startswith(path)
    return folder, environ


def run(arguments: list[str], folder: Path, environ: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environ, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_no_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"sentence_state"}
    assert "sentence_state/py.typed" in names
    assert "sentence_state/data/sample/train.txt" in names


@pytest.mark.slow
def test_demo_predict_and_server_run_from_the_wheel(installed):
    folder, environ = installed
    assert "S-LSTM on test utterances" in run(["-c", DEMO], folder, environ)
    answer = json.loads(run(["-m", "sentence_state", "predict", "run", "play some jazz", "--json"], folder, environ))
    assert answer["label"]
    served = serve_and_ask(folder, environ, "play some jazz")
    assert served["predictions"][0]["label"] == answer["label"]


def serve_and_ask(folder: Path, environ: dict[str, str], text: str) -> dict:
    """One answer of `sentence-state serve run`, and of its page."""
    command = [sys.executable, "-m", "sentence_state", "serve", "run", "--port", "8737"]
    server = subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen("http://127.0.0.1:8737/ready", timeout=2)
                break
            except OSError:
                assert server.poll() is None, server.stdout.read()
                time.sleep(0.2)
        page = urllib.request.urlopen("http://127.0.0.1:8737/", timeout=10).read()
        assert b"<html" in page.lower()
        body = json.dumps({"texts": [text]}).encode()
        request = urllib.request.Request(
            "http://127.0.0.1:8737/v1/predict", body, headers={"Content-Type": "application/json"}
        )
        return json.loads(urllib.request.urlopen(request, timeout=30).read())
    finally:
        server.terminate()
        server.wait(timeout=30)
