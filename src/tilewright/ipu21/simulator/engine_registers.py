"""Control registers, the pseudo-random generator's state and branches. Compiled; see `compile`."""

from __future__ import annotations

from ..isa.meaning.arrays import Integers, Singles, word_at
from ..isa.meaning.bits import WORD, rounding_mode
from ..isa.meaning.float16 import half_value
from ..isa.meaning.prng import next_s0, next_s1, output, seeded
from ..isa.meaning.products import lane_of
from . import state as at
from .codes import BR, BRI, BRNEG, BRNZ, BRNZDEC, BRPOS, BRZ
from .engine_decode import FIRST, IMMEDIATE_OF
from .engine_memory import fault, set_main
from .instruction_tables import CSRS_AT
from .pointers import accumulators, half_weights, integers_at, tables, weight_words
from .stops import UNKNOWN_CSR

PC, WSR, REPEAT_COUNT, REPEAT_FIRST, REPEAT_END, COUNT_LOW, COUNT_HIGH = 0, 1, 4, 5, 6, 0x60, 0x61
FP_STS, FP_CLR, FP_CTL, PRNG, PRNG_SEED, TAS, FP_NFMT, FP_SCL = (
    0x100,
    0x101,
    0x102,
    0x103,
    0x107,
    0x108,
    0x109,
    0x10A,
)
SSR, CR, TILE_ID, FP_ICTL, WORKER_BASE, FP_INFMT, FP_ISCL, CCCSLOAD = 1, 2, 3, 0x20, 0x21, 0x31, 0x33, 0x50
CTXT_STS = 0x72
INCOMING_MUX, INCOMING_MUXPAIR, INCOMING_FORMAT, INCOMING_BASE, OUTGOING_BASE, OUTGOING_DELTA = (
    0xA0,
    0xA1,
    0xA3,
    0xA4,
    0xA7,
    0xA8,
)
EXCHANGE_CTL = 0xA9
DOWNWARD = 2
"""Rounding mode of $FP_CTL: to minus infinity (derived)."""
ZAACC = 8
"""Bit of $FP_CLR: zero all accumulators (known)."""
ZCWEI = 4
"""Bit of $CR: zero all weights (known)."""


def csr_index(context: int, number: int) -> int:
    """Where a control register sits in the state array."""
    return at.CSRS + at.CSR_STRIDE * context + number


def csr_exists(state: Integers, context: int, number: int) -> bool:
    return bool(((tables(state)[CSRS_AT + number] >> (1 if context else 0)) & 1) != 0)


def draw(state: Integers, context: int, place: int) -> int:
    """Step a worker's generator once; the 64 bits go to RANDOM + place."""
    base = csr_index(context, PRNG)
    s0 = (state[base], state[base + 1])
    s1 = (state[base + 2], state[base + 3])
    bits = output(s0, s1)
    state[at.RANDOM + place] = bits[0]
    state[at.RANDOM + place + 1] = bits[1]
    n0, n1 = next_s0(s0, s1), next_s1(s0, s1)
    state[base] = n0[0]
    state[base + 1] = n0[1]
    state[base + 2] = n1[0]
    state[base + 3] = n1[1]
    return 0


def clear_accumulators(cells: Singles) -> int:
    for index in range(32):
        cells[index] = 0.0
    return 0


def context_status(state: Integers) -> int:
    """$CTXT_STS as the running supervisor reads it: two bits per context, 1 for an active one (known)."""
    status = 1
    for slot in range(6):
        owner = state[at.OWNERS + slot]
        if owner:
            status |= 1 << (2 * owner)
    return status


def read_csr(state: Integers, context: int, number: int, cycle: int) -> int:
    """`get`: the program counter, the counters and $CTXT_STS are live, the rest is stored."""
    if number == CTXT_STS and context == 0:
        return context_status(state)
    if number == PC:
        return int(state[at.PCS + context])
    if number == COUNT_LOW:
        return cycle & WORD
    if number == COUNT_HIGH:
        return (cycle >> 32) & WORD
    return int(state[csr_index(context, number)])


def upper_put(state: Integers, context: int, number: int, value: int) -> int:
    """`uput` to a register that exists; 0, for no exception."""
    if number == FP_CLR:
        state[csr_index(context, FP_STS)] &= ~value & 7
        if value & ZAACC:
            clear_accumulators(accumulators(state, context))
    elif number == FP_CTL and rounding_mode(value) == DOWNWARD:
        state[at.DOUBTS] = 1
    elif number == PRNG_SEED:
        for place in range(4):
            state[csr_index(context, PRNG) + place] = seeded(value, place)
    state[csr_index(context, number)] = value
    return 0


def upper_access(state: Integers, context: int, entry: Integers, put: bool) -> int:
    """`uget` (result in RESULT0) and `uput`; returns 1 after recording an exception."""
    number = 0x100 + int(entry[IMMEDIATE_OF])
    if not csr_exists(state, context, number):
        return fault(state, UNKNOWN_CSR, context, number)
    if not put:
        state[at.RESULT0] = state[csr_index(context, number)]
        return 0
    value = state[at.REGISTER_STRIDE * context + entry[FIRST]]
    return upper_put(state, context, number, value)


def decode_weight(state: Integers, entry: int) -> int:
    """Refresh the halves of one weight entry after it changed."""
    raw, halves = weight_words(state), half_weights(state)
    base = 64 * (entry & 3) + lane_of(entry >> 2)
    low, high = word_at(raw, 2 * entry), word_at(raw, 2 * entry + 1)
    halves[base] = half_value(low & 0xFFFF)
    halves[base + 16] = half_value(low >> 16)
    halves[base + 32] = half_value(high & 0xFFFF)
    halves[base + 48] = half_value(high >> 16)
    return 0


def refresh_weights(state: Integers) -> int:
    """Decode all weights if somebody else has changed one since `remember_weights`."""
    raw = integers_at(state[at.WEIGHTS])
    seen = integers_at(state[at.HALF_WEIGHTS] + at.HALF_WEIGHT_BYTES)
    difference = 0
    for entry in range(64):
        difference |= raw[entry] ^ seen[entry]
    if difference:
        for entry in range(64):
            decode_weight(state, entry)
    return 0


def remember_weights(state: Integers) -> int:
    """Keep the raw weights, whose halves are up to date."""
    raw = integers_at(state[at.WEIGHTS])
    seen = integers_at(state[at.HALF_WEIGHTS] + at.HALF_WEIGHT_BYTES)
    for entry in range(64):
        seen[entry] = raw[entry]
    return 0


def branch_target(state: Integers, context: int, entry: Integers, function: int, following: int) -> int:
    """Where a branch or call goes, or -1 if it is not taken. `following` is the address after it."""
    target = int(entry[IMMEDIATE_OF])
    if function == BRI:
        return target
    number = entry[FIRST]
    value = int(state[at.REGISTER_STRIDE * context + number])
    if function == BR:
        return value
    if function == BRZ:
        return target if value == 0 else -1
    if function == BRNZ:
        return target if value != 0 else -1
    if function == BRNEG:
        return target if value & 0x80000000 else -1
    if function == BRPOS:
        return -1 if value & 0x80000000 else target
    if function == BRNZDEC:
        if value == 0:
            return -1
        set_main(state, context, number, value - 1)
        return target
    set_main(state, context, number, following)
    return target
