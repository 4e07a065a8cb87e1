"""Aux instructions: operand fetch, the value function, landing of the results. Compiled; see `compile`.

Results wait in RESULT0 and RESULT1 until the main half of the bundle has read its operands.
"""

from __future__ import annotations

from ..isa.meaning.arrays import Integers
from ..isa.meaning.float16 import ESR
from . import state as at
from .codes import (
    GROUP_AUX_WORDS,
    GROUP_HALVES,
    GROUP_SINGLES,
    GROUP_UPPER,
    GROUP_WHOLE,
)
from .dispatch import (
    dispatch_halves,
    dispatch_singles,
    dispatch_state,
    dispatch_whole,
    dispatch_words,
)
from .engine_checks import unsupported
from .engine_decode import FIRST, FOURTH, IMMEDIATE_OF, INFO_OF, SECOND
from .engine_memory import fault
from .engine_registers import FP_CTL, FP_STS, csr_index, draw, upper_access
from .instruction_tables import (
    IMMEDIATE_PLACE,
    INFO_BROADCAST,
    INFO_DRAWS,
    INFO_DRAWS_ALWAYS,
    INFO_GROUP,
    INFO_LANES,
    INFO_QUICK_ZERO,
    INFO_RESULTS,
    INFO_SLOTS,
)
from .stops import FLOATING_POINT


def operand(state: Integers, context: int, entry: Integers, place: int) -> int:
    """A one-word operand: a register or the immediate."""
    register = entry[place]
    if register == IMMEDIATE_PLACE:
        return int(entry[IMMEDIATE_OF])
    return int(state[at.REGISTER_STRIDE * context + register])


def record_flags(state: Integers, context: int, flags: int) -> int:
    """Sticky exception flags; an exception if $FP_CTL enables one of them."""
    state[csr_index(context, FP_STS)] |= flags & 7
    if flags & state[csr_index(context, FP_CTL)] & 7:
        return fault(state, FLOATING_POINT, context, -1)
    return 0


def aux_words(state: Integers, context: int, entry: Integers) -> int:
    """Bitwise and lane instructions on A registers."""
    info = entry[INFO_OF]
    x = operand(state, context, entry, FIRST)
    broadcast = (info >> INFO_BROADCAST) & 3
    if broadcast == 2:
        x = (x & 0xFFFF) * 0x10001
    elif broadcast == 3:
        x = (x >> 16) * 0x10001
    y = operand(state, context, entry, SECOND)
    function = info & 1023
    state[at.RESULT0] = dispatch_words(function, x, y)
    if (info >> INFO_RESULTS) & 3 == 2:
        base = at.REGISTER_STRIDE * context + 1
        state[at.RESULT1] = dispatch_words(function, state[base + entry[FIRST]], state[base + entry[SECOND]])
    return 0


def execute_aux(state: Integers, context: int, entry: Integers) -> int:
    """Compute an aux instruction; returns 1 after recording a stop."""
    info = entry[INFO_OF]
    group = (info >> INFO_GROUP) & 15
    state[at.SLOTS] = (info >> INFO_SLOTS) & 15
    if group == GROUP_AUX_WORDS:
        return aux_words(state, context, entry)
    if group == GROUP_UPPER:
        return upper_access(state, context, entry, (info & 1023) != 0)
    control = state[csr_index(context, FP_CTL)]
    draws = (info >> INFO_DRAWS) & 3
    if draws and (control & ESR or (info >> INFO_DRAWS_ALWAYS) & 1):
        draw(state, context, 0)
        if draws == 2:
            draw(state, context, 2)
    base = at.REGISTER_STRIDE * context
    x, y = base + entry[FIRST], base + entry[SECOND]
    x0, x1, x2, x3 = state[x], state[x + 1], state[x + 2], state[x + 3]
    y0, y1, y2, y3 = state[y], state[y + 1], state[y + 2], state[y + 3]
    broadcast = (info >> INFO_BROADCAST) & 3
    if broadcast:
        if broadcast == 2:
            x0 = (x0 & 0xFFFF) * 0x10001
        elif broadcast == 3:
            x0 = (x0 >> 16) * 0x10001
        x1 = x0
    function = info & 1023
    lanes = (info >> INFO_LANES) & 7
    if (info >> INFO_QUICK_ZERO) & 1 and (x0 & 0x7FFF7FFF) == 0:
        state[at.SLOTS] = 1
    if group == GROUP_HALVES:
        random = state[at.RANDOM] | (state[at.RANDOM + 1] << 32)
        flags = dispatch_halves(state, function, lanes, x0 | (x1 << 32), y0 | (y1 << 32), y0, control, random)
    elif group == GROUP_SINGLES:
        flags = dispatch_singles(state, function, lanes, x0, x1, y0, y1, control)
    elif group == GROUP_WHOLE:
        flags = dispatch_whole(
            state, context, function, x0, x1, x2, x3, y0, y1, y2, y3, entry[IMMEDIATE_OF], control
        )
    else:
        flags = dispatch_state(
            state, context, function, x0, x1, x2, x3, y0, y1, y2, y3, entry[IMMEDIATE_OF], control
        )
    if flags:
        if flags & 8:
            return unsupported(state, context)
        return record_flags(state, context, flags)
    return 0


def land(state: Integers, context: int, entry: Integers) -> int:
    """Write the waiting result words to the destination."""
    results = (entry[INFO_OF] >> INFO_RESULTS) & 3
    number = entry[FOURTH]
    if results and number < at.A_REGISTERS + 8:
        target = at.REGISTER_STRIDE * context + number
        state[target] = state[at.RESULT0]
        if results == 2:
            state[target + 1] = state[at.RESULT1]
    return 0
