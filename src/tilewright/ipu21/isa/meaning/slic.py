"""The matrix unit: SLIC instructions, a convolution by four taps, one pixel per instruction.

Partial sums move from units 6, 7 of a set to 4, 5, to 2, 3, to 0, 1; each stage adds its own dot product. A
pixel's result leaves four instructions after its partial sums entered (known). The flag operand selects
weight entry 0 or 1 of every unit (numbers are private: provisional); the three-tap mode has no known flag.

The single-precision forms take two instructions per pixel, first for the low word of every weight entry
(L), then for the high one (U) (known). Their flags have neither public names nor numbers; here bit 0 is 0 for
L and 1 for U, bit 1 selects weight entry 0 or 1 (assumed).
"""

from __future__ import annotations

from .accumulate import read_word
from .amp import pair_of_halves
from .arrays import Singles, Words, put_sum, single_at
from .bits import UNKNOWN_OPERAND, single_value
from .float8 import float8_dot
from .float16 import half_value
from .products import dot_of_halves, lane_of
from .registry import whole


def slide(
    first: int, x0: int, x1: int, entry: int, p0: float, p1: float, accumulators: Singles, weights: Singles
) -> int:
    """One set of eight units: every stage takes its sum from the stage before."""
    a, b = half_value(x0 & 0xFFFF), half_value(x0 >> 16)
    c, d = half_value(x1 & 0xFFFF), half_value(x1 >> 16)
    base = 64 * entry
    for unit in range(first, first + 8):
        dot = dot_of_halves(a, b, c, d, weights, base + lane_of(unit))
        if unit < first + 6:
            source = single_at(accumulators, 2 * unit + 4)
        else:
            source = p0 if unit == first + 6 else p1
        put_sum(accumulators, 2 * unit, source + dot)
    return 0


def finished(first: int, accumulators: Singles, control: int, draw: int, draw1: int) -> int:
    """The sums that leave a set, as halves."""
    low, high = single_at(accumulators, 2 * first), single_at(accumulators, 2 * first + 2)
    return pair_of_halves(low, high, control, draw, draw1)


@whole("f16v4hihoslic")
def f16v4hihoslic(
    x0: int,
    x1: int,
    p: int,
    flags: int,
    accumulators: Singles,
    weights: Singles,
    control: int,
    draw: int,
    draw1: int,
) -> int:
    """Set 0, half partials in and half results out."""
    if flags > 1:
        return UNKNOWN_OPERAND
    result = finished(0, accumulators, control, draw, draw1)
    slide(0, x0, x1, flags, half_value(p & 0xFFFF), half_value(p >> 16), accumulators, weights)
    return result


@whole("f16v4sihoslic")
def f16v4sihoslic(
    x0: int,
    x1: int,
    p0: int,
    p1: int,
    flags: int,
    accumulators: Singles,
    weights: Singles,
    control: int,
    draw: int,
    draw1: int,
) -> int:
    """Set 0, single partials in and half results out."""
    if flags > 1:
        return UNKNOWN_OPERAND
    result = finished(0, accumulators, control, draw, draw1)
    slide(0, x0, x1, flags, single_value(p0), single_value(p1), accumulators, weights)
    return result


@whole("f16v4sisoslic")
def f16v4sisoslic(
    x0: int, x1: int, p0: int, p1: int, flags: int, accumulators: Singles, weights: Singles
) -> tuple[int, int]:
    """Set 0, single partials in and single results out."""
    if flags > 1:
        return UNKNOWN_OPERAND, 0
    low, high = read_word(accumulators, 0), read_word(accumulators, 2)
    slide(0, x0, x1, flags, single_value(p0), single_value(p1), accumulators, weights)
    return low, high


@whole("f16v4hihov4slic")
def f16v4hihov4slic(
    x0: int,
    x1: int,
    p0: int,
    p1: int,
    flags: int,
    accumulators: Singles,
    weights: Singles,
    control: int,
    draw: int,
    draw1: int,
    draw2: int,
    draw3: int,
) -> tuple[int, int]:
    """Both sets, half partials in and half results out."""
    if flags > 1:
        return UNKNOWN_OPERAND, 0
    low = finished(0, accumulators, control, draw, draw1)
    high = finished(8, accumulators, control, draw2, draw3)
    slide(0, x0, x1, flags, half_value(p0 & 0xFFFF), half_value(p0 >> 16), accumulators, weights)
    slide(8, x0, x1, flags, half_value(p1 & 0xFFFF), half_value(p1 >> 16), accumulators, weights)
    return low, high


def slide_float8(
    first: int,
    x0: int,
    x1: int,
    entry: int,
    p: int,
    accumulators: Singles,
    weight_words: Words,
    formats: int,
    scale: int,
) -> int:
    """`slide` with eight FP8 elements per weight entry."""
    for unit in range(first, first + 8):
        dot = float8_dot(x0, x1, 4 * unit + entry, weight_words, formats, scale)
        if unit < first + 6:
            source = single_at(accumulators, 2 * unit + 4)
        else:
            source = half_value(p & 0xFFFF) if unit == first + 6 else half_value(p >> 16)
        put_sum(accumulators, 2 * unit, source + dot)
    return 0


@whole("f8v8hihov4slic")
def f8v8hihov4slic(
    x0: int,
    x1: int,
    p0: int,
    p1: int,
    flags: int,
    accumulators: Singles,
    weight_words: Words,
    input_format: int,
    input_scale: int,
    control: int,
    draw: int,
    draw1: int,
    draw2: int,
    draw3: int,
) -> tuple[int, int]:
    """Both sets, FP8 elements, half partials in and half results out."""
    if flags > 1:
        return UNKNOWN_OPERAND, 0
    low = finished(0, accumulators, control, draw, draw1)
    high = finished(8, accumulators, control, draw2, draw3)
    slide_float8(0, x0, x1, flags, p0, accumulators, weight_words, input_format, input_scale)
    slide_float8(8, x0, x1, flags, p1, accumulators, weight_words, input_format, input_scale)
    return low, high


def multiply_stages(first: int, x: float, word: int, accumulators: Singles, single_weights: Singles) -> int:
    """One set of eight units: add x times one word of each unit's weight entries, numbered 0..7."""
    for unit in range(first, first + 8):
        product = x * single_at(single_weights, 8 * unit + word)
        put_sum(accumulators, 2 * unit, single_at(accumulators, 2 * unit) + product)
    return 0


def slide_single(
    first: int, x: float, word: int, p0: float, p1: float, accumulators: Singles, single_weights: Singles
) -> int:
    """One set of eight units: every stage takes its sum from the stage before and adds one product."""
    for unit in range(first, first + 8):
        if unit < first + 6:
            source = single_at(accumulators, 2 * unit + 4)
        else:
            source = p0 if unit == first + 6 else p1
        put_sum(accumulators, 2 * unit, source + x * single_at(single_weights, 8 * unit + word))
    return 0


@whole("f32sisoslic")
def f32sisoslic(
    x: int, p0: int, p1: int, flags: int, accumulators: Singles, single_weights: Singles
) -> tuple[int, int]:
    """Set 0. L moves the sums on, takes partial sums and delivers results (known); U only adds its products.

    U ignores the partial sums it is given, which are zero in the published sequence, and delivers zero
    (assumed).
    """
    if flags > 3:
        return UNKNOWN_OPERAND, 0
    value = single_value(x)
    if flags & 1:
        multiply_stages(0, value, flags, accumulators, single_weights)
        return 0, 0
    low, high = read_word(accumulators, 0), read_word(accumulators, 2)
    slide_single(0, value, flags, single_value(p0), single_value(p1), accumulators, single_weights)
    return low, high


@whole("f32sisov2slic")
def f32sisov2slic(
    x: int, p0: int, p1: int, flags: int, accumulators: Singles, single_weights: Singles
) -> tuple[int, int]:
    """Both sets, four channels: L takes and delivers the sums of set 0, U those of set 1 (assumed).

    Only the number of channels is public. As in `f32sisov2amp`, each instruction of a pair carries one set's
    sums. Both sets move on with L; the sums that leave set 1 then wait in its delay line, A[17] and A[19],
    for U, which adds the partial sums of set 1 together with its products.
    """
    if flags > 3:
        return UNKNOWN_OPERAND, 0
    value = single_value(x)
    if flags & 1:
        low, high = read_word(accumulators, 17), read_word(accumulators, 19)
        multiply_stages(0, value, flags, accumulators, single_weights)
        multiply_stages(8, value, flags, accumulators, single_weights)
        put_sum(accumulators, 28, single_at(accumulators, 28) + single_value(p0))
        put_sum(accumulators, 30, single_at(accumulators, 30) + single_value(p1))
        return low, high
    low, high = read_word(accumulators, 0), read_word(accumulators, 2)
    accumulators[17] = accumulators[16]
    accumulators[19] = accumulators[18]
    slide_single(0, value, flags, single_value(p0), single_value(p1), accumulators, single_weights)
    slide_single(8, value, flags, 0.0, 0.0, accumulators, single_weights)
    return low, high
