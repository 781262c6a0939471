"""The forward pass over all steps: buffers, cuBLAS's products and the kernel between them, in order. For the backward
pass it keeps h and c of every step, or of every second one, the small tensors of the sentence, and if it is told to
the products and their left factors, of which h is a part."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from ..equations import Weights
from ..recurrence import can_count
from ..streams import Beside
from .few_words import Node, multiply_words
from .first import start
from .forward import close_step, forward_step
from .layout import BLOCKS, PARTS, padded
from .packing import pack, pad_columns, put_padded
from .plan import (
    FORWARD_REGISTERS,
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

# From this many rows on, U_f h is a product of its own beside that of the gates: within one product of all blocks, two
# or three of its four places are zero. In the backward pass the same was slower.
SPLIT_ROWS = 4096
CLOSING_UNITS = 32  # of a program that adds up the sums of tiles, four for a unit


def forward(
    x: Tensor,
    weights: Weights,
    lengths: Tensor | None,
    drop_h: Tensor | None,
    drop_g: Tensor | None,
    options: Options,
) -> list[Tensor]:
    """h (B, N, H), g (B, H), c_g (B, H), each with no rows where it is not needed, then `Saved` if anything is kept."""
    B, N, D = x.shape
    if not can_count(N, len(weights.h_0), D):  # in compiled code; elsewhere nobody comes here
        raise RuntimeError(f"the kernels cannot count {N} words of {max(D, len(weights.h_0))} numbers")
    H, M, T, keep, steps_kept = weights.h_0.shape[0], B * N, options.num_steps, options.keep, options.kept_steps
    Hp = padded(H)
    launches = Launches.like(("forward", x.shape, H, options), x.device, (x, *weights, lengths, drop_h, drop_g))
    packed, beside = pack(weights, x.dtype, launches), Beside(x.device)
    words = blank(x, lengths)(M if options.need_words else 0, H)
    g, c_g_last = (x.new_empty(B if options.need_sentence else 0, H) for _ in range(2))
    width = packed.words.shape[1] if options.keep_products else Hp
    h_kept, c_kept = blank(x, lengths)(steps_kept * M, width), x.new_empty(steps_kept * M, Hp)
    products_kept = x.new_empty(options.kept_products * M, BLOCKS * Hp)
    c_g = x.new_empty(T + 1, B, Hp, dtype=torch.float32)
    gh = x.new_empty(T, B, 2 * Hp)
    node = Node(x, packed.sentence, packed.b, launches)
    Q, log_z = x.new_empty(T, B, PARTS * Hp), torch.empty_like(c_g[1:])
    first = x.new_empty(3, BLOCKS * Hp)
    with beside():
        start(packed, first, gh[0], c_g[0], launches)
    drops = rows_of_dropout(drop_h, Hp, x), rows_of_dropout(drop_g, Hp, x)
    tiling = Tiling.of(N, Hp)
    dropping = drop_h is not None
    x_in_products = options.keep_products and not node.in_parts
    shared = {"Hp": Hp, "SHARP": options.sharp, "FAST": x.dtype.itemsize == 2, "RAGGED": lengths is not None}

    def launch_step(b: int, t: int, store_h: bool, with_words: bool, with_sentence: bool) -> Launch:
        last = t == T - 1
        return Launch(
            forward_step,
            tiling.grid(b),
            p_row=BLOCKS * Hp if with_words else Hp,
            h_row=H if last else Hp,
            xi_row=packed.words.shape[1] if options.keep_products else 3 * Hp,
            FIRST=t == 0,
            LAST=last,
            NEED_WORDS=with_words,
            NEED_SENTENCE=with_sentence,
            STORE_H=last or store_h,
            STORE_XI=not last,
            X_TERM=t == 0 or not x_in_products,
            DROP=dropping and not last,
            **shared,
            **tiling.launch(x, FORWARD_REGISTERS),
        )

    def launch_close(b: int, last: bool) -> Launch:
        grid, closing = (parts_of(Hp, CLOSING_UNITS), b, 1), tiling.closing(CLOSING_UNITS)
        constants = {"g_row": H, "IN_PARTS": node.in_parts, "LAST": last, "DROP": dropping and not last}
        return Launch(close_step, grid, **constants, **shared, **closing)

    for group in groups(B, N, Hp, packed.words.shape[1], options):
        rows = slice(group.start * N, group.stop * N)
        b, m = group.stop - group.start, rows.stop - rows.start
        h_steps, c_steps = (
            kept[steps_kept * rows.start : steps_kept * rows.stop].view(steps_kept, m, kept.shape[1])
            for kept in (h_kept, c_kept)
        )
        spare = x.new_empty({0: 2, 1: 0, 2: 1}[keep], m, Hp)  # for cells that are not kept
        cells = [c_steps[t // keep] if keep and t % keep == 0 else spare[t % spare.shape[0]] for t in range(T - 1)]
        if kept := options.kept_products:
            products = products_kept[kept * rows.start : kept * rows.stop].view(kept, m, BLOCKS * Hp)
        else:
            products = x.new_empty(2, m, BLOCKS * Hp)
        gh_steps, c_g_steps, Q_steps, log_z_steps = (of[:, group].unbind() for of in (gh, c_g, Q, log_z))
        with beside():
            node.products(gh_steps[0], Q_steps[0])
        x_rows = x[group].flatten(0, 1)
        W = packed.words.t() if x_in_products else packed.W.t()
        xi_steps = list(h_steps.unbind()) if options.keep_products else [blank(x, lengths)(m, 3 * Hp)] * (T - 1)
        if options.keep_products and steps_kept:
            put_padded(x_rows, h_steps if x_in_products else h_steps[:1], 3 * Hp, launches, group.start)
            x_rows = xi_steps[0][:, 3 * Hp :]
        else:
            x_rows = pad_columns(x_rows, launches, group.start)
        sums = x.new_empty(b, tiling.tiles, 4, Hp, dtype=torch.float32)
        of_lengths, of_drops = of_group(group, rows, lengths, drops, x)
        U_f, c_0 = packed.U_f.t(), packed.c_0
        x_term, gates, split = products[0], 7 * Hp, m >= SPLIT_ROWS
        torch.mm(x_rows, packed.U.t(), out=x_term[:, :gates])
        for t in range(T):
            last = t == T - 1
            store_h = keep > 0 and t % keep == 0 and not options.keep_products
            with_words, with_sentence = options.need_words or not last, options.need_sentence or not last
            product = x_term  # not read in the first step
            if t and with_words:
                product = products[t if options.keep_products else 1]
                if node.in_parts:
                    multiply_words(xi_steps[t - 1], packed, product, launches)
                elif split:
                    with beside():
                        torch.mm(xi_steps[t - 1][:, Hp : 2 * Hp], U_f, out=product[:, gates:])
                    torch.mm(xi_steps[t - 1], W[:, :gates], out=product[:, :gates])
                else:
                    torch.mm(xi_steps[t - 1], W, out=product)
            elif t:
                product = torch.mm(xi_steps[t - 1][:, Hp : 2 * Hp], U_f)
            beside.join()
            name = group.start, t == 0, last, store_h
            launches.of(name, partial(launch_step, b, t, store_h, with_words, with_sentence))(
                product,
                first,
                x_term,
                Q_steps[t],
                cells[t - 1] if t else x_term,
                c_0,
                c_g_steps[t],
                x_term if last else cells[t],
                words[rows] if last else h_steps[t // keep] if store_h else x_term,
                x_term if last else xi_steps[t],
                sums,
                of_lengths,
                of_drops[0],
                N,
                tiling.tiles,
                0,
            )
            close = launches.of((group.start, last), partial(launch_close, b, last))
            of_node = sums, Q_steps[t], c_g_steps[t], c_g_steps[t + 1]
            of_sentence = log_z_steps[t], of_lengths, of_drops[1], N, tiling.tiles
            if not last:  # the next product of the words does not wait for it
                with beside():
                    close(*of_node, gh_steps[t + 1], sums, *of_sentence)
                    node.products(gh_steps[t + 1], Q_steps[t + 1])
            elif with_sentence:
                close(*of_node, g[group], c_g_last[group], *of_sentence)
    outputs = [words.view(-1, N, H), g, c_g_last]
    return outputs + (list(Saved(first, h_kept, c_kept, products_kept, c_g, gh, Q, log_z, *packed)) if keep else [])
