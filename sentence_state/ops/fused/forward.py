"""Eq. 2 and Eq. 3 after the matrix products: a kernel for the words of a step and the sums over them, and one that
makes the sentence's new state of these sums."""

from __future__ import annotations

import triton
import triton.language as tl

from .gates import (
    add_three,
    exp2,
    node_value,
    old_cells,
    on_every_row,
    place_of_program,
    reciprocal,
    score,
    sigmoid,
    squash,
    tanh,
    word_gate,
    word_product,
)


@triton.jit(do_not_specialize=["N", "TILES", "shift"])
def forward_step(
    P,  # (M, 8, Hp) products of the words, or (M, Hp) with U_f h alone where NEED_WORDS is off
    first,  # (3, 8, Hp) the same for h_0
    x_term,  # (M, 8, Hp) U x, read if X_TERM; else it is in P
    Q,  # (B, 12, Hp) products of the sentence
    c_in,  # (M, Hp)
    c_0,  # (Hp,)
    cg_in,  # (B, Hp) float32
    c_out,  # (M, Hp)
    h_out,  # (M, h_row)
    xi_out,  # (M, xi_row) each h in the three places where the next product reads it, if STORE_XI
    sums,  # (B, TILES, 4, Hp) float32: over the words of every tile, for `close_step`
    lengths,  # (B,)
    drop_h,  # (M, Hp)
    N,
    TILES,
    shift,  # 0, unknown to the compiler: it sees pairs of units, so a thread gets two units of all rows
    Hp: tl.constexpr,
    p_row: tl.constexpr,
    h_row: tl.constexpr,
    xi_row: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    NEED_WORDS: tl.constexpr,
    NEED_SENTENCE: tl.constexpr,
    STORE_H: tl.constexpr,
    STORE_XI: tl.constexpr,
    X_TERM: tl.constexpr,
    SHARP: tl.constexpr,
    FAST: tl.constexpr,
    DROP: tl.constexpr,
    RAGGED: tl.constexpr,
    ROWS: tl.constexpr,
    UNITS: tl.constexpr,
):
    tile, unit_block, b = place_of_program(Hp, UNITS)
    n = N
    if RAGGED:
        n = tl.load(lengths + b).to(tl.int32)
    tiles = tl.cdiv(n, ROWS)
    if tile >= tiles:
        return
    rows = tile * ROWS + tl.arange(0, ROWS)
    units = unit_block * UNITS + tl.arange(0, UNITS) + 2 * shift
    m = b * N + rows
    Q += b * 12 * Hp
    unit_in = units < Hp
    inside = (rows < n)[:, None] & unit_in[None, :]
    cg = on_every_row(cg_in + b * Hp, units, Hp)
    c_left, c, c_right = old_cells(c_in, c_0, m, rows, n, units, inside, Hp, FIRST)
    q = tl.zeros([ROWS, UNITS], tl.float32)
    if NEED_SENTENCE:  # read before anything is written: a load does not overtake a store
        q = word_product(P, first, 7 if NEED_WORDS or FIRST else 0, m, rows, n, units, inside, Hp, p_row, FIRST)
    h = tl.zeros([ROWS, UNITS], tl.float32)

    if NEED_WORDS:
        i = word_gate(0, P, first, x_term, Q, m, rows, n, units, inside, Hp, p_row, FIRST, X_TERM)
        i = squash(i, SHARP, FAST)
        l = word_gate(1, P, first, x_term, Q, m, rows, n, units, inside, Hp, p_row, FIRST, X_TERM)
        l = squash(l, SHARP, FAST)
        f = word_gate(2, P, first, x_term, Q, m, rows, n, units, inside, Hp, p_row, FIRST, X_TERM)
        f = squash(f, SHARP, FAST)
        r = word_gate(3, P, first, x_term, Q, m, rows, n, units, inside, Hp, p_row, FIRST, X_TERM)
        r = squash(r, SHARP, FAST)
        s = word_gate(4, P, first, x_term, Q, m, rows, n, units, inside, Hp, p_row, FIRST, X_TERM)
        s = squash(s, SHARP, FAST)
        if SHARP:
            most = tl.maximum(tl.maximum(tl.maximum(i, l), tl.maximum(f, r)), s)
            i, l, f, r, s = i - most, l - most, f - most, r - most, s - most
        i, l = exp2(score(i, SHARP, FAST), FAST), exp2(score(l, SHARP, FAST), FAST)
        f, r = exp2(score(f, SHARP, FAST), FAST), exp2(score(r, SHARP, FAST), FAST)
        s = exp2(score(s, SHARP, FAST), FAST)
        u = word_gate(6, P, first, x_term, Q, m, rows, n, units, inside, Hp, p_row, FIRST, X_TERM)
        u = tanh(u, FAST)
        new_c = (i * u + l * c_left + f * c + r * c_right + s * cg) * reciprocal(i + l + f + r + s, FAST)
        o = word_gate(5, P, first, x_term, Q, m, rows, n, units, inside, Hp, p_row, FIRST, X_TERM)
        o = sigmoid(o, FAST)
        h = o * tanh(new_c, FAST)
        if DROP:
            h *= tl.load(drop_h + m[:, None] * Hp + units[None, :], mask=inside, other=0.0).to(tl.float32)
        h = tl.where(inside, h, 0.0)

    if NEED_SENTENCE:
        q = squash(q + on_every_row(Q + 9 * Hp, units, Hp), SHARP, FAST)
        q = score(q, SHARP, FAST)
        most_q = tl.zeros([UNITS], tl.float32)
        if SHARP:
            most_q = tl.max(tl.where(inside, q, -1e30), axis=0)
            q -= most_q[None, :]
        e = tl.where(inside, exp2(q, FAST), 0.0)
        sum_e, sum_ec, sum_h = tl.reduce((e, e * c, h), 0, add_three)
        place = sums + (b * TILES + tile) * 4 * Hp + units
        if SHARP:
            tl.store(place, most_q, mask=unit_in)
        tl.store(place + Hp, sum_e, mask=unit_in)
        tl.store(place + 2 * Hp, sum_ec, mask=unit_in)
        tl.store(place + 3 * Hp, sum_h, mask=unit_in)
    if NEED_WORDS:
        if STORE_H:
            tl.store(h_out + m[:, None] * h_row + units[None, :], h, mask=inside & (units < h_row)[None, :])
        if not LAST:
            tl.store(c_out + m[:, None] * Hp + units[None, :], new_c, mask=inside)
        if STORE_XI:
            place = xi_out + m[:, None] * xi_row + units[None, :]
            is_first, is_last = inside & (rows == 0)[:, None], inside & (rows == n - 1)[:, None]
            tl.store(place + Hp, h, mask=inside)
            tl.store(place + xi_row, h, mask=inside & (rows + 1 < n)[:, None])  # left of the next word
            tl.store(place - xi_row + 2 * Hp, h, mask=inside & (rows > 0)[:, None])  # right of the word before
            tl.store(place, tl.zeros([ROWS, UNITS], tl.float32), mask=is_first)
            tl.store(place + 2 * Hp, tl.zeros([ROWS, UNITS], tl.float32), mask=is_last)


@triton.jit(do_not_specialize=["N", "TILES"])
def close_step(
    sums,  # (B, TILES, 4, Hp) float32: of each tile the maximum of the scores, if SHARP, and three sums
    Q,  # (B, 12, Hp) products of the sentence, the last two rows if IN_PARTS
    cg_in,  # (B, Hp) float32
    cg_out,  # (B, Hp) float32
    gh_out,  # (B, 2, Hp) g and the mean h; in the last step (B, g_row), g alone
    cg_last,  # (B, g_row) the new cell once more, as an output of the last step
    log_z,  # (B, Hp) float32: logarithm to base 2 of the sum in Eq. 3's softmax
    lengths,  # (B,)
    drop_g,  # (B, Hp)
    N,
    TILES,
    Hp: tl.constexpr,
    g_row: tl.constexpr,
    IN_PARTS: tl.constexpr,
    LAST: tl.constexpr,
    SHARP: tl.constexpr,
    FAST: tl.constexpr,
    DROP: tl.constexpr,
    RAGGED: tl.constexpr,
    ROWS: tl.constexpr,
    UNITS: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """The sentence's new state from the sums of its tiles, which are always added up in the same order."""
    unit_block, b = tl.program_id(0), tl.program_id(1)
    n = N
    if RAGGED:
        n = tl.load(lengths + b).to(tl.int32)
    tiles = tl.cdiv(n, ROWS)
    units = unit_block * UNITS + tl.arange(0, UNITS)
    unit_in = units < Hp
    most_q = tl.full([UNITS], -1e30 if SHARP else 0.0, tl.float32)
    sum_e = tl.zeros([UNITS], tl.float32)
    sum_ec, sum_h = sum_e, sum_e
    for start in range(0, tiles, AT_ONCE):
        tile = start + tl.arange(0, AT_ONCE)
        there = (tile < tiles)[:, None] & unit_in[None, :]
        at = sums + ((b * TILES + tile) * 4 * Hp)[:, None] + units[None, :]
        e = tl.load(at + Hp, mask=there, other=0.0)
        ec = tl.load(at + 2 * Hp, mask=there, other=0.0)
        h = tl.load(at + 3 * Hp, mask=there, other=0.0)
        if SHARP:
            most = tl.load(at, mask=there, other=-1e30)
            new_most = tl.maximum(most_q, tl.max(most, axis=0))
            keep, add = tl.exp2(most_q - new_most), tl.exp2(most - new_most[None, :])
            sum_e, sum_ec, e, ec, most_q = sum_e * keep, sum_ec * keep, e * add, ec * add, new_most
        e, ec, h = tl.reduce((e, ec, h), 0, add_three)
        sum_e, sum_ec, sum_h = sum_e + e, sum_ec + ec, sum_h + h

    Q += b * 12 * Hp
    f_g = score(squash(node_value(Q, 7, units, Hp, IN_PARTS), SHARP, FAST), SHARP, FAST)
    if SHARP:
        new_most = tl.maximum(most_q, f_g)
        keep = tl.exp2(most_q - new_most)
        sum_e, sum_ec, most_q = sum_e * keep, sum_ec * keep, new_most
    e_g = tl.exp2(f_g - most_q)
    total = sum_e + e_g
    new_cg = (sum_ec + e_g * tl.load(cg_in + b * Hp + units, mask=unit_in, other=0.0)) / total
    g = sigmoid(node_value(Q, 8, units, Hp, IN_PARTS), FAST) * tanh(new_cg, FAST)
    if DROP:
        g *= tl.load(drop_g + b * Hp + units, mask=unit_in, other=0.0).to(tl.float32)
    tl.store(cg_out + b * Hp + units, new_cg, mask=unit_in)
    tl.store(log_z + b * Hp + units, most_q + tl.log2(total), mask=unit_in)
    if LAST:
        tl.store(gh_out + b * g_row + units, g, mask=units < g_row)
        tl.store(cg_last + b * g_row + units, new_cg, mask=units < g_row)
    else:
        tl.store(gh_out + b * 2 * Hp + units, g, mask=unit_in)
        tl.store(gh_out + (b * 2 + 1) * Hp + units, sum_h / n, mask=unit_in)
