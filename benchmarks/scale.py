"""python -m benchmarks scale: what a training step costs on one process and on two, a model of it, and what that
predicts for many GPUs. docs/scale.md explains the model."""

from __future__ import annotations

import json
import os
import random
import socket
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from rich.console import Console
from rich.table import Table
from torch import multiprocessing

from sentence_state.data import Example, Splits
from sentence_state.models import ModelConfig, TextClassifier
from sentence_state.training import TrainingConfig
from sentence_state.training.distributed import joined_processes
from sentence_state.training.interrupt import StopRequest
from sentence_state.training.loop import Loop

from .cases import TARGETS
from .measure import append, circumstances, read

VOCABULARY = 5_000
STEPS = 8  # timed, after two


class Case(NamedTuple):
    H: int
    steps: int
    batch: int  # sentences of all processes together
    words: int  # of a sentence, without <s> and </s>

    @property
    def operations(self) -> float:
        """Of a training step: a word costs H^2 (7 + 22 (T - 1)) multiply-adds forward, twice that backward."""
        return 6.0 * self.batch * (self.words + 2) * self.H**2 * (7 + 22 * (self.steps - 1))

    @property
    def elements(self) -> float:
        """Gates and states, T H for every word, which cost memory traffic and no matrix product."""
        return float(self.batch * (self.words + 2) * self.H * self.steps)


CASES = [
    Case(64, 3, 32, 10),
    Case(64, 6, 32, 25),
    Case(64, 3, 128, 25),
    Case(128, 3, 32, 25),
    Case(128, 6, 16, 25),
    Case(128, 6, 64, 25),
    Case(256, 3, 32, 25),
]
MESSAGES = [1 << 12, 1 << 16, 1 << 20, 1 << 23]  # bytes


def main(save: bool = True) -> None:
    """One thread a process. Appends to benchmarks/results/scale.jsonl."""
    one, two = run(1), run(2)
    row = {
        "benchmark": "scale",
        **circumstances("cpu"),
        "threads": 1,
        "vocabulary": VOCABULARY,
        "cases": [
            {**case._asdict(), "one": a, "two": b} for case, a, b in zip(CASES, one["steps"], two["steps"], strict=True)
        ],
        "all-reduce": two["messages"],
    }
    row["fit"] = fit_cost(row)
    row["GPU"] = fit_gpu()
    show(row)
    for prediction in predictions(row["GPU"]):
        print(prediction)
    if save:
        print(f"appended to {append('scale', [row])}")


# ---- measurements -----------------------------------------------------------------------------------


def run(size: int) -> dict[str, Any]:
    """Seconds of a step of every case, and of an all-reduce, on `size` processes; those of the first of them."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.start_processes(work, (size, port, folder), nprocs=size, start_method="spawn")
        found: dict[str, Any] = json.loads((Path(folder) / "0.json").read_text())
    return found


def work(rank: int, size: int, port: int, folder: str) -> None:
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    with joined_processes(torch.device("cpu")) as processes:
        steps = [seconds_of_step(case, processes) for case in CASES]
        messages = [[size_, seconds_of_message(size_)] for size_ in MESSAGES] if processes.many else []
    (Path(folder) / f"{rank}.json").write_text(json.dumps({"steps": steps, "messages": messages}))


def seconds_of_step(case: Case, processes: Any) -> dict[str, float]:
    """The median step of the training loop itself, with what a process sends in it."""
    numbers = random.Random(0)
    examples = [
        Example([f"w{int(VOCABULARY ** numbers.random())}" for _ in range(case.words)], label=numbers.choice("ab"))
        for _ in range(case.batch * (STEPS + 2))
    ]
    config = ModelConfig(hidden_size=case.H, num_steps=case.steps, word_size=case.H, dropout=0.0)
    model = TextClassifier.from_examples(examples, config)
    training = TrainingConfig(batch_size=case.batch, lazy_words=True, device="cpu", l2=0.0)
    loop = Loop(model, Splits(examples, []), training, None, torch.device("cpu"), StopRequest(), None, processes)
    loop.model.train()
    seconds, rows = [], []
    for batch in loop.batches:
        rows.append(len(batch.word_ids.unique()))
        if processes.many:
            dist.barrier()
        start = time.perf_counter()
        loop.step(batch)
        seconds.append(time.perf_counter() - start)
    loop.close()
    dense = sum(p.numel() for p in model.parameters()) - model.embedding.words.weight.numel()
    bytes_of_words = statistics.median(rows) * (4 * case.H + 8)
    return {"seconds": statistics.median(seconds[2:]), "dense bytes": 4.0 * dense, "sparse bytes": bytes_of_words}


def seconds_of_message(size: int) -> float:
    tensor = torch.zeros(size // 4)
    seconds = []
    for _ in range(20):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(tensor)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[3:])


# ---- the model --------------------------------------------------------------------------------------


def fit_cost(row: dict[str, Any]) -> dict[str, Any]:
    """On one process: start + a operations + b elements. On two: half the operations and elements, and what is sent at
    latency + bytes / bandwidth; that is predicted, not fitted."""
    cases = [Case(*(case[name] for name in Case._fields)) for case in row["cases"]]
    work = [[1.0, case.operations, case.elements] for case in cases]
    start, operation, element = relative_fit(work, [case["one"]["seconds"] for case in row["cases"]])
    latency, byte = relative_fit(
        [[1.0, size] for size, _ in row["all-reduce"]], [time for _, time in row["all-reduce"]]
    )
    one = [start + operation * case.operations + element * case.elements for case in cases]
    two = []
    for alone, found in zip(one, (case["two"] for case in row["cases"]), strict=True):
        sent = 4 * latency + byte * (found["dense bytes"] + 2 * found["sparse bytes"])
        two.append(start + (alone - start) / 2 + sent)
    return {
        "start s": start,
        "s an operation": operation,
        "s an element": element,
        "latency s": latency,
        "s a byte": byte,
        "one, predicted": one,
        "two, predicted": two,
        "efficiency": [case["one"]["seconds"] / (2 * case["two"]["seconds"]) for case in row["cases"]],
    }


def relative_fit(columns: list[list[float]], measured: list[float]) -> list[float]:
    """Least squares of the relative errors; a cost below zero is none."""
    left = np.array(columns) / np.array(measured)[:, None]
    kept = list(range(left.shape[1]))
    while True:
        found = np.linalg.lstsq(left[:, kept], np.ones(len(left)), rcond=None)[0]
        if (found >= 0).all():
            break
        kept.pop(int(found.argmin()))
    return [float(found[kept.index(i)]) if i in kept else 0.0 for i in range(left.shape[1])]


def fit_gpu() -> dict[str, float]:
    """Forward + backward in a CUDA graph, and peak memory, as a + b * words; H = 300, 9 steps, bfloat16, one H200."""
    rows = [row for row in read("gpu") if row["dtype"] == "bfloat16" and "H200" in row["device"]]
    newest = {(row["batch"], row["words"]): row for row in rows}
    rows = [newest[shape] for shape in TARGETS]
    words = np.array([row["batch"] * row["words"] for row in rows], float)
    seconds = np.array([row["forward + backward"]["S-LSTM"]["ms"] / 1e3 for row in rows])
    memory = np.array([row["peak MB"]["S-LSTM"] * 2**20 for row in rows])
    columns = [[1.0, number] for number in words]
    start, word = relative_fit(columns, list(seconds))
    base, bytes_a_word = relative_fit(columns, list(memory))
    worst = float(np.abs((start + word * words) / seconds - 1).max())
    found = {"start s": start, "s a word": word, "base bytes": base, "bytes a word": bytes_a_word, "worst": worst}
    return {name: float(value) for name, value in found.items()}


def predictions(gpu: dict[str, float], words: float = 25e9, batch: int = 16_384) -> list[str]:
    """An epoch of a billion sentences of 25 words. Assumed, not measured: 200 GB/s between GPUs of one machine of 8,
    40 GB/s for each GPU between machines; 5,000 different words in 16,384; a vocabulary of 400,000."""
    model = ModelConfig()
    dense = 4.0 * encoder_weights(model.hidden_size)
    lines = []
    for size in (1, 8, 64, 512):
        rate = 200e9 if size <= 8 else 40e9
        compute = gpu["start s"] + gpu["s a word"] * batch
        all_reduce = 2 * (size - 1) / size * dense / rate
        gather = (size - 1) * 5_000 * (4 * model.word_size + 8) / rate
        table = 2 * (size - 1) / size * 400_000 * 4 * model.word_size / rate
        step = compute + all_reduce + min(gather, table)
        epoch = words / (batch * size) * step
        lines.append(
            f"{size} GPUs: step {1e3 * step:.1f} ms = compute {1e3 * compute:.1f} + dense gradients "
            f"{1e3 * all_reduce:.2f} + word vectors {1e3 * gather:.1f} gathered or {1e3 * table:.1f} as a table; "
            f"{batch * size / step / 1e6:.1f} M words/s, an epoch in {epoch / 3600:.2f} h, "
            f"efficiency {compute / step:.0%}"
        )
    return lines


def encoder_weights(H: int) -> int:
    from sentence_state import SentenceStateLSTM

    return sum(parameter.numel() for parameter in SentenceStateLSTM(H, H).parameters())


def show(row: dict[str, Any]) -> None:
    fitted = row["fit"]
    table = Table(title=f"a training step, ms; {row['device']}, one thread a process, torch {row['torch']}")
    for column in ("H", "T", "sentences x words", "1 process", "model", "2 processes", "model", "efficiency"):
        table.add_column(column, justify="right")
    for i, case in enumerate(row["cases"]):
        numbers = (
            case["one"]["seconds"],
            fitted["one, predicted"][i],
            case["two"]["seconds"],
            fitted["two, predicted"][i],
        )
        cells = [f"{1e3 * number:.1f}" for number in numbers]
        shape = f"{case['batch']} x {case['words']}"
        table.add_row(str(case["H"]), str(case["steps"]), shape, *cells, f"{fitted['efficiency'][i]:.0%}")
    Console(width=130).print(table)
    print({name: value for name, value in fitted.items() if isinstance(value, float)}, row["GPU"])
