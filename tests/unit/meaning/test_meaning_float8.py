"""FP8 against ml_dtypes' types of the same formats, exhaustively."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.ipu21.isa.meaning import float8
from tilewright.ipu21.isa.meaning.bits import OVERFLOW
from tilewright.ipu21.isa.meaning.float16 import NANOO, half_value

pytestmark = pytest.mark.unit

FORMATS = [(1, ml_dtypes.float8_e4m3fnuz), (0, ml_dtypes.float8_e5m2fnuz)]
HALVES = np.arange(65536, dtype=np.uint32).astype(np.uint16)


@pytest.mark.parametrize(("number_format", "kind"), FORMATS)
def test_every_byte(number_format: int, kind: Any) -> None:
    found = np.array([float8.float8_value(byte, number_format) for byte in range(256)])
    np.testing.assert_array_equal(found, np.arange(256, dtype=np.uint8).view(kind).astype(np.float64))


@pytest.mark.parametrize(("number_format", "kind"), FORMATS)
def test_every_half_rounds_like_the_type(number_format: int, kind: Any) -> None:
    """NANOO: overflow is NaN there and here. Without it overflow saturates."""
    values = HALVES.view(np.float16)
    with np.errstate(invalid="ignore"):  # NaNs are among the values
        expected = values.astype(kind).view(np.uint8)
    found = np.array([float8.round_float8(half_value(int(half)), number_format, NANOO, 0) for half in HALVES])
    np.testing.assert_array_equal(found & 0xFF, expected)
    assert np.all(found[np.abs(values) >= 61440] & OVERFLOW)
    assert float8.round_float8(1e9, number_format, 0, 0) == 0x7F | OVERFLOW
    assert float8.round_float8(-1e9, number_format, 0, 0) == 0xFF | OVERFLOW


def test_published_ties() -> None:
    assert float8.round_float8(8.5, 1, 0, 0) == 0x58
    assert float8.round_float8(9.5, 1, 0, 0) == 0x5A


def test_conversions_scale_and_keep_lane_order() -> None:
    low, high = float8.f8v4tof16(0x58C05048, 1, -1, 0, 0, 0, 0, 0)
    values = [half_value(half) for half in (low & 0xFFFF, low >> 16, high & 0xFFFF, high >> 16)]
    assert values == [float8.float8_value(byte, 1) / 2 for byte in (0x48, 0x50, 0xC0, 0x58)]
    words = (0x44003C00, 0x48004000, 0xBC00C400, 0x00000000)
    b0, b1 = float8.f16v8tof8(*words, 1, 1, 0, 0, 0, 0, 0, 0, 0)
    found = [float8.float8_value(byte, 1) for byte in [*b0.to_bytes(4, "little"), *b1.to_bytes(4, "little")]]
    assert found == [2.0, 8.0, 4.0, 16.0, -8.0, -2.0, 0.0, 0.0]
