"""What a stage costs, in simulated device cycles. Kernel figures come from the kernels' own formulas; the
exchange is estimated from its busiest receiver, since rows exist only later.

All functions work on integers and on NumPy arrays alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from ...arithmetic import align_up
from ..kernels import KERNELS, link_kernels
from ..kernels.copy_spans import expected
from ..kernels.gemm_frame import FEW_ROWS
from ..kernels.prologue import Code, run_ahead
from ..kernels.runtime import STACK_TOP
from ..kernels.tail import tail_of
from ..machine.memory import REGION1_BASE
from ..machine.timing import BARRIER_INTERNAL
from .movement import Load

PHASE_FIXED = BARRIER_INTERNAL + 114
"""Barrier, row entry, route time of the first and last word (fitted to the simulator)."""
SCHEDULE_LENGTH = 1.01
"""Length of a schedule over its busiest receiver's words, for regular phases (fitted to the simulator)."""
FRAGMENT = 0.7
"""Cycles a change of source adds at a receiver (fitted to the simulator)."""
START, GO_ON = 2, 20
"""Cycles of a prepared call before its workers start, less those of the return that it saves; the same where
it goes on in the kernel's code (fitted to the simulator)."""
SIZE = 24
"""Of the call by which a kernel's prologue is judged; its length hardly depends on sizes, except that matrix
kernels have one of its own for few rows."""


def exchange(words: Any, fragments: Any) -> Any:
    """Cycles of one phase whose busiest receiver takes `words` in `fragments` pieces (0 words: no phase)."""
    return (words > 0) * (PHASE_FIXED + SCHEDULE_LENGTH * words + FRAGMENT * fragments)


def move(load: Load) -> float:
    """Cycles of a phase whose traffic is known: local copies, then the exchange."""
    return copies(load) + float(exchange(load.words, load.pieces))


def copies(load: Load) -> float:
    """Cycles of the local copies of a phase."""
    return float(START + expected(load.copies, load.copied)) if load.copies else 0.0


def kernel(symbol: str, **scalars: Any) -> Any:
    """Cycles of a call of a kernel with these scalars, by name."""
    return _call(symbol, _beside(symbol), scalars)


def _call(symbol: str, beside: Any, scalars: Mapping[str, Any]) -> Any:
    return np.maximum(KERNELS[symbol].cycles(**scalars) + beside, 0)


@cache
def _beside(symbol: str, size: int = SIZE) -> int:
    """Cycles of a call beside the kernel's formula: its prologue is executed by the compiler."""
    contract, image = KERNELS[symbol].contract, link_kernels([symbol], {})
    used = [operand.name for operand in contract.operands if operand.role != "unused"]
    values = {name: REGION1_BASE + 0x1000 * index for index, name in enumerate(used)}
    for scalar in contract.scalars:
        values[scalar.name] = align_up(max(scalar.minimum, min(size, scalar.maximum)), scalar.multiple)
    arguments = {number: np.array([value]) for number, value in contract.registers(**values).items()}
    code = Code(image)
    (reached,) = run_ahead(code, image.symbols[symbol], arguments, STACK_TOP)
    assert reached.stop is not None
    return (START if tail_of(code, reached.stop).launch else GO_ON) - reached.cycles


def gemm(rows: Any, inner: Any, columns: Any, element_bytes: int = 2, *, listed: bool = False) -> Any:
    """Cycles of a product of so many rows, groups of 16 inner elements and groups of 16 columns.

    Args:
        listed: a list says where weight panels are.
    """
    if element_bytes == 2:
        symbol = "gemm_listed_f16" if listed else "gemm_f16"
    else:
        symbol, inner = "gemm_f32", 2 * inner
    beside = np.where(np.asarray(rows) <= FEW_ROWS, _beside(symbol, FEW_ROWS), _beside(symbol))
    return _call(symbol, beside, {"rows": rows, "inner": inner, "columns": columns})


def root(symbol: str, rows: Any, panels: Any, remote: Any) -> Any:
    """Cycles of a root kernel on a piece of so many rows and panels, with `remote` partial sums from
    others.
    """
    return kernel(symbol, rows=rows, panels=panels, remote_count=remote)


def transpose(row_blocks: Any, column_blocks: Any) -> Any:
    """Cycles of a transpose of so many 16 x 16 blocks."""
    return kernel("transpose_f16", row_tiles=row_blocks, column_tiles=column_blocks)
