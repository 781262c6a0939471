"""python -m benchmarks gpu: the fused recurrence against cuDNN's BiLSTM and the other encoders; parity first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from sentence_state.encoders import ENCODERS, Encoder, SentenceStateLSTM

from .measure import alternately, append, circumstances, ratio, summary

H, STEPS = 300, 9
TARGETS = [(10, 24), (10, 256), (10, 1024), (64, 256), (256, 24)]


def main(
    dtype: str = "bfloat16",
    shapes: tuple[tuple[int, int], ...] = tuple(TARGETS),
    models: tuple[str, ...] = ("S-LSTM", "BiLSTM"),
    repeats: int = 20,
    save: bool = True,
) -> None:
    """Forward and forward + backward in CUDA graphs and eager, and peak memory. Appends to results/gpu.jsonl.

    Args:
        dtype: bfloat16 or float32.
        shapes: batch and words of each case.
        models: names of the paper's tables, S-LSTM and BiLSTM among them.
        repeats: rounds; every candidate runs once a round.
        save: append the rows to the results.
    """
    rate = matrix_rate(getattr(torch, dtype))
    rows = [measure(B, N, getattr(torch, dtype), models, repeats, rate) for B, N in shapes]
    show(rows)
    if save:
        print(f"appended to {append('gpu', rows)}")


def matrix_rate(dtype: torch.dtype) -> float:
    """TFLOP/s of a large square product."""
    left, right = (torch.randn(8192, 8192, device="cuda", dtype=dtype) for _ in range(2))
    seconds = alternately({"product": lambda: left @ right}, "cuda", 10)["product"]
    return 2e-12 * 8192**3 / sorted(seconds)[5]


def check_parity(encoder: SentenceStateLSTM, x: Tensor) -> float:
    """The relative error of the outputs against the reference in float64, on at most four sentences."""
    precise = SentenceStateLSTM(H, H, STEPS, dtype=torch.float64, device="cuda", backend="reference")
    precise.load_state_dict(encoder.state_dict())
    with torch.no_grad():
        pairs = zip(encoder(x[:4]), precise(x[:4].double()), strict=True)
        error = max(float((ours.double() - theirs).norm() / theirs.norm()) for ours, theirs in pairs)
    assert error < (2e-2 if x.dtype.itemsize == 2 else 1e-3), f"the fused recurrence is off by {error:.1e}"
    return error


def passes(encoder: Encoder, x: Tensor) -> dict[str, Callable[[], Any]]:
    inputs = x.clone().requires_grad_()
    directions = [torch.randn_like(output) for output in encoder(x)]

    def forward() -> None:
        with torch.no_grad():
            encoder(x)

    def forward_backward() -> None:
        torch.autograd.grad(list(encoder(inputs)), [inputs, *encoder.parameters()], directions, allow_unused=True)

    return {"forward": forward, "forward + backward": forward_backward}


def captured(run: Callable[[], Any]) -> Callable[[], Any]:
    """The run as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
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


def measure(B: int, N: int, dtype: torch.dtype, models: tuple[str, ...], repeats: int, rate: float) -> dict[str, Any]:
    torch.manual_seed(0)
    x = torch.randn(B, N, H, device="cuda", dtype=dtype)
    encoders = {name: ENCODERS[name](H, H, device="cuda", dtype=dtype) for name in models}
    ours = encoders["S-LSTM"]
    assert isinstance(ours, SentenceStateLSTM)
    row: dict[str, Any] = {"benchmark": "gpu", **circumstances("cuda"), "batch": B, "words": N, "dtype": str(dtype)[6:]}
    row["relative error"] = check_parity(ours, x)
    runs = {name: passes(encoder, x) for name, encoder in encoders.items()}
    row["peak MB"] = {name: peak_megabytes(run["forward + backward"]) for name, run in runs.items()}
    for kind in ("forward", "forward + backward"):
        eager = alternately({name: run[kind] for name, run in runs.items()}, "cuda", max(5, repeats // 4))
        graphs = alternately({name: captured(run[kind]) for name, run in runs.items()}, "cuda", repeats)
        row[kind] = {name: summary(times) for name, times in graphs.items()}
        row[f"{kind}, eager"] = {name: summary(times) for name, times in eager.items()}
        row[f"{kind}, ratio"] = {name: ratio(graphs[name], graphs["S-LSTM"]) for name in models[1:]}
    operations = 2e-12 * B * N * H * H * (7 + 22 * (STEPS - 1))
    row["TFLOP/s"] = operations / row["forward"]["S-LSTM"]["ms"] * 1e3
    row["share of the matrix rate"] = row["TFLOP/s"] / rate
    return row


def show(rows: list[dict[str, Any]]) -> None:
    title = (
        f"H = {H}, {STEPS} steps, {rows[0]['dtype']}, {rows[0]['device']}, torch {rows[0]['torch']}; in CUDA graphs, ms"
    )
    table = Table(title=title)
    for column in (
        "batch x words",
        "S-LSTM",
        "BiLSTM",
        "ratio",
        "of matrix rate",
        "f+b S-LSTM",
        "BiLSTM",
        "ratio",
        "MB",
        "MB",
    ):
        table.add_column(column, justify="right")
    for row in rows:
        cells = [f"{row['batch']} x {row['words']}"]
        for kind in ("forward", "forward + backward"):
            cells += [f"{row[kind][name]['ms']:.3f}" for name in ("S-LSTM", "BiLSTM")]
            cells.append(f"{row[f'{kind}, ratio']['BiLSTM']:.2f}")
            if kind == "forward":
                cells.append(f"{row['share of the matrix rate']:.0%}")
        table.add_row(*cells, *(f"{row['peak MB'][name]:.0f}" for name in ("S-LSTM", "BiLSTM")))
    Console(width=150).print(table)
