"""The folder of results: runs.jsonl, a line for every finished run, and claims, so that nothing is done twice.

Several processes, and several machines that share the folder, may work at once. A claim is a file that its worker
touches while it works. A worker that was killed stops touching: after `EXPIRY` seconds, at once on the same machine,
another takes the claim over. Lines are added under a lock, whole; half a line of a killed process is ignored, a whole
one counts without its newline too.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

RUNS, CLAIMS, LOCK = "runs.jsonl", "claims", "lock"
HEARTBEAT, EXPIRY = 10.0, 120.0  # seconds


class Store:
    """What was finished, by key; where a key comes twice, the later line counts unless it says less: a failure, or a
    result without test scores."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / RUNS
        (folder / CLAIMS).mkdir(parents=True, exist_ok=True)
        self.failures: Counter[str] = Counter()  # how often a line of a key says error, as far as `records` has read
        self._records: dict[str, dict[str, Any]] = {}
        self._read_to = 0  # bytes of the file that `_records` holds

    def records(self) -> dict[str, dict[str, Any]]:
        """All lines so far; only what was added since the last call is read."""
        if not self.path.exists():
            return self._records
        with open(self.path, "rb") as file:
            file.seek(self._read_to)
            added = file.read()
        whole = added[: added.rfind(b"\n") + 1]
        if parse(added[len(whole) :]):  # of an editor that ends no last line; half an object is never JSON
            whole = added
        self._read_to += len(whole)
        for record in filter(None, map(parse, whole.splitlines())):
            self.failures[record["key"]] += "error" in record
            if not says_less(record, self._records.get(record["key"])):
                self._records[record["key"]] = record
        return self._records

    def append(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"
        with self.lock(), open(self.path, "ab+") as file:
            if ends_inside_a_line(file):
                file.write(b"\n")
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())

    def claim(self, key: str) -> Claim | None:
        """The right to work on a run, or None while somebody else does."""
        path = self.folder / CLAIMS / key
        with self.lock():
            if path.exists() and not self.abandoned(path):
                return None
            path.unlink(missing_ok=True)
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            with open(descriptor, "w", encoding="utf-8") as file:
                json.dump({"host": host(), "pid": os.getpid()}, file)
        return Claim(path)

    def is_claimed(self, key: str) -> bool:
        path = self.folder / CLAIMS / key
        return path.exists() and not self.abandoned(path)

    def abandoned(self, path: Path) -> bool:
        try:
            owner, touched = json.loads(path.read_text(encoding="utf-8")), path.stat().st_mtime
        except FileNotFoundError:
            return True
        except ValueError:  # its maker was killed before it wrote its name
            owner, touched = {}, path.stat().st_mtime
        if owner.get("host") == host() and not is_alive(int(owner["pid"])):
            return True
        return self.now() - touched > EXPIRY

    def now(self) -> float:
        """The time as the shared folder's clock has it, which touches the claims of all machines."""
        with tempfile.NamedTemporaryFile(dir=self.folder / CLAIMS, prefix=".now-") as probe:
            return os.fstat(probe.fileno()).st_mtime

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One process at a time; the system opens the lock of a process that dies."""
        with open(self.folder / LOCK, "w", encoding="utf-8") as file:
            if os.name == "posix":
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            yield


class Claim:
    """Held while the run is worked on; a thread keeps it fresh."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.beat, daemon=True)
        self.thread.start()

    def beat(self) -> None:
        while not self.over.wait(HEARTBEAT):
            with suppress(OSError):  # a shared folder may be away for a moment; the next beat may reach it
                os.utime(self.path)

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.thread.join()
        self.path.unlink(missing_ok=True)


def parse(line: bytes) -> dict[str, Any] | None:
    """A record, or None for what a killed process left of a line."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("key"), str) else None


def says_less(record: dict[str, Any], other: dict[str, Any] | None) -> bool:
    return other is not None and ("error" in record or ("test" in other and "test" not in record))


def ends_inside_a_line(file: IO[bytes]) -> bool:
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return False
    file.seek(size - 1)
    return file.read(1) != b"\n"


def host() -> str:
    """This machine, and on Linux this container: process numbers mean something within it only."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{socket.gethostname()} {space}"


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not is_zombie(pid)


def is_zombie(pid: int) -> bool:
    """Killed, but its parent has not looked yet."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] == "Z"
