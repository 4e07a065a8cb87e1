"""`l2_normalise_f16`: each row over its length, x / max(sqrt(sum of squares), epsilon), from sums in parts.

Rows and sums as in `normalise`, the product with the factor as in `scale`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ..machine.timing import MULTI_SLOT, WORKER_SLOTS
from .halves import Halves
from .kernel import Kernel, Operand
from .normalise import (
    IDLE,
    NEXT_SUMS,
    begin,
    contract,
    merge,
    merged,
    single,
    supervisor,
)
from .normalise_frame import EPSILON
from .scale import FIRST, LAST_PANEL, PANEL, SPLIT, load, scaled
from .supervisor import call_cycles
from .text import bundle, from_frame, section, worker

SYMBOL = "l2_normalise_f16"

_START = begin(".Ll2_normalise_exit")
_BEGIN = [
    *merge(),
    bundle(from_frame("$a4", EPSILON), "f32v2add $a2:3, $a2:3, $a0:1"),
    bundle("mov $m7, $m0", "f32sqrt $a3, $a3"),
    bundle("mov $m8, $m1", "f32max $a3, $a3, $a4"),
    bundle("add $m0, $m0, 192", "f32oox $a0, $a3"),
    bundle("add $m1, $m1, 192", SPLIT[0]),
    *map(bundle, NEXT_SUMS, SPLIT[1:5]),
    bundle("nop", SPLIT[5]),
    bundle(load("1")),
    bundle(load("1"), FIRST),
    bundle("rpt $m4, 7"),
]
_END = [*LAST_PANEL, bundle("brnzdec $m3, .Ll2_normalise_row")]


def _source() -> str:
    row = [".Ll2_normalise_row:", *_BEGIN, *PANEL, *_END]
    lines = [*_START, *row, ".Ll2_normalise_exit:", "exitz $m15"]
    return section(SYMBOL, [*supervisor(".Ll2_normalise"), *worker(".Ll2_normalise", lines)])


def cycles(rows: Any, panels: Any, parts: Any, **_: Any) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays."""
    rows, panels, parts = (np.asarray(value, dtype=np.int64) for value in (rows, panels, parts))
    waits = MULTI_SLOT["f32sqrt"] + MULTI_SLOT["f32oox"] - 2
    row = len([*_BEGIN, *_END]) + waits + len(PANEL) * (panels - 1) + parts - 1
    slots = len(_START) + 1 + ceil_div(rows, WORKER_SLOTS) * row
    base = call_cycles(supervisor(".Ll2_normalise"))
    return base + WORKER_SLOTS * np.where((rows > 0) & (panels > 0), slots, IDLE)


def reference(x: Halves, sums: NDArray[np.float32], epsilon: int) -> Halves:
    """x [panels, rows, 16], sums [parts, rows, 2], bits of a float32."""
    length = np.sqrt(merged(sums)[:, 1].astype(np.float64)).astype(np.float32)
    longest = np.maximum(length, single(epsilon)).astype(np.float64)
    return scaled(x, (1 / longest).astype(np.float32)[None, :, None])


KERNEL = Kernel(
    SYMBOL,
    _source,
    contract(Operand("affine", "a16", "unused"), "not used", "bits of a float32 >= 1 / 65504"),
    cycles,
    reference,
)
