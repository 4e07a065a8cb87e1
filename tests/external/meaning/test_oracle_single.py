"""Single precision in every rounding mode, judged by gfloat on exact doubles, and integer conversions."""

from __future__ import annotations

import gfloat
import numpy as np
import pytest
from gfloat.formats import format_info_binary32
from lane_sweeps import interesting_singles, sweep
from numpy.typing import NDArray

pytestmark = pytest.mark.external

MODES = [
    gfloat.RoundMode.TiesToEven,
    gfloat.RoundMode.TowardPositive,
    gfloat.RoundMode.TowardNegative,
    gfloat.RoundMode.TowardZero,
]
COUNT = 8_000


def rounded(exact: NDArray[np.float64], mode: int) -> NDArray[np.float32]:
    """IEEE rounding of exact doubles; gfloat saturates where a directed mode does."""
    with np.errstate(all="ignore"):
        return gfloat.round_ndarray(format_info_binary32, exact.copy(), MODES[mode]).astype(np.float32)


def same(found: NDArray[np.uint32], expected: NDArray[np.float32]) -> None:
    value = found.reshape(-1).view(np.float32)
    np.testing.assert_array_equal(value, expected)
    zero = expected == 0
    np.testing.assert_array_equal(np.signbit(value[zero]), np.signbit(expected[zero]))
    assert np.all(found.reshape(-1)[np.isnan(expected)] == 0x7FC00000)


@pytest.mark.parametrize("mode", range(4))
def test_products(mode: int) -> None:
    """A product of singles is exact in a double unless it is subnormal there, which these are not."""
    a, b = interesting_singles(1, COUNT), interesting_singles(2, COUNT)
    b = b[np.random.default_rng(3).permutation(len(b))]
    with np.errstate(all="ignore"):
        exact = a.astype(np.float64) * b.astype(np.float64)
    expected = rounded(exact, mode)
    words = a.view(np.uint32), b.view(np.uint32)
    one = sweep("f32mul {d}, {x}, {y}", *(w.reshape(-1, 1) for w in words), control=mode << 16)
    same(one, expected)
    two = sweep("f32v2mul {d}, {x}, {y}", *(w.reshape(-1, 2) for w in words), results=2, control=mode << 16)
    same(two, expected)


@pytest.mark.parametrize("mode", range(4))
def test_sums(mode: int) -> None:
    """Operands close enough in size for the sum to be exact in a double."""
    rng = np.random.default_rng(mode)
    a = rng.normal(0, 1, COUNT).astype(np.float32)
    b = (rng.normal(0, 1, COUNT) * 2.0 ** rng.integers(-20, 20, COUNT)).astype(np.float32)
    a[:8] = [0, -0.0, 0, -0.0, np.inf, -np.inf, np.inf, 1]
    b[:8] = [0, 0, -0.0, -0.0, 1, 1, -np.inf, np.inf]
    words = a.view(np.uint32).reshape(-1, 2), b.view(np.uint32).reshape(-1, 2)
    wide = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        for name, exact in (
            ("add", wide[0] + wide[1]),
            ("sub", wide[0] - wide[1]),
            ("absadd", abs(wide[0]) + abs(wide[1])),
        ):
            found = sweep(f"f32v2{name} {{d}}, {{x}}, {{y}}", *words, results=2, control=mode << 16)
            same(found, rounded(exact, mode))


@pytest.mark.parametrize("mode", range(4))
def test_quotients_and_roots(mode: int) -> None:
    """mpmath at 200 bits, rounded by gfloat's rule on a double plus the sign of what is left."""
    import mpmath

    rng = np.random.default_rng(mode + 10)
    a = (rng.normal(0, 1, 1500) * 2.0 ** rng.integers(-30, 30, 1500)).astype(np.float32)
    b = (rng.normal(0, 1, 1500) * 2.0 ** rng.integers(-30, 30, 1500)).astype(np.float32)
    with mpmath.workprec(200):
        quotients = [mpmath.mpf(float(x)) / mpmath.mpf(float(y)) for x, y in zip(a, b, strict=True)]
        roots = [mpmath.sqrt(abs(mpmath.mpf(float(x)))) for x in a]
        expected = directed(quotients, mode), directed(roots, mode)
    found = sweep(
        "f32div {d}, {x}, {y}", *(v.view(np.uint32).reshape(-1, 1) for v in (a, b)), control=mode << 16
    )
    same(found, expected[0])
    found = sweep("f32sqrt {d}, {x}", np.abs(a).view(np.uint32).reshape(-1, 1), control=mode << 16)
    same(found, expected[1])


def directed(exact: list[object], mode: int) -> NDArray[np.float32]:
    """The float32 neighbours that a mode asks for."""
    import mpmath

    result = np.array([float(value) for value in exact], np.float64).astype(np.float32)  # type: ignore[arg-type]
    for index, value in enumerate(exact):
        near = mpmath.mpf(float(result[index]))
        above = near < value
        below = near > value
        up = mode == 1 or (mode == 3 and value < 0)
        if mode and above and up:
            result[index] = np.nextafter(result[index], np.float32(np.inf))
        if mode and below and not up:
            result[index] = np.nextafter(result[index], np.float32(-np.inf))
    return result


@pytest.mark.parametrize("mode", range(4))
def test_to_and_from_integers(mode: int) -> None:
    function = (np.rint, np.ceil, np.floor, np.trunc)[mode]
    values = interesting_singles(20, COUNT)
    words = values.view(np.uint32).reshape(-1, 1)
    with np.errstate(all="ignore"):
        wide = function(values.astype(np.float64))
        whole = sweep(f"f32int {{d}}, {{x}}, {mode}", words)
        np.testing.assert_array_equal(whole[:, 0].view(np.float32), function(values))
        signed = np.clip(wide, -(2.0**31), 2.0**31 - 1).astype(np.int64)
        unsigned = np.clip(wide, 0, 2.0**32 - 1).astype(np.int64)
    control = mode << 16
    found = sweep("f32toi32 {d}, {x}", words, control=control)[:, 0].view(np.int32)
    np.testing.assert_array_equal(found, signed)
    np.testing.assert_array_equal(sweep("f32toui32 {d}, {x}", words, control=control)[:, 0], unsigned)
    integers = np.random.default_rng(mode).integers(0, 2**32, COUNT, dtype=np.uint64).astype(np.uint32)
    integers[:6] = [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x1000001]
    columns = integers.reshape(-1, 1)
    same(sweep("f32fromui32 {d}, {x}", columns, control=control), rounded(integers.astype(np.float64), mode))
    same(
        sweep("f32fromi32 {d}, {x}", columns, control=control),
        rounded(integers.view(np.int32).astype(np.float64), mode),
    )


def test_comparisons_and_extremes() -> None:
    a, b = interesting_singles(30, COUNT), interesting_singles(31, COUNT)
    b[::3] = a[::3]
    a[::17], b[::19] = np.nan, np.nan
    words = a.view(np.uint32).reshape(-1, 2), b.view(np.uint32).reshape(-1, 2)
    with np.errstate(invalid="ignore"):
        for name, expected in {
            "cmpeq": a == b,
            "cmpne": a != b,
            "cmplt": a < b,
            "cmple": a <= b,
            "cmpgt": a > b,
            "cmpge": a >= b,
        }.items():
            found = sweep(f"f32v2{name} {{d}}, {{x}}, {{y}}", *words, results=2).reshape(-1)
            np.testing.assert_array_equal(found, np.where(expected, 0xFFFFFFFF, 0))
        for name, value in {
            "max": np.fmax(a, b),
            "min": np.fmin(a, b),
            "absmax": np.fmax(abs(a), abs(b)),
        }.items():
            found = sweep(f"f32v2{name} {{d}}, {{x}}, {{y}}", *words, results=2).reshape(-1)
            np.testing.assert_array_equal(found.view(np.float32), value)


def test_uniform_numbers() -> None:
    """u16 and u32 to the open interval -0.5..0.5, symmetric, never subnormal."""
    integers = np.random.default_rng(2).integers(0, 2**32, COUNT, dtype=np.uint64).astype(np.uint32)
    integers[:4] = [0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
    exact = (integers.astype(np.float64) + 0.5) / 2.0**32 - 0.5
    found = sweep("f32v2sufromui {d}, {x}", integers.reshape(-1, 2), results=2)
    same(found, exact.astype(np.float32))
    mirrored = sweep("f32v2sufromui {d}, {x}", (~integers).reshape(-1, 2), results=2)
    np.testing.assert_array_equal(found ^ 0x80000000, mirrored)
