"""Watches what a reader does while it looks at a file of a stranger: where it writes, and whether it runs anything."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RUNS = {
    "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "subprocess.Popen", "pickle.find_class",
    "socket.connect", "ctypes.dlopen",
}  # fmt: skip
WRITES = {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.symlink", "os.link", "os.chmod"}
folder: Path | None = None  # while it is not None, everything is watched
violations: list[str] = []


def hook(event: str, arguments: tuple) -> None:
    if folder is None:
        return
    if event in RUNS:
        violations.append(f"{event} {arguments[:1]}")
    paths = []
    if event == "open" and (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
        paths = [arguments[0]]
    elif event in WRITES:
        paths = [argument for argument in arguments if isinstance(argument, str | bytes | os.PathLike)]
    for path in paths:
        if isinstance(path, str | bytes | os.PathLike) and not inside(os.fsdecode(path)):
            violations.append(f"{event} {os.fsdecode(path)}")


def inside(path: str) -> bool:
    assert folder is not None
    return path in (os.devnull, "/dev/shm") or os.path.realpath(path).startswith(os.path.realpath(folder))


sys.dont_write_bytecode = True  # a module that is imported late is no file that a reader writes
sys.addaudithook(hook)


@contextmanager
def watched(place: Path) -> Iterator[None]:
    """Raise at the end if anything was run, or written outside of a folder."""
    global folder
    violations.clear()
    folder = place
    try:
        yield
    finally:
        folder = None
    assert not violations, list(violations)
