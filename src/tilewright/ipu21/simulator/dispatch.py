"""From a function number to the value function: the plain form of what `generate` writes for the compiler.

Used as it stands when the engine runs uncompiled. Results go to RESULT0 and RESULT1; the return value holds
the exception flags (bits 2:0 as in $FP_STS, bit 3: operand without a known meaning).
"""

from __future__ import annotations

from typing import Any

from ..isa.meaning.arrays import Integers
from ..isa.meaning.bits import WORD
from . import codes
from . import state as at
from .engine_registers import FP_INFMT, FP_ISCL, FP_NFMT, FP_SCL, TAS, csr_index
from .instruction_tables import Group, instruction_tables
from .pointers import accumulator_words, accumulators, half_weights, single_weights, weight_words


def _group(number: int) -> Group:
    return instruction_tables().groups[number]


def dispatch_main(function: int, x: int, y: int, z: int) -> int:
    """A value of the main pipeline."""
    meaning = _group(codes.GROUP_WORDS).functions[function]
    return int(meaning.function(*(x, y, z)[: len(meaning.parameters)]))


def dispatch_words(function: int, x: int, y: int) -> int:
    """A bitwise or lane value of the aux pipeline."""
    meaning = _group(codes.GROUP_AUX_WORDS).functions[function]
    return int(meaning.function(*(x, y)[: len(meaning.parameters)]))


def dispatch_halves(
    state: Integers, function: int, lanes: int, x: int, y: int, bounds: int, control: int, random: int
) -> int:
    """One function on each 16-bit lane of x and y (64 bits each)."""
    meaning = _group(codes.GROUP_HALVES).functions[function]
    flags, out = 0, 0
    for lane in range(lanes):
        shift = 16 * lane
        values = {
            "x": (x >> shift) & 0xFFFF,
            "y": (y >> shift) & 0xFFFF,
            "lower": bounds & 0xFFFF,
            "upper": bounds >> 16,
            "control": control,
            "draw": (random >> shift) & 0xFFFF,
        }
        result = int(meaning.function(*(values[name] for name in meaning.parameters)))
        flags |= result >> 32
        out |= (result & 0xFFFF) << shift
    state[at.RESULT0] = out & WORD
    state[at.RESULT1] = (out >> 32) & WORD
    return flags


def dispatch_singles(
    state: Integers, function: int, lanes: int, x0: int, x1: int, y0: int, y1: int, control: int
) -> int:
    """One function on each float32 lane."""
    meaning = _group(codes.GROUP_SINGLES).functions[function]
    flags = 0
    for lane in range(lanes):
        values = {
            "x": x1 if lane else x0,
            "y": y1 if lane else y0,
            "lower": y0,
            "upper": y1,
            "control": control,
        }
        result = int(meaning.function(*(values[name] for name in meaning.parameters)))
        flags |= result >> 32
        state[at.RESULT0 + lane] = result & WORD
    return flags


def _whole(
    state: Integers, context: int, group: Group, function: int, words: dict[str, int], control: int
) -> int:
    values: dict[str, Any] = dict(words)
    random = [int(state[at.RANDOM + index]) for index in range(4)]
    values |= {f"random{index}": random[index] for index in range(4)}
    values |= {
        "draw": random[0] & 0xFFFF,
        "draw1": random[0] >> 16,
        "draw2": random[1] & 0xFFFF,
        "draw3": random[1] >> 16,
        "control": control,
        "tas": int(state[csr_index(context, TAS)]),
        "number_format": int(state[csr_index(context, FP_NFMT)]) & 1,
        "scale": signed_scale(int(state[csr_index(context, FP_SCL)])),
        "input_format": int(state[csr_index(0, FP_INFMT)]) & 3,
        "input_scale": signed_scale(int(state[csr_index(0, FP_ISCL)])),
        "accumulators": accumulators(state, context),
        "accumulator_words": accumulator_words(state, context),
        "weights": half_weights(state),
        "single_weights": single_weights(state),
        "weight_words": weight_words(state),
    }
    result = group.functions[function].function(*(values[name] for name in group.arguments[function]))
    results = result if isinstance(result, tuple) else (result, 0)
    state[at.RESULT0] = results[0] & WORD
    state[at.RESULT1] = results[1] & WORD
    return int((results[0] | results[1]) >> 32)


def signed_scale(value: int) -> int:
    """The low six bits, signed (derived)."""
    return (value & 31) - (value & 32)


def dispatch_whole(
    state: Integers,
    context: int,
    function: int,
    x0: int,
    x1: int,
    x2: int,
    x3: int,
    y0: int,
    y1: int,
    y2: int,
    y3: int,
    immediate: int,
    control: int,
) -> int:
    """A function of whole registers."""
    words = {"x0": x0, "x1": x1, "x2": x2, "x3": x3, "y0": y0, "y1": y1, "y2": y2, "y3": y3}
    words["immediate"] = immediate
    return _whole(state, context, _group(codes.GROUP_WHOLE), function, words, control)


def dispatch_state(
    state: Integers,
    context: int,
    function: int,
    x0: int,
    x1: int,
    x2: int,
    x3: int,
    y0: int,
    y1: int,
    y2: int,
    y3: int,
    immediate: int,
    control: int,
) -> int:
    """A function that works on accumulators or weights."""
    words = {"x0": x0, "x1": x1, "x2": x2, "x3": x3, "y0": y0, "y1": y1, "y2": y2, "y3": y3}
    words["immediate"] = immediate
    return _whole(state, context, _group(codes.GROUP_STATE), function, words, control)
