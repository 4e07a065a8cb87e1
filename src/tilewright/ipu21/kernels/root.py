"""The `root_f16` family: what the root of a sum does to its piece.

out = act(own + remote partials + bias) + residual, or act(own + remote partials + addend). The sum is taken
in float32 and rounded once; without an activation the residual belongs to the sum, behind an activation it is
added in half precision. With `remote_count` 0 it is a pointwise operation. Activations:

* none;
* tanh: x sigm(c1 x + c3 x^3), see `gelu`;
* exact: x / 2 (1 + erf(x / sqrt 2)) in the same form with other factors. The cubic alone is off by up to
  3.6e-4; with the rounding of every step the result is within `EXACT_ERROR` max(|y|, 1/4) for every finite
  half. For normal x the root mean square of the error is 2.0e-4; 1.7e-4 come from the rounding alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import ceil_div
from ..machine.memory import REGION1_BASE, is_interleaved
from ..machine.timing import WORKER_SLOTS
from .gelu import gated
from .grid import PANELS, ROWS, busiest
from .halves import Halves, to_halves
from .kernel import Contract, Kernel, Operand, Scalar
from .root_few import few_slots
from .root_frame import EXACT, HALF_ROW_ROWS, NONE, PLAIN, POINT, WIDE, Member
from .root_source import is_wide, source, supervisor_cycles
from .root_straight import straight_slots
from .root_worker import (
    FACTORS,
    VARIANTS,
    Variant,
    next_slots,
    panel_slots,
    row_slots,
    start_slots,
    worker_lines,
)

EXACT_ERROR = 2.0**-9
"""Largest error of the exact activation, relative to the larger of |y| and 1/4."""

MAXIMUM_COUNT = 4095
MAXIMUM_STRIDE = (1 << 20) - 8


def cycles(
    variant: Variant,
    rows: Any,
    panels: Any,
    remote_count: Any,
    wide: bool = True,
    wide_residual: bool = True,
    straight: bool = True,
    **_: Any,
) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays.

    Args:
        wide: the operands allow 16-byte loads, see `root_source.is_wide`; wide_residual: the residual too.
        straight: code for the number of remote partials is linked, as programs have it.
    """
    rows, panels, count = (np.asarray(value, dtype=np.int64) for value in (rows, panels, remote_count))
    row = row_slots(variant, WIDE if wide else PLAIN) + count * (1 if wide else 2)
    if POINT in variant.ways:
        row = np.where(count > 0, row, row_slots(variant, POINT))
    panel: Any = panel_slots(variant)
    first: Any = start_slots(variant) + 3 - next_slots(variant)
    if wide and straight:
        one, two = (straight_slots(variant, n, wide_residual and variant.summed) for n in (1, 2))
        has_own = np.isin(count, variant.straight_counts)
        # From two partials on, each takes as many slots more as the one before.
        own = [np.where(count == 1, *pair) for pair in zip(one, two, strict=True)]
        more = count - np.minimum(count, 2)
        row, panel, first = (
            np.where(has_own, value, other)
            for value, other in zip((own[0] + more, own[1], own[2]), (row, panel, first), strict=True)
        )
    cycles = piece_cycles(variant, rows, panels, first, panel, row)
    if not (wide and straight):
        return cycles
    for number in range(1, variant.most_half_rows + 1):
        least, next_least = (few_slots(variant, n, wide_residual and variant.summed, number) for n in (1, 2))
        slots = np.where(count == 1, least, next_least + number * (count - 2))
        is_such = has_own & (_half_rows(variant, rows, panels) == number)
        cycles = np.where(is_such, supervisor_cycles(variant) + WORKER_SLOTS * slots, cycles)
    return cycles


def straight_of(symbol: str, remote_count: int, rows: int, panels: int) -> list[str]:
    """Symbols of the code that a call with so many remote partials and such a piece may ask for: where the
    residual allows loads of 16 bytes, and where not.
    """
    variants = [variant for variant in VARIANTS if variant.symbol == symbol]
    return [
        variant.straight_name(remote_count, wide=wide, half_rows=int(_half_rows(variant, rows, panels)))
        for variant in variants
        if remote_count in variant.straight_counts and rows and panels
        for wide in variant.straight_ways
    ]


def _half_rows(variant: Variant, rows: Any, panels: Any) -> Any:
    """Half rows of each worker if there is code for their number, else 0; integers or arrays."""
    number = ceil_div(rows, HALF_ROW_ROWS)
    return np.where((panels == 1) & (number <= variant.most_half_rows), number, 0)


def piece_cycles(member: Member, rows: Any, panels: Any, first: Any, panel: Any, row: Any) -> Any:
    """Cycles of a call of either root family, from the busiest worker's slots; see `grid.busiest`."""
    slots = busiest(rows, panels, panel, row, first)
    return supervisor_cycles(member) + WORKER_SLOTS * np.maximum(slots, IDLE)


IDLE = 3
"""Slots of a worker without work."""


def exact_gelu(x: Halves) -> Halves:
    """The exact activation with the kernel's rounding and a correctly rounded sigmoid (open on a card)."""
    return gated(x, *FACTORS[EXACT])


def reference(
    variant: Variant,
    own: Halves,
    remote: Halves,
    bias: Halves | None = None,
    residual: Halves | None = None,
) -> Halves:
    """own [panels, rows, 16], remote [remote_count, panels, rows, 16], bias [panels, 16], residual like own.

    Adds in the kernel's order in float32: bias, own, residual where it is summed, remote partials.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        total: NDArray[np.float32] = np.zeros(own.shape, np.float32)
        if bias is not None:
            total = total + bias.astype(np.float32)[:, None, :]
        addends = [own] if residual is None or not variant.summed else [own, residual]
        for addend in [*addends, *remote]:
            total = total + addend.astype(np.float32)
        result = to_halves(total)
        if variant.activation != NONE:
            result = gated(result, *FACTORS[variant.activation])
            if residual is not None and not variant.summed:
                result = to_halves(result.astype(np.float64) + residual.astype(np.float64))
    return result


def way(arguments: Mapping[str, int]) -> dict[str, bool]:
    """Whether a call loads 16 bytes at a time, see `cycles`."""
    names = ("own", "remote", "own_stride", "remote_stride", "remote_count")
    residual = arguments.get("residual", REGION1_BASE)
    return {
        "wide": is_wide(*(arguments[name] for name in names)),
        "wide_residual": residual % 16 == 0 and is_interleaved(residual),
    }


def contract(variant: Member, notes: str = "") -> Contract:
    """What a caller of a member of either root family must keep."""
    alias = [("out", "own")] + ([("out", "residual")] if variant.residual else [])
    return Contract(
        operands=(
            Operand("out", "a16", "out"),
            Operand("own", "a16", "in", prefers_interleaved=True),
            Operand("remote", "a16", "in", prefers_interleaved=True),
            Operand("bias", "row16", "in" if variant.bias else "unused"),
            Operand(
                "residual",
                "a16",
                "in" if variant.residual else "unused",
                prefers_interleaved=True in variant.straight_ways,
            ),
        ),
        scalars=(
            ROWS,
            PANELS,
            Scalar("own_stride", "bytes between panels of own", 0, MAXIMUM_STRIDE, 8),
            Scalar("remote_count", "remote partials", 0, MAXIMUM_COUNT),
            Scalar("remote_stride", "bytes from one remote partial to the next", 0, multiple=8),
        ),
        packed=(("rows", "panels", 16), ("own_stride", "remote_count", 20)),
        may_alias=tuple(alias),
        notes=(
            f"out may be own only if own is dense too (own_stride {variant.row_bytes} rows). Fastest where "
            "own, remote and a float16 residual that is summed lie in interleaved memory and they and both "
            "strides are multiples of 16." + notes
        ),
    )


def _source(variant: Variant) -> str:
    return source(variant, worker_lines(variant))


_NOTES = " $TAS is clobbered."
_GATE_NOTES = " $TAS is clobbered; $FP_ICTL.NANOO must be 0."

KERNELS = tuple(
    Kernel(
        variant.symbol,
        partial(_source, variant),
        contract(variant, _GATE_NOTES if variant.activation != NONE else _NOTES),
        partial(cycles, variant),
        partial(reference, variant),
        way=way,
    )
    for variant in VARIANTS
)
