"""Instructions on a worker's 32 float32 accumulators.

Accumulator 2m is the working one of matrix unit m, 2m+1 its delay line; set 0 is 0..15, set 1 is 16..31
(known). Each instruction adds in double precision and rounds each accumulator once (assumed: the hardware's
adder is wider than float32 but its details are not public).
"""

from __future__ import annotations

from .arrays import Singles, Words, put_sum, single_at, word_at
from .bits import SINGLE_NAN, UNKNOWN_OPERAND, nearest_single, single_value
from .float16 import half_value, round_half
from .registry import whole


def read_word(accumulators: Singles, index: int) -> int:
    """An accumulator as float32 bits; the payload of a NaN is not kept."""
    value = single_at(accumulators, index)
    return nearest_single(value) if value == value else SINGLE_NAN


@whole("f32v4acc")
def f32v4acc(x0: int, x1: int, x2: int, x3: int, accumulators: Singles) -> int:
    """A[0, 2, 4, 6] += x (known)."""
    put_sum(accumulators, 0, single_at(accumulators, 0) + single_value(x0))
    put_sum(accumulators, 2, single_at(accumulators, 2) + single_value(x1))
    put_sum(accumulators, 4, single_at(accumulators, 4) + single_value(x2))
    put_sum(accumulators, 6, single_at(accumulators, 6) + single_value(x3))
    return 0


@whole("f32v4sqacc")
def f32v4sqacc(x0: int, x1: int, x2: int, x3: int, accumulators: Singles) -> int:
    """A[0, 2, 4, 6] += x * x (known)."""
    put_sum(accumulators, 0, single_at(accumulators, 0) + single_value(x0) * single_value(x0))
    put_sum(accumulators, 2, single_at(accumulators, 2) + single_value(x1) * single_value(x1))
    put_sum(accumulators, 4, single_at(accumulators, 4) + single_value(x2) * single_value(x2))
    put_sum(accumulators, 6, single_at(accumulators, 6) + single_value(x3) * single_value(x3))
    return 0


@whole("f32v4absacc")
def f32v4absacc(x0: int, x1: int, x2: int, x3: int, accumulators: Singles) -> int:
    """A[0, 2, 4, 6] += abs(x) (known)."""
    return f32v4acc(x0 & 0x7FFFFFFF, x1 & 0x7FFFFFFF, x2 & 0x7FFFFFFF, x3 & 0x7FFFFFFF, accumulators)


def _add_halves(word: int, first: int, accumulators: Singles) -> int:
    put_sum(accumulators, first, single_at(accumulators, first) + half_value(word & 0xFFFF))
    put_sum(accumulators, first + 2, single_at(accumulators, first + 2) + half_value(word >> 16))
    return 0


def _add_squares(word: int, first: int, accumulators: Singles) -> int:
    low, high = half_value(word & 0xFFFF), half_value(word >> 16)
    put_sum(accumulators, first, single_at(accumulators, first) + low * low)
    put_sum(accumulators, first + 2, single_at(accumulators, first + 2) + high * high)
    return 0


@whole("f16v4acc")
def f16v4acc(x0: int, x1: int, accumulators: Singles) -> int:
    """A[2i] += half i, i = 0..3 (known)."""
    _add_halves(x0, 0, accumulators)
    return _add_halves(x1, 4, accumulators)


@whole("f16v8acc")
def f16v8acc(x0: int, x1: int, x2: int, x3: int, accumulators: Singles) -> int:
    """A[2i] += half i, i = 0..7 (known)."""
    f16v4acc(x0, x1, accumulators)
    _add_halves(x2, 8, accumulators)
    return _add_halves(x3, 12, accumulators)


@whole("f16v4absacc")
def f16v4absacc(x0: int, x1: int, accumulators: Singles) -> int:
    """A[2i] += abs(half i), i = 0..3 (known)."""
    return f16v4acc(x0 & 0x7FFF7FFF, x1 & 0x7FFF7FFF, accumulators)


@whole("f16v8absacc")
def f16v8absacc(x0: int, x1: int, x2: int, x3: int, accumulators: Singles) -> int:
    """A[2i] += abs(half i), i = 0..7 (known)."""
    return f16v8acc(x0 & 0x7FFF7FFF, x1 & 0x7FFF7FFF, x2 & 0x7FFF7FFF, x3 & 0x7FFF7FFF, accumulators)


@whole("f16v8sqacc")
def f16v8sqacc(x0: int, x1: int, x2: int, x3: int, accumulators: Singles) -> int:
    """A[2i] += half i squared, i = 0..7 (known)."""
    _add_squares(x0, 0, accumulators)
    _add_squares(x1, 4, accumulators)
    _add_squares(x2, 8, accumulators)
    return _add_squares(x3, 12, accumulators)


@whole("f32mac")
def f32mac(x: int, y: int, accumulators: Singles) -> int:
    """A[0] += x * y (known)."""
    put_sum(accumulators, 0, single_at(accumulators, 0) + single_value(x) * single_value(y))
    return 0


@whole("f32v2mac")
def f32v2mac(x0: int, x1: int, y0: int, y1: int, accumulators: Singles) -> int:
    """A[0] += x0 * y0; A[2] += x1 * y1 (known)."""
    put_sum(accumulators, 0, single_at(accumulators, 0) + single_value(x0) * single_value(y0))
    put_sum(accumulators, 2, single_at(accumulators, 2) + single_value(x1) * single_value(y1))
    return 0


@whole("f32v2aop")
def f32v2aop(x0: int, x1: int, y0: int, y1: int, flags: int, accumulators: Singles) -> int:
    """Outer product: A[0] += x0 * y0; A[2] += x1 * y0; A[4] += x0 * y1; A[6] += x1 * y1.

    The slots are those a published kernel reads back through gina (derived); the same source says that the
    flag operand does nothing (derived), so every value is accepted.
    """
    put_sum(accumulators, 0, single_at(accumulators, 0) + single_value(x0) * single_value(y0))
    put_sum(accumulators, 2, single_at(accumulators, 2) + single_value(x1) * single_value(y0))
    put_sum(accumulators, 4, single_at(accumulators, 4) + single_value(x0) * single_value(y1))
    put_sum(accumulators, 6, single_at(accumulators, 6) + single_value(x1) * single_value(y1))
    return 0


def _dot(x: int, y: int) -> float:
    """Sum of the two products of halves (exact)."""
    return half_value(x & 0xFFFF) * half_value(y & 0xFFFF) + half_value(x >> 16) * half_value(y >> 16)


@whole("f16v2cmac")
def f16v2cmac(x: int, y: int, accumulators: Singles) -> int:
    """A[0] += x . y (known)."""
    put_sum(accumulators, 0, single_at(accumulators, 0) + _dot(x, y))
    return 0


@whole("f16v4cmac")
def f16v4cmac(x0: int, x1: int, y0: int, y1: int, accumulators: Singles) -> int:
    """A[0] += low halves' dot product; A[2] += the high ones' (known)."""
    put_sum(accumulators, 0, single_at(accumulators, 0) + _dot(x0, y0))
    put_sum(accumulators, 2, single_at(accumulators, 2) + _dot(x1, y1))
    return 0


def _shift_in(first: int, value0: float, value1: float, accumulators: Singles) -> int:
    """Move a chain of eight down by two places and enter two values at its end."""
    for index in range(first, first + 12, 2):
        accumulators[index] = accumulators[index + 4]
    accumulators[first + 12] = value0
    accumulators[first + 14] = value1
    return 0


def read_halves(first: int, accumulators: Singles, control: int, draw: int, draw1: int) -> int:
    """A[first] and A[first + 2] rounded to halves, with flags."""
    low = round_half(single_at(accumulators, first), control, draw)
    high = round_half(single_at(accumulators, first + 2), control, draw1)
    return (low & 0xFFFF) | ((high & 0xFFFF) << 16) | ((low | high) & ~0xFFFFFFFF)


@whole("f32v2gina")
def f32v2gina(x0: int, x1: int, chain: int, accumulators: Singles) -> tuple[int, int]:
    """Get and initialise: read the first two of a chain, shift, enter x. `chain` = set * 2 + odd
    (derived)."""
    if chain > 3:
        return UNKNOWN_OPERAND, 0
    first = (chain >> 1) * 16 + (chain & 1)
    low = read_word(accumulators, first)
    high = read_word(accumulators, first + 2)
    _shift_in(first, single_value(x0), single_value(x1), accumulators)
    return low, high


@whole("f16v2gina")
def f16v2gina(x: int, chain: int, accumulators: Singles, control: int, draw: int, draw1: int) -> int:
    """`f32v2gina` with halves: rounded on the way out, widened on the way in (derived)."""
    if chain > 3:
        return UNKNOWN_OPERAND
    first = (chain >> 1) * 16 + (chain & 1)
    result = read_halves(first, accumulators, control, draw, draw1)
    _shift_in(first, half_value(x & 0xFFFF), half_value(x >> 16), accumulators)
    return result


@whole("f16v4gacc")
def f16v4gacc(
    accumulators: Singles, control: int, draw: int, draw1: int, draw2: int, draw3: int
) -> tuple[int, int]:
    """A[0, 2, 4, 6] as halves; nothing changes (known)."""
    return (
        read_halves(0, accumulators, control, draw, draw1),
        read_halves(4, accumulators, control, draw2, draw3),
    )


@whole("f32v2axpy")
def f32v2axpy(x0: int, x1: int, y0: int, y1: int, tas: int, accumulators: Singles) -> tuple[int, int]:
    """Deliver A[0], A[2], then A[0, 2] := $TAS * x + y (known)."""
    low, high = read_word(accumulators, 0), read_word(accumulators, 2)
    factor = single_value(tas)
    put_sum(accumulators, 0, factor * single_value(x0) + single_value(y0))
    put_sum(accumulators, 2, factor * single_value(x1) + single_value(y1))
    return low, high


@whole("f16v4mix")
def f16v4mix(
    x0: int,
    x1: int,
    y0: int,
    y1: int,
    tas: int,
    accumulators: Singles,
    control: int,
    draw: int,
    draw1: int,
    draw2: int,
    draw3: int,
) -> tuple[int, int]:
    """Deliver A[0, 2, 4, 6] as halves, then A[..] := $TAS.low * x + $TAS.high * y (known)."""
    low = read_halves(0, accumulators, control, draw, draw1)
    high = read_halves(4, accumulators, control, draw2, draw3)
    p, q = half_value(tas & 0xFFFF), half_value(tas >> 16)
    put_sum(accumulators, 0, p * half_value(x0 & 0xFFFF) + q * half_value(y0 & 0xFFFF))
    put_sum(accumulators, 2, p * half_value(x0 >> 16) + q * half_value(y0 >> 16))
    put_sum(accumulators, 4, p * half_value(x1 & 0xFFFF) + q * half_value(y1 & 0xFFFF))
    put_sum(accumulators, 6, p * half_value(x1 >> 16) + q * half_value(y1 >> 16))
    return low, high


@whole("f16v4stacc")
def f16v4stacc(phase: int, accumulator_words: Words) -> tuple[int, int]:
    """Transpose store: raw words out of the even or the odd chain (derived)."""
    if phase > 1:
        return UNKNOWN_OPERAND, 0
    low, high = word_at(accumulator_words, phase), word_at(accumulator_words, phase + 2)
    source = 8 if phase else 4
    accumulator_words[1] = accumulator_words[source]
    accumulator_words[3] = accumulator_words[source + 2]
    return low, high


@whole("f16v4istacc")
def f16v4istacc(x0: int, x1: int, y0: int, y1: int, phase: int, accumulator_words: Words) -> tuple[int, int]:
    """Transpose load: enter two rows of four halves as pairs, delivering raw words of the odd chain
    (derived)."""
    if phase > 1:
        return UNKNOWN_OPERAND, 0
    low, high = word_at(accumulator_words, 1), word_at(accumulator_words, 3)
    if phase == 0:
        accumulator_words[1] = accumulator_words[12]
        accumulator_words[3] = accumulator_words[14]
    first = 2 * phase
    accumulator_words[first] = (x0 & 0xFFFF) | ((y0 & 0xFFFF) << 16)
    accumulator_words[first + 4] = (x0 >> 16) | (y0 & 0xFFFF0000)
    accumulator_words[first + 8] = (x1 & 0xFFFF) | ((y1 & 0xFFFF) << 16)
    accumulator_words[first + 12] = (x1 >> 16) | (y1 & 0xFFFF0000)
    return low, high
