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
def exp2(x, FAST: tl.constexpr):
    if FAST:
        return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)
    else:
        return tl.exp2(x)


@triton.jit
def reciprocal(x, FAST: tl.constexpr):
    if FAST:
        return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)
    else:
        return 1 / x


@triton.jit
def squash(x, SHARP: tl.constexpr, FAST: tl.constexpr):
    """What stands inside the softmax, x or the sigmoid of x; the latter, if FAST, as tanh(x / 2) = 2 sigmoid(x) - 1."""
    if SHARP:
        return x
    elif FAST:
        return tanh(0.5 * x, FAST)
    else:
        return tl.sigmoid(x)


@triton.jit
def score(squashed, SHARP: tl.constexpr, FAST: tl.constexpr):
    """The softmax's logarithms to base 2, but for a constant that all of them have in common."""
    return squashed * (0.7213475204444817 if FAST and not SHARP else 1.4426950408889634)


@triton.jit
def squash_slope(squashed, SHARP: tl.constexpr, FAST: tl.constexpr):
    """The derivative of the sigmoid, or 1, from the value of `squash`."""
    if SHARP:
        return tl.full(squashed.shape, 1.0, tl.float32)
    elif FAST:
        return 0.25 - 0.25 * squashed * squashed
    else:
        return squashed * (1 - squashed)


@triton.jit
def on_every_row(vector, units, Hp):
    """A vector of Hp for every row of a tile: a thread has all rows of its units, and reads them once."""
    return tl.load(vector + units, mask=units < Hp, other=0.0).to(tl.float32)[None, :]


@triton.jit
def word_product(P, first, k, m, rows, n, units, inside, Hp, p_row, FIRST: tl.constexpr):
    """Block k of [h_left, h, h_right] @ words.T for a tile. In the first step all h are h_0, and what each of the three
    brings lies in `first` (3, 8, Hp)."""
    if FIRST:
        left = on_every_row(first + k * Hp, units, Hp)
        own = on_every_row(first + (8 + k) * Hp, units, Hp)
        right = on_every_row(first + (16 + k) * Hp, units, Hp)
        return tl.where((rows > 0)[:, None], left, 0.0) + own + tl.where((rows + 1 < n)[:, None], right, 0.0)
    else:
        return tl.load(P + m[:, None] * p_row + k * Hp + units[None, :], mask=inside, other=0.0).to(tl.float32)


@triton.jit
def word_gate(k, P, first, x_term, Q, m, rows, n, units, inside, Hp, p_row, FIRST: tl.constexpr, X_TERM: tl.constexpr):
    """Pre-activation of word gate k: W xi + U x + (V g + b), the last from the sentence's rows Q. X_TERM: U x is not in
    P but in rows of its own."""
    value = word_product(P, first, k, m, rows, n, units, inside, Hp, p_row, FIRST)
    if X_TERM:
        at = x_term + m[:, None] * (8 * Hp) + k * Hp + units[None, :]
        value += tl.load(at, mask=inside, other=0.0).to(tl.float32)
    return value + on_every_row(Q + k * Hp, units, Hp)


@triton.jit
def row_of(tile, k: tl.constexpr):
    """Row k of a tile of float32: of its bits as integers and of the least integer for all other rows, the maximum. A
    thread has all rows of its units, so the compiler leaves all of that out."""
    row = tl.arange(0, tile.shape[0])[:, None]
    return tl.max(tl.where(row == k, tile.to(tl.int32, bitcast=True), -(2**31)), axis=0).to(tl.float32, bitcast=True)


@triton.jit
def of_left(tile, before):
    """In each row what the row before has; in the first one `before`."""
    row = tl.arange(0, tile.shape[0])[:, None]
    moved = tl.broadcast_to(before[None, :], tile.shape)
    for k in tl.static_range(tile.shape[0] - 1):
        moved = tl.where(row == k + 1, row_of(tile, k)[None, :], moved)
    return moved


@triton.jit
def of_right(tile, after):
    """In each row what the row after has; in the last one `after`."""
    row = tl.arange(0, tile.shape[0])[:, None]
    moved = tl.broadcast_to(after[None, :], tile.shape)
    for k in tl.static_range(tile.shape[0] - 1):
        moved = tl.where(row == k, row_of(tile, k + 1)[None, :], moved)
    return moved


@triton.jit
def old_cells(c_in, c_0, m, rows, n, units, inside, Hp, FIRST: tl.constexpr):
    """The cells of the left neighbour, the word itself and the right neighbour, zero outside the sentence."""
    if FIRST:
        has_left, has_right = (rows > 0)[:, None] & inside, (rows + 1 < n)[:, None] & inside
        start = on_every_row(c_0, units, Hp)
        return tl.where(has_left, start, 0.0), tl.where(inside, start, 0.0), tl.where(has_right, start, 0.0)
    else:
        own = tl.load(c_in + m[:, None] * Hp + units[None, :], mask=inside, other=0.0).to(tl.float32)
        first, row, number = tl.min(m, axis=0), tl.min(rows, axis=0), rows.shape[0]
        at = c_in + first * Hp + units
        before = tl.load(at - Hp, mask=(units < Hp) & (row > 0), other=0.0).to(tl.float32)
        after = tl.load(at + number * Hp, mask=(units < Hp) & (row + number < n), other=0.0).to(tl.float32)
        return of_left(own, before), own, of_right(own, after)


@triton.jit
def add_three(a, b, c, d, e, f):
    return a + d, b + e, c + f


@triton.jit
def add_nine(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r):
    return a + j, b + k, c + l, d + m, e + n, f + o, g + p, h + q, i + r


@triton.jit
def node_value(Q, k: tl.constexpr, units, Hp, IN_PARTS: tl.constexpr):
    """What f_g (k = 7) or o (k = 8) of the node has of the sentence's products: (UNITS,) float32."""
    value = tl.load(Q + k * Hp + units, mask=units < Hp, other=0.0).to(tl.float32)
    if IN_PARTS:  # what the mean h gives has rows of its own
        value += tl.load(Q + (k + 3) * Hp + units, mask=units < Hp, other=0.0).to(tl.float32)
    return value


@triton.jit
def sum_of_parts(parts, units, Hp, NUMBER: tl.constexpr):
    """(NUMBER, Hp) -> (UNITS,) float32."""
    total = tl.zeros(units.shape, tl.float32)
    for k in tl.static_range(NUMBER):
        total += tl.load(parts + k * Hp + units, mask=units < Hp, other=0.0).to(tl.float32)
    return total


@triton.jit
def place_of_program(Hp: tl.constexpr, UNITS: tl.constexpr):
    """Its tile, its block of units, its sentence. The blocks of one tile stand side by side, as their memory does."""
    unit_blocks: tl.constexpr = (Hp + UNITS - 1) // UNITS
    place = tl.program_id(0)
    return place // unit_blocks, place % unit_blocks, tl.program_id(1)
