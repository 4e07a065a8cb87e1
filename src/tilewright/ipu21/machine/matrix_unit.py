"""What the matrix unit of a tile does with its products."""

from __future__ import annotations

SUMS_OF_SINGLES = True
"""A unit adds up the products of an instruction one after another, rounding each sum to float32, and adds the
result to its accumulator likewise (assumed: the width of the hardware's adder is not public). False: it adds
them up in double precision and rounds once, when it adds to the accumulator; simulated AMPs then take several
times as long."""
