"""Section 3.3, external CRF: the probability of a tag sequence, and the most probable ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..encoders.encoding import check_choice, check_size
from ..ops import crf
from ..ops.equations import length_mask
from .words import read_words

Lengths = Tensor | Sequence[int] | None


class AllowedTransitions(NamedTuple):
    """Booleans, True where a tag sequence may begin, go on and end."""

    start: Tensor  # (K,)
    transition: Tensor  # (K, K): [previous label, label]
    end: Tensor  # (K,)


def allowed_transitions(labels: Sequence[str], scheme: str) -> AllowedTransitions:
    """What the scheme "BIO" or "BIOES" allows between `labels`, such as "O" and "B-PER"; in the order of the labels."""
    check_choice("scheme", scheme, ("BIO", "BIOES"))
    for label in labels:
        prefix = label.partition("-")[0]
        if prefix not in list(scheme):
            raise ValueError(f"{scheme} labels begin with one of {', '.join(scheme)}, got {label!r}")
    return AllowedTransitions(
        start=torch.tensor([_may_follow("O", label, scheme) for label in labels]),
        transition=torch.tensor([[_may_follow(previous, label, scheme) for label in labels] for previous in labels]),
        end=torch.tensor([_may_follow(label, "O", scheme) for label in labels]),
    )


def _may_follow(previous: str, label: str, scheme: str) -> bool:
    """Only an open span can go on, with its own type; in BIOES an open span must go on."""
    (left, _, left_type), (right, _, right_type) = previous.partition("-"), label.partition("-")
    is_open, goes_on = left in "BI", right in "IE"
    if goes_on:
        return is_open and left_type == right_type
    return scheme == "BIO" or not is_open


class CRF(nn.Module):
    """P(Y | h) = prod_i psi_i(y_{i-1}, y_i, h) / sum over all Y' of the same.

    transitions="edge", the paper's: psi_i = exp(W^{y_{i-1}, y_i} . h_i + b^{y_{i-1}, y_i}), weights and a bias for each
    pair of labels; y_0 is a label of its own. "static": psi_i = exp(W^{y_i} . h_i + b^{y_i} + A^{y_{i-1}, y_i}), with
    start and end scores. `allowed`: what is not True there has probability zero, in training and in decoding.

    All methods read words (B, N, H) and lengths (B,), None where nothing is padded. Sums over sequences are done in
    float32 at least: scores and probabilities have that dtype (float64 for float64), under autocast too.
    """

    allowed_start: Tensor
    allowed_transition: Tensor
    allowed_end: Tensor

    def __init__(
        self,
        hidden_size: int,
        num_labels: int,
        transitions: Literal["edge", "static"] = "edge",
        allowed: AllowedTransitions | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_size("hidden_size", hidden_size)
        check_size("num_labels", num_labels)
        check_choice("transitions", transitions, ("edge", "static"))
        self.hidden_size, self.num_labels, self.transitions = hidden_size, num_labels, transitions
        H, K = hidden_size, num_labels
        if transitions == "edge":
            self.start = nn.Linear(H, K, device=device, dtype=dtype)  # W and b from y_0 to each label
            self.edge = nn.Linear(H, K * K, device=device, dtype=dtype)  # row y' * K + y: from y' to y
        else:
            self.emission = nn.Linear(H, K, device=device, dtype=dtype)
            self.transition = nn.Parameter(torch.zeros(K, K, device=device, dtype=dtype))  # A, [previous label, label]
            self.start_score = nn.Parameter(torch.zeros(K, device=device, dtype=dtype))
            self.end_score = nn.Parameter(torch.zeros(K, device=device, dtype=dtype))
        self._register_allowed(allowed, device)

    def reset_parameters(self) -> None:
        for layer in self.children():
            cast(nn.Linear, layer).reset_parameters()
        for parameter in self.parameters(recurse=False):
            nn.init.zeros_(parameter)

    def log_likelihood(self, words: Tensor, tags: Tensor, lengths: Lengths = None) -> Tensor:
        """log P(tags | words) -> (B,), in nats. tags: (B, N) in 0 .. K-1; at padding anything may stand.

        A gold sequence that `allowed` forbids is a ValueError (-inf in compiled code, which cannot read values).
        """
        words, lengths, _ = read_words(words, lengths, self.hidden_size)
        tags = self._read_tags(tags, words, lengths)
        chain = self._chain(words)
        return crf.sequence_score(chain, tags, lengths) - crf.log_partition(chain, lengths)

    def decode(self, words: Tensor, lengths: Lengths = None) -> tuple[Tensor, Tensor]:
        """Viterbi -> the best tags (B, N), -1 at padding, and their scores (B,): log of the product of psi.

        `log_likelihood(words, tags, lengths)` makes a probability of it. If no sequence is allowed: -inf and all -1.
        """
        words, lengths, _ = read_words(words, lengths, self.hidden_size)
        return crf.viterbi(self._chain(words), lengths)

    def decode_n_best(self, words: Tensor, lengths: Lengths, n: int) -> tuple[Tensor, Tensor]:
        """The n best distinct sequences, best first -> tags (B, n, N), -1 at padding, and scores (B, n).

        Where fewer than n exist, the rest have the score -inf and tags -1.
        """
        check_size("n", n)
        words, lengths, _ = read_words(words, lengths, self.hidden_size)
        return crf.n_best(self._chain(words), lengths, n)

    def marginals(self, words: Tensor, lengths: Lengths = None) -> Tensor:
        """P(y_i | words) -> (B, N, K), zero at padding; no gradient flows through it."""
        words, lengths, _ = read_words(words, lengths, self.hidden_size)
        return crf.label_marginals(self._chain(words), lengths)

    def local_scores(self, words: Tensor) -> Tensor:
        """The scores that a word itself gives to its labels, (B, N, K), with "edge" for each label of the word before,
        (B, N, K, K); neither transitions nor what is allowed are in them."""
        scores: Tensor = self.edge(words) if self.transitions == "edge" else self.emission(words)
        return scores.unflatten(2, (self.num_labels, self.num_labels)) if self.transitions == "edge" else scores

    def extra_repr(self) -> str:
        sizes = f"{self.hidden_size}, {self.num_labels}"
        return f"{sizes}, transitions={self.transitions!r}, constrained={self.constrained}"

    def _chain(self, words: Tensor) -> crf.Chain:
        """The log of psi, -inf where forbidden. A bias of -inf forbids an edge without a pass over all edges."""
        N, K = words.shape[1], self.num_labels
        is_first = torch.arange(N, device=words.device)[:, None] == 0  # (N, 1)
        if self.transitions == "edge":
            start = F.linear(words[:, 0], self.start.weight, _forbid(self.start.bias, self.allowed_start))  # (B, K)
            edge = F.linear(words, self.edge.weight, _forbid(self.edge.bias, self.allowed_transition.flatten()))
            emission = torch.where(is_first, start[:, None], 0)  # (B, N, K): after the first word all is on the edges
            transition = edge.unflatten(2, (K, K))  # (B, N, K, K)
            end = start.new_zeros(K)
        else:
            emission = self.emission(words) + torch.where(is_first, _forbid(self.start_score, self.allowed_start), 0)
            transition = _forbid(self.transition, self.allowed_transition).expand(1, N, K, K)
            end = self.end_score
        return crf.Chain(_widen(emission), _widen(transition), _widen(_forbid(end, self.allowed_end)))

    def _register_allowed(self, allowed: AllowedTransitions | None, device: torch.device | str | None) -> None:
        """Buffers that are all True without constraints; not in the state dict, for they follow from the labels."""
        K = self.num_labels
        self.constrained, self._allowed = allowed is not None, allowed
        for name, shape in (("start", (K,)), ("transition", (K, K)), ("end", (K,))):
            mask = torch.ones(shape, dtype=torch.bool) if allowed is None else getattr(allowed, name)
            if mask.shape != shape or mask.dtype != torch.bool:
                raise ValueError(
                    f"allowed.{name} must be boolean of shape {shape}, got {mask.dtype} of shape {tuple(mask.shape)}"
                )
            self.register_buffer(f"allowed_{name}", mask.to(device), persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> CRF:
        """What .to(), .cuda() and .to_empty() call; the last leaves anything in buffers that no state dict fills."""
        super()._apply(fn, recurse)
        for place, buffer in enumerate((self.allowed_start, self.allowed_transition, self.allowed_end)):
            if buffer.is_meta:
                continue
            if self._allowed is None:
                buffer.fill_(True)
            else:
                buffer.copy_(self._allowed[place])
        return self

    def _read_tags(self, tags: Tensor, words: Tensor, lengths: Tensor) -> Tensor:
        """(B, N) checked; values are not read while a graph is traced or captured."""
        if tags.shape != words.shape[:2]:
            raise ValueError(f"tags must have shape {tuple(words.shape[:2])}, as words, got {tuple(tags.shape)}")
        if tags.is_floating_point() or tags.is_complex() or tags.dtype == torch.bool:
            raise ValueError(f"tags must be integers, got {tags.dtype}")
        tags = tags.to(words.device, torch.long)
        if torch.compiler.is_compiling() or (words.is_cuda and torch.cuda.is_current_stream_capturing()):
            return tags
        mask = length_mask(lengths, tags.shape[1])
        wrong = mask & ((tags < 0) | (tags >= self.num_labels))
        if wrong.any():
            row, word = wrong.nonzero()[0].tolist()
            tag, most = int(tags[row, word]), self.num_labels - 1
            raise ValueError(f"tags must lie in 0 .. {most}, got {tag} at word {word} of sentence {row}")
        if self.constrained:
            self._check_allowed(tags.masked_fill(~mask, 0), lengths, mask)
        return tags

    def _check_allowed(self, tags: Tensor, lengths: Tensor, mask: Tensor) -> None:
        word = torch.arange(tags.shape[1], device=tags.device)
        follows = torch.where(word == 0, self.allowed_start[tags], self.allowed_transition[tags.roll(1, dims=1), tags])
        ends = self.allowed_end[tags] | (word != lengths[:, None] - 1)
        wrong = mask & ~(follows & ends)
        if wrong.any():
            row, at = wrong.nonzero()[0].tolist()
            gold = tags[row, : lengths[row]].tolist()
            raise ValueError(f"tags of sentence {row} must be allowed, word {at} of {gold} breaks the constraint")


def _forbid(scores: Tensor, allowed: Tensor) -> Tensor:
    return scores.masked_fill(~allowed, -torch.inf)


def _widen(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
