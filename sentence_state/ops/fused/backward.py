"""The gradient of one step after the matrix products; `ops/README.md` derives it."""

from __future__ import annotations

import triton
import triton.language as tl

from .gates import (
    add_nine,
    exp2,
    node_value,
    of_left,
    of_right,
    old_cells,
    on_every_row,
    place_of_program,
    reciprocal,
    row_of,
    score,
    sigmoid,
    squash,
    squash_slope,
    sum_of_parts,
    tanh,
    word_gate,
    word_product,
)


@triton.jit
def from_neighbours(dxi, m, rows, n, units, inside, size, Hp, NUMBER: tl.constexpr):
    """What each h receives: a row has the gradients of the h to the left of a word, of its own and of the h to its
    right; all of that NUMBER times, `size` apart, to be added up."""
    total = tl.zeros(inside.shape, tl.float32)
    for part in tl.static_range(NUMBER):
        at = dxi + part * size + m[:, None] * (3 * Hp) + units[None, :]
        total += tl.load(at + Hp, mask=inside, other=0.0).to(tl.float32)
        total += tl.load(at + 3 * Hp, mask=inside & (rows + 1 < n)[:, None], other=0.0).to(tl.float32)
        total += tl.load(at - Hp, mask=inside & (rows > 0)[:, None], other=0.0).to(tl.float32)
    return total


@triton.jit
def given_to_cells(dc, m, places, tile, tiles, units, inside, Hp):
    """What each cell receives: from its own tile, and at its ends from the tiles beside it."""
    given = tl.load(dc + m[:, None] * Hp + units[None, :], mask=inside, other=0.0).to(tl.float32)
    before = tl.load(places - Hp, mask=(units < Hp) & (tile > 0), other=0.0).to(tl.float32)
    after = tl.load(places + 2 * Hp, mask=(units < Hp) & (tile + 1 < tiles), other=0.0).to(tl.float32)
    row = tl.arange(0, m.shape[0])[:, None]
    given = tl.where(row == 0, given + before[None, :], given)
    return tl.where(row == m.shape[0] - 1, given + after[None, :], given)


@triton.jit
def put_gate(value, k, P, m, units, inside, Hp):
    """The gradient of word gate k, in the place of its product."""
    tl.store(P + m[:, None] * (8 * Hp) + k * Hp + units[None, :], value, mask=inside)


@triton.jit
def node_gradient(
    Q,
    cg_in,
    cg_out,
    log_z,
    dgh,
    dcg,
    drop_g,
    b,
    units,
    Hp,
    dh_row,
    LAST: tl.constexpr,
    NEED_SENTENCE: tl.constexpr,
    IN_PARTS: tl.constexpr,
    SHARP: tl.constexpr,
    FAST: tl.constexpr,
    DROP: tl.constexpr,
):
    """Eq. 3: E, the gradient of the node's new cell; those of its gates f_g and o; and what its old cell receives."""
    unit_in = units < Hp
    given = tl.load(dcg + b * Hp + units, mask=unit_in, other=0.0)
    if NEED_SENTENCE:
        new_cg = tl.load(cg_out + b * Hp + units, mask=unit_in, other=0.0)
        log_total = tl.load(log_z + b * Hp + units, mask=unit_in, other=0.0)
        if LAST:
            dg = tl.load(dgh + b * dh_row + units, mask=units < dh_row, other=0.0).to(tl.float32)
        else:
            dg = sum_of_parts(dgh + b * (12 if IN_PARTS else 2) * Hp, units, Hp, 10 if IN_PARTS else 1)
        if DROP:
            dg *= tl.load(drop_g + b * Hp + units, mask=unit_in, other=0.0).to(tl.float32)
        o_g = sigmoid(node_value(Q, 8, units, Hp, IN_PARTS), FAST)
        t_g = tanh(new_cg, FAST)
        E = given + dg * o_g * (1 - t_g * t_g)
        f_g = squash(node_value(Q, 7, units, Hp, IN_PARTS), SHARP, FAST)
        kept = tl.exp2(score(f_g, SHARP, FAST) - log_total) * E
        d_f_g = kept * (tl.load(cg_in + b * Hp + units, mask=unit_in, other=0.0) - new_cg)
        return E, d_f_g * squash_slope(f_g, SHARP, FAST), dg * t_g * o_g * (1 - o_g), kept
    else:
        nothing = tl.zeros(units.shape, tl.float32)
        return nothing, nothing, nothing, given


@triton.jit(do_not_specialize=["N", "TILES", "shift"])
def backward_step(
    P,  # (M, 8, Hp) products of the words, then their gradients; (M, Hp) where NEED_WORDS is off
    first,  # (3, 8, Hp)
    x_term,  # (M, 8, Hp) U x, read if X_TERM; else it is in P
    Q,  # (B, 12, Hp) products of the sentence, the last two rows if IN_PARTS
    c_in,  # (M, Hp) cells before the step
    c_0,  # (Hp,)
    cg_in,  # (B, Hp) float32, before the step
    cg_out,  # (B, Hp) float32, after it
    log_z,  # (B, Hp) float32
    dxi,  # (DXI_PARTS, M, 3, Hp) gradient of the next step's [h_left, h, h_right], in parts to be added up; in the last
    # step (M, dh_row), that of h
    dc,  # (M + 2 tiles, Hp) what the next step gives to each cell within its tile, then what every tile gives to the
    # cell before it and to the one after it; not read in the last step
    dc_out,  # the same for this step; in the first step that is in the sums
    dgh,  # (B, 2, Hp) gradients of g and of the mean h, if IN_PARTS in 10 and 2 rows to be added up; in the last step
    # (B, dh_row), that of g
    dcg,  # (B, Hp) float32, gradient of the c_g after the step
    sums,  # (B, TILES, 9, Hp) float32, or bfloat16 as all else: over the words of every tile, for `close_gradient`
    lengths,  # (B,)
    drop_h,  # (M, Hp)
    drop_g,  # (B, Hp)
    N,
    TILES,
    shift,  # 0, unknown to the compiler: it sees pairs of units, so a thread gets two units of all rows
    Hp: tl.constexpr,
    dh_row: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    NEED_WORDS: tl.constexpr,
    NEED_SENTENCE: tl.constexpr,
    IN_PARTS: tl.constexpr,
    DXI_PARTS: tl.constexpr,
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
    p_row = 8 * Hp if NEED_WORDS else Hp
    place_of_sums = sums + (b * TILES + tile) * 9 * Hp + units
    ends = (tl.num_programs(1) * N + (b * TILES + tile) * 2) * Hp + units
    cg = on_every_row(cg_in + b * Hp, units, Hp)
    c_left, c, c_right = old_cells(c_in, c_0, m, rows, n, units, inside, Hp, FIRST)

    E, _, _, _ = node_gradient(
        Q,
        cg_in,
        cg_out,
        log_z,
        dgh,
        dcg,
        drop_g,
        b,
        units,
        Hp,
        dh_row,
        LAST,
        NEED_SENTENCE,
        IN_PARTS,
        SHARP,
        FAST,
        DROP,
    )

    # Everything is read before anything is written: a load does not overtake a store.
    to_left = tl.zeros([ROWS, UNITS], tl.float32)
    to_own = tl.zeros([ROWS, UNITS], tl.float32)
    to_right = tl.zeros([ROWS, UNITS], tl.float32)
    dq = tl.zeros([ROWS, UNITS], tl.float32)
    if NEED_SENTENCE:
        q = word_product(P, first, 7 if NEED_WORDS or FIRST else 0, m, rows, n, units, inside, Hp, p_row, FIRST)
        q = squash(q + on_every_row(Q + 9 * Hp, units, Hp), SHARP, FAST)
        share = exp2(score(q, SHARP, FAST) - on_every_row(log_z + b * Hp, units, Hp), FAST)
        to_own = tl.where(inside, share, 0.0) * E[None, :]
        dq = to_own * (c - on_every_row(cg_out + b * Hp, units, Hp)) * squash_slope(q, SHARP, FAST)
    if NEED_WORDS:
        if LAST:
            place = dxi + m[:, None] * dh_row + units[None, :]
            dh = tl.load(place, mask=inside & (units < dh_row)[None, :], other=0.0).to(tl.float32)
            dc_new = tl.zeros([ROWS, UNITS], tl.float32)
        else:
            of_mean = dgh + (b * 12 + 10 if IN_PARTS else b * 2 + 1) * Hp
            d_mean = sum_of_parts(of_mean, units, Hp, 2 if IN_PARTS else 1)[None, :]
            size = tl.num_programs(1) * N * (3 * Hp)
            dh = from_neighbours(dxi, m, rows, n, units, inside, size, Hp, DXI_PARTS) + d_mean / n
            dc_new = given_to_cells(dc, m, dc + ends, tile, tiles, units, inside, Hp)
        if DROP:
            dh *= tl.load(drop_h + m[:, None] * Hp + units[None, :], mask=inside, other=0.0).to(tl.float32)
        a_i = word_gate(0, P, first, x_term, Q, m, rows, n, units, inside, Hp, p_row, FIRST, X_TERM)
        a_i = squash(a_i, SHARP, FAST)
        a_l = word_gate(1, P, first, x_term, Q, m, rows, n, units, inside, Hp, p_row, FIRST, X_TERM)
        a_l = squash(a_l, SHARP, FAST)
        a_f = word_gate(2, P, first, x_term, Q, m, rows, n, units, inside, Hp, p_row, FIRST, X_TERM)
        a_f = squash(a_f, SHARP, FAST)
        a_r = word_gate(3, P, first, x_term, Q, m, rows, n, units, inside, Hp, p_row, FIRST, X_TERM)
        a_r = squash(a_r, SHARP, FAST)
        a_s = word_gate(4, P, first, x_term, Q, m, rows, n, units, inside, Hp, p_row, FIRST, X_TERM)
        a_s = squash(a_s, SHARP, FAST)
        o = word_gate(5, P, first, x_term, Q, m, rows, n, units, inside, Hp, p_row, FIRST, X_TERM)
        o = sigmoid(o, FAST)
        u = word_gate(6, P, first, x_term, Q, m, rows, n, units, inside, Hp, p_row, FIRST, X_TERM)
        u = tanh(u, FAST)
        most = tl.zeros([ROWS, UNITS], tl.float32)
        if SHARP:
            most = tl.maximum(tl.maximum(tl.maximum(a_i, a_l), tl.maximum(a_f, a_r)), a_s)
        i, l = exp2(score(a_i - most, SHARP, FAST), FAST), exp2(score(a_l - most, SHARP, FAST), FAST)
        f, r = exp2(score(a_f - most, SHARP, FAST), FAST), exp2(score(a_r - most, SHARP, FAST), FAST)
        s = exp2(score(a_s - most, SHARP, FAST), FAST)
        over = reciprocal(i + l + f + r + s, FAST)
        new_c = (i * u + l * c_left + f * c + r * c_right + s * cg) * over
        t = tanh(new_c, FAST)
        D = tl.where(inside, dc_new + dh * o * (1 - t * t), 0.0) * over  # the gradient of the new cell, over the sum
        i, l, f, r, s = i * D, l * D, f * D, r * D, s * D
        d_i = i * (u - new_c) * squash_slope(a_i, SHARP, FAST)
        put_gate(d_i, 0, P, m, units, inside, Hp)
        d_l = l * (c_left - new_c) * squash_slope(a_l, SHARP, FAST)
        put_gate(d_l, 1, P, m, units, inside, Hp)
        d_f = f * (c - new_c) * squash_slope(a_f, SHARP, FAST)
        put_gate(d_f, 2, P, m, units, inside, Hp)
        d_r = r * (c_right - new_c) * squash_slope(a_r, SHARP, FAST)
        put_gate(d_r, 3, P, m, units, inside, Hp)
        d_s = s * (cg - new_c) * squash_slope(a_s, SHARP, FAST)
        put_gate(d_s, 4, P, m, units, inside, Hp)
        d_o = tl.where(inside, dh * t * o * (1 - o), 0.0)
        put_gate(d_o, 5, P, m, units, inside, Hp)
        d_u = i * (1 - u * u)
        put_gate(d_u, 6, P, m, units, inside, Hp)
        to_left = tl.where((rows > 0)[:, None], l, 0.0)
        to_right = tl.where((rows + 1 < n)[:, None], r, 0.0)
        to_own += f
        if FIRST:  # all cells were c_0, the sentence's too: their gradients are one sum
            s += to_left + to_own + to_right
        sum_i, sum_l, sum_f, sum_r, sum_s, sum_o, sum_u, sum_q, s = tl.reduce(
            (d_i, d_l, d_f, d_r, d_s, d_o, d_u, dq, s), 0, add_nine
        )
        tl.store(place_of_sums, sum_i, mask=unit_in)
        tl.store(place_of_sums + Hp, sum_l, mask=unit_in)
        tl.store(place_of_sums + 2 * Hp, sum_f, mask=unit_in)
        tl.store(place_of_sums + 3 * Hp, sum_r, mask=unit_in)
        tl.store(place_of_sums + 4 * Hp, sum_s, mask=unit_in)
        tl.store(place_of_sums + 5 * Hp, sum_o, mask=unit_in)
        tl.store(place_of_sums + 6 * Hp, sum_u, mask=unit_in)
        tl.store(place_of_sums + 7 * Hp, sum_q, mask=unit_in)
        tl.store(place_of_sums + 8 * Hp, s, mask=unit_in)
    else:
        tl.store(place_of_sums + 7 * Hp, tl.sum(dq, axis=0), mask=unit_in)
        if FIRST:
            tl.store(place_of_sums + 8 * Hp, tl.sum(to_own, axis=0), mask=unit_in)
    tl.store(P + m[:, None] * p_row + (p_row - Hp) + units[None, :], dq, mask=inside)  # the last block is U_f h
    if not FIRST:
        nothing = tl.zeros([UNITS], tl.float32)
        to_own += of_right(to_left, nothing) + of_left(to_right, nothing)
        tl.store(dc_out + m[:, None] * Hp + units[None, :], to_own, mask=inside)
        tl.store(dc_out + ends, row_of(to_left, 0), mask=unit_in)
        tl.store(dc_out + ends + Hp, row_of(to_right, ROWS - 1), mask=unit_in)


@triton.jit(do_not_specialize=["N", "TILES"])
def close_gradient(
    sums,  # (B, TILES, 9, Hp) of each tile the sums of dP in seven blocks, of the gradient of q, and of c_g
    Q,  # (B, 12, Hp)
    dQ,  # (B, 10, Hp)
    cg_in,  # (B, Hp) float32, before the step
    cg_out,  # (B, Hp) float32, after it
    log_z,  # (B, Hp) float32
    dgh,  # as `backward_step` has it
    dcg,  # (B, Hp) float32, gradient of c_g: read, then replaced by that of the c_g before, in the first step of c_0
    lengths,  # (B,)
    drop_g,  # (B, Hp)
    N,
    TILES,
    Hp: tl.constexpr,
    dh_row: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    NEED_WORDS: tl.constexpr,
    NEED_SENTENCE: tl.constexpr,
    IN_PARTS: tl.constexpr,
    SHARP: tl.constexpr,
    FAST: tl.constexpr,
    DROP: tl.constexpr,
    RAGGED: tl.constexpr,
    ROWS: tl.constexpr,
    UNITS: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """The gradients of the sentence's products and of its old cell, from the sums of its tiles, which are always added
    up in the same order; a program for every sum."""
    unit_block, b, k = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    n = N
    if RAGGED:
        n = tl.load(lengths + b).to(tl.int32)
    tiles = tl.cdiv(n, ROWS)
    if not NEED_WORDS:  # there are the sums of q's gradient, and in the first step of c_g's
        tiles = tl.where(k > 6 if FIRST else k == 7, tiles, 0)
    units = unit_block * UNITS + tl.arange(0, UNITS)
    unit_in = units < Hp
    total = tl.zeros([UNITS], tl.float32)
    for start in range(0, tiles, AT_ONCE):
        tile = start + tl.arange(0, AT_ONCE)
        at = sums + (((b * TILES + tile) * 9 + k) * Hp)[:, None] + units[None, :]
        there = (tile < tiles)[:, None] & unit_in[None, :]
        total += tl.sum(tl.load(at, mask=there, other=0.0).to(tl.float32), axis=0)
    if k < 8:
        tl.store(dQ + (b * 10 + k + 2 * (k // 7)) * Hp + units, total, mask=unit_in)
    else:
        Q += b * 12 * Hp
        _, d_f_g, d_o_g, kept = node_gradient(
            Q,
            cg_in,
            cg_out,
            log_z,
            dgh,
            dcg,
            drop_g,
            b,
            units,
            Hp,
            dh_row,
            LAST,
            NEED_SENTENCE,
            IN_PARTS,
            SHARP,
            FAST,
            DROP,
        )
        tl.store(dQ + (b * 10 + 7) * Hp + units, d_f_g, mask=unit_in)
        tl.store(dQ + (b * 10 + 8) * Hp + units, d_o_g, mask=unit_in)
        tl.store(dcg + b * Hp + units, kept + total, mask=unit_in)
