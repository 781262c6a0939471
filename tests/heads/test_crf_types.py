"""Types, torch.compile, torch.export, CUDA."""

import copy
import io
import subprocess
import sys

import pytest
import torch
from torch import nn

from sentence_state.heads import CRF, allowed_transitions

from .crf_cases import BIO, H, both_kinds, random_case, random_crf


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
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.bfloat16, 2e-2), (torch.float16, 2e-3), (torch.float32, 1e-5), (torch.float64, 1e-12)],
)
def test_every_dtype_sums_in_float32_at_least_and_is_near_float64(kind, dtype, tolerance):
    torch.manual_seed(0)
    crf = CRF(H, len(BIO), kind, allowed_transitions(BIO, "BIO"), dtype=dtype)
    exact = copy.deepcopy(crf).double()
    words = torch.randn(2, 5, H, dtype=dtype, requires_grad=True)
    exact_words = words.detach().double().requires_grad_()
    tags, scores = crf.decode(words, [5, 2])
    likelihood = crf.log_likelihood(words, tags, [5, 2])
    assert scores.dtype == likelihood.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    expected = exact.log_likelihood(exact_words, tags, [5, 2])
    torch.testing.assert_close(likelihood.double(), expected, rtol=tolerance, atol=tolerance)
    likelihood.sum().backward()
    expected.sum().backward()
    for ours, theirs in zip((words, *crf.parameters()), (exact_words, *exact.parameters()), strict=True):
        assert ours.grad.dtype == dtype
        torch.testing.assert_close(ours.grad.double(), theirs.grad, rtol=tolerance, atol=tolerance)


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
