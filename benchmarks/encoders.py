"""python -m benchmarks encoders: S-LSTM against nn.LSTM, a direct port, and the rate of the machine itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from sentence_state import SentenceStateLSTM

from .cases import SevenProducts, multiply_adds
from .measure import alternately, append, check_repeats, circumstances, ratio, summary

H, STEPS = 300, 9
SHAPES = [(1, 24), (10, 24), (10, 64), (10, 256)]


def main(device: str = "cuda" if torch.cuda.is_available() else "cpu", repeats: int = 15, save: bool = True) -> None:
    """Forward, and forward + backward, float32, without padding. Appends to benchmarks/results/encoders.jsonl.

    Args:
        device: cpu or cuda.
        repeats: rounds, two at least; every candidate runs once a round.
        save: append the rows to the results.
    """
    check_repeats(repeats)
    rows = [measure(B, N, device, repeats, train) for B, N in SHAPES for train in (False, True)]
    show(rows, device)
    if save:
        print(f"appended to {append('encoders', rows)}")


def measure(B: int, N: int, device: str, repeats: int, train: bool) -> dict[str, Any]:
    torch.manual_seed(0)
    ours = SentenceStateLSTM(H, H, STEPS, device=device)
    direct = SevenProducts(ours).to(device)
    lstm = nn.LSTM(H, H, bidirectional=True, batch_first=True, device=device)
    x = torch.randn(B, N, H, device=device, requires_grad=train)
    left, right = torch.randn(B * N, 3 * H, device=device), torch.randn(7 * H, 3 * H, device=device)
    for ours_out, direct_out in zip(ours(x), direct(x), strict=True):
        torch.testing.assert_close(ours_out, direct_out, rtol=1e-3, atol=1e-4)  # float32, TF32 if allowed

    def call(run: Callable[[Tensor], Any]) -> Callable[[], None]:
        def forward() -> None:
            with torch.no_grad():
                run(x)

        def forward_backward() -> None:
            words = run(x)[0]
            words.sum().backward()

        return forward_backward if train else forward

    times = alternately(
        {
            "S-LSTM": call(ours),
            "direct port": call(direct),
            "nn.LSTM": call(lstm),
            "product": lambda: torch.matmul(left, right.t()),
        },
        device,
        repeats,
    )
    rate = B * N * 21 * H * H / torch.tensor(times["product"]).median().item()  # multiply-adds a second
    done = multiply_adds(B, N, H, H, STEPS) / torch.tensor(times["S-LSTM"]).median().item()
    return {
        "benchmark": "encoders",
        **circumstances(device),
        "batch": B,
        "words": N,
        "backward": train,
        **{name: summary(seconds) for name, seconds in times.items()},
        "nn.LSTM / S-LSTM": ratio(times["nn.LSTM"], times["S-LSTM"]),
        "direct port / S-LSTM": ratio(times["direct port"], times["S-LSTM"]),
        "matmul GFLOP/s": 2e-9 * rate,
        "share of the matmul rate": None if train else done / rate,
    }


def show(rows: list[dict[str, Any]], device: str) -> None:
    table = Table(title=f"H = {H}, {STEPS} steps, float32, {rows[0]['device']} ({device}); median ms")
    for column in (
        "batch x words",
        "pass",
        "S-LSTM",
        "direct port",
        "nn.LSTM",
        "port / ours",
        "nn.LSTM / ours",
        "of matmul rate",
    ):
        table.add_column(column, justify="right")
    for row in rows:
        share = row["share of the matmul rate"]
        table.add_row(
            f"{row['batch']} x {row['words']}",
            "forward + backward" if row["backward"] else "forward",
            *(f"{row[name]['ms']:.2f}" for name in ("S-LSTM", "direct port", "nn.LSTM")),
            f"{row['direct port / S-LSTM']:.2f}",
            f"{row['nn.LSTM / S-LSTM']:.3f}",
            "" if share is None else f"{share:.0%}",
        )
    Console(width=140).print(table)
