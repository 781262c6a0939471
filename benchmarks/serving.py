"""python -m benchmarks serving: throughput and latency on loopback; serving-memory: a long load."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from sentence_state.data import read_sample
from sentence_state.models import JointModel, ModelConfig

from .http_clients import Answers, RunningServer, predict_body, request, serving
from .measure import append, circumstances

CLIENTS = (1, 16, 256)
MODES = {"batching": (), "no batching": ("--max-batch", "1")}


def main(run: Path | None = None, seconds: float = 6.0, save: bool = True) -> None:
    """One sentence a request, from 1, 16 and 256 clients at a time, with batching and without; then more than the
    server can do. Clients and server share this machine. Appends to benchmarks/results/serving.jsonl.

    Args:
        run: folder of a model; by default an untrained one of the paper's size (H = 300, 9 steps), label and spans.
        seconds: of load for each row.
        save: append the rows to the results.
    """
    rows: list[dict[str, Any]] = []
    texts = [" ".join(example.words) for example in read_sample().test]
    bodies = [predict_body([text]) for text in texts]
    with folder(run) as model:
        for mode, flags in MODES.items():
            with serving(model, *flags) as server:
                server.load(4, 1.0, lambda n: bodies[n % len(bodies)])
                for clients in CLIENTS:
                    before = batches(server)
                    answers = server.load(clients, seconds, lambda n: bodies[n % len(bodies)])
                    rows.append({**about(mode, clients, answers, server), "mean batch": mean_batch(before, server)})
        rows.append(overload(model, texts, seconds))
    show(rows)
    if save:
        print(f"appended to {append('serving', rows)}")


def overload(model: Path, texts: list[str], seconds: float) -> dict[str, Any]:
    """256 clients with eight sentences a request, and a queue for 256 sentences."""
    bodies = [predict_body(texts[i : i + 8]) for i in range(0, len(texts) - 8, 8)]
    with serving(model, "--max-queue", "256", "--max-texts", "8") as server:
        server.load(4, 1.0, lambda n: bodies[n % len(bodies)])
        start = server.memory()
        answers = server.load(256, 2 * seconds, lambda n: bodies[n % len(bodies)])
        row = about("overload", 256, answers, server)
        return {**row, "sentences a request": 8, "MiB before": start, "MiB at most": server.memory("VmHWM")}


@contextmanager
def folder(run: Path | None) -> Iterator[Path]:
    if run is not None:
        yield run
        return
    with TemporaryDirectory() as temporary:
        config = ModelConfig(transitions="static")
        JointModel.from_examples(read_sample("bioes").train, config).save_pretrained(Path(temporary) / "paper-size")
        yield Path(temporary) / "paper-size"


def about(mode: str, clients: int, answers: Answers, server: RunningServer) -> dict[str, Any]:
    from sentence_state.serving.server import threads_each  # here: the other benchmarks run without the extra "serve"

    return {
        "benchmark": "serving",
        **circumstances("cpu"),
        **{name: version(name) for name in ("fastapi", "uvicorn")},
        "threads": threads_each(1),
        "mode": mode,
        "clients": clients,
        "answers/s": answers.count(200) / answers.elapsed,
        "p50 ms": 1e3 * answers.quantile(0.5),
        "p99 ms": 1e3 * answers.quantile(0.99),
        "answered": answers.count(200),
        "refused": answers.count(429),
        "other": sum(len(all) for status, all in answers.seconds.items() if status not in (200, 429)),
        "MiB": server.memory(),
    }


def batches(server: RunningServer) -> tuple[float, float]:
    name = "sentence_state_batch_sentences"
    return server.metric(f"{name}_sum"), server.metric(f"{name}_count")


def mean_batch(before: tuple[float, float], server: RunningServer) -> float:
    sentences, count = (now - then for now, then in zip(batches(server), before, strict=True))
    return sentences / max(1, count)


def show(rows: list[dict[str, Any]]) -> None:
    table = Table(title=f"one model on loopback, {rows[0]['device']}, {rows[0]['threads']} thread(s) for the model")
    for column in ("", "clients", "answers/s", "p50 ms", "p99 ms", "refused (429)", "mean batch", "MiB"):
        table.add_column(column, justify="right" if column else "left")
    for row in rows:
        numbers = (f"{row[name]:.1f}" for name in ("answers/s", "p50 ms", "p99 ms"))
        batch = f"{row['mean batch']:.1f}" if "mean batch" in row else ""
        memory = f"{row['MiB before']:.0f} -> {row['MiB at most']:.0f}" if "MiB at most" in row else f"{row['MiB']:.0f}"
        table.add_row(row["mode"], str(row["clients"]), *numbers, str(row["refused"]), batch, memory)
    Console(width=120).print(table)


def memory(run: Path | None = None, minutes: float = 20.0, clients: int = 8, save: bool = True) -> None:
    """Requests of every kind for `minutes`: the memory after the first tenth of them, and the most that follows.

    Args:
        run: folder of a model; by default an untrained one of the paper's size.
        minutes: of load.
        clients: at a time.
        save: append the row to benchmarks/results/serving.jsonl.
    """
    texts = [" ".join(example.words) for example in read_sample().test]
    samples: list[float] = []
    answers = 0
    with folder(run) as model, serving(model) as server:
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            part = server.load(clients, min(5.0, 0.6 * minutes), lambda n: any_request(texts, n))
            answers += sum(map(len, part.seconds.values()))
            samples.append(server.memory())
    settled = samples[len(samples) // 10]
    row = {
        "benchmark": "serving memory",
        **circumstances("cpu"),
        "minutes": minutes,
        "clients": clients,
        "requests": answers,
        "MiB settled": settled,
        "MiB at most afterwards": max(samples[len(samples) // 10 :]),
        "MiB at the end": samples[-1],
        "growth": max(samples[len(samples) // 10 :]) / settled - 1,
        "samples": [round(sample, 1) for sample in samples[:: max(1, len(samples) // 40)]],
    }
    print(json.dumps(row, indent=1))
    if save:
        print(f"appended to {append('serving', [row])}")


def any_request(texts: list[str], number: int) -> bytes:
    """Short, long, many, traced, refused."""
    r = random.Random(number)
    kind = r.randrange(10)
    if kind < 5:
        return predict_body([r.choice(texts)])
    if kind < 7:
        return predict_body(r.choices(texts, k=r.randrange(2, 16)))
    if kind == 7:
        return predict_body([" ".join(r.choices(texts, k=8))])
    if kind == 8:
        return request("/v1/trace", json.dumps({"text": r.choice(texts)}).encode())
    return request("/v1/predict", r.choice([b"{", b'{"texts": []}', json.dumps({"texts": ["x " * 600]}).encode()]))
