"""Timing that survives a noisy machine: all candidates in turn, round after round; medians with their spread. On a GPU
also: a run as a CUDA graph, and its peak memory."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(__file__).parent / "results"
LEAST_ROUNDS = 3


def check_repeats(repeats: int) -> None:
    if repeats < 2:
        raise SystemExit(f"--repeats must be 2 or more, or the times have no spread, got {repeats}")


def alternately(
    candidates: dict[str, Callable[[], Any]],
    device: str,
    repeats: int,
    warmup: int = 2,
    seconds: float = float("inf"),
) -> dict[str, list[float]]:
    """Seconds of every call: round by round, each candidate once a round. No new round begins when the candidates have
    had `seconds` each, but there are three at least."""
    for run in [run for run in candidates.values() for _ in range(warmup)]:
        run()
    times: dict[str, list[float]] = {name: [] for name in candidates}
    started = time.perf_counter()
    for round_number in range(repeats):
        if round_number >= LEAST_ROUNDS and time.perf_counter() - started > seconds * len(candidates):
            break
        for name, run in candidates.items():
            times[name].append(seconds_of(run, device))
    return times


def seconds_of(run: Callable[[], Any], device: str) -> float:
    if device == "cpu":
        start = time.perf_counter()
        run()
        return time.perf_counter() - start
    start_event, end_event = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start_event.record()
    run()
    end_event.record()
    torch.cuda.synchronize()
    return start_event.elapsed_time(end_event) / 1e3


def summary(seconds: list[float]) -> dict[str, float]:
    """Milliseconds: the median, and the quarter of the runs below and above it."""
    low, middle, high = statistics.quantiles(seconds, n=4)
    return {"ms": middle * 1e3, "ms_low": low * 1e3, "ms_high": high * 1e3}


def ratio(slow: list[float], fast: list[float]) -> float:
    """The median over rounds of slow / fast: both sides of each ratio met the same noise."""
    return statistics.median(a / b for a, b in zip(slow, fast, strict=True))


def captured(run: Callable[[], Any]) -> Callable[[], Any]:
    """The run as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def peak_megabytes(run: Callable[[], Any]) -> float:
    run()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def circumstances(device: str, commit: str | None = None) -> dict[str, Any]:
    """What a reader needs to judge a number: when, which commit, which machine, which versions.

    commit: for a copy of the tree whose git knows nothing of it; else the environment variable COMMIT, else git.
    """
    on_gpu = device == "cuda"
    found: dict[str, Any] = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "commit": commit or os.environ.get("COMMIT") or git_commit(),
        "device": torch.cuda.get_device_name() if on_gpu else cpu_name(),
        "threads": None if on_gpu else torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    if on_gpu:
        found |= {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "triton": triton_version()}
    return found


def git_commit() -> str | None:
    folder = Path(__file__).parent
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=folder, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None
    return found.stdout.strip() or None


def triton_version() -> str | None:
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        return None


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def append(name: str, rows: list[dict[str, Any]], folder: Path = RESULTS) -> Path:
    """Add rows to NAME.jsonl, one JSON line each."""
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"{name}.jsonl"
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def read(name: str, folder: Path = RESULTS) -> list[dict[str, Any]]:
    """All rows of NAME.jsonl, oldest first; none where there is no such file."""
    path = folder / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
