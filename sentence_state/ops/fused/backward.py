"""The gradient of one step after the matrix products; `ops/README.md` derives it."""

from __future__ import annotations

import triton
import triton.language as tl

from .gates import node_value, old_cells, sigmoid, squash, squash_slope, tanh, word_gate, word_product


@triton.jit
def from_neighbours(buffer, m, rows, n, units, inside, Hp):
    """(M, 3, Hp) of what every word gives to its left neighbour, itself and its right neighbour -> what each receives."""
    at = buffer + m[:, None] * (3 * Hp) + units[None, :]
    total = tl.load(at + Hp, mask=inside, other=0.0).to(tl.float32)
    total += tl.load(at + 3 * Hp, mask=inside & (rows + 1 < n)[:, None], other=0.0).to(tl.float32)
    total += tl.load(at - Hp, mask=inside & (rows > 0)[:, None], other=0.0).to(tl.float32)
    return total


@triton.jit
def add_rows(value, partial, k, row, units, unit_in, Hp):
    """The sum of a tile over its words, as row k of the tile's partial sums."""
    tl.store(partial + (row * 9 + k) * Hp + units, tl.sum(value, axis=0), mask=unit_in)


@triton.jit
def put_gate(value, k, P, dx_term, partial, row, m, units, inside, unit_in, Hp, INIT: tl.constexpr):
    """The gradient of word gate k: into P in place, onto the gradient of x_term, and into the partial sums."""
    tl.store(P + m[:, None] * (8 * Hp) + k * Hp + units[None, :], value, mask=inside)
    at = dx_term + m[:, None] * (7 * Hp) + k * Hp + units[None, :]
    if INIT:
        tl.store(at, value, mask=inside)
    else:
        tl.store(at, value + tl.load(at, mask=inside, other=0.0).to(tl.float32), mask=inside)
    add_rows(value, partial, k, row, units, unit_in, Hp)


@triton.jit(do_not_specialize=["N", "TILES"])
def backward_step(
    P,  # (M, 8, Hp) products of the words in, their gradients out; (M, Hp) where NEED_WORDS is off
    first,  # (8, Hp, 3)
    x_term,  # (M, 7, Hp)
    dx_term,  # (M, 7, Hp) summed over steps
    Q,  # (B, 10, Hp) products of the sentence
    dQ,  # (B, 10, Hp)
    c_in,  # (M, Hp) cells before the step
    c_0,  # (Hp,)
    cg_in,  # (B, Hp) float32, before the step
    cg_out,  # (B, Hp) float32, after it
    log_z,  # (B, Hp) float32
    dxi,  # (M, 3, Hp) gradient of the next step's [h_left, h, h_right]; in the last step (M, dh_row), that of h
    dc,  # (M, 3, Hp) what the next step gives to each cell; not read in the last step
    dc_out,  # (M, 3, Hp) what this step gives
    dgh,  # (B, 2, Hp) gradients of g and of the mean h; in the last step (B, dg_row), that of g
    dcg,  # (B, Hp) float32, gradient of c_g: read, then replaced by that of the c_g before
    partial,  # (B, TILES, 9, Hp) float32
    counter,  # (B, unit blocks) int32
    lengths,  # (B,)
    drop_h,  # (M, Hp)
    drop_g,  # (B, Hp)
    N,
    Hp,
    dh_row,
    TILES,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    NEED_WORDS: tl.constexpr,
    NEED_SENTENCE: tl.constexpr,
    INIT: tl.constexpr,
    SHARP: tl.constexpr,
    FAST: tl.constexpr,
    DROP: tl.constexpr,
    RAGGED: tl.constexpr,
    ROWS: tl.constexpr,
    UNITS: tl.constexpr,
    CLOSE: tl.constexpr,
):
    tile, unit_block, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    n = N
    if RAGGED:
        n = tl.load(lengths + b).to(tl.int32)
    tiles = tl.cdiv(n, ROWS)
    if tile >= tiles:
        return
    rows = tile * ROWS + tl.arange(0, ROWS)
    units = unit_block * UNITS + tl.arange(0, UNITS)
    m = b.to(tl.int64) * N + rows
    unit_in = units < Hp
    inside = (rows < n)[:, None] & unit_in[None, :]
    row = b * TILES + tile
    cg = tl.load(cg_in + b * Hp + units, mask=unit_in, other=0.0)
    c_left, c, c_right = old_cells(c_in, c_0, m, rows, n, units, inside, Hp, FIRST)
    to_left = tl.zeros([ROWS, UNITS], tl.float32)
    to_own = tl.zeros([ROWS, UNITS], tl.float32)
    to_right = tl.zeros([ROWS, UNITS], tl.float32)
    p_row = 8 * Hp if NEED_WORDS else Hp

    # The sentence node, Eq. 3: E is the gradient of its new cell.
    E = tl.zeros([UNITS], tl.float32)
    d_f_g = tl.zeros([UNITS], tl.float32)
    d_o_g = tl.zeros([UNITS], tl.float32)
    kept = tl.zeros([UNITS], tl.float32)
    dq = tl.zeros([ROWS, UNITS], tl.float32)
    if NEED_SENTENCE:
        new_cg = tl.load(cg_out + b * Hp + units, mask=unit_in, other=0.0)
        log_total = tl.load(log_z + b * Hp + units, mask=unit_in, other=0.0)
        if LAST:
            dg = tl.load(dgh + b * dh_row + units, mask=units < dh_row, other=0.0).to(tl.float32)
        else:
            dg = tl.load(dgh + b * 2 * Hp + units, mask=unit_in, other=0.0).to(tl.float32)
        if DROP:
            dg *= tl.load(drop_g + b * Hp + units, mask=unit_in, other=0.0).to(tl.float32)
        o_g = sigmoid(node_value(Q, 8, b, units, Hp), FAST)
        t_g = tanh(new_cg, FAST)
        E = tl.load(dcg + b * Hp + units, mask=unit_in, other=0.0) + dg * o_g * (1 - t_g * t_g)
        d_o_g = dg * t_g * o_g * (1 - o_g)
        f_g = squash(node_value(Q, 7, b, units, Hp), SHARP, FAST)
        kept = tl.exp(f_g - log_total) * E
        d_f_g = kept * (cg - new_cg) * squash_slope(f_g, SHARP)
        q = word_product(P, first, 7 if NEED_WORDS or FIRST else 0, m, rows, n, units, inside, Hp, p_row, FIRST)
        q = squash(q + node_value(Q, 9, b, units, Hp)[None, :], SHARP, FAST)
        share = tl.where(inside, tl.exp(q - log_total[None, :]), 0.0)
        to_own = share * E[None, :]
        dq = to_own * (c - new_cg[None, :]) * squash_slope(q, SHARP)
        if NEED_WORDS:
            tl.store(P + m[:, None] * p_row + 7 * Hp + units[None, :], dq, mask=inside)
        else:
            tl.store(P + m[:, None] * p_row + units[None, :], dq, mask=inside)
    elif NEED_WORDS:
        tl.store(P + m[:, None] * p_row + 7 * Hp + units[None, :], dq, mask=inside)
    add_rows(dq, partial, 7, row, units, unit_in, Hp)

    if NEED_WORDS:
        if LAST:
            place = dxi + m[:, None] * dh_row + units[None, :]
            dh = tl.load(place, mask=inside & (units < dh_row)[None, :], other=0.0).to(tl.float32)
            dc_new = tl.zeros([ROWS, UNITS], tl.float32)
        else:
            d_mean = tl.load(dgh + (b * 2 + 1) * Hp + units, mask=unit_in, other=0.0).to(tl.float32)
            dh = from_neighbours(dxi, m, rows, n, units, inside, Hp) + (d_mean / n)[None, :]
            dc_new = from_neighbours(dc, m, rows, n, units, inside, Hp)
        if DROP:
            dh *= tl.load(drop_h + m[:, None] * Hp + units[None, :], mask=inside, other=0.0).to(tl.float32)
        a_i = squash(word_gate(0, P, first, x_term, Q, b, m, rows, n, units, inside, Hp, p_row, FIRST), SHARP, FAST)
        a_l = squash(word_gate(1, P, first, x_term, Q, b, m, rows, n, units, inside, Hp, p_row, FIRST), SHARP, FAST)
        a_f = squash(word_gate(2, P, first, x_term, Q, b, m, rows, n, units, inside, Hp, p_row, FIRST), SHARP, FAST)
        a_r = squash(word_gate(3, P, first, x_term, Q, b, m, rows, n, units, inside, Hp, p_row, FIRST), SHARP, FAST)
        a_s = squash(word_gate(4, P, first, x_term, Q, b, m, rows, n, units, inside, Hp, p_row, FIRST), SHARP, FAST)
        o = sigmoid(word_gate(5, P, first, x_term, Q, b, m, rows, n, units, inside, Hp, p_row, FIRST), FAST)
        u = tanh(word_gate(6, P, first, x_term, Q, b, m, rows, n, units, inside, Hp, p_row, FIRST), FAST)
        most = tl.zeros([ROWS, UNITS], tl.float32)
        if SHARP:
            most = tl.maximum(tl.maximum(tl.maximum(a_i, a_l), tl.maximum(a_f, a_r)), a_s)
        i, l, f = tl.exp(a_i - most), tl.exp(a_l - most), tl.exp(a_f - most)
        r, s = tl.exp(a_r - most), tl.exp(a_s - most)
        over = 1 / (i + l + f + r + s)
        i, l, f, r, s = i * over, l * over, f * over, r * over, s * over
        new_c = i * u + l * c_left + f * c + r * c_right + s * cg[None, :]
        t = tanh(new_c, FAST)
        D = tl.where(inside, dc_new + dh * o * (1 - t * t), 0.0)  # the gradient of the new cell
        da = i * D * (u - new_c) * squash_slope(a_i, SHARP)
        put_gate(da, 0, P, dx_term, partial, row, m, units, inside, unit_in, Hp, INIT)
        da = l * D * (c_left - new_c) * squash_slope(a_l, SHARP)
        put_gate(da, 1, P, dx_term, partial, row, m, units, inside, unit_in, Hp, INIT)
        da = f * D * (c - new_c) * squash_slope(a_f, SHARP)
        put_gate(da, 2, P, dx_term, partial, row, m, units, inside, unit_in, Hp, INIT)
        da = r * D * (c_right - new_c) * squash_slope(a_r, SHARP)
        put_gate(da, 3, P, dx_term, partial, row, m, units, inside, unit_in, Hp, INIT)
        da = s * D * (cg[None, :] - new_c) * squash_slope(a_s, SHARP)
        put_gate(da, 4, P, dx_term, partial, row, m, units, inside, unit_in, Hp, INIT)
        da = tl.where(inside, dh * t * o * (1 - o), 0.0)
        put_gate(da, 5, P, dx_term, partial, row, m, units, inside, unit_in, Hp, INIT)
        da = i * D * (1 - u * u)
        put_gate(da, 6, P, dx_term, partial, row, m, units, inside, unit_in, Hp, INIT)
        add_rows(s * D, partial, 8, row, units, unit_in, Hp)
        to_left = tl.where((rows > 0)[:, None], l * D, 0.0)
        to_right = tl.where((rows + 1 < n)[:, None], r * D, 0.0)
        to_own += f * D
    give = dc_out + m[:, None] * (3 * Hp) + units[None, :]
    tl.store(give, to_left, mask=inside)
    tl.store(give + Hp, to_own, mask=inside)
    tl.store(give + 2 * Hp, to_right, mask=inside)

    tl.debug_barrier()
    arrived = tl.atomic_add(counter + b * tl.num_programs(1) + unit_block, 1, sem="acq_rel")
    if arrived == tiles - 1:
        for k in tl.static_range(9):
            total = tl.zeros([UNITS], tl.float32)
            if NEED_WORDS or k == 7:
                for start in tl.static_range(0, CLOSE, 64):
                    part = start + tl.arange(0, min(CLOSE, 64))
                    at = partial + ((b * TILES + part) * 9 + k)[:, None] * Hp + units[None, :]
                    there = (part < tiles)[:, None] & unit_in[None, :]
                    total += tl.sum(tl.load(at, mask=there, other=0.0, cache_modifier=".cg"), axis=0)
            if k < 7:
                tl.store(dQ + (b * 10 + k) * Hp + units, total, mask=unit_in)
            elif k == 7:
                tl.store(dQ + (b * 10 + 9) * Hp + units, total, mask=unit_in)
            else:
                kept += total
        tl.store(dQ + (b * 10 + 7) * Hp + units, d_f_g, mask=unit_in)
        tl.store(dQ + (b * 10 + 8) * Hp + units, d_o_g, mask=unit_in)
        if not NEED_SENTENCE:
            kept += tl.load(dcg + b * Hp + units, mask=unit_in, other=0.0)
        tl.store(dcg + b * Hp + units, kept, mask=unit_in)
        tl.store(counter + b * tl.num_programs(1) + unit_block, 0)


@triton.jit(do_not_specialize=["N", "B"])
def gather_neighbours(h, xi, lengths, N, B, Hp, RAGGED: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr):
    """h (steps, M, Hp) -> xi (steps, M, 3, Hp): the rows [h_left, h, h_right], zero outside each sentence."""
    tile, unit_block, place = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    n = N
    if RAGGED:
        n = tl.load(lengths + place % B).to(tl.int32)
    rows = tile * ROWS + tl.arange(0, ROWS)
    units = unit_block * UNITS + tl.arange(0, UNITS)
    m = place.to(tl.int64) * N + rows
    unit_in = (units < Hp)[None, :]
    at = h + m[:, None] * Hp + units[None, :]
    out = xi + m[:, None] * (3 * Hp) + units[None, :]
    there = (rows < N)[:, None] & unit_in
    inside = (rows < n)[:, None] & unit_in
    tl.store(out, tl.load(at - Hp, mask=inside & (rows > 0)[:, None], other=0.0), mask=there)
    tl.store(out + Hp, tl.load(at, mask=inside, other=0.0), mask=there)
    tl.store(out + 2 * Hp, tl.load(at + Hp, mask=(rows + 1 < n)[:, None] & unit_in, other=0.0), mask=there)
