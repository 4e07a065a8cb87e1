"""Elementary functions, rounded from their double value.

The hardware's results are not public; these are the correctly rounded ones up to the error of the C library's
double functions (assumed). exp(0) is exactly 1 (known).
"""

from __future__ import annotations

import math

from .bits import DIVIDE, INVALID, SINGLE_NAN, is_single_nan, single_value
from .float16 import half_value, round_half
from .float32 import f32_div, round_single
from .registry import halves, singles

LN2 = 0.6931471805599453
INFINITY = math.inf
NAN = math.nan


def exp_value(x: float) -> float:
    if x > 700.0:
        return 1e300 if x - x == 0.0 else x
    return 0.0 if x < -745.0 else math.exp(x)


def exp2_value(x: float) -> float:
    if x > 1000.0:
        return 1e300 if x - x == 0.0 else x
    return 0.0 if x < -1070.0 else math.pow(2.0, x)


def ln_value(x: float) -> float:
    """Natural logarithm; minus infinity at zero, NaN below."""
    if x > 0.0:
        return math.log(x) if x - x == 0.0 else x
    return -INFINITY if x == 0.0 else NAN


def log2_value(x: float) -> float:
    """Binary logarithm; minus infinity at zero, NaN below."""
    if x > 0.0:
        return math.log2(x) if x - x == 0.0 else x
    return -INFINITY if x == 0.0 else NAN


def sigm_value(x: float) -> float:
    """1 / (1 + exp(-x))."""
    if x != x:
        return x
    if x >= 0.0:
        return 1.0 / (1.0 + exp_value(-x))
    small = exp_value(x)
    return small / (1.0 + small)


def _log_flags(x: float) -> int:
    """DIV0 for the logarithm of zero, INV for that of a negative number."""
    if x == 0.0:
        return DIVIDE
    return INVALID if x < 0.0 else 0


@halves("f16v2exp")
def f16_exp(x: int, control: int, draw: int) -> int:
    return round_half(exp_value(half_value(x)), control, draw)


@halves("f16v2exp2")
def f16_exp2(x: int, control: int, draw: int) -> int:
    return round_half(exp2_value(half_value(x)), control, draw)


@halves("f16v2ln")
def f16_ln(x: int, control: int, draw: int) -> int:
    value = half_value(x)
    return round_half(ln_value(value), control, draw) | _log_flags(value)


@halves("f16v2log2")
def f16_log2(x: int, control: int, draw: int) -> int:
    value = half_value(x)
    return round_half(log2_value(value), control, draw) | _log_flags(value)


@halves("f16v2tanh")
def f16_tanh(x: int, control: int, draw: int) -> int:
    return round_half(math.tanh(half_value(x)), control, draw)


@halves("f16v2sigm")
def f16_sigm(x: int, control: int, draw: int) -> int:
    return round_half(sigm_value(half_value(x)), control, draw)


@singles("f32exp")
def f32_exp(x: int, control: int) -> int:
    return round_single(exp_value(single_value(x)), 0.0, control)


@singles("f32exp2")
def f32_exp2(x: int, control: int) -> int:
    return round_single(exp2_value(single_value(x)), 0.0, control)


@singles("f32ln")
def f32_ln(x: int, control: int) -> int:
    value = single_value(x)
    return round_single(ln_value(value), 0.0, control) | _log_flags(value)


@singles("f32log2")
def f32_log2(x: int, control: int) -> int:
    value = single_value(x)
    return round_single(log2_value(value), 0.0, control) | _log_flags(value)


@singles("f32tanh")
def f32_tanh(x: int, control: int) -> int:
    return round_single(math.tanh(single_value(x)), 0.0, control)


@singles("f32sigm")
def f32_sigm(x: int, control: int) -> int:
    return round_single(sigm_value(single_value(x)), 0.0, control)


@singles("f32sqrt")
def f32_sqrt(x: int, control: int) -> int:
    if is_single_nan(x):
        return SINGLE_NAN
    if x > 0x80000000:
        return SINGLE_NAN | INVALID
    if x == 0x80000000 or x == 0x7F800000:
        return x
    value = single_value(x)
    root = math.sqrt(value)
    # Only the nearest mode is certain to be the correct rounding of the true root.
    return round_single(root, value - root * root, control)


@singles("f32oox")
def f32_oox(x: int, control: int) -> int:
    """1 / x."""
    return f32_div(0x3F800000, x, control)


@singles("f32oorx")
def f32_oorx(x: int, control: int) -> int:
    """1 / sqrt(x)."""
    if is_single_nan(x):
        return SINGLE_NAN
    value = single_value(x)
    if value == 0.0:
        return (x & 0x80000000) | 0x7F800000 | DIVIDE
    if value < 0.0:
        return SINGLE_NAN | INVALID
    if x == 0x7F800000:
        return 0
    return round_single(1.0 / math.sqrt(value), 0.0, control)
