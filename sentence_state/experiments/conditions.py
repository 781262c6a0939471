"""Under what conditions a number was measured: versions, hardware, commit, peak memory."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import Any

import torch

from ..models.pretrained import versions

COMMIT = "SENTENCE_STATE_COMMIT"  # where the code was copied without its repository


def conditions(device: str) -> dict[str, Any]:
    kept = {name: value for name, value in versions().items() if name != "platform"}
    return {
        "versions": kept,
        "hardware": hardware(device),
        "commit": commit(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


@cache
def hardware(device: str) -> str:
    if torch.device(device).type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, CUDA {torch.version.cuda}"
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores"


@cache
def commit() -> str:
    """Of this code: the repository's, with "+" after it where files were changed since; or what $COMMIT says."""
    return os.environ.get(COMMIT) or commit_of(Path(__file__).parents[2])


def commit_of(root: Path) -> str:
    """Of the repository whose root this is; one around it, in which the package was installed, is another's."""
    try:
        if not Path(git(root, "rev-parse", "--show-toplevel")).samefile(root):
            return "unknown"
        head = git(root, "rev-parse", "--short=12", "HEAD")
        changes = git(root, "status", "--porcelain", "--untracked-files=no", "--", "sentence_state")
        return head + "+" * bool(changes)
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()


class PeakMemory:
    """The most memory that was in use since this was made: of the GPU, or of the process where there is none. Where the
    system cannot forget an earlier peak, that of the process since it began; the line says which."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        self.forgotten = False
        if self.device.type == "cuda":
            torch.cuda.init()  # the call below does not do it by itself
            torch.cuda.reset_peak_memory_stats(self.device)
        else:
            self.forgotten = forget_peak()

    def read(self) -> dict[str, Any]:
        if self.device.type == "cuda":
            peak, of = torch.cuda.max_memory_allocated(self.device), "GPU"
        elif self.forgotten:
            peak, of = peak_since_forgotten(), "process during the run"
        else:
            peak, of = peak_of_life(), "process since it began"
        return {"peak_memory_mb": round(peak / 1e6, 1), "memory_of": of} if peak else {}


def forget_peak() -> bool:
    """Let the kernel count this process's peak from now on; False where it cannot: that is Linux's alone."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
        return peak_since_forgotten() > 0
    except OSError:
        return False


def peak_since_forgotten() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def peak_of_life() -> int:
    """In bytes; 0 where nobody counts it."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
