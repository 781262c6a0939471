"""A linear chain on a GPU: one program a sentence walks its words, K^2 potentials at a time.

A tile holds the log-potentials from every label (rows) to every label (columns), padded to a power of two with
FORBIDDEN or -inf. The tile of the next word is on its way while the current one is summed.
"""

from __future__ import annotations

import triton
import triton.language as tl

LOWEST = tl.constexpr(-1e30)  # `FORBIDDEN` of ops/crf.py


@triton.jit
def read_row(row, label, K, there):
    """(TILE,) values of the labels, -inf behind the last."""
    return tl.load(row + label, mask=(label < K) & there, other=float("-inf"))


@triton.jit
def read_tile(tile, label, K, there):
    """(TILE, TILE) log-potentials of one word, -inf behind the last label."""
    inside = (label < K)[:, None] & (label < K)[None, :] & there
    return tl.load(tile + label[:, None] * K + label[None, :], mask=inside, other=float("-inf"))


@triton.jit
def finite(most):
    """A maximum that can be subtracted: zero where all are -inf."""
    return tl.where(most == float("-inf"), 0.0, most)


@triton.jit
def length_of(lengths, b, N):
    """Of a sentence. Compiled code does not look at lengths: with one of 0 it would write over the sentence before."""
    return tl.minimum(tl.maximum(tl.load(lengths + b).to(tl.int32), 1), N)


@triton.jit
def fill(rows, first, last, width, value, BLOCK: tl.constexpr):
    """The rows `first` .. `last` - 1 of a matrix of `width` columns."""
    for start in range(first * width, last * width, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(rows + at, value, mask=at < last * width)


@triton.jit
def sum_forward(emission, transition, end, alphas, n, N, K, word_stride, ONE_MATRIX: tl.constexpr, TILE: tl.constexpr):
    """The forward algorithm of one sentence -> its log-partition. `alphas` gets alpha of every word less its maximum:
    as small numbers they keep their digits however long the sentence is. The maxima are summed in float64."""
    label = tl.arange(0, TILE)
    alpha = read_row(emission, label, K, True)
    tile = read_tile(transition + word_stride, label, K, n > 1)
    emitted = read_row(emission + K, label, K, n > 1)
    most = finite(tl.max(alpha, axis=0))
    offset = most.to(tl.float64)
    alpha -= most
    tl.store(alphas + label, alpha, mask=label < K)
    for i in range(1, n):
        next_emitted = read_row(emission + (i + 1) * K, label, K, i + 1 < n)
        next_tile = tile
        if not ONE_MATRIX:
            next_tile = read_tile(transition + (i + 1) * word_stride, label, K, i + 1 < n)
        paths = alpha[:, None] + tile
        most_path = finite(tl.max(paths, axis=0))
        alpha = tl.log(tl.sum(tl.exp(paths - most_path[None, :]), axis=0)) + most_path + emitted
        most = finite(tl.max(alpha, axis=0))
        offset += most.to(tl.float64)
        alpha -= most
        tl.store(alphas + i * K + label, alpha, mask=label < K)
        tile, emitted = next_tile, next_emitted
    fill(alphas, n, N, K, 0.0, TILE * 8)
    alpha += read_row(end, label, K, True)
    most = finite(tl.max(alpha, axis=0))
    return (tl.log(tl.sum(tl.exp(alpha - most), axis=0)) + most).to(tl.float64) + offset


@triton.jit
def pair_shares(alpha, tile, label, columns, K):
    """P(y_{i-1} | y_i, h_1 .. h_i): a softmax over each column, uniform where all is forbidden."""
    scores = alpha[:, None] + tile
    scores = tl.where(scores < LOWEST, LOWEST, scores)  # not tl.maximum, which would hide NaN
    scores = tl.exp(scores - tl.max(scores, axis=0)[None, :])
    scores = tl.where((label < K)[:, None] & (columns < K)[None, :], scores, 0.0)
    total = tl.sum(scores, axis=0)
    return scores, tl.where(columns < K, total, 1.0)


@triton.jit
def sum_backward(
    transition,
    end,
    alphas,
    labels,
    pairs,
    last,
    weight,
    n,
    N,
    K,
    word_stride,
    ONE_MATRIX: tl.constexpr,
    PAIRS: tl.constexpr,
    TILE: tl.constexpr,
):
    """From the last word to the first, P(y_{i-1}, y_i | h) = P(y_{i-1} | y_i, h_1 .. h_i) P(y_i | h); all times
    `weight`."""
    label = tl.arange(0, TILE)
    final = read_row(alphas + (n - 1) * K, label, K, True) + read_row(end, label, K, True)
    final = tl.where(final < LOWEST, LOWEST, final)
    final = tl.where(label < K, tl.exp(final - tl.max(final, axis=0)), 0.0)
    share = final * (weight / tl.sum(final, axis=0))
    tl.store(last + label, share, mask=label < K)
    tl.store(labels + (n - 1) * K + label, share, mask=label < K)
    tile = read_tile(transition + (n - 1) * word_stride, label, K, n > 1)
    alpha = read_row(alphas + (n - 2) * K, label, K, n > 1)
    for back in range(1, n):
        i = n - back
        next_alpha = read_row(alphas + (i - 2) * K, label, K, i > 1)
        next_tile = tile
        if not ONE_MATRIX:
            next_tile = read_tile(transition + (i - 1) * word_stride, label, K, i > 1)
        scores, total = pair_shares(alpha, tile, label, label, K)
        pair = scores * (share / total)[None, :]
        if PAIRS:
            inside = (label < K)[:, None] & (label < K)[None, :]
            tl.store(pairs + i * K * K + label[:, None] * K + label[None, :], pair, mask=inside)
        share = tl.sum(pair, axis=1)
        tl.store(labels + (i - 1) * K + label, share, mask=label < K)
        tile, alpha = next_tile, next_alpha
    fill(labels, n, N, K, 0.0, TILE * 8)
    if PAIRS:
        fill(pairs, 0, 1, K * K, 0.0, TILE * 8)
        fill(pairs, n, N, K * K, 0.0, TILE * 8)


@triton.jit(do_not_specialize=["N"])
def log_partition_kernel(
    emission,  # (B, N, K)
    transition,  # (B, N, K, K), or fewer by strides of zero
    end,  # (K,)
    lengths,  # (B,)
    total,  # (B,)
    alphas,  # (B, N, K)
    N,
    K,
    sentence_stride,
    word_stride,
    ONE_MATRIX: tl.constexpr,
    TILE: tl.constexpr,
):
    b = tl.program_id(0).to(tl.int64)
    n = length_of(lengths, b, N)
    emission, alphas, transition = emission + b * N * K, alphas + b * N * K, transition + b * sentence_stride
    found = sum_forward(emission, transition, end, alphas, n, N, K, word_stride, ONE_MATRIX, TILE)
    tl.store(total + b, found.to(tl.float32))


@triton.jit(do_not_specialize=["N"])
def expected_counts_kernel(
    transition,
    end,
    lengths,
    alphas,
    weight,  # (B,)
    labels,  # (B, N, K)
    pairs,  # (B, N, K, K) where PAIRS
    last,  # (B, K)
    N,
    K,
    sentence_stride,
    word_stride,
    ONE_MATRIX: tl.constexpr,
    PAIRS: tl.constexpr,
    TILE: tl.constexpr,
):
    b = tl.program_id(0).to(tl.int64)
    n = length_of(lengths, b, N)
    sum_backward(
        transition + b * sentence_stride,
        end,
        alphas + b * N * K,
        labels + b * N * K,
        pairs + b * N * K * K,
        last + b * K,
        tl.load(weight + b),
        n,
        N,
        K,
        word_stride,
        ONE_MATRIX,
        PAIRS,
        TILE,
    )


@triton.jit(do_not_specialize=["N"])
def marginals_kernel(
    emission,
    transition,
    end,
    lengths,
    alphas,  # (B, N, K) to work in
    labels,
    pairs,
    last,  # (B, K) to work in
    N,
    K,
    sentence_stride,
    word_stride,
    ONE_MATRIX: tl.constexpr,
    PAIRS: tl.constexpr,
    TILE: tl.constexpr,
):
    b = tl.program_id(0).to(tl.int64)
    n = length_of(lengths, b, N)
    alphas, transition = alphas + b * N * K, transition + b * sentence_stride
    sum_forward(emission + b * N * K, transition, end, alphas, n, N, K, word_stride, ONE_MATRIX, TILE)
    tl.debug_barrier()  # other threads of this program read what these wrote
    sum_backward(
        transition,
        end,
        alphas,
        labels + b * N * K,
        pairs + b * N * K * K,
        last + b * K,
        1.0,
        n,
        N,
        K,
        word_stride,
        ONE_MATRIX,
        PAIRS,
        TILE,
    )


@triton.jit(do_not_specialize=["B", "N"])
def shared_pairs_kernel(
    transition,  # (1, N, K, K)
    lengths,
    alphas,
    labels,
    partial,  # (groups, N, K, K)
    B,
    N,
    K,
    word_stride,
    GROUP: tl.constexpr,
    COLUMNS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Pair marginals summed over a group of sentences: one program for each word, some columns and a group."""
    i, block, group = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    label = tl.arange(0, TILE)
    columns = block * COLUMNS + tl.arange(0, COLUMNS)
    at = label[:, None] * K + columns[None, :]
    inside = (label < K)[:, None] & (columns < K)[None, :]
    tile = tl.load(transition + i * word_stride + at, mask=inside, other=float("-inf"))
    counts = tl.zeros([TILE, COLUMNS], tl.float32)
    for b in range(group * GROUP, min(B, (group + 1) * GROUP)):
        there = (i > 0) & (i < tl.load(lengths + b))
        row = (b * N + i).to(tl.int64) * K
        alpha = tl.load(alphas + row - K + label, mask=(label < K) & there, other=float("-inf"))
        share = tl.load(labels + row + columns, mask=(columns < K) & there, other=0.0)
        scores, total = pair_shares(alpha, tile, label, columns, K)
        counts += scores * (share / total)[None, :]
    tl.store(partial + (group * N + i).to(tl.int64) * K * K + at, counts, mask=inside)


@triton.jit(do_not_specialize=["N"])
def viterbi_kernel(
    emission,
    transition,
    end,
    lengths,
    pointers,  # (B, N, K) int8 to work in
    tags,  # (B, N) int64
    scores,  # (B,)
    N,
    K,
    sentence_stride,
    word_stride,
    ONE_MATRIX: tl.constexpr,
    TILE: tl.constexpr,
):
    """The same sums in the same order as the reference, so that ties fall the same way: to the first label."""
    b = tl.program_id(0).to(tl.int64)
    n = length_of(lengths, b, N)
    emission, pointers, tags = emission + b * N * K, pointers + b * N * K, tags + b * N
    transition += b * sentence_stride
    label = tl.arange(0, TILE)
    alpha = read_row(emission, label, K, True)
    tile = read_tile(transition + word_stride, label, K, n > 1)
    emitted = read_row(emission + K, label, K, n > 1)
    for i in range(1, n):
        next_emitted = read_row(emission + (i + 1) * K, label, K, i + 1 < n)
        next_tile = tile
        if not ONE_MATRIX:
            next_tile = read_tile(transition + (i + 1) * word_stride, label, K, i + 1 < n)
        best, previous = tl.max(alpha[:, None] + tile, axis=0, return_indices=True)
        alpha = best + emitted
        tl.store(pointers + i * K + label, previous.to(tl.int8), mask=label < K)
        tile, emitted = next_tile, next_emitted
    score, state = tl.max(alpha + read_row(end, label, K, True), axis=0, return_indices=True)
    tl.store(scores + b, score)
    fill(tags, n, N, 1, -1, TILE * 8)
    tl.debug_barrier()  # other threads of this program read what these wrote
    possible = score > float("-inf")
    for back in range(1, n + 1):
        i = n - back
        tl.store(tags + i, tl.where(possible, state, -1).to(tl.int64))
        state = tl.load(pointers + i * K + state, mask=i > 0, other=0).to(tl.int32)
