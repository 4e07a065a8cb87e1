"""`set_rounding`: how results are rounded to float16 from the next launch of workers on."""

from __future__ import annotations

from .text import section

SET_ROUNDING = "set_rounding"
ESR = 1 << 19
"""Bit of $FP_ICTL for stochastic rounding of float16 results (documented). Every worker takes its $FP_CTL
from there when it starts, and draws from its own generator, seeded once by the start-up."""


def set_rounding_source() -> str:
    """$m2 = 1: stochastic, 0: to nearest. Nothing else in $FP_ICTL changes; clobbers $m0 to $m2; returns by
    `$m10`."""
    return section(
        SET_ROUNDING,
        [
            "get $m0, $FP_ICTL",
            "cmpne $m2, $m2, $mzero",
            f"setzi $m1, {ESR:#x}",
            "andc $m0, $m0, $m1",
            f"shl $m2, $m2, {ESR.bit_length() - 1}",
            "or $m0, $m0, $m2",
            "put $FP_ICTL, $m0",
            "br $m10",
        ],
    )
