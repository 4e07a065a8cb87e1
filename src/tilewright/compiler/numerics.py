"""How a compile treats numbers: what values are kept in, and how results are rounded."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UsageError

PRECISIONS = ("float16", "float32")


@dataclass(frozen=True)
class Numerics:
    """The precision policy of one compile.

    Attributes:
        precision: element type of activations, weights and partial sums on the device. float16 multiplies at
            64 multiply-adds per tile and cycle with sums in float32 inside a panel of 16; float32 at 16.
        stochastic_rounding: results of workers are rounded to float16 up or down at random, with
            probabilities that make the mean exact. The generators are seeded per worker when the program
            starts, so runs are repeatable.
    """

    precision: str = "float16"
    stochastic_rounding: bool = False

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise UsageError(f"unknown precision {self.precision!r}", hint=f"use {' or '.join(PRECISIONS)}")
        if self.stochastic_rounding and self.precision != "float16":
            raise UsageError("stochastic rounding is of results in float16", hint="leave one of the two out")

    @property
    def element_bytes(self) -> int:
        """Bytes of an element on the device."""
        return 2 if self.precision == "float16" else 4
