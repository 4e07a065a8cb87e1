"""FP8 conversions of every half and byte, with scales and rounding modes, judged by gfloat and ml_dtypes."""

from __future__ import annotations

import gfloat
import ml_dtypes
import numpy as np
import pytest
from lane_sweeps import ALL_HALVES, ALL_VALUES, IS_NAN, sweep, words_of_halves
from numpy.typing import NDArray

from tilewright.ipu21.isa import csrs

pytestmark = pytest.mark.external

MODES = [
    gfloat.RoundMode.TiesToEven,
    gfloat.RoundMode.TowardPositive,
    gfloat.RoundMode.TowardNegative,
    gfloat.RoundMode.TowardZero,
]
NANOO = 1 << 20


def format_info(name: str, precision: int, bias: int) -> gfloat.FormatInfo:
    """A format of one NaN, 0x80, without infinities and negative zero."""
    return gfloat.FormatInfo(
        name,
        8,
        precision,
        bias=bias,
        is_signed=True,
        domain=gfloat.Domain.Finite,
        has_nz=False,
        num_high_nans=0,
        has_subnormals=True,
        is_twos_complement=False,
    )


FORMATS = {
    1: (format_info("F143", 4, 8), ml_dtypes.float8_e4m3fnuz),
    0: (format_info("F152", 3, 16), ml_dtypes.float8_e5m2fnuz),
}
"""By $FP_NFMT."""
BYTES = np.arange(256, dtype=np.uint8)


@pytest.mark.parametrize("number_format", [0, 1])
def test_the_oracles_agree_on_the_format(number_format: int) -> None:
    info, kind = FORMATS[number_format]
    decoded = np.array([gfloat.decode_float(info, int(code)).fval for code in BYTES])
    np.testing.assert_array_equal(decoded, BYTES.view(kind).astype(np.float64))


def upper(number_format: int, scale: int) -> dict[int, int]:
    """Scale and format with all reserved bits set, which the machine ignores."""
    return {csrs.FP_NFMT: number_format | 0xFFFFFFFE, csrs.FP_SCL: (scale & 63) | 0xFFFFFFC0}


def narrowed(values: NDArray[np.float64], number_format: int, mode: int, nanoo: bool) -> NDArray[np.float64]:
    info, _ = FORMATS[number_format]
    with np.errstate(all="ignore"):
        unbounded = gfloat.round_ndarray(
            gfloat.FormatInfo(
                "wide",
                info.precision + 10,
                info.precision,
                bias=511,
                is_signed=True,
                domain=gfloat.Domain.Extended,
                has_nz=True,
                num_high_nans=1,
                has_subnormals=True,
                is_twos_complement=False,
            ),
            values.copy(),
            MODES[mode],
        )
        result = gfloat.round_ndarray(info, values.copy(), MODES[mode], True)
    over = np.isinf(values) | (np.abs(unbounded) > info.max)
    return np.where(over & ~np.isnan(values), np.nan if nanoo else np.copysign(info.max, values), result)


@pytest.mark.parametrize("nanoo", [False, True])
@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("number_format", [0, 1])
def test_every_half_to_float8(number_format: int, mode: int, nanoo: bool) -> None:
    _, kind = FORMATS[number_format]
    control = mode << 16 | (NANOO if nanoo else 0)
    for scale in (0, 5, -9) if mode == 0 else (0,):
        with np.errstate(invalid="ignore"):
            values = ALL_VALUES.astype(np.float64) * 2.0**scale
        expected = narrowed(values, number_format, mode, nanoo)
        found = (
            sweep(
                "f16v8tof8 {d}, {x}",
                words_of_halves(ALL_HALVES, 8),
                results=2,
                control=control,
                upper=upper(number_format, scale),
            )
            .view(np.uint8)
            .reshape(-1)
        )
        np.testing.assert_array_equal(found.view(kind).astype(np.float64), expected)
        pairs = sweep(
            "f16v2tof8 {d}, {x}",
            words_of_halves(ALL_HALVES, 2),
            control=control,
            upper=upper(number_format, scale),
        )
        np.testing.assert_array_equal(pairs.view(np.uint8).reshape(-1, 4)[:, :2].reshape(-1), found)
        assert not (pairs >> 16).any()


@pytest.mark.parametrize("number_format", [0, 1])
def test_nearest_rounding_is_ml_dtypes_too(number_format: int) -> None:
    _, kind = FORMATS[number_format]
    with np.errstate(all="ignore"):
        expected = ALL_VALUES.astype(kind).view(np.uint8)
    found = sweep(
        "f16v8tof8 {d}, {x}",
        words_of_halves(ALL_HALVES, 8),
        results=2,
        control=NANOO,
        upper=upper(number_format, 0),
    )
    np.testing.assert_array_equal(found.view(np.uint8).reshape(-1), expected)
    # A negative number too small for the format is the one zero, not the NaN.
    tiny = (ALL_VALUES < 0) & (np.abs(ALL_VALUES.astype(np.float64)) < 2.0**-19)
    assert tiny.any() and not found.view(np.uint8).reshape(-1)[tiny].any()


@pytest.mark.parametrize("scale", [0, 1, -7, 31, -32])
@pytest.mark.parametrize("number_format", [0, 1])
def test_every_byte_to_half(number_format: int, scale: int) -> None:
    _, kind = FORMATS[number_format]
    values = BYTES.view(kind).astype(np.float64) * 2.0**scale
    with np.errstate(all="ignore"):
        expected = np.clip(values, -65504, 65504).astype(np.float16).astype(np.float64)
    words = BYTES.view(np.uint32).reshape(-1, 1)
    four = sweep("f8v4tof16 {d}, {x}", words, results=2, upper=upper(number_format, scale))
    np.testing.assert_array_equal(four.view(np.float16).reshape(-1).astype(np.float64), expected)
    halves = np.concatenate([words, words >> 16])
    two = sweep("f8v2tof16 {d}, {x}", halves, upper=upper(number_format, scale)).view(np.float16)
    order = np.concatenate([expected.reshape(-1, 4)[:, :2], expected.reshape(-1, 4)[:, 2:]]).reshape(-1)
    np.testing.assert_array_equal(two.reshape(-1).astype(np.float64), order)


def test_there_and_back() -> None:
    """Every byte survives the way through half with opposite scales."""
    for number_format, scale in ((1, 2), (0, -1)):
        words = BYTES.view(np.uint32).reshape(-1, 1)
        wide = sweep("f8v4tof16 {d}, {x}", words, results=2, upper=upper(number_format, scale))
        back = sweep("f16v8tof8 {d}, {x}", wide.reshape(-1, 4), results=2, upper=upper(number_format, -scale))
        np.testing.assert_array_equal(back.view(np.uint8).reshape(-1), BYTES)


def test_classes_of_bytes() -> None:
    found = sweep("f8v4class {d}, {x}", BYTES.view(np.uint32).reshape(-1, 1)).view(np.uint8).reshape(-1)
    assert found[0x80] == 2 and not np.isin(found[BYTES != 0x80], (0, 1, 2, 5)).any()
    assert not IS_NAN[0x3C00]
