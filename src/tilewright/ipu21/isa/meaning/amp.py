"""The matrix unit: AMP instructions.

16 units in two sets of eight. Unit m multiplies the instruction's inner elements with one of its four weight
entries and adds to its working accumulator A[2m]; the delay line A[2m+1] carries finished sums towards unit
0 and partial sums in from unit 7 (known). How sums are rounded is in `products`.

The flag operand holds the engines that take part in bits 5:4 (0: all four per set, 1: two, 2: one; two units
each) and the phase in bits 3:0 (numbers are private: provisional).

Weight arrays: `weights` holds halves, see `products`; `single_weights[2 * (4 * unit + entry) + element]` the
same entries read as float32.
"""

from __future__ import annotations

from .accumulate import read_word
from .arrays import Singles, Words, put_sum, single_at
from .bits import UNKNOWN_OPERAND, single_value
from .float8 import multiply_float8
from .float16 import half_value, round_half
from .products import dot_of_halves, lane_of
from .registry import whole


def multiply_halves(
    x0: int, x1: int, phase: int, units: int, sets: int, accumulators: Singles, weights: Singles
) -> int:
    """Every unit's multiply-add with four halves; phase 0 also swaps working and delay accumulators."""
    a, b = half_value(x0 & 0xFFFF), half_value(x0 >> 16)
    c, d = half_value(x1 & 0xFFFF), half_value(x1 >> 16)
    base = 64 * phase
    for first in range(0, 8 * sets, 8):
        for unit in range(first, first + units):
            work = single_at(accumulators, 2 * unit)
            dot = dot_of_halves(a, b, c, d, weights, base + lane_of(unit))
            before = single_at(accumulators, 2 * unit + 1) if phase == 0 else work
            put_sum(accumulators, 2 * unit, before + dot)
            if phase == 0:
                accumulators[2 * unit + 1] = work
    return 0


def multiply_all_halves(x0: int, x1: int, phase: int, accumulators: Singles, weights: Singles) -> int:
    """`multiply_halves` with all sixteen units, the usual case."""
    a, b = half_value(x0 & 0xFFFF), half_value(x0 >> 16)
    c, d = half_value(x1 & 0xFFFF), half_value(x1 >> 16)
    base = 64 * phase
    source = 1 if phase == 0 else 0
    for unit in range(16):
        dot = dot_of_halves(a, b, c, d, weights, base + lane_of(unit))
        total = single_at(accumulators, 2 * unit + source) + dot
        if phase == 0:
            accumulators[2 * unit + 1] = accumulators[2 * unit]
        put_sum(accumulators, 2 * unit, total)
    return 0


def shift_set(first: int, units: int, partial0: float, partial1: float, accumulators: Singles) -> int:
    """Move a set's delay line two units towards its first unit and enter two partial sums at its end."""
    for unit in range(first, first + units - 2):
        accumulators[2 * unit + 1] = accumulators[2 * unit + 5]
    last = 2 * (first + units - 1) + 1
    accumulators[last - 2] = partial0
    accumulators[last] = partial1
    return 0


def flag_units(flags: int) -> int:
    """Units per set that take part in a half-precision AMP, or 0 if the flags are not known."""
    engines, phase = flags >> 4, flags & 15
    if engines == 0 and phase < 4:
        return 8
    if engines == 1 and phase < 2:
        return 4
    return 2 if engines == 2 and phase == 0 else 0


def pair_of_halves(low: float, high: float, control: int, draw: int, draw1: int) -> int:
    """Two doubles rounded to the halves of a word, with flags."""
    a, b = round_half(low, control, draw), round_half(high, control, draw1)
    return (a & 0xFFFF) | ((b & 0xFFFF) << 16) | ((a | b) & ~0xFFFFFFFF)


@whole("f16v4hihov4amp")
def f16v4hihov4amp(
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
    """Both sets, half partials in and half results out: elements 0, 1 belong to set 0, 2, 3 to set 1."""
    units = flag_units(flags)
    if units == 0:
        return UNKNOWN_OPERAND, 0
    if units == 8:
        multiply_all_halves(x0, x1, flags & 15, accumulators, weights)
    else:
        multiply_halves(x0, x1, flags & 15, units, 2, accumulators, weights)
    low = pair_of_halves(single_at(accumulators, 1), single_at(accumulators, 3), control, draw, draw1)
    high = pair_of_halves(single_at(accumulators, 17), single_at(accumulators, 19), control, draw2, draw3)
    shift_set(0, units, half_value(p0 & 0xFFFF), half_value(p0 >> 16), accumulators)
    shift_set(8, units, half_value(p1 & 0xFFFF), half_value(p1 >> 16), accumulators)
    return low, high


@whole("f16v4hihoamp")
def f16v4hihoamp(
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
    """Set 0 only, half partials in and half results out."""
    units = flag_units(flags)
    if units == 0:
        return UNKNOWN_OPERAND
    multiply_halves(x0, x1, flags & 15, units, 1, accumulators, weights)
    low = pair_of_halves(single_at(accumulators, 1), single_at(accumulators, 3), control, draw, draw1)
    shift_set(0, units, half_value(p & 0xFFFF), half_value(p >> 16), accumulators)
    return low


@whole("f16v4sihoamp")
def f16v4sihoamp(
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
    """Set 0 only, single partials in and half results out."""
    units = flag_units(flags)
    if units == 0:
        return UNKNOWN_OPERAND
    multiply_halves(x0, x1, flags & 15, units, 1, accumulators, weights)
    low = pair_of_halves(single_at(accumulators, 1), single_at(accumulators, 3), control, draw, draw1)
    shift_set(0, units, single_value(p0), single_value(p1), accumulators)
    return low


@whole("f16v4sisoamp")
def f16v4sisoamp(
    x0: int, x1: int, p0: int, p1: int, flags: int, accumulators: Singles, weights: Singles
) -> tuple[int, int]:
    """Set 0 only, single partials in and single results out."""
    units = flag_units(flags)
    if units == 0:
        return UNKNOWN_OPERAND, 0
    multiply_halves(x0, x1, flags & 15, units, 1, accumulators, weights)
    low, high = read_word(accumulators, 1), read_word(accumulators, 3)
    shift_set(0, units, single_value(p0), single_value(p1), accumulators)
    return low, high


@whole("f8v8hihov4amp")
def f8v8hihov4amp(
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
    """Both sets, eight FP8 elements, half partials in and half results out; sums scaled by 2**$FP_ISCL."""
    units = flag_units(flags)
    if units == 0:
        return UNKNOWN_OPERAND, 0
    multiply_float8(x0, x1, flags & 15, units, accumulators, weight_words, input_format, input_scale)
    low = pair_of_halves(single_at(accumulators, 1), single_at(accumulators, 3), control, draw, draw1)
    high = pair_of_halves(single_at(accumulators, 17), single_at(accumulators, 19), control, draw2, draw3)
    shift_set(0, units, half_value(p0 & 0xFFFF), half_value(p0 >> 16), accumulators)
    shift_set(8, units, half_value(p1 & 0xFFFF), half_value(p1 >> 16), accumulators)
    return low, high


def single_flag_units(flags: int) -> int:
    """Units per set that take part in a single-precision AMP, or 0 if the flags are not known."""
    engines, phase = flags >> 4, flags & 15
    if engines == 0 and phase < 8:
        return 8
    return 4 if engines == 1 and phase < 4 else 0


def multiply_single(
    x: int, phase: int, units: int, sets: int, accumulators: Singles, single_weights: Singles
) -> int:
    """Every unit's multiply-add with one single; phase p takes word p & 1 of entry p >> 1, phase 0 swaps."""
    factor = single_value(x)
    for first in range(0, 8 * sets, 8):
        for unit in range(first, first + units):
            product = factor * single_at(single_weights, 8 * unit + phase)
            work = single_at(accumulators, 2 * unit)
            if phase == 0:
                put_sum(accumulators, 2 * unit, single_at(accumulators, 2 * unit + 1) + product)
                accumulators[2 * unit + 1] = work
            else:
                put_sum(accumulators, 2 * unit, work + product)
    return 0


@whole("f32sisoamp")
def f32sisoamp(
    x: int, p0: int, p1: int, flags: int, accumulators: Singles, single_weights: Singles
) -> tuple[int, int]:
    """Set 0 only; results leave and partials enter on even phases, odd phases deliver zero (assumed)."""
    units = single_flag_units(flags)
    if units == 0:
        return UNKNOWN_OPERAND, 0
    multiply_single(x, flags & 15, units, 1, accumulators, single_weights)
    if flags & 1:
        return 0, 0
    low, high = read_word(accumulators, 1), read_word(accumulators, 3)
    shift_set(0, units, single_value(p0), single_value(p1), accumulators)
    return low, high


@whole("f32sisov2amp")
def f32sisov2amp(
    x: int, p0: int, p1: int, flags: int, accumulators: Singles, single_weights: Singles
) -> tuple[int, int]:
    """Both sets multiply on every phase; even phases shift set 0, odd phases set 1 (known)."""
    units = single_flag_units(flags)
    if units == 0:
        return UNKNOWN_OPERAND, 0
    multiply_single(x, flags & 15, units, 2, accumulators, single_weights)
    first = 8 * (flags & 1)
    low = read_word(accumulators, 2 * first + 1)
    high = read_word(accumulators, 2 * first + 3)
    shift_set(first, units, single_value(p0), single_value(p1), accumulators)
    return low, high
