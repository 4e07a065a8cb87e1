"""Doubles, and conversions between every kind of number, against NumPy's; one NaN is as good as another."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from driver import call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

pytestmark = pytest.mark.sim

SETTINGS = settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
CONTEXTS = pytest.mark.parametrize("context", ["worker", "supervisor"])
SUPERVISOR = "supervisor"


def floats(width: int) -> st.SearchStrategy[float]:
    """Numbers of every exponent, subnormal and not finite ones, and small ones that meet."""
    return st.one_of(
        st.floats(width=width),  # type: ignore[arg-type]  # hypothesis names the widths by literals
        st.integers(-(1 << 70), 1 << 70).map(lambda value: float(np.float32(value * 2.0**-35))),
        st.floats(-4, 4, width=32),
    )


@st.composite
def close_pairs(draw: st.DrawFn) -> tuple[float, float]:
    """Two doubles, which may have nearly the same magnitude."""
    a = draw(floats(64))
    if draw(st.booleans()):
        return a, draw(floats(64))
    b = np.array([a]).view(np.uint64) ^ np.uint64(draw(st.integers(0, 7)) | draw(st.integers(0, 1)) << 63)
    return a, float(b.view(np.float64)[0])


DOUBLES = st.lists(close_pairs(), min_size=1, max_size=60)
SINGLES = st.lists(st.tuples(floats(32), floats(32)), min_size=1, max_size=60)
INTEGERS = st.lists(
    st.integers(1, 64).flatmap(lambda size: st.integers(0, (1 << size) - 1)), min_size=1, max_size=60
)
ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
}


def words(values: NDArray[Any]) -> NDArray[np.uint32]:
    """The words of an array [n, k], low ones first."""
    return np.ascontiguousarray(values).view(np.uint32).reshape(len(values), -1)


def assert_same(found: NDArray[Any], expected: NDArray[Any]) -> None:
    """The same bits, or both no number."""
    unsigned = {2: np.uint16, 4: np.uint32, 8: np.uint64}[expected.dtype.itemsize]
    same = found.view(unsigned) == expected.view(unsigned)
    assert (same | (np.isnan(found) & np.isnan(expected))).all(), (found[~same], expected[~same])


def doubles_of(found: NDArray[np.uint32]) -> NDArray[np.float64]:
    return np.ascontiguousarray(found[:, :2]).view(np.float64)[:, 0]


def singles_of(found: NDArray[np.uint32], context: str) -> NDArray[np.float32]:
    """Floats come back in $m0 in the supervisor and in $a0 in a worker."""
    return np.ascontiguousarray(found[:, 0 if context == SUPERVISOR else 2]).view(np.float32)


@CONTEXTS
@pytest.mark.parametrize("name", ARITHMETIC)
@SETTINGS
@given(pairs=DOUBLES)
def test_arithmetic(name: str, context: str, engines: str, pairs: list[tuple[float, float]]) -> None:
    given_ = np.array(pairs)
    with np.errstate(all="ignore"):
        expected = ARITHMETIC[name](given_[:, 0], given_[:, 1])
    assert_same(doubles_of(call(f"__{name}df3", words(given_), context, engines)), expected)


@pytest.mark.parametrize("name", ARITHMETIC)
@SETTINGS
@given(pairs=SINGLES)
def test_arithmetic_of_floats_in_the_supervisor(
    name: str, engines: str, pairs: list[tuple[float, float]]
) -> None:
    given_ = np.array(pairs, dtype=np.float32)
    with np.errstate(all="ignore"):
        expected = ARITHMETIC[name](given_[:, 0], given_[:, 1])
    found = call(f"__{name}sf3", words(given_), SUPERVISOR, engines)
    assert_same(singles_of(found, SUPERVISOR), expected)


def half_away(values: NDArray[np.float64]) -> NDArray[np.float64]:
    whole = np.trunc(values)
    return np.copysign(np.where(np.abs(values - whole) >= 0.5, np.abs(whole) + 1, np.abs(whole)), values)


WHOLE: dict[str, Callable[..., Any]] = {
    "trunc": np.trunc,
    "floor": np.floor,
    "ceil": np.ceil,
    "rint": np.rint,
    "round": half_away,
    "sqrt": np.sqrt,
}
HALVES = st.lists(
    st.one_of(floats(64), st.integers(-(1 << 54), 1 << 54).map(lambda value: value / 4)),
    min_size=1,
    max_size=60,
)


@CONTEXTS
@pytest.mark.parametrize("name", WHOLE)
@SETTINGS
@given(values=HALVES)
def test_exact_functions(name: str, context: str, engines: str, values: list[float]) -> None:
    given_ = np.array([*values, 0.5, -0.5, 2.5, 0.49999999999999994, -0.0, 4503599627370495.5])
    with np.errstate(all="ignore"):
        expected = WHOLE[name](given_)
    assert_same(doubles_of(call(name, words(given_), context, engines)), expected)


def assert_near(found: NDArray[np.float64], expected: NDArray[np.float64], relative: float) -> None:
    """The same signs, infinities and NaNs, and numbers with that relative error."""
    assert (np.isnan(found) == np.isnan(expected)).all()
    number = ~np.isnan(expected)
    assert (np.signbit(found) == np.signbit(expected))[number].all()
    assert (np.isinf(found) == np.isinf(expected)).all()
    finite = np.isfinite(expected)
    limit = np.maximum(relative * np.abs(expected[finite]), 5e-324)
    assert (np.abs(found[finite] - expected[finite]) <= limit).all(), (found[finite], expected[finite])


@CONTEXTS
@SETTINGS
@given(values=st.lists(st.one_of(floats(64), st.floats(-800, 800)), min_size=1, max_size=60))
def test_exponentials_and_logarithms(context: str, engines: str, values: list[float]) -> None:
    given_ = np.array(
        [*values, 709.78, 709.79, -745.1, -745.2, 1.0, 0.0, -0.0, math.inf, -math.inf, math.nan]
    )
    with np.errstate(all="ignore"):
        exponentials, logarithms = np.exp(given_), np.log(given_)
    # One unit of ours and one of the host's library
    assert_near(doubles_of(call("exp", words(given_), context, engines)), exponentials, 2.0**-51)
    assert_near(doubles_of(call("log", words(given_), context, engines)), logarithms, 2.0**-51)


SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -3.0,
    64.0,
    65.0,
    -65.0,
    1e300,
    math.inf,
    -math.inf,
    math.nan,
]


@CONTEXTS
@SETTINGS
@given(
    pairs=st.lists(
        st.tuples(st.one_of(floats(64), st.floats(-4, 4)), st.one_of(floats(64), st.integers(-70, 70))),
        min_size=1,
        max_size=30,
    )
)
def test_powers(context: str, engines: str, pairs: list[tuple[float, float]]) -> None:
    given_ = np.array([*pairs, *((x, y) for x in SPECIAL for y in SPECIAL)], dtype=np.float64)
    with np.errstate(all="ignore"):
        expected = np.power(given_[:, 0], given_[:, 1])
    assert_near(doubles_of(call("pow", words(given_), context, engines)), expected, 1e-13)


def compared(given_: NDArray[Any], unordered: int) -> list[int]:
    a, b = given_[:, 0], given_[:, 1]
    order = np.where(a < b, -1, np.where(a > b, 1, 0))
    return [int(value) for value in np.where(np.isnan(a) | np.isnan(b), unordered, order)]


@CONTEXTS
@SETTINGS
@given(pairs=DOUBLES)
def test_comparisons(context: str, engines: str, pairs: list[tuple[float, float]]) -> None:
    given_ = np.array(pairs)
    for name, unordered in (("__ledf2", 1), ("__gedf2", -1)):
        found = call(name, words(given_), context, engines)[:, 0].astype(np.int32)
        assert found.tolist() == compared(given_, unordered)
    found = call("__unorddf2", words(given_), context, engines)[:, 0] != 0
    assert found.tolist() == np.isnan(given_).any(axis=1).tolist()


@SETTINGS
@given(pairs=SINGLES)
def test_comparisons_of_floats_in_the_supervisor(engines: str, pairs: list[tuple[float, float]]) -> None:
    given_ = np.array(pairs, dtype=np.float32)
    for name, unordered in (("__lesf2", 1), ("__gesf2", -1)):
        found = call(name, words(given_), SUPERVISOR, engines)[:, 0].astype(np.int32)
        assert found.tolist() == compared(given_, unordered)
    found = call("__unordsf2", words(given_), SUPERVISOR, engines)[:, 0] != 0
    assert found.tolist() == np.isnan(given_).any(axis=1).tolist()


STRICT: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


@SETTINGS
@given(pairs=SINGLES)
def test_strict_comparisons(engines: str, pairs: list[tuple[float, float]]) -> None:
    given_ = np.array(pairs, dtype=np.float32)
    unordered = np.isnan(given_).any(axis=1)
    expected = {"ord": ~unordered, "uno": unordered}
    for name, compare in STRICT.items():
        holds = compare(given_[:, 0], given_[:, 1])
        expected |= {f"o{name}": holds & ~unordered, f"u{name}": holds | unordered}
    for name, holds in expected.items():
        found = call(f"__strict_f32cmp_{name}", words(given_), "worker", engines)[:, 0].astype(np.int32)
        assert found.tolist() == [-1 if value else 0 for value in holds], name


@CONTEXTS
@SETTINGS
@given(values=st.lists(floats(64), min_size=1, max_size=60))
def test_between_doubles_and_floats(context: str, engines: str, values: list[float]) -> None:
    doubles = np.array(values)
    with np.errstate(all="ignore"):
        singles = doubles.astype(np.float32)
    assert_same(singles_of(call("__truncdfsf2", words(doubles), context, engines), context), singles)
    with np.errstate(all="ignore"):
        expected = singles.astype(np.float64)
    assert_same(doubles_of(call("__extendsfdf2", words(singles), context, engines)), expected)


@SETTINGS
@given(values=st.lists(st.one_of(floats(32), st.floats(width=16)), min_size=1, max_size=60))
def test_between_floats_and_halves_in_the_supervisor(engines: str, values: list[float]) -> None:
    singles = np.array(values, dtype=np.float32)
    with np.errstate(all="ignore"):
        halves = singles.astype(np.float16)
    found = call("__gnu_f2h_ieee", words(singles), SUPERVISOR, engines)[:, 0].astype(np.uint16)
    assert_same(found.view(np.float16), halves)
    bits = halves.view(np.uint16).astype(np.uint32)
    found = call("__gnu_h2f_ieee", bits[:, None], SUPERVISOR, engines)
    assert_same(singles_of(found, SUPERVISOR), halves.astype(np.float32))


@CONTEXTS
@SETTINGS
@given(values=INTEGERS)
def test_from_integers(context: str, engines: str, values: list[int]) -> None:
    for bits, short in ((32, "si"), (64, "di")):
        unsigned = np.array([value % (1 << bits) for value in values], dtype=f"u{bits // 8}")
        for prefix, numbers in (("__floatun", unsigned), ("__float", unsigned.view(f"i{bits // 8}"))):
            found = call(f"{prefix}{short}df", words(unsigned), context, engines)
            assert_same(doubles_of(found), numbers.astype(np.float64))
            if bits == 64 or context == SUPERVISOR:
                found = call(f"{prefix}{short}sf", words(unsigned), context, engines)
                assert_same(singles_of(found, context), numbers.astype(np.float32))


def fixed(value: float, least: int, most: int) -> int:
    """Towards zero, to the nearest that fits."""
    if math.isinf(value):
        return most if value > 0 else least
    return max(least, min(most, int(value)))


@CONTEXTS
@SETTINGS
@given(values=st.lists(floats(64).filter(lambda value: value == value), min_size=1, max_size=60))
def test_to_integers(context: str, engines: str, values: list[float]) -> None:
    doubles = np.array(values)
    with np.errstate(all="ignore"):
        singles = doubles.astype(np.float32)
    for bits, short in ((32, "si"), (64, "di")):
        for prefix, least, most in (
            ("__fixuns", 0, (1 << bits) - 1),
            ("__fix", -(1 << bits - 1), (1 << bits - 1) - 1),
        ):
            for kind, numbers in (("df", doubles), ("sf", singles)):
                if kind == "sf" and bits == 32 and context != SUPERVISOR:
                    continue  # a worker has instructions for that
                found = call(f"{prefix}{kind}{short}", words(numbers), context, engines)
                kept = np.ascontiguousarray(found[:, : bits // 32]).view(f"u{bits // 8}")[:, 0]
                expected = [fixed(float(value), least, most) % (1 << bits) for value in numbers]
                assert kept.tolist() == expected, (prefix, kind, short)
