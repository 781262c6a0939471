"""The CRF's kernels equal the reference in float64: sums, gradients, marginals and best sequences.

Without a GPU they run in Triton's interpreter (conftest.py), which is slow: small sizes.
"""

import pytest
import torch

pytest.importorskip("triton")

from sentence_state.heads import CRF
from sentence_state.ops import crf

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TOLERANCE = 1e-5  # float32, relative to the largest value
LENGTHS = (5, 1, 2, 4)
KINDS = ["edge", "shared", "static"]
CASES = [(kind, K, forbid) for kind in KINDS for K, forbid in [(1, 0.0), (3, 0.5), (17, 0.3)]]
every_case = pytest.mark.parametrize(("kind", "K", "forbid"), CASES)


@pytest.fixture(autouse=True)
def kernels_on_any_device(monkeypatch):
    """The kernels for every float32, the reference for float64; uninitialised memory is NaN."""
    monkeypatch.setattr(crf, "can_fuse", lambda emission: emission.dtype == torch.float32)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    yield
    torch.use_deterministic_algorithms(False)


def random_chain(kind, K, forbid=0.0, lengths=LENGTHS):
    """Float64 potentials with one more position than is needed: for each sentence, for each word, or one matrix."""
    torch.manual_seed(K)
    B, N = len(lengths), max(lengths) + 1
    shape = {"edge": (B, N, K, K), "shared": (1, N, K, K), "static": (1, 1, K, K)}[kind]
    transition = torch.randn(shape, dtype=torch.float64)
    transition[torch.rand(shape) < forbid] = -torch.inf
    transition[..., 0, 0] = 0  # one way is always open
    if kind == "static":
        transition = transition.expand(1, N, K, K)
    emission, end = torch.randn(B, N, K, dtype=torch.float64), torch.randn(K, dtype=torch.float64)
    chain = crf.Chain(*(tensor.float().double().to(DEVICE) for tensor in (emission, transition, end)))
    if kind == "static":  # the conversions above made a full tensor of it
        chain = chain._replace(transition=chain.transition[:, :1].clone().expand(1, N, K, K))
    return chain, torch.tensor(lengths, device=DEVICE)


def as_float32(chain):
    words = chain.transition.shape[1]
    one_matrix = chain.transition.stride(1) == 0
    transition = chain.transition[:, :1].float().expand(-1, words, -1, -1) if one_matrix else chain.transition.float()
    return crf.Chain(chain.emission.float(), transition, chain.end.float())


def assert_near(found, expected):
    finite = expected.isfinite()
    assert torch.equal(found[~finite].double(), expected[~finite])
    error = (found.double() - expected)[finite].abs().max() if finite.any() else torch.tensor(0.0)
    assert error <= TOLERANCE * max(1.0, float(expected[finite].abs().max())), f"off by {error:.1e}"


def assert_log_partition_is_equal(chain, lengths):
    torch.manual_seed(1)
    weight = torch.randn(len(lengths), dtype=torch.float64).to(DEVICE)
    results = []
    for version in (as_float32(chain), chain):
        leaves = [tensor.detach().requires_grad_() for tensor in version]
        total = crf.log_partition(crf.Chain(*leaves), lengths)
        gradients = torch.autograd.grad((total * weight.to(total.dtype)).sum(), leaves)
        results.append((total.detach(), *gradients))
    for found, expected in zip(*results, strict=True):
        assert_near(found, expected)


def assert_marginals_are_equal(chain, lengths):
    for function in (crf.label_marginals, crf.pair_marginals):
        found = function(as_float32(chain), lengths)
        assert found.dtype == torch.float32
        assert_near(found, function(chain, lengths))


def assert_viterbi_is_equal(chain, lengths):
    """Against the same float32 potentials: there every bit decides who wins."""
    chain = as_float32(chain)
    tags, scores = crf.viterbi(chain, lengths)
    expected_tags, expected_scores = (part.squeeze(1) for part in crf._search(*chain, lengths, 1))
    assert torch.equal(tags, expected_tags)
    assert torch.equal(scores, expected_scores)


@every_case
def test_log_partition_and_its_gradient_equal_the_reference(kind, K, forbid):
    assert_log_partition_is_equal(*random_chain(kind, K, forbid))


@every_case
def test_marginals_equal_the_reference(kind, K, forbid):
    assert_marginals_are_equal(*random_chain(kind, K, forbid))


@every_case
def test_viterbi_equals_the_reference(kind, K, forbid):
    assert_viterbi_is_equal(*random_chain(kind, K, forbid))


@pytest.mark.parametrize("kind", ["edge", "static"])
def test_ties_fall_to_the_first_label(kind):
    chain, lengths = random_chain(kind, 5)
    assert_viterbi_is_equal(crf.Chain(*(tensor.round() for tensor in chain)), lengths)
    level = crf.Chain(*(torch.zeros_like(tensor) for tensor in chain))
    assert_viterbi_is_equal(level, lengths)
    assert crf.viterbi(as_float32(level), lengths)[0].max() == 0


def test_where_no_sequence_is_allowed_all_is_as_in_the_reference():
    chain, lengths = random_chain("edge", 3)
    chain.emission[0, 2] = -torch.inf
    assert_log_partition_is_equal(chain, lengths)
    assert_marginals_are_equal(chain, lengths)
    assert_viterbi_is_equal(chain, lengths)
    assert crf.viterbi(as_float32(chain), lengths)[1][0] == -torch.inf


def test_scores_far_apart_do_not_underflow():
    emission = torch.tensor([[[0.0, -1000.0], [0.0, 0.0], [0.0, 3000.0]]], device=DEVICE)
    transition = torch.tensor([[0.0, -torch.inf], [0.0, 0.0]], device=DEVICE).expand(1, 3, 2, 2)
    chain, lengths = crf.Chain(emission, transition, torch.zeros(2, device=DEVICE)), torch.tensor([3], device=DEVICE)
    assert crf.viterbi(chain, lengths)[0].tolist() == [[1, 1, 1]]
    assert crf.log_partition(chain, lengths).tolist() == [2000.0]
    assert crf.label_marginals(chain, lengths).tolist() == [[[0.0, 1.0]] * 3]


def test_not_a_number_is_not_hidden():
    chain, lengths = random_chain("edge", 3)
    chain.transition[0, 2, 1, 1] = torch.nan
    total = crf.log_partition(as_float32(chain), lengths)
    assert total.isnan().tolist() == [True, False, False, False]


def test_more_sentences_than_one_program_counts():
    lengths = [1 + place % 3 for place in range(40)]
    assert_log_partition_is_equal(*random_chain("static", 2, 0.0, lengths))


def test_a_weight_that_is_one_number_for_all_sentences_gives_its_gradient():
    chain, lengths = random_chain("edge", 3)
    gradients = []
    for version in (as_float32(chain), chain):
        emission = version.emission.requires_grad_()
        crf.log_partition(version, lengths).sum().backward()  # the gradient of the sum has a stride of zero
        gradients.append(emission.grad)
    assert_near(*gradients)


def test_potentials_in_any_memory_order_give_the_same():
    chain, lengths = random_chain("edge", 3)
    turned = crf.Chain(*(tensor.float().transpose(0, 1).contiguous().transpose(0, 1) for tensor in chain[:2]), chain[2])
    turned = turned._replace(transition=turned.transition.mT.contiguous().mT, end=turned.end.float())
    assert_near(crf.log_partition(turned, lengths), crf.log_partition(chain, lengths))
    every_second = turned._replace(transition=torch.stack([chain.transition.float()] * 2, dim=1)[:, 1])
    assert_near(crf.log_partition(every_second, lengths), crf.log_partition(chain, lengths))
    assert_near(crf.label_marginals(turned, lengths), crf.label_marginals(chain, lengths))


@pytest.mark.parametrize("kind", ["edge", "static"])
def test_operators_keep_the_promises_that_compilers_rely_on(kind):
    chain, lengths = random_chain(kind, 3)
    chain = as_float32(chain)
    differentiable = [tensor.clone().requires_grad_() for tensor in chain]
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(crf._log_partition, (*differentiable, lengths), test_utils=checks)
    torch.library.opcheck(crf._n_best, (*chain, lengths, 1), test_utils=checks)
    torch.library.opcheck(crf._marginals, (*chain, lengths, True), test_utils=checks)
    _, alpha = crf._log_partition(*chain, lengths)
    arguments = (*chain, lengths, alpha, torch.ones(4, device=DEVICE))
    torch.library.opcheck(crf._expected_counts, arguments, test_utils=checks)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("kind", "K"), [("shared", 17), *((kind, K) for kind in KINDS[::2] for K in (1, 9, 17, 64, 128))]
)
def test_every_number_of_labels_equals_the_reference_on_a_card(kind, K):
    chain, lengths = random_chain(kind, K, 0.3, (40, 1, 2, 17, 33, 7))
    assert_log_partition_is_equal(chain, lengths)
    assert_marginals_are_equal(chain, lengths)
    assert_viterbi_is_equal(chain, lengths)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_long_sentences_and_large_batches_equal_the_reference_on_a_card(kind):
    assert_log_partition_is_equal(*random_chain(kind, 17, 0.1, (1000, 999, 500, 1)))
    assert_marginals_are_equal(*random_chain(kind, 5, 0.1, tuple(1 + place % 30 for place in range(100))))


@pytest.mark.gpu
def test_two_runs_are_equal_bit_by_bit_on_a_card():
    chain, lengths = random_chain("static", 17, 0.1, tuple(1 + place % 30 for place in range(100)))
    chain = crf.Chain(*(tensor.detach().requires_grad_() for tensor in as_float32(chain)))
    runs = [torch.autograd.grad(crf.log_partition(chain, lengths).sum(), list(chain)) for _ in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize("transitions", ["edge", "static"])
def test_a_captured_layer_equals_the_eager_one_on_a_card(transitions, monkeypatch):
    monkeypatch.undo()  # the rule as users meet it
    torch.manual_seed(0)
    layer = CRF(32, 9, transitions, device="cuda")
    words, lengths = torch.randn(6, 12, 32, device="cuda"), torch.tensor([12, 1, 5, 7, 12, 2], device="cuda")
    tags = torch.randint(9, (6, 12), device="cuda")
    assert crf.can_fuse(words)
    precise = CRF(32, 9, transitions, device="cuda", dtype=torch.float64)
    precise.load_state_dict(layer.state_dict())
    expected = precise.log_likelihood(words.double(), tags, lengths)
    expected_gradients = torch.autograd.grad(expected.sum(), list(precise.parameters()))

    def run():
        found = layer.log_likelihood(words, tags, lengths)
        return found, *torch.autograd.grad(found.sum(), list(layer.parameters()))

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found, *gradients = run()
    graph.replay()
    assert_near(found, expected)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        assert_near(gradient, expected_gradient)
    assert torch.equal(layer.decode(words, lengths)[0], precise.decode(words.double(), lengths)[0])


def test_a_length_of_zero_that_nobody_looked_at_leaves_the_sentence_before_as_it_is():
    """Compiled code reads no lengths."""
    from sentence_state.ops.fused import crf as fused

    chain, lengths = random_chain("edge", 3, lengths=(4, 1))
    chain = as_float32(chain)
    weight = torch.tensor([1.0, 5.0], device=DEVICE)
    results = []
    for other in (lengths, lengths * torch.tensor([1, 0], device=DEVICE)):
        _, alphas = fused.log_partition(*chain, other)
        labels, pairs, _ = fused.expected_counts(chain.transition, chain.end, other, alphas, weight)
        tags, _ = fused.viterbi(*chain, other)
        results.append((labels[0], pairs[0], tags[0], fused.marginals(*chain, other, pairs=True)[0][0]))
    for found, expected in zip(*results, strict=True):
        assert torch.equal(found, expected)
