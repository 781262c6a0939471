"""The CRF's kernels against the reference and against pytorch-crf, where it is installed: parity first."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from sentence_state.ops import crf

from .measure import alternately, captured, summary

SHAPES = [(10, 24, 17), (64, 24, 17), (10, 128, 17), (10, 24, 50), (64, 64, 50)]  # sentences, words, labels
KINDS = ("loss + gradient", "best sequence", "marginals")
OURS, OTHER = "edge", "pytorch-crf"


class Weights(nn.Module):
    """Start, end and transition scores as pytorch-crf has them, or an edge potential for every word."""

    def __init__(self, B: int, N: int, K: int, edge: bool, device: str) -> None:
        super().__init__()

        def random(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(shape).to(device))

        self.emission, self.start, self.end = random(B, N, K), random(K), random(K)
        self.transition = random(B, N, K, K) if edge else random(K, K)

    def chain(self) -> crf.Chain:
        N, K = self.emission.shape[1:]
        first = torch.arange(N, device=self.emission.device)[:, None] == 0
        emission = self.emission + torch.where(first, self.start, 0)
        transition = self.transition if self.transition.dim() == 4 else self.transition.expand(1, N, K, K)
        return crf.Chain(emission, transition, self.end)


def measure(limits: dict[str, Any], end: float, device: str = "cuda") -> Iterator[dict[str, Any]]:
    for B, N, K in SHAPES:
        if time.monotonic() > end:
            print(f"CRF: the time is up, left out from {B} x {N} x {K} on")
            return
        yield {"batch": B, "words": N, "labels": K, "dtype": "float32", **compare(B, N, K, limits, device)}


def compare(B: int, N: int, K: int, limits: dict[str, Any], device: str) -> dict[str, Any]:
    torch.manual_seed(0)
    lengths = torch.randint(max(1, N // 2), N + 1, (B,)).to(device)
    tags = torch.randint(K, (B, N)).to(device)
    weights = {edge: Weights(B, N, K, edge, device) for edge in (True, False)}
    runs = {OURS: calls(weights[True], tags, lengths), "static": calls(weights[False], tags, lengths)}
    runs |= {f"{name}, reference": reference(run) for name, run in list(runs.items())}
    runs |= other_library(weights[False], tags, lengths)
    row: dict[str, Any] = {"relative error": parity(runs)}
    for kind in KINDS:
        each = {name: run[kind] for name, run in runs.items() if kind in run}
        times = alternately(each, device, max(5, limits["repeats"] // 2), seconds=limits["seconds"])
        row[f"{kind}, eager"] = {name: summary(seconds) for name, seconds in times.items()}
        if device == "cuda":
            graphs = {name: captured(run) for name, run in each.items() if name in (OURS, "static")}
            row[kind] = {name: summary(seconds) for name, seconds in alternately(graphs, device, **limits).items()}
    return row


def calls(weights: Weights, tags: Tensor, lengths: Tensor) -> dict[str, Callable[[], Any]]:
    def loss_and_gradient() -> list[Tensor]:
        chain = weights.chain()
        loss = (crf.log_partition(chain, lengths) - crf.sequence_score(chain, tags, lengths)).sum()
        return [loss.detach(), *torch.autograd.grad(loss, list(weights.parameters()))]

    def without_gradient(function: Callable[..., Any]) -> Callable[[], Any]:
        def run() -> Any:
            with torch.no_grad():
                return function(weights.chain(), lengths)

        return run

    functions = (loss_and_gradient, without_gradient(crf.viterbi), without_gradient(crf.label_marginals))
    return dict(zip(KINDS, functions, strict=True))


def reference(runs: dict[str, Callable[[], Any]]) -> dict[str, Callable[[], Any]]:
    """The same calls without the kernels."""

    def plain(run: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> Any:
            with patch.object(crf, "can_fuse", lambda emission: False):
                return run()

        return call

    return {kind: plain(run) for kind, run in runs.items()}


def other_library(weights: Weights, tags: Tensor, lengths: Tensor) -> dict[str, dict[str, Callable[[], Any]]]:
    """pytorch-crf with the same weights; it has no marginals."""
    if importlib.util.find_spec("torchcrf") is None:
        return {}
    from torchcrf import CRF

    layer = CRF(weights.emission.shape[2], batch_first=True).to(weights.emission.device)
    layer.transitions, layer.start_transitions, layer.end_transitions = weights.transition, weights.start, weights.end
    mask = torch.arange(tags.shape[1], device=tags.device) < lengths[:, None]

    def loss_and_gradient() -> list[Tensor]:
        loss = -layer(weights.emission, tags, mask=mask, reduction="sum")
        return [loss.detach(), *torch.autograd.grad(loss, list(weights.parameters()))]

    def best_sequence() -> list[list[int]]:
        with torch.no_grad():
            found: list[list[int]] = layer.decode(weights.emission, mask=mask)
            return found

    return {OTHER: {KINDS[0]: loss_and_gradient, KINDS[1]: best_sequence}}


def parity(runs: dict[str, dict[str, Callable[[], Any]]]) -> float:
    """The largest relative error of loss, gradients and marginals; best sequences must be the same."""
    error = 0.0
    pairs = [(name, f"{name}, reference") for name in (OURS, "static")] + [("static", OTHER)] * (OTHER in runs)
    for ours, theirs in pairs:
        for kind in (KINDS[0], KINDS[2]):
            if kind in runs[theirs]:
                found, expected = runs[ours][kind](), runs[theirs][kind]()
                both = zip(found, expected, strict=True) if isinstance(found, list) else [(found, expected)]
                error = max(error, *(float((a - b).norm() / b.norm()) for a, b in both))
        found, expected = runs[ours][KINDS[1]](), runs[theirs][KINDS[1]]()
        tags = [[tag for tag in row if tag >= 0] for row in found[0].tolist()]
        wanted = expected if theirs == OTHER else [[tag for tag in row if tag >= 0] for row in expected[0].tolist()]
        assert tags == wanted, f"{ours} and {theirs} find other sequences"
    assert error < 1e-4, f"the CRF is off by {error:.1e}"
    return error


def show(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    table = Table(title=f"CRF, float32, {rows[0]['device']}; ms")
    names = list(rows[0][f"{KINDS[0]}, eager"])
    for column in (
        "batch x words x labels",
        "what",
        "edge, graph",
        "static, graph",
        *(f"{name}, eager" for name in names),
    ):
        table.add_column(column, justify="right")
    for row in rows:
        for kind in KINDS:
            graphs, eager = row.get(kind, {}), row[f"{kind}, eager"]
            cells = [f"{graphs[name]['ms']:.3f}" if name in graphs else "" for name in (OURS, "static")]
            cells += [f"{eager[name]['ms']:.3f}" if name in eager else "" for name in names]
            table.add_row(f"{row['batch']} x {row['words']} x {row['labels']}", kind, *cells)
    Console(width=170).print(table)
