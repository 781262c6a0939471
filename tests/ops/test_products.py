"""linear equals F.linear with all its derivatives, whichever library multiplies."""

import copy

import pytest
import torch
from torch.nn import functional as F

from sentence_state import SentenceStateLSTM
from sentence_state.ops import products
from sentence_state.ops.products import linear

close = torch.testing.assert_close


def operands(*leading, bias=True):
    torch.manual_seed(0)
    x, W, b = torch.randn(*leading, 7), torch.randn(5, 7), torch.randn(5)
    return [tensor.requires_grad_() for tensor in ([x, W, b] if bias else [x, W])]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("leading", [(3,), (2, 3), (0,), (1,)])
def test_values_and_gradients_are_those_of_pytorch(leading, bias):
    inputs = operands(*leading, bias=bias)
    ours, theirs = linear(*inputs), F.linear(*inputs)
    close(ours, theirs)
    weight = torch.randn_like(theirs)
    pairs = zip(torch.autograd.grad(ours, inputs, weight), torch.autograd.grad(theirs, inputs, weight), strict=True)
    for mine, other in pairs:
        close(mine, other)


def test_second_derivatives():
    inputs = operands(4, bias=False)

    def second(product):
        first = torch.autograd.grad(product(*inputs).tanh().sum(), inputs, create_graph=True)
        return torch.autograd.grad(sum(part.pow(2).sum() for part in first), inputs)

    for mine, other in zip(second(linear), second(F.linear), strict=True):
        close(mine, other)


@pytest.mark.parametrize("with_gradients", [True, False])
def test_forward_mode(with_gradients):
    inputs = [tensor.detach() for tensor in operands(4)]
    tangents = [torch.randn_like(tensor) for tensor in inputs]
    with torch.set_grad_enabled(with_gradients):
        ours, theirs = (torch.func.jvp(product, tuple(inputs), tuple(tangents)) for product in (linear, F.linear))
        one_of_them = torch.func.jvp(lambda x: linear(x, *inputs[1:]), (inputs[0],), (tangents[0],))
    close(ours, theirs)
    close(one_of_them[1], F.linear(tangents[0], inputs[1]))


def test_vmap():
    x, W, b = (tensor.detach() for tensor in operands(6, 4))
    close(torch.vmap(lambda part: linear(part, W, b))(x), F.linear(x, W, b))
    many = torch.stack([W, 2 * W])
    close(torch.vmap(lambda part: linear(x, part, b))(many), torch.stack([F.linear(x, part, b) for part in many]))


def test_autocast_and_other_types_stay_with_pytorch():
    x, W, b = operands(4)
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, W, b).dtype == torch.bfloat16
    close(linear(x.double(), W.double()), F.linear(x.double(), W.double()))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_types_without_fast_products_are_multiplied_in_float32(monkeypatch, dtype, bias):
    monkeypatch.setattr(products, "has_products_of", lambda dtype: dtype.itemsize > 2)
    inputs = [tensor.detach().to(dtype).requires_grad_() for tensor in operands(2, 3, bias=bias)]
    precise = [tensor.detach().float().requires_grad_() for tensor in inputs]
    ours, theirs = linear(*inputs), F.linear(*precise)
    assert ours.dtype == dtype
    close(ours, theirs.to(dtype))
    weight = torch.randn_like(theirs).to(dtype)
    gradients = torch.autograd.grad(ours, inputs, weight)
    for mine, other in zip(gradients, torch.autograd.grad(theirs, precise, weight.float()), strict=True):
        close(mine, other.to(dtype))


def test_without_onednn(monkeypatch):
    inputs = operands(2, 3)
    monkeypatch.setattr(products, "ONEDNN", False)
    close(linear(*inputs), F.linear(*inputs), rtol=0, atol=0)


def test_rows_that_overlap():
    """So the gradient of neighbours lies in memory, when it is differentiated again."""
    torch.manual_seed(0)
    rows, other = torch.randn(60).as_strided((5, 24), (8, 1)).requires_grad_(), torch.randn(24, 7)
    close(linear(other.t(), rows), F.linear(other.t(), rows))
    close(linear(rows, other.t()), F.linear(rows, other.t()))
    encoder, x = SentenceStateLSTM(6, 8, num_steps=3), torch.randn(1, 5, 6, requires_grad=True)
    gradients = []
    for module in (encoder, copy.deepcopy(encoder).double()):
        given = x.to(module.W.dtype)
        (first,) = torch.autograd.grad(module(given).sentence.sum(), given, create_graph=True)
        gradients.append(torch.autograd.grad(first.square().sum(), list(module.parameters()), allow_unused=True))
    for ours, precise in zip(*gradients, strict=True):
        close(ours, precise if precise is None else precise.float(), rtol=1e-4, atol=1e-5)


def test_weights_that_are_views():
    torch.manual_seed(0)
    x, W = torch.randn(6, 8), torch.randn(8, 10)
    close(linear(x[:, ::2], W[::2].t()), F.linear(x[:, ::2], W[::2].t()))
