"""make fuzz: `python -m tests.fuzz [SECONDS]`, all readers by turns; atheris follows the code where it is installed."""

import contextlib
import os
import random
import sys
import tempfile
import time
from pathlib import Path

try:
    import atheris
except ImportError:
    atheris = None

with atheris.instrument_imports(include=["sentence_state"]) if atheris else contextlib.nullcontext():
    from .guard import watched
    from .targets import READERS, RunFolder, edited, run


def once(data: bytes, folder: Path, run_folder: RunFolder) -> None:
    """The first byte chooses the target."""
    names = list(READERS)
    number, rest = (data[0] if data else 0) % (len(names) + 1), data[1:]
    with watched(folder):
        if number == len(names):
            run_folder.load(len(rest), lambda content: edited(content, rest))
            return
        run(names[number], rest, folder)
        run(names[number], edited(READERS[names[number]][1], rest), folder)


def main(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run_folder = RunFolder(folder)
        for reader in READERS:
            run(reader, READERS[reader][1], folder)
        if atheris is None:
            print("atheris is not installed: random bytes, not guided by coverage")
            random_bytes(seconds, lambda data: once(data, folder, run_folder))
            return
        options = [sys.argv[0], f"-max_total_time={int(seconds)}", "-max_len=400", f"-artifact_prefix={os.getcwd()}/"]
        atheris.Setup(options, lambda data: once(data, folder, run_folder))
        atheris.Fuzz()


def random_bytes(seconds: float, target) -> None:
    rng, end, count = random.Random(0), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        target(rng.randbytes(rng.randint(1, 200)))
        count += 1
    print(f"{count:,} inputs, nothing but documented errors")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 600)
