"""`attention_merge_f16`, `attention_merge_own_f16`: attention outputs from partial ones over blocks of keys.

out = sum e^(m_j - m) O_j / sum e^(m_j - m) l_j with m the largest m_j of a row. The differences and then the
exponentials are rounded to half precision, whose float32 sum divides them; the weight that results is rounded
to half precision, and so is weight times O_j, which is added in float32. Rows whose sum is zero become 0, and
so does what fills up the last panel behind the half panels that count, whatever is in the partial outputs.

`attention_merge_own_f16` takes the first part from where a root computed it, and the others as they arrive.
The cycle formulas are exact but for two parts that go through `f16v2exp` together and both hold the largest
score of the row: it takes one slot instead of two for two zeros (known), so such a row can take less.
"""

from __future__ import annotations

from functools import partial as bound
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ..machine.timing import WORKER_SLOTS
from .attention_merge_few import COUNTS as FEW_COUNTS
from .attention_merge_few import few_name, few_slots
from .attention_merge_source import (
    END,
    FEW_SLOTS,
    HALF_ROW,
    LARGEST,
    ODD_SLOTS,
    OTHER_PART,
    PAIR_SLOTS,
    PANEL,
    ROW_SLOTS,
    START,
    source,
)
from .attention_merge_straight import COUNTS, row_slots, straight_name
from .attention_merge_straight import START as STRAIGHT_START
from .attention_merge_supervisor import supervisor_cycles
from .attention_merge_words import HALVED_ROWS, MAXIMUM_PARTS, WEIGHT_BYTES
from .grid import MAXIMUM_SIDE, ROWS
from .halves import Halves, to_halves
from .kernel import Contract, Kernel, Operand, Scalar

SYMBOL, OWN_SYMBOL = "attention_merge_f16", "attention_merge_own_f16"
MAXIMUM_OWN_STRIDE = (1 << 20) - 8


def _cycles(own: bool, rows: Any, halves: Any, others: Any, straight: bool) -> Any:
    rows, halves, others = (np.asarray(value, dtype=np.int64) for value in (rows, halves, others))
    panels, is_odd = halves // 2, halves % 2 == 1
    pairs = others * len(LARGEST) + others % 2 * 2 + others // 2 * PAIR_SLOTS
    panel = len(PANEL) - 2 * len(OTHER_PART) + 2 * others * len(OTHER_PART)
    end = np.where(is_odd, ODD_SLOTS + others * len(OTHER_PART) - (panels == 0), len(END))
    row = ROW_SLOTS + pairs + panels * panel + end
    each = ceil_div(rows, WORKER_SLOTS)
    whole = len(START) + each * row + 1
    for count in COUNTS if straight else ():
        beside, own_panel = row_slots(count)
        own_rows = len(STRAIGHT_START) + each * (beside + panels * own_panel) + 1
        whole = np.where((others == count) & ~is_odd, own_rows, whole)
    half_row = len(HALF_ROW) - len(OTHER_PART) + others * len(OTHER_PART)
    few_panels = np.where(rows == 1, ceil_div(panels, 3), panels)
    few = FEW_SLOTS + pairs + few_panels * half_row + 1
    for count in FEW_COUNTS if straight else ():
        one, further = few_slots(count)
        few = np.where(others == count, one + (few_panels - 1) * further, few)
    is_few = (rows > 0) & (rows <= HALVED_ROWS) & ~is_odd
    slots = np.where((rows > 0) & (halves > 0), np.where(is_few, few, whole), 1)
    fixed = np.where(is_few, supervisor_cycles(own, True), supervisor_cycles(own, False))
    return fixed + WORKER_SLOTS * slots


def cycles(rows: Any, halves: Any, parts: Any, **_: Any) -> Any:
    """Cycles of a call of `attention_merge_f16` (exact on the simulator); integers or arrays."""
    return _cycles(False, rows, halves, np.asarray(parts) - 1, False)


def own_cycles(rows: Any, halves: Any, remote_count: Any, straight: bool = True, **_: Any) -> Any:
    """Cycles of a call of `attention_merge_own_f16` (exact on the simulator); integers or arrays.

    Args:
        straight: code for the number of other parts is linked, as programs have it.
    """
    return _cycles(True, rows, halves, remote_count, straight)


def straight_of(remote_count: int, rows: int) -> list[str]:
    """Symbol of the code that a call of `attention_merge_own_f16` with so many other parts and rows may ask
    for, if there is some.
    """
    counts, name = (FEW_COUNTS, few_name) if rows <= HALVED_ROWS else (COUNTS, straight_name)
    return [name(remote_count)] if rows and remote_count in counts else []


def reference(partial: Halves, states: NDArray[np.float32], halves: int) -> Halves:
    """partial [parts, panels, rows, 16], states [parts, rows, 2] -> [panels, rows, 16], zeros behind so many
    half panels; exp correctly rounded (open on a card).
    """
    parts = partial.shape[0]
    with np.errstate(over="ignore"):
        difference = to_halves(states[:, :, 0] - states[:, :, 0].max(axis=0)).astype(np.float64)
    raised = to_halves(np.exp(difference)).astype(np.float64)
    # Two sums: one of the first part and every second one from where pairs begin, one of the others.
    lanes = np.zeros((2, states.shape[1]), np.float32)
    for part in range(parts):
        lane = 0 if part == 0 else (part + parts) % 2
        lanes[lane] = (raised[part] * states[part, :, 1] + lanes[lane]).astype(np.float32)
    total = np.maximum(lanes[0] + lanes[1], np.float32(2.0**-100))
    inverse = (1 / total.astype(np.float64)).astype(np.float32)
    weights = to_halves(raised.astype(np.float32) * inverse)
    result = np.zeros(partial.shape[1:], np.float32)
    for part in range(parts):
        weight = weights[part].astype(np.float32)[None, :, None]
        result = result + to_halves(weight * partial[part].astype(np.float32)).astype(np.float32)
    if halves % 2:
        result[-1, :, 8:] = 0
    return to_halves(result)


def own_reference(
    own: Halves, own_state: NDArray[np.float32], others: Halves, states: NDArray[np.float32], halves: int
) -> Halves:
    """own [panels, rows, 16], own_state [rows, 2], others [n, panels, rows, 16], states [n, rows, 2]."""
    merged = np.concatenate([own_state[None], states]).astype(np.float32)
    return reference(np.concatenate([own[None], others]), merged, halves)


_HALVES = Scalar("halves", "half panels that are merged; zeros fill up the last panel", 0, 2 * MAXIMUM_SIDE)
_STATE_NOTES = (
    "states: float32 [parts][rows][2], largest score and sum. Overwrites up to "
    f"{WEIGHT_BYTES} bytes below each worker's base register."
)

KERNELS = (
    Kernel(
        SYMBOL,
        bound(source, SYMBOL, False),
        Contract(
            operands=(
                Operand("out", "a16", "out"),
                Operand("partial", "a16", "in"),
                Operand("states", "words", "in"),
            ),
            scalars=(
                ROWS,
                _HALVES,
                Scalar("parts", "partial outputs", 1, MAXIMUM_PARTS),
                Scalar("panel_stride", "bytes between panels of a part", 0, multiple=8),
                Scalar("part_stride", "bytes between parts", 0, multiple=8),
                Scalar("state_stride", "bytes between the states of parts", 0, multiple=8),
            ),
            packed=(("rows", "halves", 16),),
            notes=_STATE_NOTES,
        ),
        cycles,
        reference,
    ),
    Kernel(
        OWN_SYMBOL,
        bound(source, OWN_SYMBOL, True),
        Contract(
            operands=(
                Operand("out", "a16", "out"),
                Operand("own", "a16", "in"),
                Operand("own_state", "words", "in"),
                Operand("others", "a16", "in"),
                Operand("states", "words", "in"),
            ),
            scalars=(
                ROWS,
                _HALVES,
                Scalar("own_stride", "bytes between panels of own", 0, MAXIMUM_OWN_STRIDE, 8),
                Scalar("remote_count", "other partial outputs", 0, MAXIMUM_PARTS - 1),
            ),
            packed=(("rows", "halves", 16), ("own_stride", "remote_count", 20)),
            notes="others: dense. own_state: float32 [rows][2]. $TAS is clobbered. " + _STATE_NOTES,
        ),
        own_cycles,
        own_reference,
    ),
)
