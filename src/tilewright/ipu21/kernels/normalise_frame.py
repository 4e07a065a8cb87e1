"""The workers' frames of `normalise_f16` and `l2_normalise_f16`."""

from __future__ import annotations

(OUT, X, SUMS, AFFINE, MINUS_INVERSE, INVERSE, EPSILON, MERGED, ALONG, LAST) = range(10)
"""Words of a worker's frame. OUT: negative without work, if code for a number of parts runs. MINUS_INVERSE,
INVERSE: 8-byte aligned. MERGED: parts, rows above them; 0 without work. ALONG: panels - 1, words from one
panel's last to the next one's first above them. LAST: rows after the first, or, of a shared row, words from a
panel's last of gamma to the next one's first."""
WORDS = 10
FEW = 3
"""Rows that pairs of workers share."""
LOAD_INVERSE = f"ld64 $a4:5, $mvertex_base, $mzero, {MINUS_INVERSE // 2}"
"""-1 / columns and its opposite to $a4:5."""
ONES = ("setzi $a6, 0x03c00", "or $a6, $a6, 0x3c000000", "or $a7, $a6, $azero")
"""To $a6:7."""
