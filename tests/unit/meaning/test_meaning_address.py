"""Packed addresses and paced strides, against the layout taken apart by hand as kernels do it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.isa.meaning import address

pytestmark = pytest.mark.unit

addresses = st.integers(0, 2**21 - 1)


@given(addresses, addresses, addresses)
def test_three_addresses_share_two_words(a0: int, a1: int, a2: int) -> None:
    low, high = address.packed_low(a0, a2), address.packed_high(a1, a2)
    assert low < 2**32 and high < 2**31
    assert (low & 0x1FFFFF, high & 0x1FFFFF) == (a0, a1)
    assert (low >> 21) | (high >> 21) << 11 == a2
    assert address.third_address(low, high) == a2


@given(addresses, st.integers(-512, 511), st.integers(-512, 511), st.integers(-512, 511), st.booleans())
def test_selectors(start: int, f1: int, f2: int, f3: int, flag: bool) -> None:
    strides = (f1 & 0x3FF) | (f2 & 0x3FF) << 10 | (f3 & 0x3FF) << 20 | flag << 31
    for selector, units in enumerate((1, f1, f2, f3)):
        assert address.paced(start, strides, selector, 8) == (start + 8 * units) % 2**21
