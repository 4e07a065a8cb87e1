"""Matrix kernels for workers whose accumulators do not survive their exit, of either element type.

A scrambled kernel is one whose workers leave nonsense in their accumulators when they exit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.kernels import KERNELS
from tilewright.ipu21.machine.memory import IMAGE_BASE
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.single import run_function
from tilewright.ipu21.toolchain import LinkedImage, assemble, link


@dataclass(frozen=True)
class Family:
    """The kernels of one element type.

    Attributes:
        source, cycles_of: their generator and their cycles, with an argument `survive`.
        scramble: an instruction that changes accumulators.
    """

    source: Callable[[bool], str]
    cycles_of: Callable[..., Any]
    scramble: str

    def found(self, case: Any, *, survive: bool, scrambled: bool) -> tuple[NDArray[Any], int]:
        """C and cycles on a tile that faults on bytes nobody wrote and on words that two workers share."""
        registers = KERNELS[case.symbol].contract.registers(**case.arguments)
        image = _image(self, case.symbol, survive, scrambled)
        result = run_function(image, case.symbol, registers, dict(case.inputs), checks=Checks.thorough())
        expected = case.expected
        return result.read(case.where["c"], expected.shape, expected.dtype.type), result.cycles

    def check(self, case: Any) -> None:
        """The result is exact, whatever accumulators hold; so are the cycles."""
        for scrambled in (False, True):
            found, cycles = self.found(case, survive=False, scrambled=scrambled)
            np.testing.assert_array_equal(found, case.expected)
            if not scrambled:
                assert cycles == self.cycles_of(case.mode, **case.shape, wide=case.wide, survive=False)


@cache
def _image(family: Family, symbol: str, survive: bool, scrambled: bool) -> LinkedImage:
    source = family.source(survive)
    if scrambled:
        source = source.replace("  exitz $m15\n", f"  {family.scramble}\n" * 3 + "  exitz $m15\n")
    return link([assemble(source, filename="gemm.S")], intervals=((IMAGE_BASE, 0x54000),), roots=[symbol])
