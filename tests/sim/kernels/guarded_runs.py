"""Runs kernels with every check that a compiled program must satisfy: nothing unwritten is read, no races."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernel_runs import image_of
from numpy.typing import NDArray

from tilewright.ipu21.kernels import KERNELS
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.single import Result, run_function


def guarded(symbol: str, arguments: Mapping[str, int], inputs: Sequence[tuple[int, NDArray[Any]]]) -> Result:
    """Call one kernel in memory that holds its inputs only."""
    registers = KERNELS[symbol].contract.registers(**arguments)
    return run_function(image_of(symbol), symbol, registers, dict(inputs), checks=Checks.thorough())
