"""Small CRFs and sentences, and the score of every tag sequence by hand."""

import itertools

import pytest
import torch
from torch import nn

from sentence_state.heads import CRF, AllowedTransitions
from tests import by_hand

H = 3
LENGTHS = [4, 1, 3, 2]
BIO = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
BIOES = ["O", *(f"{prefix}-{type}" for type in ("PER", "LOC") for prefix in "BIES")]
both_kinds = pytest.mark.parametrize("kind", ["edge", "static"])
every_size = pytest.mark.parametrize(
    ("kind", "num_labels", "constrained"), list(itertools.product(["edge", "static"], [1, 2, 3, 4], [False, True]))
)


def random_allowed(num_labels):
    """Random constraints that leave at least the sequence of all zeros."""
    start, transition, end = (torch.rand(shape) < 0.5 for shape in [num_labels, (num_labels, num_labels), num_labels])
    start[0] = transition[0, 0] = end[0] = True
    return AllowedTransitions(start, transition, end)


def random_crf(kind, num_labels, allowed=None, dtype=torch.float64, scale=1.0):
    crf = CRF(H, num_labels, kind, allowed, dtype=dtype)
    for parameter in crf.parameters():
        nn.init.normal_(parameter, std=scale)
    return crf


def random_case(kind, num_labels, constrained=False, dtype=torch.float64):
    """A CRF, words of one more position than the longest sentence needs, and lengths."""
    torch.manual_seed(num_labels)
    crf = random_crf(kind, num_labels, random_allowed(num_labels) if constrained else None, dtype)
    return crf, torch.randn(len(LENGTHS), max(LENGTHS) + 1, H, dtype=dtype), torch.tensor(LENGTHS)


def all_scores(crf, words):
    """The score of every allowed tag sequence of one sentence (n, H), by hand."""
    K, h = crf.num_labels, words.tolist()
    masks = [mask.tolist() for mask in (crf.allowed_start, crf.allowed_transition, crf.allowed_end)]
    sequences = [tags for tags in itertools.product(range(K), repeat=len(h)) if by_hand.is_allowed(tags, *masks)]
    if crf.transitions == "edge":
        W, b = crf.edge.weight.reshape(K, K, H).tolist(), crf.edge.bias.reshape(K, K).tolist()
        start = crf.start.weight.tolist(), crf.start.bias.tolist()
        return {tags: by_hand.edge_score(tags, h, W, b, *start) for tags in sequences}
    weights = [crf.emission.weight, crf.emission.bias, crf.transition, crf.start_score, crf.end_score]
    weights = [weight.tolist() for weight in weights]
    return {tags: by_hand.static_score(tags, h, *weights) for tags in sequences}


def sentences(words, lengths):
    return [words[row, :length] for row, length in enumerate(lengths.tolist())]


def padded(tags, size, value=-1):
    return torch.tensor([[*row, *[value] * (size - len(row))] for row in tags])
