"""What both passes share: their options, what is kept between them, and how the work is cut into groups and tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

import torch
import triton
from torch import Tensor
from torch.nn import functional as F

from .layout import BLOCKS, PARTS

# Sentences never meet: while training they are taken in groups of about this many rows, and the buffers of a step are
# as large as one group. The second number is for little memory. Where all products are kept, one group has them all.
GROUP_ROWS = (16384, 2560)
MOST_PRODUCTS = 2**31  # in a group: kernels count with 32 bits
MOST_SENTENCES = 2**16 - 1  # in a group: the second side of a grid
# A program has one warp, and a thread of it two units in every row: sums over rows need no exchange. Registers of a
# thread: as few as types of 16 bits need, for more programs at once.
ROWS, UNITS, FORWARD_REGISTERS, BACKWARD_REGISTERS = 4, 64, 96, 168
SUMS_AT_ONCE = 256  # of tiles, added up by the warps of one program: as many as their registers hold
LAUNCHES_COMPILED = (3, 3) <= tuple(map(int, triton.__version__.split(".")[:2])) <= (3, 7)  # as `Launch` does it


class Options(NamedTuple):
    num_steps: int
    sharp: bool
    need_words: bool
    need_sentence: bool
    keep: int  # h and c of every keep-th step are kept for the backward pass, 1 or 2; 0: nothing is
    keep_products: bool  # and the word products of every step, with what they are made of

    @property
    def kept_steps(self) -> int:
        """Steps 0, keep, 2 keep, .. of all but the last."""
        return parts_of(self.num_steps - 1, self.keep) if self.keep else 0

    @property
    def full_steps(self) -> int:
        """Steps after the first that have a word product; -1 for a single step without words."""
        return self.num_steps - 1 if self.need_words else self.num_steps - 2

    @property
    def kept_products(self) -> int:
        """Those of the full steps, and U x."""
        return self.full_steps + 1 if self.keep_products else 0


class Saved(NamedTuple):
    """What the backward pass reads besides x."""

    first: Tensor  # (3, 8 Hp)
    h: Tensor  # (kept steps M, Hp): for every group the steps that are kept; with products rows [h_left, h, h_right, x]
    c: Tensor  # (kept steps M, Hp)
    products: Tensor  # (kept products M, 8 Hp): for every group of sentences U x, then W xi of each full step, with U x
    # but for few words
    c_g: Tensor  # (T+1, B, Hp) float32
    gh: Tensor  # (T, B, 2 Hp): before every step
    Q: Tensor  # (T, B, 12 Hp): the last two rows where there are few words
    log_z: Tensor  # (T, B, Hp) float32
    words: Tensor  # the packed weights
    sentence: Tensor
    vectors: Tensor


class Tiling(NamedTuple):
    """How a sentence and its units are cut into programs."""

    tiles: int
    unit_blocks: int

    @classmethod
    def of(cls, N: int, columns: int) -> Tiling:
        return cls(parts_of(N, ROWS), parts_of(columns, UNITS))

    def grid(self, B: int) -> tuple[int, int, int]:
        return self.tiles * self.unit_blocks, B, 1

    def launch(self, x: Tensor, registers: int) -> dict[str, int]:
        shape = {"ROWS": ROWS, "UNITS": UNITS, "num_warps": 1}
        return shape | {"maxnreg": registers} if x.element_size() == 2 else shape

    def closing(self, units: int) -> dict[str, int]:
        """The shape of a launch that adds up the sums of a sentence's tiles."""
        at_once = min(SUMS_AT_ONCE, max(16, power_of_2(self.tiles)))  # one kernel for all short sentences
        return {"ROWS": ROWS, "UNITS": units, "AT_ONCE": at_once, "num_warps": max(1, at_once // 32)}


class Launch:
    """A kernel and its constants, which stand behind the arguments in its signature. Triton takes 19 us to look up one
    with 20 arguments, 6 to launch it: a kernel that was looked up for arguments of the same kind is launched as it is,
    and one object is for arguments that differ in nothing but the memory that they name."""

    known: ClassVar[dict[tuple[object, ...], Any]] = {}  # what was looked up, for which kind of arguments

    def __init__(self, kernel: Any, grid: tuple[int, int, int], **constants: int) -> None:
        self.kernel, self.grid, self.constants = kernel, grid, constants
        self.launch: Callable[..., None] | None = None
        self.values: list[int] = []

    def __call__(self, *arguments: Tensor | int) -> None:
        if self.launch is None:
            kind = (self.kernel.fn, *self.constants.items(), *map(kind_of, arguments)) if LAUNCHES_COMPILED else ()
            compiled = self.known.get(kind)
            if compiled is None:
                compiled = self.kernel[self.grid](*arguments, **self.constants)
                if compiled is not None and kind:  # None: Triton's interpreter
                    self.known[kind] = compiled
                return
            self.values = [self.constants[name] for name in self.kernel.arg_names[len(arguments) :]]
            self.launch = compiled[self.grid]  # at last: another thread may launch from now on
        self.launch(*arguments, *self.values)


class Launches(dict[object, Launch]):
    """The launches of a pass over the batch, by name. The next one over tensors of the same kinds and sizes has the
    same ones: to make them anew took a sixth of the time that an eager pass spends on the CPU."""

    kept: ClassVar[dict[tuple[object, ...], Launches]] = {}
    MOST = 256  # passes whose launches are kept

    @classmethod
    def like(cls, sizes: tuple[object, ...], device: torch.device, tensors: Iterable[Tensor | None]) -> Launches:
        """Those of passes with these sizes, and with tensors like these that come from outside."""
        key = (sizes, device, *(None if tensor is None else kind_of(tensor) for tensor in tensors))
        found = cls.kept.get(key)
        if found is None:
            if len(cls.kept) >= cls.MOST:
                cls.kept.clear()
            found = cls.kept[key] = cls()
        return found

    def of(self, name: object, make: Callable[[], Launch]) -> Launch:
        found = self.get(name)
        if found is None:
            found = self[name] = make()
        return found


def kind_of(argument: Tensor | int) -> object:
    """All that Triton compiles a kernel for: where and of what type memory is, and where between multiples of 16 bytes
    it and so each part of it begins; that a number is one, such a multiple, or more than 32 bits hold."""
    if isinstance(argument, int):
        return argument == 1, argument % 16 == 0, argument >= 2**31
    return argument.device, argument.dtype, argument.data_ptr() % 16


def power_of_2(least: int) -> int:
    """The next one. Triton's own function takes microseconds a call, several for every launch."""
    return 1 << (least - 1).bit_length()


def parts_of(whole: int, size: int) -> int:
    """How many of this size, the last one perhaps in part."""
    return -(-whole // size)


def rows_of_dropout(mask: Tensor | None, Hp: int, x: Tensor) -> Tensor:
    """A dropout mask as rows of Hp; x stands in for a missing one, and is not read."""
    return x if mask is None else F.pad(mask.flatten(0, -2), (0, Hp - mask.shape[-1]))


def blank(x: Tensor, lengths: Tensor | None) -> Callable[..., Tensor]:
    """Kernels do not write at padding: buffers in which it could be read start at zero."""
    return x.new_empty if lengths is None else x.new_zeros


def groups(B: int, N: int, Hp: int, row: int, options: Options) -> list[slice]:
    """Slices of the batch, of nearly equal size; all of it where nothing is kept, or all products are, if kernels can
    count the products, the rows of `row` numbers that they are made of, and the sentences."""
    number = round(B * N / GROUP_ROWS[options.keep - 1]) if options.keep and not options.keep_products else 1
    most = max(1, MOST_PRODUCTS // max(N * BLOCKS * Hp, N * row, PARTS * Hp))  # sentences
    number = max(number, parts_of(B, min(most, MOST_SENTENCES)))
    size = parts_of(B, min(B, max(1, number)))
    return [slice(start, min(B, start + size)) for start in range(0, B, size)]


def of_group(
    group: slice, rows: slice, lengths: Tensor | None, drops: tuple[Tensor, Tensor], x: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The lengths and dropout masks of one group; x stands in where there are none, and is not read."""
    drop_h, drop_g = drops
    return x if lengths is None else lengths[group], (x, x) if drop_h is x else (drop_h[rows], drop_g[group])
