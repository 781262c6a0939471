"""Section 3.3, external CRF: a linear chain in log space; sum, marginals and best sequences loop over positions only.

The sum, the marginals and the n best sequences are `torch.library` operators: torch.compile sees one node, whatever the
length. The gradient of the sum is written out: it keeps (B, N, K) where autograd keeps (B, N, K, K), and it is never
NaN for -inf. Each operator picks its backend: one kernel on CUDA (`can_fuse`), else the loop that stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .recurrence import MOST_NUMBERS, has_kernels

MOST_FUSED_LABELS = 128  # K^2 potentials and the next K^2 must fit into the registers of one program
FORBIDDEN = -1e30  # stands for -inf in a softmax: where all are forbidden, not NaN


class Chain(NamedTuple):
    """Log-potentials of B chains. A forbidden label or transition has -inf; at padding anything finite may stand."""

    emission: Tensor  # (B, N, K): of each label at each word; the first word's include the start
    transition: Tensor  # (B, N, K, K), or (1, N, K, K) for all sentences: [:, i] leads to word i; [:, 0] is not read
    end: Tensor  # (K,): of each label at the last word


def can_fuse(emission: Tensor) -> bool:
    """Whether the kernels of ops/fused/crf.py take it: a CUDA tensor of 32 bits, not too many labels, pairs of a
    sentence that 32 bits count, on a card that Triton compiles for."""
    B, N, K = emission.shape
    countable = N * K * K + 1024 < MOST_NUMBERS  # a program fills so many at once, and stops behind the last
    fits = emission.dtype == torch.float32 and 0 < K <= MOST_FUSED_LABELS and B > 0 and countable
    return fits and has_kernels(emission)


def sequence_score(chain: Chain, tags: Tensor, lengths: Tensor) -> Tensor:
    """log of the product of psi along the given tags (B, N), any at padding -> (B,)."""
    inside = torch.arange(tags.shape[1], device=tags.device) < lengths[:, None]  # (B, N)
    tags = tags.masked_fill(~inside, 0)
    labels = chain.emission.gather(2, tags[..., None]).squeeze(2)  # (B, N)
    previous, word = tags.roll(1, dims=1), torch.arange(tags.shape[1], device=tags.device)
    if len(chain.transition) == len(tags):  # the gradient of `gather` writes each word's one pair, without sorting
        pair = (previous * chain.end.shape[0] + tags)[..., None]
        pairs = chain.transition.flatten(2).gather(2, pair).squeeze(2)  # (B, N)
    else:
        pairs = chain.transition[0, word, previous, tags]
    last = chain.end[tags.gather(1, lengths[:, None] - 1).squeeze(1)]  # (B,)
    return labels.where(inside, 0).sum(1) + pairs.where(inside & (word > 0), 0).sum(1) + last


def log_partition(chain: Chain, lengths: Tensor) -> Tensor:
    """log of the sum over all tag sequences of the product of psi -> (B,). Differentiable once."""
    total: Tensor = _log_partition(*chain, lengths)[0]
    return total


def label_marginals(chain: Chain, lengths: Tensor) -> Tensor:
    """P(y_i | h) -> (B, N, K), zero at padding. Without a gradient."""
    if _is_exporting():
        return _scanned_marginals(_detached(chain), lengths)
    labels: Tensor = _marginals(*_detached(chain), lengths, False)[0]
    return labels


def pair_marginals(chain: Chain, lengths: Tensor) -> Tensor:
    """P(y_{i-1}, y_i | h) -> (B, N, K, K), zero at the first word and at padding. Without a gradient."""
    pairs: Tensor = _marginals(*_detached(chain), lengths, True)[1]
    return pairs


def viterbi(chain: Chain, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The best sequence: tags (B, N), -1 at padding, and its score (B,). Without a gradient."""
    tags, scores = n_best(chain, lengths, 1)
    return tags.squeeze(1), scores.squeeze(1)


def n_best(chain: Chain, lengths: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The n best distinct sequences, best first: tags (B, n, N), -1 at padding, and scores (B, n). Without a gradient.

    Where fewer than n sequences exist or are allowed, the rest have score -inf and -1 for all tags.
    """
    # An exported program holds the loop in torch's own operators, so that it runs and converts without this package.
    tags, scores = (_search if _is_exporting() else _n_best)(*_detached(chain), lengths, n)
    return tags, scores


def _detached(chain: Chain) -> Chain:
    return Chain(*(tensor.detach() for tensor in chain))


# ---- sum over all sequences ---------------------------------------------------------------------


@torch.library.custom_op(
    "sentence_state::crf_log_partition",
    mutates_args=(),
    schema="(Tensor emission, Tensor transition, Tensor end, Tensor lengths) -> (Tensor, Tensor)",
)
def _log_partition(emission: Tensor, transition: Tensor, end: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The forward algorithm -> log-partition (B,) and alpha (B, N, K), the log of the sum over all ways to a label.

    Alpha is read up to a constant for each word, and not at padding: the kernel leaves the constants out.
    """
    if can_fuse(emission):
        from .fused import crf as fused  # here, so that Triton is needed only where it can run

        return fused.log_partition(emission, transition, end, lengths)
    alpha = emission[:, 0]  # (B, K)
    alphas = [alpha]
    K = emission.shape[2]
    paths = emission.new_empty(K, emission.shape[0], K)  # previous label first: there the sum is a fifth faster
    for emission_i, transition_i in zip(emission.unbind(1)[1:], transition.unbind(1)[1:], strict=True):
        torch.add(alpha.T[:, :, None], transition_i.transpose(0, 1), out=paths)
        alpha = paths.logsumexp(0) + emission_i
        alphas.append(alpha)
    alpha = torch.stack(alphas, dim=1)
    return (_at_last(alpha, lengths) + end).logsumexp(1), alpha


@_log_partition.register_fake
def _(emission: Tensor, transition: Tensor, end: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    return emission.new_empty(emission.shape[0]), torch.empty_like(emission, memory_format=torch.contiguous_format)


@torch.library.custom_op(
    "sentence_state::crf_expected_counts",
    mutates_args=(),
    schema="(Tensor emission, Tensor transition, Tensor end, Tensor lengths, Tensor alpha, Tensor weight)"
    " -> (Tensor, Tensor, Tensor)",
)
def _expected_counts(
    emission: Tensor, transition: Tensor, end: Tensor, lengths: Tensor, alpha: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Marginals of labels, pairs and last labels, times a weight (B,) for each sentence, summed to the shapes of
    emission, transition and end: the gradient of the log-partition, where weight is the gradient of its output.

    From the last word to the first, P(y_{i-1}, y_i | h) = P(y_{i-1} | y_i, h_1 .. h_i) P(y_i | h).
    """
    if can_fuse(emission):
        from .fused import crf as fused

        return fused.expected_counts(transition, end, lengths, alpha, weight)
    last = (_at_last(alpha, lengths) + end).clamp(min=FORBIDDEN).softmax(1) * weight[:, None]  # (B, K)
    is_last = torch.arange(emission.shape[1], device=lengths.device)[:, None] == lengths - 1  # (N, B)
    begins = torch.where(is_last[..., None], last, 0).unbind(0)
    label = begins[-1]  # (B, K)
    labels = [label]
    pairs = torch.empty_like(transition, memory_format=torch.contiguous_format)
    pairs[:, 0] = 0
    words = list(zip(alpha.unbind(1), transition.unbind(1)[1:], pairs.unbind(1)[1:], begins, strict=False))
    for alpha_before, transition_i, pairs_i, begin in reversed(words):
        pair = (alpha_before[:, :, None] + transition_i).clamp_(min=FORBIDDEN).softmax(1).mul_(label[:, None])
        pairs_i.copy_(pair.sum_to_size(pairs_i.shape))
        label = pair.sum(2) + begin
        labels.append(label)
    return torch.stack(labels[::-1], dim=1), pairs, last.sum(0)


@_expected_counts.register_fake
def _(
    emission: Tensor, transition: Tensor, end: Tensor, lengths: Tensor, alpha: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    emission, transition, end = (
        torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in (emission, transition, end)
    )
    return emission, transition, end


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, output[1])


def _backward(ctx: Any, weight: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    return *_expected_counts(*ctx.saved_tensors, weight), None


_log_partition.register_autograd(_backward, setup_context=_save)


def _refuse(ctx: Any, *gradients: Tensor | None) -> None:
    raise RuntimeError("the log-partition of a CRF has no second derivative")


_expected_counts.register_autograd(_refuse)


@torch.library.custom_op(
    "sentence_state::crf_marginals",
    mutates_args=(),
    schema="(Tensor emission, Tensor transition, Tensor end, Tensor lengths, bool pairs) -> (Tensor, Tensor)",
)
def _marginals(
    emission: Tensor, transition: Tensor, end: Tensor, lengths: Tensor, pairs: bool
) -> tuple[Tensor, Tensor]:
    """Marginals of labels (B, N, K), and of pairs (B, N, K, K) where asked for, else (0, N, K, K)."""
    if can_fuse(emission):
        from .fused import crf as fused

        return fused.marginals(emission, transition, end, lengths, pairs)
    B = len(emission)
    if pairs:
        transition = transition.expand(B, -1, -1, -1)
    _, alpha = _log_partition(emission, transition, end, lengths)
    weight = emission.new_ones(B)
    labels, of_pairs, _ = _expected_counts(emission, transition, end, lengths, alpha, weight)
    return labels, of_pairs if pairs else emission.new_empty(0, *transition.shape[1:])


@_marginals.register_fake
def _(emission: Tensor, transition: Tensor, end: Tensor, lengths: Tensor, pairs: bool) -> tuple[Tensor, Tensor]:
    B, N, K = emission.shape
    return emission.new_empty(B, N, K), emission.new_empty(B if pairs else 0, N, K, K)


def _scanned_marginals(chain: Chain, lengths: Tensor) -> Tensor:
    """`label_marginals` in torch's own operators, for an exported program: P(y_i) = sum over y_{i+1} of
    P(y_i | y_{i+1}) P(y_{i+1}), from the last word to the first."""
    emission, transition = chain.emission.clamp(min=FORBIDDEN), chain.transition.clamp(min=FORBIDDEN)
    word = torch.arange(emission.shape[1], device=lengths.device)  # (N,)
    is_first = word[:, None, None] == 0  # (N, 1, 1)
    is_last = (word[:, None] == lengths - 1)[..., None]  # (N, B, 1)

    def forward(alpha: Tensor, emission: Tensor, transition: Tensor, is_first: Tensor) -> tuple[Tensor, Tensor]:
        alpha = torch.where(is_first, 0, (alpha[:, :, None] + transition).logsumexp(1)) + emission
        return alpha, alpha.clone()

    def backward(label: Tensor, conditional: Tensor, is_last: Tensor) -> tuple[Tensor, Tensor]:
        label = torch.where(is_last, last, (conditional * label[:, None]).sum(2))
        return label, label.clone()

    moves = (emission.transpose(0, 1), transition.transpose(0, 1), is_first)
    _, alpha = _scan(forward, emission[:, 0] * 0, moves)  # (N, B, K)
    last = (_at_last(alpha.transpose(0, 1), lengths) + chain.end).clamp(min=FORBIDDEN).softmax(1)  # (B, K)
    following = transition[:, (word + 1) % word.shape[0]].transpose(0, 1)  # (N, B, K, K): to word i+1
    conditional = (alpha[..., None] + following).clamp(min=FORBIDDEN).softmax(2)
    _, labels = _scan(backward, last * 0, (conditional, is_last), reverse=True)
    return labels.transpose(0, 1)


def _at_last(x: Tensor, lengths: Tensor) -> Tensor:
    """(B, N, K) -> (B, K) at each sentence's last word."""
    return x.gather(1, (lengths - 1)[:, None, None].expand(-1, 1, x.shape[2])).squeeze(1)


# ---- best sequences -----------------------------------------------------------------------------


def _search(emission: Tensor, transition: Tensor, end: Tensor, lengths: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Viterbi with n ranks for each label: a state is label * n + rank, (B, K * n) of them at each word."""
    N, K = emission.shape[1:]
    word = torch.arange(N, device=lengths.device)[:, None]
    inside = word < lengths  # (N, B)
    moves = inside & (word > 0)  # the first word and padding keep the state

    def forward(alpha: Tensor, emission: Tensor, transition: Tensor, moves: Tensor) -> tuple[Tensor, Tensor]:
        scores = alpha.reshape(-1, K, n, 1) + transition[:, :, None]  # (B, K, n, K); torch 2.8 scans no unflatten
        best, pointer = _top(scores.flatten(1, 2), n)  # (B, n, K)
        best = (best + emission[:, None]).transpose(1, 2).flatten(1)  # (B, K * n)
        return torch.where(moves[:, None], best, alpha), pointer.transpose(1, 2).flatten(1)

    def backward(state: Tensor, pointer: Tensor, moves: Tensor) -> tuple[Tensor, Tensor]:
        return torch.where(moves[:, None], pointer.gather(1, state), state), state.clone()  # (B, n)

    alpha = F.pad(emission[:, 0, :, None], (0, n - 1), value=-torch.inf).flatten(1)  # (B, K * n): one way to a label
    alpha, pointers = _scan(forward, alpha, (emission.transpose(0, 1), transition.transpose(0, 1), moves))
    scores, state = _top((alpha.unflatten(1, (K, n)) + end[:, None]).flatten(1), n)  # (B, n)
    _, states = _scan(backward, state, (pointers, moves), reverse=True)  # (N, B, n)
    tags = (states // n).masked_fill(~inside[..., None] | (scores == -torch.inf), -1)
    return tags.permute(1, 2, 0).contiguous(), scores


def _top(scores: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The n greatest over dimension 1, and where; max is twice as fast as topk."""
    values, indices = scores.max(1, keepdim=True) if n == 1 else scores.topk(n, dim=1)
    return values, indices


Step = Callable[..., tuple[Tensor, Tensor]]


def _scan(step: Step, carry: Tensor, inputs: tuple[Tensor, ...], reverse: bool = False) -> tuple[Tensor, Tensor]:
    """step(carry, *inputs of one word) -> (carry, output), for each in dimension 0 -> last carry, outputs stacked."""
    if _is_exporting():
        from torch._higher_order_ops.scan import scan

        carry, outputs = scan(lambda carry, inputs: step(carry, *inputs), carry, inputs, reverse=reverse)
        return carry, outputs
    words = list(zip(*(tensor.unbind(0) for tensor in inputs), strict=True))
    outputs = []
    for word in reversed(words) if reverse else words:
        carry, output = step(carry, *word)
        outputs.append(output)
    return carry, torch.stack(outputs[::-1] if reverse else outputs)


def _is_exporting() -> bool:
    """What `torch.compiler.is_exporting`, since torch 2.7, reads: in 2.8 that says True in torch.compile too."""
    return getattr(torch.compiler, "_is_exporting_flag", False)


@torch.library.custom_op(
    "sentence_state::crf_n_best",
    mutates_args=(),
    schema="(Tensor emission, Tensor transition, Tensor end, Tensor lengths, int n) -> (Tensor, Tensor)",
)
def _n_best(emission: Tensor, transition: Tensor, end: Tensor, lengths: Tensor, n: int) -> tuple[Tensor, Tensor]:
    if n == 1 and can_fuse(emission):
        from .fused import crf as fused

        return fused.viterbi(emission, transition, end, lengths)
    return _search(emission, transition, end, lengths, n)


@_n_best.register_fake
def _(emission: Tensor, transition: Tensor, end: Tensor, lengths: Tensor, n: int) -> tuple[Tensor, Tensor]:
    B, N, _ = emission.shape
    return lengths.new_empty((B, n, N), dtype=torch.long), emission.new_empty((B, n))
