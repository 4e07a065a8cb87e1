"""The `root_f32` family: what the root of a sum does to its piece, all in float32.

out = act(own + remote partials + bias) + residual with the arguments of `root_f16`; arrays are [panels][rows]
[16] of float32 and the bias is [panels][16]. Activations, for a sigmoid rounded correctly (open on a card):

* none;
* tanh: the tanh form of GeLU as x sigm(2 z), which keeps its relative accuracy where 1 + tanh z would cancel:
  three roundings in 2 z, an error of about 2^-22 (1 + 2 |z|) where x is negative;
* exact: GeLU within `EXACT_ERROR` max(|y|, 1/4), as x sigm(x p(x^2)), p of degree 7.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .kernel import Kernel
from .root import contract, piece_cycles
from .root_f32_worker import (
    CUBIC,
    LIMIT,
    LINEAR,
    MEMBERS,
    POLYNOMIAL,
    SingleMember,
    next_slots,
    panel_slots,
    row_slots,
    start_slots,
    worker_lines,
)
from .root_frame import NONE, PLAIN, TANH, WIDE
from .root_source import source

Singles = NDArray[np.float32]

EXACT_ERROR = 2.0**-21
"""Largest error of the exact activation, relative to the larger of |y| and 1/4."""


def cycles(
    member: SingleMember, rows: Any, panels: Any, remote_count: Any, wide: bool = True, **_: Any
) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays.

    Args:
        wide: the operands allow 16-byte loads, see `root_source.is_wide`.
    """
    rows, panels, count = (np.asarray(value, dtype=np.int64) for value in (rows, panels, remote_count))
    first, panel, wide_row, plain_row = _slots(member)
    row = (wide_row if wide else plain_row) + count * (2 if wide else 4)
    return piece_cycles(member, rows, panels, first, panel, row)


@cache
def _slots(member: SingleMember) -> tuple[int, int, int, int]:
    first = start_slots(member) + 2 - next_slots(member)
    return first, panel_slots(member), row_slots(member, WIDE), row_slots(member, PLAIN)


def gelu(x: Singles, activation: str) -> Singles:
    """An activation with the kernel's rounding steps and a correctly rounded sigmoid."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = x * x
        if activation == TANH:
            factor = LINEAR + CUBIC * square
        else:
            square = np.minimum(square, LIMIT)
            factor = np.broadcast_to(POLYNOMIAL[-1], x.shape)
            for coefficient in POLYNOMIAL[-2::-1]:
                factor = coefficient + factor * square
        gate = (1 / (1 + np.exp(-(factor * x).astype(np.float64)))).astype(np.float32)
        return x * gate


def reference(
    member: SingleMember,
    own: Singles,
    remote: Singles,
    bias: Singles | None = None,
    residual: Singles | None = None,
) -> Singles:
    """own [panels, rows, 16], remote [remote_count, panels, rows, 16], bias [panels, 16], residual like own.

    Adds in the kernel's order: bias, residual where it is summed, own, remote partials.
    """
    total: Singles = np.zeros(own.shape, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        if bias is not None:
            total = total + bias[:, None, :]
        addends = [own] if residual is None or not member.summed else [residual, own]
        for addend in [*addends, *remote]:
            total = total + addend
        if member.activation == NONE:
            return total
        result = gelu(total, member.activation)
        return result if residual is None else result + residual


def _source(member: SingleMember) -> str:
    return source(member, worker_lines(member))


KERNELS = tuple(
    Kernel(
        member.symbol,
        partial(_source, member),
        contract(member),
        partial(cycles, member),
        partial(reference, member),
    )
    for member in MEMBERS
)
