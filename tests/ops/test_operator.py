"""The fused recurrence as PyTorch sees it: one operator that compiles and exports, and where it may be asked for."""

import contextlib
from typing import NamedTuple

import pytest
import torch

pytest.importorskip("triton")

from sentence_state import SentenceStateLSTM
from sentence_state.ops.equations import Weights
from sentence_state.ops.fused import card, few_words
from sentence_state.ops.recurrence import can_fuse, recurrence

from .fused_cases import DEVICE, random_case


def test_compilers_see_one_operator_at_any_size():
    torch.manual_seed(0)
    encoder = SentenceStateLSTM(5, 6, num_steps=3, device=DEVICE, backend="triton")
    x, lengths = torch.randn(3, 4, 5, device=DEVICE), torch.tensor([4, 1, 2], device=DEVICE)
    sizes = {0: torch.export.Dim("batch", max=2**20), 1: torch.export.Dim("length")}
    large = SentenceStateLSTM(300, 300, device=DEVICE, backend="triton")
    for one, inputs in ((large, torch.zeros(3, 4, 300, device=DEVICE)), (encoder, x)):
        program = torch.export.export(one, (inputs, lengths), dynamic_shapes={"x": sizes, "lengths": {0: sizes[0]}})
    graphs = [module.graph for module in program.graph_module.modules() if hasattr(module, "graph")]
    names = [str(node.target) for graph in graphs for node in graph.nodes]
    assert names.count("sentence_state.recurrence.default") == 1
    torch._dynamo.reset()
    compiled = torch.compile(encoder, fullgraph=True, dynamic=True, backend="aot_eager")
    for B, N in [(3, 4), (2, 9)]:
        x, lengths = torch.randn(B, N, 5, device=DEVICE), torch.randint(1, N + 1, (B,), device=DEVICE)
        expected = encoder(x, lengths)
        for run in (program.module(), compiled):
            for ours, theirs in zip(run(x, lengths), expected, strict=True):
                torch.testing.assert_close(ours, theirs)
    parameters = list(encoder.parameters())
    wanted = torch.autograd.grad(expected.sentence.sum(), parameters)
    found = torch.autograd.grad(compiled(x, lengths).sentence.sum(), parameters)
    torch.testing.assert_close(found, wanted)


def test_a_program_that_was_exported_without_gradients_has_them_where_they_are_asked_for():
    torch.manual_seed(0)
    encoder = SentenceStateLSTM(5, 6, num_steps=3, device=DEVICE, backend="triton")
    x, lengths = torch.randn(3, 4, 5, device=DEVICE), torch.tensor([4, 1, 2], device=DEVICE)
    with torch.no_grad():
        program = torch.export.export(encoder, (x, lengths)).module()
    x.requires_grad_()
    for leaves in ([x], [encoder.W]):
        (expected,) = torch.autograd.grad(encoder(x, lengths).sentence.sum(), leaves)
        parameters = dict(program.named_parameters())
        of_program = [parameters["W"] if leaf is encoder.W else leaf for leaf in leaves]
        (found,) = torch.autograd.grad(program(x, lengths).sentence.sum(), of_program)
        torch.testing.assert_close(found, expected)
    with torch.no_grad():
        assert not program(x, lengths).sentence.requires_grad


def test_a_second_derivative_is_refused_not_wrong():
    encoder = SentenceStateLSTM(3, 4, num_steps=2, device=DEVICE, backend="triton")
    x = torch.randn(1, 2, 3, device=DEVICE, requires_grad=True)
    for given in (x, x.detach()):
        gradients = torch.autograd.grad(
            encoder(given).sentence.sum(), [x, encoder.W], create_graph=True, allow_unused=True
        )
        with pytest.raises(RuntimeError, match='no second derivative; use backend="reference"'):
            sum(gradient.sum() for gradient in gradients if gradient is not None).backward()


@pytest.mark.parametrize("need_words", [False, True])
def test_a_graph_that_is_kept_gives_the_same_gradients_again(need_words):
    """Though gradients of the kept products take their place."""
    x, lengths, weights, num_steps, gates, dropout = random_case(2, 3, 4, 5, 3, "sharp", True, False)
    x = x.float().requires_grad_()
    weights = Weights(*(weight.detach().float().requires_grad_() for weight in weights))
    state = recurrence(x, lengths, weights, num_steps, gates, dropout, need_words, True, "triton", "high")
    loss = state.g.square().sum() + (state.h.square().sum() if need_words else 0)
    kept, again, last = (
        torch.autograd.grad(loss, [x, *weights], retain_graph=retain) for retain in (True, True, False)
    )
    assert all(map(torch.equal, kept, again))
    assert all(map(torch.equal, kept, last))


def test_operators_pass_pytorchs_own_check():
    case = random_case(2, 3, 4, 5, 2, "paper", True, False)
    x, lengths, weights, *_ = case
    arguments = [x.float().requires_grad_(), *(w.detach().float().requires_grad_() for w in weights), lengths]
    options = (None, None, 2, False, True, True, 1, True)
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(torch.ops.sentence_state.recurrence.default, (*arguments, *options), test_utils=checks)


@pytest.mark.parametrize(("backend", "says_so"), [("eager", True), ("aot_eager", True), ("aot_eager", False)])
def test_a_sentence_that_is_read_twice_in_a_compiled_function_has_the_gradients_of_both(monkeypatch, backend, says_so):
    """Compilers make one call of equal ones, and then two gradients need what one pass kept. Before torch 2.13 they do
    not say in the backward pass that they are at work."""
    if not says_so:
        monkeypatch.setattr(torch.compiler, "_compile_session_context", contextlib.nullcontext, raising=False)
    torch.manual_seed(0)
    encoder = SentenceStateLSTM(5, 6, num_steps=3, device=DEVICE, backend="triton", memory="high")
    x = torch.randn(2, 3, 5, device=DEVICE)

    def loss(x):
        return encoder(x).sentence.sin().sum() + 3 * encoder(x).sentence.square().sum()

    parameters = list(encoder.parameters())
    expected = torch.autograd.grad(loss(x), parameters)
    torch._dynamo.reset()
    found = torch.autograd.grad(torch.compile(loss, backend=backend)(x), parameters)
    for ours, other in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-5, atol=1e-6)


def test_derivatives_forwards_are_refused():
    encoder = SentenceStateLSTM(5, 6, num_steps=3, device=DEVICE, backend="triton")
    x = torch.randn(2, 3, 5, device=DEVICE)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        with pytest.raises(RuntimeError, match=r'cannot be transformed by torch.func; use backend="auto"'):
            encoder(dual)


class OnCard(NamedTuple):
    """In place of a tensor on a card."""

    device: torch.device = torch.device("cuda", 1)
    dtype: torch.dtype = torch.bfloat16
    shape: tuple[int, int, int] = (10, 24, 5)
    is_cuda: bool = True


@pytest.mark.parametrize(
    ("capability", "hip", "fused", "own"),
    [
        ((7, 5), None, False, False),
        ((8, 6), None, True, False),
        ((9, 0), None, True, True),
        ((9, 4), "6", False, False),
    ],
)
def test_cards_get_the_kernels_that_run_on_them(monkeypatch, capability, hip, fused, own):
    monkeypatch.setattr(card, "GENERATIONS", {})
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda number: {1: capability}[number])
    monkeypatch.setattr(torch.version, "hip", hip)
    x, weights = OnCard(), random_case(1, 1, 5, 4, 1, "paper", False, False)[2]
    assert can_fuse(x, weights, "auto") == fused
    assert few_words.own_products(x.device) == own
    assert few_words.gradient_parts(192, 304, x.device) == 2  # on cuBLAS, where they are not our own
    if not fused:
        with pytest.raises(RuntimeError, match=r"NVIDIA's cards since Ampere; use backend=.auto"):
            can_fuse(x, weights, "triton")


def test_a_sentence_that_the_kernels_cannot_count_is_for_the_reference(monkeypatch):
    monkeypatch.setattr(card, "GENERATIONS", {1: card.HOPPER})
    weights = random_case(1, 1, 5, 4, 1, "paper", False, False)[2]
    most = 2**31 // (8 * (4 + 15))
    for N, D, fused in [(most, 5, True), (most + 1, 5, False), (24, 2**16, True), (24, 2**16 + 1, False)]:
        x = OnCard(shape=(2, N, D))
        assert can_fuse(x, weights, "auto") == fused
        if not fused:
            with pytest.raises(RuntimeError, match=f"cannot count {N} words of {D} numbers; use backend=.auto"):
                can_fuse(x, weights, "triton")


def test_asking_for_it_where_it_cannot_run_says_why(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    encoder = SentenceStateLSTM(3, 4, backend="triton")
    with pytest.raises(RuntimeError, match='backend="triton" needs a CUDA tensor, got cpu; use backend="auto"'):
        encoder(torch.randn(2, 3, 3))
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(RuntimeError, match=r'cannot be transformed by torch.func; use backend="auto"'):
        torch.vmap(lambda sentence: encoder(sentence).words)(torch.randn(2, 3, 3))
