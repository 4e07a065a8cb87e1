"""The workers' frames of `normalise_f16` and `l2_normalise_f16`."""

from __future__ import annotations

OUT, X, SUMS, AFFINE, *INVERSE, EPSILON, MERGED, ALONG, LAST = range(10)
"""Words of a worker's frame. OUT: negative without work, if code for a number of parts runs. INVERSE: minus
1 / columns, twice, 8-byte aligned. MERGED: parts, rows above them; 0 without work. ALONG: panels - 1, words
from one panel's last to the next one's first above them. LAST: rows after the first, or, of a shared row,
words from a panel's last of gamma to the next one's first."""
WORDS = 10
FEW = 3
"""Rows that pairs of workers share."""
LOAD_INVERSE = f"ld64 $a4:5, $mvertex_base, $mzero, {INVERSE[0] // 2}"
