"""Whole-number products against float64: wrong by no more than the rounding of both sides explains."""

import pytest
import torch

from sentence_state.ops import int8
from sentence_state.ops.int8 import Int8Matrix
from sentence_state.ops.products import linear


@pytest.mark.parametrize("rows", [1, 2, 26, 100])
@pytest.mark.parametrize(("inputs", "outputs"), [(300, 2100), (17, 5), (900, 33)])
def test_the_product_is_near_and_its_error_is_bounded(rows, inputs, outputs):
    torch.manual_seed(0)
    W, b, x = torch.randn(outputs, inputs), torch.randn(outputs), torch.randn(rows, 3, inputs) * 4
    found = linear(x, Int8Matrix(W), b)
    exact = x.double() @ W.double().t() + b
    x_step, W_step = x.abs().amax(-1, keepdim=True) / 127, W.abs().amax(1) / 127  # between two whole numbers
    bound = x.abs().sum(-1, keepdim=True) * W_step / 2 + W.abs().sum(1) * x_step / 2 + inputs * x_step * W_step / 4
    assert found.shape == exact.shape
    assert ((found - exact).abs() <= bound + 1e-3).all()
    assert (found - exact).abs().max() > 0


def test_rows_do_not_depend_on_one_another_and_zeros_stay_zeros():
    torch.manual_seed(0)
    W, x = Int8Matrix(torch.randn(12, 8)), torch.randn(5, 8) * torch.tensor([1e-3, 1, 1e3, 0, 5])[:, None]
    torch.testing.assert_close(linear(x, W)[2:3], linear(x[2:3], W), rtol=0, atol=0)
    assert (linear(x, W)[3] == 0).all()


def test_float32_in_the_place_of_int8_gives_the_same_to_the_bit(monkeypatch):
    torch.manual_seed(0)
    W, b, x = torch.randn(33, 900), torch.randn(33), torch.randn(26, 900)
    W[0], x[0] = 1, 1  # the largest sum there is
    found = []
    for has_products in (True, False):
        monkeypatch.setattr(int8, "HAS_PRODUCTS", has_products)
        matrix = Int8Matrix(W)
        assert matrix.rounded.dtype == (torch.int8 if has_products else torch.float32)
        found.append(linear(x, matrix, b))
    assert torch.equal(*found)
