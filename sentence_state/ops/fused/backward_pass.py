"""The backward pass over all steps: it computes the word products again where they were not kept, several steps in one
product where sentences are short, and sums the weights' gradients the same way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from ..streams import Beside
from .backward import backward_step, close_gradient
from .few_words import Node, gradient_parts, multiply_gradient
from .first import start_gradient, start_programs
from .forward import forward_step
from .layout import BLOCKS, NODE_BLOCKS, VECTORS, Packed, put_columns
from .packing import gather_neighbours, pad_columns, unpack
from .plan import (
    BACKWARD_REGISTERS,
    FORWARD_REGISTERS,
    MOST_PRODUCTS,
    UNITS,
    Launch,
    Launches,
    Options,
    Saved,
    Tiling,
    blank,
    groups,
    of_group,
    parts_of,
    rows_of_dropout,
)
from .sums import add_steps, add_vectors

CHUNK_ROWS = 8192  # products of several steps are joined up to about this many rows
ADD_BLOCK = 1024
ADD_ROWS, ADD_UNITS = 128, 32  # of vectors, at once
SUMS_TYPE = {torch.bfloat16: torch.bfloat16}  # of four words' gradients, which have no more digits than that themselves
ADDS_IN_PRODUCT = "dtype_out" in torch.ops.aten.addmm.overloads()  # since PyTorch 2.8


def backward(
    dh: Tensor | None,
    dg: Tensor | None,
    dc_g: Tensor | None,
    x: Tensor,
    s: Saved,
    lengths: Tensor | None,
    drop_h: Tensor | None,
    drop_g: Tensor | None,
    H: int,
    options: Options,
    dtype: torch.dtype,
) -> list[Tensor]:
    """The gradients of x and of every weight, the latter in `dtype`. A missing gradient of an output is zero."""
    packed = Packed(*s[-3:])
    B, N, D = x.shape
    given = dh, dg, dc_g, x, *s, lengths, drop_h, drop_g
    launches = Launches.like(("backward", x.shape, H, options, dtype), x.device, given)
    T, Hp = options.num_steps, packed.vectors.shape[1]
    drops = rows_of_dropout(drop_h, Hp, x), rows_of_dropout(drop_g, Hp, x)
    d_x = torch.empty_like(x)
    dQ = x.new_empty(T, B, NODE_BLOCKS * Hp)
    gradients = Packed(
        torch.empty_like(packed.words, dtype=torch.float32),
        torch.empty_like(packed.sentence),
        torch.empty_like(packed.vectors, dtype=torch.float32),
    )
    node, beside = Node(x, packed.sentence, packed.b, launches), Beside(x.device)
    with beside():
        gradients.words.zero_()
    d_c_g = torch.zeros_like(s.c_g[0])
    if dc_g is not None and options.need_sentence:
        d_c_g[:, :H] = dc_g
    if dg is None:
        dg = x.new_zeros(B, H)
    beside.join()
    parts, dgh = groups(B, N, Hp, packed.words.shape[1], options), node.new_gradient(x)
    d_first = gradients.words.new_empty(s.first.shape)
    d_h_0 = gradients.words.new_empty(len(parts), start_programs(Hp), Hp)
    for number, group in enumerate(parts):
        rows = slice(group.start * N, group.stop * N)
        of_lengths, of_drops = of_group(group, rows, lengths, drops, x)
        dh_group = x.new_zeros(rows.stop - rows.start, H) if dh is None else dh[group].flatten(0, 1)
        of_steps = (s.h, options.kept_steps), (s.c, options.kept_steps), (s.products, options.kept_products)
        h, c, kept_products = (
            of[kept * rows.start : kept * rows.stop].view(kept, dh_group.shape[0], of.shape[1]) for of, kept in of_steps
        )
        backward_of_group(
            dh_group,
            dg[group],
            x[group],
            h,
            c.unbind(),
            kept_products,
            Q=s.Q[:, group].unbind(),
            dQ=dQ[:, group].unbind(),
            c_g=s.c_g[:, group].unbind(),
            log_z=s.log_z[:, group].unbind(),
            d_c_g=d_c_g[group],
            dgh=dgh[group],
            d_first=d_first,
            d_h_0=d_h_0[number],
            first=s.first,
            packed=packed,
            node=node,
            beside=beside,
            gradients=gradients,
            d_x=d_x[group],
            lengths=of_lengths,
            drops=of_drops,
            options=options,
            group=number,
            launches=launches,
        )
    grid = parts_of(Hp, ADD_UNITS), VECTORS, 1
    add = launches.of("vectors", lambda: Launch(add_vectors, grid, Hp=Hp, ROWS=ADD_ROWS, UNITS=ADD_UNITS))
    sizes = T * B, d_h_0.shape[0] * d_h_0.shape[1], dgh.numel() // Hp, B
    add(dQ, d_h_0, dgh, d_c_g, gradients.vectors, *sizes)
    torch.mm(dQ.view(T * B, -1).t(), s.gh.view(T * B, -1), out=gradients.sentence)
    return [d_x, *unpack(gradients, d_first, packed.h_0, H, D, dtype, launches)]


def backward_of_group(
    dh: Tensor,
    dg: Tensor,
    x: Tensor,
    h: Tensor,
    c: Sequence[Tensor],
    kept_products: Tensor,
    Q: Sequence[Tensor],
    dQ: Sequence[Tensor],
    c_g: Sequence[Tensor],
    log_z: Sequence[Tensor],
    d_c_g: Tensor,
    dgh: Tensor,
    d_first: Tensor,
    d_h_0: Tensor,
    first: Tensor,
    packed: Packed,
    node: Node,
    beside: Beside,
    gradients: Packed,
    d_x: Tensor,
    lengths: Tensor,
    drops: tuple[Tensor, Tensor],
    options: Options,
    group: int,
    launches: Launches,
) -> None:
    """All steps of one group of sentences, from the last to the first. Fills dQ, d_x, dgh and d_h_0, adds to
    `gradients` and, but for the first group, to d_first.

    Sequences have a tensor for every step: cutting them out one by one would cost as much as the small products."""
    B, N, D = x.shape
    T, M, Hp = options.num_steps, B * N, packed.vectors.shape[1]
    H = dh.shape[1]
    ragged, dropping = lengths.dim() == 1, drops[0].dim() == 2
    new = blank(x, lengths if ragged else None)
    full_steps, keep = options.full_steps, options.keep
    kept = len(kept_products)
    chunk = kept or (2 if keep == 2 else max(1, min(full_steps + 1, CHUNK_ROWS // M)))
    x_rows = h[0, :, 3 * Hp :] if kept and len(h) else pad_columns(x.flatten(0, 1), launches, group)
    width = packed.words.shape[1]  # of a row [h_left, h, h_right, x]
    gates = 7 * Hp
    most = max(1, MOST_PRODUCTS // (M * BLOCKS * Hp))  # steps in one product for the weights' gradient
    P = kept_products if kept else x.new_empty(chunk, M, BLOCKS * Hp)  # products, then their gradients
    xi = x.new_empty(0 if kept else chunk, M, width)
    put_columns(xi, x_rows, 3 * Hp)
    dxi_parts = gradient_parts(M, Hp, x.device) if node.in_parts else 1
    dxi = x.new_empty(dxi_parts, M, 3 * Hp)
    dP_sum = x.new_empty(M, gates)  # over the steps: all of them read the same x
    products, h_steps = P.unbind(), h.unbind()
    tiling = Tiling.of(N, Hp)
    sums = x.new_empty(B, tiling.tiles, 9, Hp, dtype=SUMS_TYPE.get(x.dtype, torch.float32))
    dc = x.new_empty(2, M + 2 * B * tiling.tiles, Hp).unbind()
    words, c_0 = packed.words.t(), packed.c_0
    shared = {"Hp": Hp, "SHARP": options.sharp, "FAST": x.dtype.itemsize == 2, "RAGGED": ragged}

    h_again, c_again = new(keep - 1, M, Hp), x.new_empty(keep - 1, M, Hp)  # of a step that was not kept

    def state(t: int) -> tuple[Tensor, Tensor]:
        """h and c after step t: kept, or what was computed again last."""
        return (h_steps[t // keep], c[t // keep]) if t % keep == 0 else (h_again[0], c_again[0])

    def recompute(t: int, place: int, steps: int) -> None:
        """What the word products of the steps t, t+1, .. are made of, and the products, with U x."""
        grid = parts_of(N, 32), parts_of(Hp, 64), steps * B
        name = group, "gather", steps
        gather = launches.of(name, lambda: Launch(gather_neighbours, grid, RAGGED=ragged, ROWS=32, UNITS=64))
        gather(h[t - 1 : t - 1 + steps] if keep == 1 else state(t - 1)[0], xi[place], lengths, N, B, Hp, width)
        rows = slice(place, place + steps)
        torch.mm(xi[rows].view(-1, width), words, out=P[rows].view(-1, BLOCKS * Hp))

    def launch_advance() -> Launch:
        return Launch(
            forward_step,
            tiling.grid(B),
            p_row=BLOCKS * Hp,
            h_row=Hp,
            xi_row=width,
            FIRST=False,
            LAST=False,
            NEED_WORDS=True,
            NEED_SENTENCE=False,
            STORE_H=True,
            STORE_XI=False,
            X_TERM=False,
            DROP=dropping,
            **shared,
            **tiling.launch(x, FORWARD_REGISTERS),
        )

    def advance(t: int) -> None:
        """Step t of the words once more, from the product in P[0]."""
        launches.of((group, "advance"), launch_advance)(
            P[0],
            first,
            P[0],
            Q[t],
            state(t - 1)[1],
            packed.c_0,
            c_g[t],
            c_again[0],
            h_again[0],
            P[0],
            sums,
            lengths,
            drops[0],
            N,
            tiling.tiles,
            0,
        )

    def constants_of(t: int) -> dict[str, int]:
        last = t == T - 1
        of_step = shared | {"dh_row": H, "FIRST": t == 0, "LAST": last, "DROP": dropping and not last}
        of_step |= {"IN_PARTS": node.in_parts, "NEED_WORDS": options.need_words or not last}
        return of_step | {"NEED_SENTENCE": options.need_sentence or not last}

    def launch_step(t: int, with_x_term: bool) -> Launch:
        shape = tiling.launch(x, BACKWARD_REGISTERS) | {"DXI_PARTS": dxi_parts, "X_TERM": with_x_term}
        return Launch(backward_step, tiling.grid(B), **constants_of(t), **shape)

    def launch_close(t: int) -> Launch:
        return Launch(close_gradient, (tiling.unit_blocks, B, 9), **constants_of(t), **tiling.closing(UNITS))

    def step(t: int, product: Tensor, x_term: Tensor | None = None) -> None:
        """The kernel of step t: the gradient takes the place of the word product. x_term: U x, where it is apart."""
        last = t == T - 1
        launch = launches.of((group, "step", t == 0, last), lambda: launch_step(t, x_term is not None))
        close = launches.of((group, "close", t == 0, last), lambda: launch_close(t))
        launch(
            product,
            first,
            product if x_term is None else x_term,
            Q[t],
            state(t - 1)[1] if t else product,
            c_0,
            c_g[t],
            c_g[t + 1],
            log_z[t],
            dh if last else dxi,
            dc[(t + 1) % 2],
            dc[t % 2],
            dg if last else dgh,
            d_c_g,
            sums,
            lengths,
            *drops,
            N,
            tiling.tiles,
            0,
        )
        with beside():
            of_node = Q[t], dQ[t], c_g[t], c_g[t + 1], log_z[t], dg if last else dgh, d_c_g
            close(sums, *of_node, lengths, drops[1], N, tiling.tiles)
            node.products_gradient(dQ[t], dgh)

    def launch_add(again: bool) -> Launch:
        grid = parts_of(M * gates, ADD_BLOCK), 1, 1
        return Launch(add_steps, grid, Hp=Hp, AGAIN=again, BLOCK=ADD_BLOCK, num_warps=4)

    def to_start(gradient: Tensor) -> None:
        start_gradient(gradient, dQ[0], packed, d_first, d_h_0, N, lengths if ragged else None, group, launches)

    if T > 1 and not options.need_words:  # the last step has no word update: of its products only U_f h
        if (T - 2) % keep:
            recompute(T - 2, 0, 1)
            advance(T - 2)
        h_before = state(T - 2)[0]
        if kept:
            h_before = h_before[:, Hp : 2 * Hp]
        product = torch.mm(h_before, packed.U_f.t())
        step(T - 1, product)
        dxi.zero_()
        dxi[0, :, Hp : 2 * Hp] = torch.mm(product, packed.U_f)
        add_product(gradients.U_f, product.t(), h_before)
        beside.join()
    top = full_steps
    while top >= 0:  # steps top, top-1, .. low, each in its place of P; the state before step low was kept
        low = max(0, top - chunk + 1) if keep == 1 else max(0, top - (top - 1) % 2)
        begin, steps = max(low, 1), top - low + 1  # the first step has no product of words
        if top >= begin and not kept:
            recompute(begin, begin - low, top - begin + 1 if keep == 1 else 1)
            if keep == 2 and steps == 2:
                advance(low)
                recompute(top, 1, 1)
        for t in range(top, begin - 1, -1):
            gradient = products[t - low]
            step(t, gradient, products[0] if kept and node.in_parts else None)
            if node.in_parts:
                multiply_gradient(gradient, packed, dxi, launches)
            else:
                torch.mm(gradient, packed.W, out=dxi[0])
            beside.join()
        if low == 0:
            if not kept:
                torch.mm(x_rows, packed.U.t(), out=products[0][:, :gates])
            step(0, products[0], products[0])
        launches.of((group, "add", top < full_steps), partial(launch_add, top < full_steps))(P, dP_sum, M, steps)
        if low == 0:
            beside.join()
            to_start(products[0])
            add_product(gradients.U, dP_sum.t(), x_rows)
            put_columns(d_x.view(M, D), torch.mm(dP_sum, packed.U)[:, :D])
        rows = h[begin - 1 : top] if kept else xi[begin - low : steps]
        for some in range(0, len(rows), most):
            of_steps = P[begin - low : steps][some : some + most].view(-1, BLOCKS * Hp)
            of_rows = rows[some : some + most].view(-1, width)[:, : 3 * Hp]
            add_product(gradients.W, of_steps.t(), of_rows)
        top = low - 1
    if full_steps < 0:  # a single step without words
        gradient = x.new_zeros(M, Hp)
        step(0, gradient)
        beside.join()
        to_start(F.pad(gradient, (7 * Hp, 0)))
        d_x.zero_()


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """total += left @ right in float32; within the product where PyTorch offers that for 16-bit factors."""
    if left.dtype == torch.float32:
        total.addmm_(left, right)
    elif ADDS_IN_PRODUCT and total.is_cuda:
        torch.addmm(total, left, right, out_dtype=torch.float32, out=total)
    else:
        total.add_(torch.mm(left, right))
