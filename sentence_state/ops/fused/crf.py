"""The operators of ops/crf.py on a GPU, one launch each; shapes, chains and lengths as there."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .crf_kernels import (
    expected_counts_kernel,
    log_partition_kernel,
    marginals_kernel,
    shared_pairs_kernel,
    viterbi_kernel,
)
from .plan import parts_of, power_of_2

GROUP = 32  # sentences whose counts one program adds up
LEAST_TILE = 16


def log_partition(emission: Tensor, transition: Tensor, end: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """-> log-partition (B,) and alpha (B, N, K), less a constant for each word, zero at padding."""
    B, N, K = emission.shape
    transition, walk = read_transition(transition)
    total, alphas = emission.new_empty(B), emission.new_empty(B, N, K)
    emission, end, lengths = contiguous(emission, end, lengths)
    launch(log_partition_kernel, (B,), [emission, transition, end, lengths, total, alphas], N, K, **walk)
    return total, alphas


def expected_counts(
    transition: Tensor, end: Tensor, lengths: Tensor, alphas: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Weighted marginals of labels (B, N, K), of pairs and of last labels, the latter two in the shape of transition
    and end. Where sentences share their transitions, a second kernel adds the pairs of all of them."""
    (B, N, K), own = alphas.shape, len(transition) == len(alphas)
    transition, walk = read_transition(transition)
    labels, last, pairs = alphas.new_empty(B, N, K), alphas.new_empty(B, K), alphas.new_empty(B if own else 0, N, K, K)
    end, lengths, alphas, weight = contiguous(end, lengths, alphas, weight)
    tensors = [transition, end, lengths, alphas, weight, labels, pairs, last]
    launch(expected_counts_kernel, (B,), tensors, N, K, PAIRS=own, **walk)
    return labels, pairs if own else shared_pairs(transition, lengths, alphas, labels), last.sum(0)


def shared_pairs(transition: Tensor, lengths: Tensor, alphas: Tensor, labels: Tensor) -> Tensor:
    """Pair marginals of all sentences, from those of their labels -> (1, N, K, K)."""
    B, N, K = alphas.shape
    tile, columns, groups = tile_of(K), LEAST_TILE, parts_of(B, GROUP)
    partial = alphas.new_empty(groups, N, K, K)
    launch(
        shared_pairs_kernel,
        (N, parts_of(K, columns), groups),
        [transition, lengths, alphas, labels, partial],
        *(B, N, K, transition.stride(1)),
        GROUP=GROUP,
        COLUMNS=columns,
        TILE=tile,
        num_warps=max(1, min(4, tile * columns // 256)),
    )
    return partial if groups == 1 else partial.sum(0, keepdim=True)


def marginals(emission: Tensor, transition: Tensor, end: Tensor, lengths: Tensor, pairs: bool) -> tuple[Tensor, Tensor]:
    """P(y_i) (B, N, K), and P(y_{i-1}, y_i) (B, N, K, K) where asked for, else an empty tensor."""
    B, N, K = emission.shape
    transition, walk = read_transition(transition)
    alphas, labels, last = emission.new_empty(B, N, K), emission.new_empty(B, N, K), emission.new_empty(B, K)
    of_pairs = emission.new_empty(B if pairs else 0, N, K, K)
    emission, end, lengths = contiguous(emission, end, lengths)
    tensors = [emission, transition, end, lengths, alphas, labels, of_pairs, last]
    launch(marginals_kernel, (B,), tensors, N, K, PAIRS=pairs, **walk)
    return labels, of_pairs


def viterbi(emission: Tensor, transition: Tensor, end: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Tags (B, 1, N), -1 at padding, and scores (B, 1)."""
    B, N, K = emission.shape
    transition, walk = read_transition(transition)
    pointers = emission.new_empty(B, N, K, dtype=torch.int8)
    tags, scores = emission.new_empty(B, 1, N, dtype=torch.long), emission.new_empty(B, 1)
    emission, end, lengths = contiguous(emission, end, lengths)
    tensors = [emission, transition, end, lengths, pointers, tags, scores]
    launch(viterbi_kernel, (B,), tensors, N, K, **walk)
    return tags, scores


def launch(kernel: Any, grid: tuple[int, ...], tensors: list[Tensor], *numbers: int, **options: Any) -> None:
    """Run a kernel on the tensors' own device, which need not be the current one."""
    with torch.cuda.device_of(tensors[0]):
        kernel[grid](*tensors, *numbers, **options)


def contiguous(*tensors: Tensor) -> list[Tensor]:
    return [tensor.contiguous() for tensor in tensors]


def read_transition(transition: Tensor) -> tuple[Tensor, dict[str, Any]]:
    """Potentials whose tiles are contiguous, and how the kernels walk over them: a stride of zero where sentences share
    them, a matrix that is loaded once where words do."""
    K = transition.shape[2]
    if transition.stride()[2:] != (K, 1):
        transition = transition.contiguous()
    tile = tile_of(K)
    return transition, {
        "sentence_stride": 0 if len(transition) == 1 else transition.stride(0),
        "word_stride": transition.stride(1),
        "ONE_MATRIX": transition.stride(1) == 0,
        "TILE": tile,
        # One warp needs no barrier. From 17 labels on the exponentials take longer than that.
        "num_warps": 1 if tile < 32 else 4 if tile < 64 else 8,
    }


def tile_of(K: int) -> int:
    return max(LEAST_TILE, power_of_2(K))
