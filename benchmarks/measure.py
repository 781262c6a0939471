"""Timing that survives a noisy machine: all candidates in turn, round after round; medians with their spread."""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(__file__).parent / "results"


def alternately(
    candidates: dict[str, Callable[[], Any]], device: str, repeats: int, warmup: int = 2
) -> dict[str, list[float]]:
    """Seconds of every call: round by round, each candidate once a round."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for round_number in range(warmup + repeats):
        for name, run in candidates.items():
            seconds = seconds_of(run, device)
            if round_number >= warmup:
                times[name].append(seconds)
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


def circumstances(device: str) -> dict[str, Any]:
    """What a reader needs to judge a number: when, which commit, which machine, which versions."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    on_gpu = device == "cuda"
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "commit": commit.strip() or None,
        "device": torch.cuda.get_device_name() if on_gpu else cpu_name(),
        "threads": None if on_gpu else torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def append(name: str, rows: list[dict[str, Any]]) -> Path:
    """Add rows to results/NAME.jsonl, one JSON line each."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.jsonl"
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path
