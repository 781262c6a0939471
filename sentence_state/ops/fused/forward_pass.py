"""The forward pass over all steps: buffers, cuBLAS's products and the kernel between them, in order. For the backward
pass it keeps h and c of every step, or of every second one, the small tensors of the sentence, and the products if it
is told to."""

from __future__ import annotations

import torch
from torch import Tensor

from ..equations import Weights
from .first import start
from .forward import forward_step
from .layout import BLOCKS, NODE_BLOCKS, pad_columns, padded
from .packing import pack
from .plan import FORWARD_TILE, Beside, Options, Saved, Tiling, blank, groups, of_group, rows_of_dropout


def forward(
    x: Tensor,
    weights: Weights,
    lengths: Tensor | None,
    drop_h: Tensor | None,
    drop_g: Tensor | None,
    options: Options,
) -> list[Tensor]:
    """h (B, N, H), g (B, H), c_g (B, H), each with no rows where it is not needed, then `Saved` if anything is kept."""
    B, N, _ = x.shape
    H, M, T, keep, K = len(weights.h_0), B * N, options.num_steps, options.keep, options.kept_steps
    Hp = padded(H)
    packed = pack(weights, x.dtype)
    words = blank(x, lengths)(M if options.need_words else 0, H)
    h_kept, c_kept = blank(x, lengths)(K * M, Hp), x.new_empty(K * M, Hp)
    products_kept = x.new_empty(options.kept_products * M, BLOCKS * Hp)
    c_g = x.new_empty(T + 1, B, Hp, dtype=torch.float32)
    gh = x.new_empty(T + 1, B, 2 * Hp)
    Q, log_z = x.new_empty(T, B, NODE_BLOCKS * Hp), torch.empty_like(c_g[1:])
    first = start(packed, gh[0], c_g[0])
    drops = rows_of_dropout(drop_h, Hp, x), rows_of_dropout(drop_g, Hp, x)
    tiling, beside = Tiling.of(N, Hp, *FORWARD_TILE), Beside(x)
    for group in groups(B, N, Hp, keep):
        rows = slice(group.start * N, group.stop * N)
        b, m = group.stop - group.start, rows.stop - rows.start
        h_steps, c_steps = (kept[K * rows.start : K * rows.stop].view(K, m, Hp) for kept in (h_kept, c_kept))
        spare = x.new_empty({0: 2, 1: 0, 2: 1}[keep], m, Hp)  # for cells that are not kept
        cells = [c_steps[t // keep] if keep and t % keep == 0 else spare[t % len(spare)] for t in range(T - 1)]
        if kept := options.kept_products:
            products = products_kept[kept * rows.start : kept * rows.stop].view(kept, m, BLOCKS * Hp)
        else:
            products = x.new_empty(2, m, BLOCKS * Hp)
        x_term = torch.mm(pad_columns(x[group].flatten(0, 1)), packed.U.t(), out=products[0])
        xi = x.new_zeros(m, 3 * Hp)
        partial, counter = tiling.sums(x, b, 4, Hp)
        of_lengths, of_drops = of_group(group, rows, lengths, drops, x)
        gh_steps, c_g_steps, Q_steps, log_z_steps = (of[:, group].unbind() for of in (gh, c_g, Q, log_z))
        W, sentence, bias, c_0, launch = packed.W.t(), packed.sentence.t(), packed.b, packed.c_0, tiling.launch()
        for t in range(T):
            last = t == T - 1
            with_words, with_sentence = options.need_words or not last, options.need_sentence or not last
            with beside():
                torch.addmm(bias, gh_steps[t], sentence, out=Q_steps[t])
            product = x_term  # not read in the first step
            if t and with_words:
                product = torch.mm(xi, W, out=products[t if options.keep_products else 1])
            elif t:
                product = torch.mm(xi[:, Hp : 2 * Hp], packed.U_f.t())
            beside.join()
            forward_step[(tiling.tiles, tiling.unit_blocks, b)](
                product,
                first,
                x_term,
                Q_steps[t],
                cells[t - 1] if t else xi,
                c_0,
                c_g_steps[t],
                xi if last else cells[t],
                words[rows] if last else h_steps[t // keep] if keep and t % keep == 0 else xi,
                xi,
                c_g_steps[t + 1],
                gh_steps[t + 1],
                log_z_steps[t],
                partial,
                counter,
                of_lengths,
                *of_drops,
                N,
                Hp,
                product.shape[1],
                H if last else Hp,
                tiling.tiles,
                FIRST=t == 0,
                LAST=last,
                NEED_WORDS=with_words,
                NEED_SENTENCE=with_sentence,
                STORE_H=last or (keep > 0 and t % keep == 0),
                STORE_XI=not last,
                X_TERM=True,
                SHARP=options.sharp,
                FAST=x.dtype.itemsize == 2,
                DROP=drop_h is not None and not last,
                RAGGED=lengths is not None,
                **launch,
            )
    sentences = B if options.need_sentence else 0
    outputs = [words.view(-1, N, H), gh[T, :sentences, :H].clone(), c_g[T, :sentences, :H].to(x.dtype, copy=True)]
    return outputs + (list(Saved(first, h_kept, c_kept, products_kept, c_g, gh, Q, log_z, *packed)) if keep else [])
