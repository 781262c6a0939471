"""The functions below the CRF layer, on potentials that no layer made."""

import itertools

import pytest
import torch

from sentence_state.ops import crf
from tests import by_hand

LENGTHS = [4, 1, 3, 2]
both_shapes = pytest.mark.parametrize("shared", [False, True])


def random_chain(shared, num_labels=3, forbid=0.0):
    """Potentials of four sentences at five positions; transitions shared by all sentences or not."""
    torch.manual_seed(0)
    B, N, K = len(LENGTHS), max(LENGTHS) + 1, num_labels
    transition = torch.randn(1 if shared else B, N, K, K, dtype=torch.float64)
    transition[torch.rand(transition.shape) < forbid] = -torch.inf
    transition[..., 0, 0] = 0
    emission, end = torch.randn(B, N, K, dtype=torch.float64), torch.randn(K, dtype=torch.float64)
    return crf.Chain(emission, transition, end), torch.tensor(LENGTHS)


def all_scores(chain, row, length):
    """The score of every tag sequence of one sentence, by hand."""
    emission, end = chain.emission[row].tolist(), chain.end.tolist()
    transition = chain.transition[min(row, len(chain.transition) - 1)].tolist()
    scores = {}
    for tags in itertools.product(range(len(end)), repeat=length):
        score = end[tags[-1]] + sum(emission[i][tag] for i, tag in enumerate(tags))
        scores[tags] = score + sum(transition[i][tags[i - 1]][tags[i]] for i in range(1, length))
    return scores


@both_shapes
@pytest.mark.parametrize("forbid", [0.0, 0.5])
def test_log_partition_equals_enumeration(shared, forbid):
    chain, lengths = random_chain(shared, forbid=forbid)
    expected = [by_hand.log_sum(all_scores(chain, row, length)) for row, length in enumerate(LENGTHS)]
    actual = crf.log_partition(chain, lengths)
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=0)


@both_shapes
def test_sequence_score_equals_enumeration(shared):
    chain, lengths = random_chain(shared)
    tags = torch.randint(3, (4, 5))
    actual = crf.sequence_score(chain, tags, lengths)
    for row, length in enumerate(LENGTHS):
        expected = all_scores(chain, row, length)[tuple(tags[row, :length].tolist())]
        torch.testing.assert_close(actual[row].item(), expected, atol=1e-12, rtol=0)  # float64


@both_shapes
@pytest.mark.parametrize("forbid", [0.0, 0.5])
def test_pair_marginals_equal_enumeration(shared, forbid):
    chain, lengths = random_chain(shared, forbid=forbid)
    actual = crf.pair_marginals(chain, lengths)
    expected = torch.zeros(4, 5, 3, 3, dtype=torch.float64)
    for row, length in enumerate(LENGTHS):
        for i, pair in enumerate(by_hand.pair_marginals(all_scores(chain, row, length), 3), start=1):
            expected[row, i] = torch.tensor(pair, dtype=torch.float64)
    torch.testing.assert_close(actual, expected, atol=1e-10, rtol=0)


@both_shapes
def test_pair_marginals_are_the_gradient_of_the_log_partition(shared):
    chain, lengths = random_chain(shared)
    chain = crf.Chain(*(tensor.requires_grad_() for tensor in chain))
    weight = torch.randn(4, dtype=torch.float64)
    (weight * crf.log_partition(chain, lengths)).sum().backward()
    expected = (weight[:, None, None, None] * crf.pair_marginals(chain, lengths)).sum_to_size(chain.transition.shape)
    torch.testing.assert_close(chain.transition.grad, expected, atol=1e-12, rtol=0)
    labels = weight[:, None, None] * crf.label_marginals(chain, lengths)
    torch.testing.assert_close(chain.emission.grad, labels, atol=1e-12, rtol=0)
    last = labels[torch.arange(4), lengths - 1].sum(0)
    torch.testing.assert_close(chain.end.grad, last, atol=1e-12, rtol=0)


@both_shapes
def test_log_partition_gradient_equals_finite_differences(shared):
    chain, lengths = random_chain(shared, num_labels=2)
    inputs = [tensor.requires_grad_() for tensor in chain]
    assert torch.autograd.gradcheck(lambda *chain: crf.log_partition(crf.Chain(*chain), lengths), inputs)


@both_shapes
def test_operators_keep_the_promises_that_compilers_rely_on(shared):
    chain, lengths = random_chain(shared)
    differentiable = [tensor.clone().requires_grad_() for tensor in chain]
    torch.library.opcheck(crf._log_partition, (*differentiable, lengths))
    torch.library.opcheck(crf._n_best, (*chain, lengths, 2))
    _, alpha = crf._log_partition(*chain, lengths)
    torch.library.opcheck(crf._expected_counts, (*chain, lengths, alpha, torch.ones(4, dtype=torch.float64)))


def test_scores_far_apart_do_not_underflow():
    """The only allowed way passes a label that is 1000 nats behind: in probabilities it would be zero."""
    emission = torch.tensor([[[0.0, -1000.0], [0.0, 0.0], [0.0, 3000.0]]])
    transition = torch.tensor([[0.0, -torch.inf], [0.0, 0.0]]).expand(1, 3, 2, 2)  # nothing leads from 0 to 1
    chain = crf.Chain(emission, transition, torch.zeros(2))
    tags, score = crf.viterbi(chain, torch.tensor([3]))
    assert tags.tolist() == [[1, 1, 1]]
    assert score.tolist() == crf.log_partition(chain, torch.tensor([3])).tolist() == [2000.0]
    assert crf.label_marginals(chain, torch.tensor([3])).tolist() == [[[0.0, 1.0]] * 3]
