"""An import may point left, never right: ops < encoders < heads < data < runtime < models < training < the rest."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "sentence_state"
ORDER = [
    "ops",
    "encoders",
    "heads",
    "data",
    "runtime",
    "models",
    "training",
    "experiments",
    "serving",
    "commands",
    "cli",
]


def imports_of(path: Path):
    """(level, dotted name) of every import in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from ((node.level, name) for name in names)
        elif isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)


def room(parts: tuple[str, ...]) -> str:
    return parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_left(path):
    parts = path.relative_to(PACKAGE).parts
    if room(parts) not in ORDER:
        return  # __init__, __main__: the front door
    for level, name in imports_of(path):
        if level == 0 and name.split(".")[0] != "sentence_state":
            assert name.split(".")[0] != "triton" or parts[:2] == ("ops", "fused"), (
                "triton is imported in ops/fused only"
            )
            continue
        target = (*parts[: len(parts) - level], *name.split(".")) if level else tuple(name.split(".")[1:])
        if target and room(target) in ORDER:
            assert ORDER.index(room(target)) <= ORDER.index(room(parts)), f"{'/'.join(parts)} imports {name}"


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_needs_no_triton_and_no_extra():
    loaded = run("import sys; from sentence_state import *; print(*sys.modules)").split()
    for name in (
        "triton",
        "matplotlib",
        "onnx",
        "onnxruntime",
        "fastapi",
        "datasets",
        "tensorboard",
        "optuna",
        "scipy",
    ):
        assert name not in loaded


def test_importing_takes_less_than_300_ms_beyond_torch():
    code = "import torch, time; start = time.process_time(); from sentence_state import *; "
    code += "print(time.process_time() - start)"  # of the processor: other tests run beside this one
    assert min(float(run(code)) for _ in range(3)) < 0.3


def test_the_runtime_and_the_data_need_no_torch():
    loaded = run("import sys, sentence_state.data, sentence_state.runtime; print(*sys.modules)").split()
    assert "torch" not in loaded
    assert "onnxruntime" not in loaded  # before a model is loaded
