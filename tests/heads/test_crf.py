import io
import itertools
import math
import subprocess
import sys

import pytest
import torch
from torch import nn

from sentence_state.heads import CRF, AllowedTransitions, allowed_transitions
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
    with pytest.raises(RuntimeError, match="crf_expected_counts"):
        gradient.square().sum().backward()


# ---- constraints --------------------------------------------------------------------------------


def spans_are_well_formed(tags, scheme):
    """Reads labels from left to right with the type of the open span in hand."""
    inside = None
    for label in tags:
        prefix, _, type = label.partition("-")
        if prefix in "IE" and type != inside:
            return False
        if scheme == "BIOES" and inside is not None and prefix not in "IE":
            return False
        inside = type if prefix in "BI" else None
    return scheme == "BIO" or inside is None


@pytest.mark.parametrize(("scheme", "labels"), [("BIO", BIO), ("BIOES", BIOES)])
def test_allowed_transitions_allow_exactly_the_well_formed_sequences(scheme, labels):
    masks = [mask.tolist() for mask in allowed_transitions(labels, scheme)]
    for length in (1, 2, 3):
        for tags in itertools.product(range(len(labels)), repeat=length):
            well_formed = spans_are_well_formed([labels[tag] for tag in tags], scheme)
            assert by_hand.is_allowed(tags, *masks) == well_formed, [labels[tag] for tag in tags]


@both_kinds
@pytest.mark.parametrize(("scheme", "labels"), [("BIO", BIO), ("BIOES", BIOES)])
def test_decoding_never_uses_a_forbidden_transition(kind, scheme, labels):
    for seed in range(25):
        torch.manual_seed(seed)
        crf = random_crf(kind, len(labels), allowed_transitions(labels, scheme), torch.float32, scale=3)
        words, lengths = torch.randn(6, 9, H), torch.randint(1, 10, (6,))
        for tags in (crf.decode(words, lengths)[0][:, None], crf.decode_n_best(words, lengths, 4)[0]):
            for row, length in enumerate(lengths.tolist()):
                for best in tags[row, :, :length].tolist():
                    assert best[0] == -1 or spans_are_well_formed([labels[tag] for tag in best], scheme)


@both_kinds
def test_forbidden_labels_have_marginal_zero(kind):
    torch.manual_seed(0)
    crf = random_crf(kind, len(BIO), allowed_transitions(BIO, "BIO"), torch.float32)
    marginals = crf.marginals(torch.randn(4, 3, H))
    assert (marginals[:, 0, [2, 4]] == 0).all()  # no sentence begins with I-
    torch.testing.assert_close(marginals.sum(2), torch.ones(4, 3), atol=1e-6, rtol=0)  # float32


@both_kinds
@pytest.mark.parametrize(
    ("gold", "message"),
    [
        (["I-PER", "O", "O"], "tags of sentence 1 must be allowed, word 0 of [2, 0, 0]"),
        (["O", "B-LOC", "I-PER"], "word 2 of [0, 3, 2]"),
    ],
)
def test_gold_tags_that_break_the_constraint_are_named(kind, gold, message):
    crf = CRF(H, len(BIO), kind, allowed_transitions(BIO, "BIO"))
    tags = torch.zeros(2, 5, dtype=torch.long)
    tags[1, :3] = torch.tensor([BIO.index(label) for label in gold])
    with pytest.raises(ValueError) as error:  # noqa: PT011 the message is compared as plain text
        crf.log_likelihood(torch.zeros(2, 5, H), tags, [5, 3])
    assert message in str(error.value)


def test_gold_tags_that_may_not_end_there_are_named():
    crf = CRF(H, len(BIOES), allowed=allowed_transitions(BIOES, "BIOES"))
    tags = torch.tensor([[BIOES.index(label) for label in ("O", "B-PER", "E-PER")]])
    assert crf.log_likelihood(torch.zeros(1, 3, H), tags).isfinite()
    with pytest.raises(ValueError, match="word 1 of"):
        crf.log_likelihood(torch.zeros(1, 3, H), tags, [2])


@both_kinds
def test_compiled_code_gives_forbidden_gold_tags_probability_zero(kind):
    crf = CRF(H, len(BIO), kind, allowed_transitions(BIO, "BIO"))
    compiled = torch.compile(crf.log_likelihood, fullgraph=True, backend="aot_eager")
    likelihood = compiled(torch.ones(2, 2, H), torch.tensor([[0, 2], [1, 2]]))  # O I-PER, B-PER I-PER
    assert likelihood[0] == -torch.inf
    assert likelihood[1].isfinite()


@both_kinds
def test_where_no_sequence_is_allowed_nothing_crashes(kind):
    nothing = AllowedTransitions(torch.ones(2) > 0, torch.zeros(2, 2) > 0, torch.ones(2) > 0)
    crf = random_crf(kind, 2, nothing)
    words = torch.randn(2, 3, H, dtype=torch.float64, requires_grad=True)
    tags, scores = crf.decode(words, [3, 1])
    assert tags[0].tolist() == [-1, -1, -1]
    assert scores[0] == -torch.inf
    assert tags[1, 0] in (0, 1)
    assert scores[1].isfinite()
    assert crf.decode_n_best(words, [3, 1], 3)[1][0].tolist() == [-torch.inf] * 3
    assert crf.marginals(words, [3, 1]).isfinite().all()


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


# ---- dtypes, compile, export --------------------------------------------------------------------


@both_kinds
@pytest.mark.parametrize("constrained", [False, True])
def test_bfloat16_autocast_is_finite_and_near_float32(kind, constrained):
    torch.manual_seed(0)
    allowed = allowed_transitions(BIO, "BIO") if constrained else None
    crf = CRF(H, len(BIO), kind, allowed)
    words, lengths = torch.randn(4, 6, H), torch.tensor([6, 1, 4, 2])
    tags = crf.decode(words, lengths)[0]
    expected = crf.log_likelihood(words, tags, lengths)
    with torch.autocast("cpu", torch.bfloat16):
        actual = crf.log_likelihood(words, tags, lengths)
        marginals = crf.marginals(words, lengths)
    assert actual.dtype == marginals.dtype == torch.float32
    torch.testing.assert_close(actual, expected, atol=0.02, rtol=0)  # bfloat16: 8 bits, a few numbers near 1 added up
    torch.testing.assert_close(marginals, crf.marginals(words, lengths), atol=0.02, rtol=0)  # bfloat16
    actual.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in crf.parameters())


@both_kinds
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_every_dtype_works_and_sums_in_float32_at_least(kind, dtype):
    torch.manual_seed(0)
    crf = CRF(H, len(BIO), kind, allowed_transitions(BIO, "BIO"), dtype=dtype)
    words = torch.randn(2, 5, H, dtype=dtype, requires_grad=True)
    tags, scores = crf.decode(words, [5, 2])
    likelihood = crf.log_likelihood(words, tags, [5, 2])
    assert scores.dtype == likelihood.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    likelihood.sum().backward()
    assert words.grad.dtype == dtype
    assert all(tensor.grad.isfinite().all() for tensor in (words, *crf.parameters()))


@both_kinds
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_equals_eager_at_every_length_without_compiling_again(kind, backend):
    crf, _, _ = random_case(kind, 4, constrained=True)
    torch._dynamo.reset()
    compiled_likelihood = torch.compile(crf.log_likelihood, fullgraph=True, dynamic=True, backend=backend)
    compiled_decode = torch.compile(crf.decode, fullgraph=True, dynamic=True, backend=backend)
    for size, stance in [(5, "default"), (2, "default"), (9, "fail_on_recompile"), (30, "fail_on_recompile")]:
        words = torch.randn(3, size, H, dtype=torch.float64, requires_grad=True)
        lengths = torch.tensor([size, 1, size - 1])
        tags = crf.decode(words, lengths)[0]
        with torch.compiler.set_stance(stance):
            actual = compiled_likelihood(words, tags, lengths)
            actual_tags, actual_scores = compiled_decode(words.detach(), lengths)
        expected = crf.log_likelihood(words, tags, lengths)
        torch.testing.assert_close(actual, expected, atol=1e-10, rtol=0)  # float64
        parameters = [words, *crf.parameters()]
        gradients = [torch.autograd.grad(value.sum(), parameters) for value in (actual, expected)]
        for compiled, eager in zip(*gradients, strict=True):
            torch.testing.assert_close(compiled, eager, atol=1e-10, rtol=0)  # float64
        assert torch.equal(actual_tags, tags)
        torch.testing.assert_close(actual_scores, crf.decode(words, lengths)[1], atol=1e-10, rtol=0)  # float64


class Decode(nn.Module):
    def __init__(self, crf):
        super().__init__()
        self.crf = crf

    def forward(self, words, lengths):
        return self.crf.decode(words, lengths)


def exported_decode(crf):
    batch, size = torch.export.Dim("batch", min=1, max=512), torch.export.Dim("size", min=1, max=512)
    example = torch.randn(3, 7, H), torch.tensor([7, 2, 5])
    return torch.export.export(Decode(crf), example, dynamic_shapes=({0: batch, 1: size}, {0: batch}), strict=False)


@both_kinds
@pytest.mark.parametrize("constrained", [False, True])
def test_exported_decode_equals_eager_at_other_sizes(kind, constrained):
    crf, _, _ = random_case(kind, 4, constrained, torch.float32)
    program = exported_decode(crf).module()
    for batch, size in [(3, 7), (1, 1), (1, 9), (5, 1), (8, 40)]:
        words, lengths = torch.randn(batch, size, H), torch.randint(1, size + 1, (batch,))
        for actual, expected in zip(program(words, lengths), crf.decode(words, lengths), strict=True):
            torch.testing.assert_close(actual, expected, atol=1e-6, rtol=1e-6)  # float32


@pytest.mark.skipif(not hasattr(torch.compiler, "is_exporting"), reason="torch 2.6 exports this package's operator")
def test_exported_decode_runs_where_this_package_is_not_installed(tmp_path):
    crf, words, lengths = random_case("edge", 4, dtype=torch.float32)
    torch.export.save(exported_decode(crf), tmp_path / "decode.pt2")
    torch.save((words, lengths), tmp_path / "inputs.pt")
    script = (
        "import sys, torch; sys.modules['sentence_state'] = None\n"
        "words, lengths = torch.load('inputs.pt')\n"
        "print(torch.export.load('decode.pt2').module()(words, lengths)[0].tolist())"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert result.stdout.strip() == str(crf.decode(words, lengths)[0].tolist()), result.stderr


@both_kinds
def test_state_dict_round_trip_with_and_without_constraints(kind):
    constrained = random_crf(kind, len(BIO), allowed_transitions(BIO, "BIO"))
    buffer = io.BytesIO()
    torch.save(constrained.state_dict(), buffer)
    buffer.seek(0)
    other = CRF(H, len(BIO), kind, allowed_transitions(BIO, "BIO"), dtype=torch.float64)
    other.load_state_dict(torch.load(buffer))
    words, lengths = torch.randn(4, 5, H, dtype=torch.float64), [5, 3, 1, 2]
    assert torch.equal(other.decode(words, lengths)[0], constrained.decode(words, lengths)[0])
    CRF(H, len(BIO), kind).load_state_dict(constrained.state_dict())


@pytest.mark.gpu
@both_kinds
def test_cuda_equals_cpu_and_can_be_captured_in_a_graph(kind):
    torch.manual_seed(0)
    crf = random_crf(kind, len(BIO), allowed_transitions(BIO, "BIO"), torch.float64)
    words, lengths = torch.randn(4, 6, H, dtype=torch.float64), torch.tensor([6, 1, 4, 2])
    tags = crf.decode(words, lengths)[0]
    expected = [crf.log_likelihood(words, tags, lengths), tags, crf.marginals(words, lengths)]
    words, lengths, crf = words.cuda(), lengths.cuda(), crf.cuda()
    gold = tags.cuda()

    def results():
        return [crf.log_likelihood(words, gold, lengths), crf.decode(words, lengths)[0], crf.marginals(words, lengths)]

    for actual, reference in zip(results(), expected, strict=True):
        torch.testing.assert_close(actual.cpu(), reference, atol=1e-10, rtol=0)  # float64
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        captured = results()
    graph.replay()
    for actual, reference in zip(captured, expected, strict=True):
        torch.testing.assert_close(actual.cpu(), reference, atol=1e-10, rtol=0)  # float64


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
