import itertools
import math

import pytest
import torch
from torch import nn

from sentence_state.heads import CRF, AllowedTransitions, allowed_transitions
from tests import by_hand

from .crf_cases import BIO, LENGTHS, H, all_scores, both_kinds, every_size, padded, random_case, random_crf, sentences

# ---- equal to the enumeration of all tag sequences ----------------------------------------------


@every_size
def test_log_likelihood_equals_enumeration_over_all_tag_sequences(kind, num_labels, constrained):
    crf, words, lengths = random_case(kind, num_labels, constrained)
    enumerated = [all_scores(crf, sentence) for sentence in sentences(words, lengths)]
    for seed in range(5):
        gold = [list(scores)[seed % len(scores)] for scores in enumerated]
        expected = [scores[tags] - by_hand.log_sum(scores) for scores, tags in zip(enumerated, gold, strict=True)]
        actual = crf.log_likelihood(words, padded(gold, words.shape[1], value=-100), lengths)
        torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=0)


@every_size
def test_marginals_equal_enumeration_over_all_tag_sequences(kind, num_labels, constrained):
    crf, words, lengths = random_case(kind, num_labels, constrained)
    actual = crf.marginals(words, lengths)
    expected = torch.zeros(*words.shape[:2], num_labels, dtype=torch.float64)
    for row, sentence in enumerate(sentences(words, lengths)):
        marginals = by_hand.label_marginals(all_scores(crf, sentence), num_labels)
        expected[row, : len(sentence)] = torch.tensor(marginals, dtype=torch.float64)
    torch.testing.assert_close(actual, expected, atol=1e-10, rtol=0)


@every_size
@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_n_best_equals_enumeration_over_all_tag_sequences(kind, num_labels, constrained, n):
    crf, words, lengths = random_case(kind, num_labels, constrained)
    tags, scores = crf.decode_n_best(words, lengths, n)
    assert tags.shape == (len(LENGTHS), n, words.shape[1])
    for row, sentence in enumerate(sentences(words, lengths)):
        expected = by_hand.n_best(all_scores(crf, sentence), n)
        found = len(expected)
        assert torch.equal(tags[row, :found], padded([best for best, _ in expected], words.shape[1]))
        expected_scores = torch.tensor([score for _, score in expected], dtype=torch.float64)
        torch.testing.assert_close(scores[row, :found], expected_scores, atol=1e-10, rtol=0)
        assert (scores[row, found:] == -torch.inf).all()
        assert (tags[row, found:] == -1).all()


@every_size
def test_decode_equals_the_best_of_the_enumeration_and_of_n_best(kind, num_labels, constrained):
    crf, words, lengths = random_case(kind, num_labels, constrained)
    tags, scores = crf.decode(words, lengths)
    n_best_tags, n_best_scores = crf.decode_n_best(words, lengths, 2)
    assert torch.equal(tags, n_best_tags[:, 0])
    assert torch.equal(scores, n_best_scores[:, 0])
    best = [by_hand.n_best(all_scores(crf, sentence), 1)[0][0] for sentence in sentences(words, lengths)]
    assert torch.equal(tags, padded(best, words.shape[1]))


@both_kinds
def test_probabilities_of_all_sequences_sum_to_one(kind):
    crf, words, _ = random_case(kind, 3)
    tags = torch.tensor(list(itertools.product(range(3), repeat=4)))
    log_likelihood = crf.log_likelihood(words[:1, :4].expand(len(tags), -1, -1), tags)
    torch.testing.assert_close(log_likelihood.exp().sum().item(), 1.0, atol=1e-12, rtol=0)


@both_kinds
def test_lengths_none_means_no_padding(kind):
    crf, words, _ = random_case(kind, 3)
    full = [words.shape[1]] * len(words)
    tags = torch.randint(3, words.shape[:2])
    assert torch.equal(crf.log_likelihood(words, tags), crf.log_likelihood(words, tags, full))
    assert torch.equal(crf.decode(words)[0], crf.decode(words, torch.tensor(full))[0])
    assert torch.equal(crf.marginals(words), crf.marginals(words, full))


# ---- gradients ----------------------------------------------------------------------------------


@both_kinds
@pytest.mark.parametrize("constrained", [False, True])
def test_gradients_equal_finite_differences(kind, constrained):
    crf, words, lengths = random_case(kind, 3, constrained)
    tags = crf.decode_n_best(words, lengths, 2)[0][:, 0]
    names = [name for name, _ in crf.named_parameters()]

    def log_likelihood(words, *values):
        parameters = dict(zip(names, values, strict=True))
        return torch.func.functional_call(Likelihood(crf), prefixed(parameters), (words, tags, lengths))

    inputs = [words, *crf.parameters()]
    assert torch.autograd.gradcheck(log_likelihood, [tensor.detach().requires_grad_() for tensor in inputs])


class Likelihood(nn.Module):
    def __init__(self, crf):
        super().__init__()
        self.crf = crf

    def forward(self, words, tags, lengths):
        return self.crf.log_likelihood(words, tags, lengths)


def prefixed(parameters):
    return {f"crf.{name}": value for name, value in parameters.items()}


@both_kinds
def test_gradient_of_forbidden_weights_is_zero_and_nothing_is_nan(kind):
    """Float32 scores of a hundred nats: far beyond what exp could hold."""
    torch.manual_seed(0)
    crf = random_crf(kind, len(BIO), allowed_transitions(BIO, "BIO"), torch.float32, scale=50)
    words = torch.randn(8, 12, H, requires_grad=True)
    lengths = torch.randint(1, 13, (8,))
    tags, _ = crf.decode(words, lengths)
    crf.log_likelihood(words, tags, lengths).sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in (words, *crf.parameters()))
    forbidden = ~crf.allowed_transition
    gradient = crf.edge.weight.grad.reshape(5, 5, H) if kind == "edge" else crf.transition.grad
    assert (gradient[forbidden] == 0).all()


@both_kinds
def test_a_second_gradient_is_refused_rather_than_wrong(kind):
    crf, words, lengths = random_case(kind, 3)
    words.requires_grad_()
    likelihood = crf.log_likelihood(words, torch.zeros(words.shape[:2], dtype=torch.long), lengths).sum()
    (gradient,) = torch.autograd.grad(likelihood, words, create_graph=True)
    with pytest.raises(RuntimeError, match="the log-partition of a CRF has no second derivative"):
        gradient.square().sum().backward()


# ---- batches, padding, NaN ----------------------------------------------------------------------


@both_kinds
def test_a_sentence_alone_equals_the_sentence_in_any_padded_batch(kind):
    torch.manual_seed(0)
    crf = random_crf(kind, 4, dtype=torch.float32)
    words, lengths = torch.randn(6, 8, H), torch.tensor([8, 1, 5, 2, 8, 3])
    tags = torch.randint(4, (6, 8))
    order = torch.tensor([3, 1, 5, 0, 2, 4])
    batch = crf.log_likelihood(words, tags, lengths), crf.decode(words, lengths), crf.marginals(words, lengths)
    shuffled = crf.log_likelihood(words[order], tags[order], lengths[order])
    torch.testing.assert_close(shuffled, batch[0][order], atol=1e-6, rtol=1e-6)  # float32
    for row, length in enumerate(lengths.tolist()):
        alone, gold = words[row : row + 1, :length], tags[row : row + 1, :length]
        torch.testing.assert_close(crf.log_likelihood(alone, gold)[0], batch[0][row], atol=1e-6, rtol=1e-6)  # float32
        assert torch.equal(crf.decode(alone)[0][0], batch[1][0][row, :length])
        torch.testing.assert_close(crf.decode(alone)[1][0], batch[1][1][row], atol=1e-6, rtol=1e-6)  # float32
        torch.testing.assert_close(crf.marginals(alone)[0], batch[2][row, :length], atol=1e-6, rtol=0)  # float32


@both_kinds
@pytest.mark.parametrize("garbage", [math.nan, math.inf, 1e30])
def test_garbage_at_padding_reaches_neither_results_nor_gradients(kind, garbage):
    crf, words, lengths = random_case(kind, 3)
    tags = torch.randint(3, words.shape[:2])
    results = []
    for value in (0.0, garbage):
        filled = words.clone()
        for row, length in enumerate(LENGTHS):
            filled[row, length:] = value
            tags[row, length:] = -100 if value else 7
        filled.requires_grad_()
        likelihood = crf.log_likelihood(filled, tags, lengths)
        gradients = torch.autograd.grad(likelihood.sum(), [filled, *crf.parameters()])
        decoded, n_best = crf.decode(filled, lengths), crf.decode_n_best(filled, lengths, 3)
        results.append([likelihood, *gradients, *decoded, *n_best, crf.marginals(filled, lengths)])
    for clean, dirty in zip(*results, strict=True):
        assert torch.equal(clean, dirty)
        assert not dirty.isnan().any()


@both_kinds
def test_nan_in_one_sentence_stays_there(kind):
    crf, words, lengths = random_case(kind, 3, constrained=True)
    tags, others = torch.zeros(words.shape[:2], dtype=torch.long), [0, 1, 3]

    def results(words):
        return [
            crf.log_likelihood(words, tags, lengths),
            *crf.decode(words, lengths),
            *crf.decode_n_best(words, lengths, 2),
            crf.marginals(words, lengths),
        ]

    broken = words.clone()
    broken[2, 1, 0] = torch.nan
    for clean, dirty in zip(results(words), results(broken), strict=True):
        assert torch.equal(clean[others], dirty[others])
    broken.requires_grad_()
    assert crf.log_likelihood(broken, tags, lengths)[2].isnan()
    (gradient,) = torch.autograd.grad(crf.log_likelihood(broken, tags, lengths).sum(), broken)
    assert gradient[others].isfinite().all()


@both_kinds
def test_a_long_sentence_stays_exact_in_float32(kind):
    """Marginals of 400 words, whose log-partition is a large number, against float64."""
    torch.manual_seed(0)
    crf = random_crf(kind, 5, dtype=torch.float64)
    words = torch.randn(2, 400, H, dtype=torch.float64)
    expected = crf.marginals(words)
    torch.testing.assert_close(crf.float().marginals(words.float()).double(), expected, atol=1e-3, rtol=0)  # float32


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "tags", "lengths", "message"),
    [
        ((2, H), (2, 4), None, r"words must have shape \(B, N, 3\), got \(2, 3\)"),
        ((2, 4, 5), (2, 4), None, r"words must have shape \(B, N, 3\), got \(2, 4, 5\)"),
        ((2, 0, H), (2, 0), None, "every sentence needs at least one word"),
        ((2, 4, H), (2, 3), None, r"tags must have shape \(2, 4\), as words, got \(2, 3\)"),
        ((2, 4, H), (2, 4, 1), None, r"tags must have shape \(2, 4\)"),
        ((2, 4, H), (2, 4), [4], r"lengths must have shape \(2,\)"),
        ((2, 4, H), (2, 4), [4, 0], "sequence 1 has length 0"),
        ((2, 4, H), (2, 4), [5, 4], "sequence 0 has length 5"),
    ],
)
def test_wrong_shapes_and_lengths_are_named(words, tags, lengths, message):
    crf, words = CRF(H, 5), torch.zeros(words)
    with pytest.raises(ValueError, match=message):
        crf.log_likelihood(words, torch.zeros(tags, dtype=torch.long), lengths)
    if "tags" not in message:
        for method in (crf.decode, crf.marginals, lambda words, lengths: crf.decode_n_best(words, lengths, 2)):
            with pytest.raises(ValueError, match=message):
                method(words, lengths)


@pytest.mark.parametrize("tag", [-1, 5])
def test_tags_out_of_range_are_named_at_words_and_ignored_at_padding(tag):
    crf, tags = CRF(H, 5), torch.zeros(2, 4, dtype=torch.long)
    tags[1, 2] = tag
    assert crf.log_likelihood(torch.zeros(2, 4, H), tags, [4, 2]).isfinite().all()
    with pytest.raises(ValueError, match=rf"tags must lie in 0 \.\. 4, got {tag} at word 2 of sentence 1"):
        crf.log_likelihood(torch.zeros(2, 4, H), tags, [4, 3])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool])
def test_tags_that_are_no_integers_are_named(dtype):
    with pytest.raises(ValueError, match=f"tags must be integers, got {dtype}"):
        CRF(H, 5).log_likelihood(torch.zeros(2, 4, H), torch.zeros(2, 4, dtype=dtype))


def test_wrong_options_are_named():
    with pytest.raises(ValueError, match="transitions must be one of 'edge', 'static', got 'dynamic'"):
        CRF(H, 5, "dynamic")
    with pytest.raises(ValueError, match="num_labels must be at least 1, got 0"):
        CRF(H, 0)
    with pytest.raises(ValueError, match="hidden_size must be at least 1, got 0"):
        CRF(0, 5)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        CRF(H, 5).decode_n_best(torch.zeros(1, 1, H), None, 0)
    with pytest.raises(
        ValueError, match=r"allowed.start must be boolean of shape \(4,\), got torch.bool of shape \(5,\)"
    ):
        CRF(H, 4, allowed=allowed_transitions(BIO, "BIO"))
    with pytest.raises(ValueError, match="scheme must be one of 'BIO', 'BIOES', got 'IOB1'"):
        allowed_transitions(BIO, "IOB1")
    with pytest.raises(ValueError, match="BIO labels begin with one of B, I, O, got 'S-PER'"):
        allowed_transitions(["O", "S-PER"], "BIO")


@both_kinds
@pytest.mark.parametrize("constrained", [False, True])
def test_made_on_the_meta_device_it_is_whole_after_loading(kind, constrained):
    crf, words, lengths = random_case(kind, len(BIO), constrained)
    allowed = AllowedTransitions(crf.allowed_start, crf.allowed_transition, crf.allowed_end) if constrained else None
    other = CRF(H, len(BIO), kind, allowed, device="meta", dtype=torch.float64).to_empty(device="cpu")
    for parameter in other.parameters():
        parameter.data.fill_(torch.nan)  # as uninitialised memory may be
    other.reset_parameters()
    assert all(parameter.isfinite().all() for parameter in other.parameters())
    other.load_state_dict(crf.state_dict())
    for expected, found in zip(crf.decode(words, lengths), other.decode(words, lengths), strict=True):
        assert torch.equal(found, expected)
