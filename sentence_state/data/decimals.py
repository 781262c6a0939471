"""Text of many decimal numbers -> float32, about four times as fast as np.fromstring and equal to it.

Numbers such as -0.067874 are read with integer arithmetic, eight digits at once: a 64-bit word that holds eight
characters becomes four pairs, two fours and one number of eight digits in three multiplications. Mantissa and power of
ten are both exact in float64, so their quotient is rounded once, as that of float() is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WORD = np.dtype("<u8")  # the first character is the lowest byte, on any machine
POWERS = 10.0 ** np.arange(15)
LAST = np.array([(2**64 - 1) << (64 - 8 * count) & (2**64 - 1) for count in range(9)], WORD)  # masks of the last bytes
ZEROS, LOW, HIGH, SIX = (np.uint64(int(byte * 8, 16)) for byte in ("30", "0f", "f0", "06"))
STEPS = ((2561, 8, 0x00FF00FF00FF00FF), (6553601, 16, 0x0000FFFF0000FFFF), (42949672960001, 32, 2**64 - 1))
UNUSUAL = 0.1  # share of other numbers (exponents, integers, long ones) from which float() on all of them is faster


def parse_decimals(text: bytes) -> NDArray[np.float32]:
    """Numbers separated by single spaces; a ValueError for anything else."""
    data = b" " * 16 + text + b" "  # so that sixteen characters lie before the end of every number
    characters = np.frombuffer(data, np.uint8)
    marks = np.flatnonzero((characters == 32) | (characters == 46))[15:]  # positions of spaces and points
    spaces = np.flatnonzero(characters[marks] == 32)
    starts, ends = marks[spaces[:-1]] + 1, marks[spaces[1:]]
    points = marks[spaces[:-1] + 1]  # of the numbers that have one
    negative = characters[starts] == 45
    decimals = ends - points - 1
    usual = (np.diff(spaces) == 2) & (decimals > 0) & (decimals < 15) & (points - starts - negative == 1)
    decimals[~usual] = 1
    fraction, valid = read_digits(data, ends, np.minimum(decimals, 8))
    if decimals.max(initial=0) > 8:
        front, valid_front = read_digits(data, ends - 8, np.maximum(decimals - 8, 0))
        fraction, valid = fraction + front * np.uint64(10**8), valid & valid_front
    first = characters[points - 1] - np.uint8(48)  # below zero it wraps around: 255 is no digit either
    usual &= valid & (first < 10)
    powers = POWERS[decimals]
    values: NDArray[np.float64] = (first * powers + fraction) / powers
    np.negative(values, out=values, where=negative)
    others = np.flatnonzero(~usual)
    if len(others) > UNUSUAL * len(values):
        return parse_slowly(text, len(values))
    values[others] = [float(data[starts[i] : ends[i]]) for i in others]
    return values.astype(np.float32)


def read_digits(
    data: bytes, ends: NDArray[np.int64], count: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The number written in the last `count` characters (up to 8) before each end, and whether they all are digits."""
    words = np.ndarray((len(data) - 7,), WORD, data, strides=(1,))[ends - 8]  # eight characters each
    mask = LAST[count]
    words &= mask
    zeros = ZEROS & mask
    valid = ((words & HIGH) == zeros) & (((words + (SIX & mask)) & HIGH) == zeros)  # from "0" on, and up to "9"
    words &= LOW
    for factor, shift, keep in STEPS:
        words *= np.uint64(factor)
        words >>= np.uint64(shift)
        words &= np.uint64(keep)
    return words, valid


def parse_slowly(text: bytes, count: int) -> NDArray[np.float32]:
    values = np.array([float(number) for number in text.split(b" ")], np.float32)
    if len(values) != count:
        raise ValueError(f"expected {count} numbers, got {len(values)}")
    return values
