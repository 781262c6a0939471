"""What the forward and the backward kernel share: reading one tile's pre-activations and cells."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def tanh(x, FAST: tl.constexpr):
    """FAST: the card's own instruction, exact to 11 bits, for 16-bit types. Else by the sigmoid, and near zero by its
    series, where the sigmoid would lose the small digits."""
    if FAST:
        return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    else:
        square = x * x
        series = x * (1 - square * (1 / 3 - square * (2 / 15 - square * (17 / 315))))
        return tl.where(tl.abs(x) < 0.15, series, 2 * tl.sigmoid(2 * x) - 1)


@triton.jit
def sigmoid(x, FAST: tl.constexpr):
    if FAST:
        return 0.5 * tanh(0.5 * x, FAST) + 0.5
    else:
        return tl.sigmoid(x)


@triton.jit
def squash(x, SHARP: tl.constexpr, FAST: tl.constexpr):
    """What stands inside the softmax."""
    if SHARP:
        return x
    else:
        return sigmoid(x, FAST)


@triton.jit
def squash_slope(squashed, SHARP: tl.constexpr):
    """The derivative of `squash`, from its value."""
    if SHARP:
        return tl.full(squashed.shape, 1.0, tl.float32)
    else:
        return squashed * (1 - squashed)


@triton.jit
def word_product(P, first, k, m, rows, n, units, inside, Hp, p_row, FIRST: tl.constexpr):
    """Block k of [h_left, h, h_right] @ words.T for a tile. In the first step all h are h_0, and what each of the three
    brings lies in `first` (8, Hp, 3)."""
    if FIRST:
        at = first + (k * Hp + units) * 3
        left = tl.load(at, mask=units < Hp, other=0.0).to(tl.float32)
        own = tl.load(at + 1, mask=units < Hp, other=0.0).to(tl.float32)
        right = tl.load(at + 2, mask=units < Hp, other=0.0).to(tl.float32)
        value = own[None, :] + tl.where((rows > 0)[:, None], left[None, :], 0.0)
        return value + tl.where((rows + 1 < n)[:, None], right[None, :], 0.0)
    else:
        return tl.load(P + m[:, None] * p_row + k * Hp + units[None, :], mask=inside, other=0.0).to(tl.float32)


@triton.jit
def word_gate(k, P, first, x_term, Q, b, m, rows, n, units, inside, Hp, p_row, FIRST: tl.constexpr):
    """Pre-activation of word gate k: W xi + (U x + b) + V g."""
    value = word_product(P, first, k, m, rows, n, units, inside, Hp, p_row, FIRST)
    value += tl.load(x_term + m[:, None] * (7 * Hp) + k * Hp + units[None, :], mask=inside, other=0.0).to(tl.float32)
    from_g = tl.load(Q + (b * 10 + k) * Hp + units, mask=units < Hp, other=0.0).to(tl.float32)
    return value + from_g[None, :]


@triton.jit
def old_cells(c_in, c_0, m, rows, n, units, inside, Hp, FIRST: tl.constexpr):
    """The cells of the left neighbour, the word itself and the right neighbour, zero outside the sentence."""
    has_left, has_right = (rows > 0)[:, None] & inside, (rows + 1 < n)[:, None] & inside
    if FIRST:
        start = tl.load(c_0 + units, mask=units < Hp, other=0.0).to(tl.float32)[None, :]
        return tl.where(has_left, start, 0.0), tl.where(inside, start, 0.0), tl.where(has_right, start, 0.0)
    else:
        at = c_in + m[:, None] * Hp + units[None, :]
        left = tl.load(at - Hp, mask=has_left, other=0.0).to(tl.float32)
        own = tl.load(at, mask=inside, other=0.0).to(tl.float32)
        right = tl.load(at + Hp, mask=has_right, other=0.0).to(tl.float32)
        return left, own, right


@triton.jit
def node_value(Q, k, b, units, Hp):
    """Row k of the sentence products: (UNITS,) float32."""
    return tl.load(Q + (b * 10 + k) * Hp + units, mask=units < Hp, other=0.0).to(tl.float32)
