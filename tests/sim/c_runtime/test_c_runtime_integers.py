"""Divisions, products and shifts against Python's integers, in both contexts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from driver import call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.sim

SETTINGS = settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
CONTEXTS = ("worker", "supervisor")


def numbers(bits: int) -> st.SearchStrategy[int]:
    """Unsigned numbers of every magnitude, and those next to the ends of smaller words."""
    near = [0, 1, 2, 3, 10, *(end + step for end in (1 << 31, 1 << 32, 1 << 63) for step in (-1, 0, 1))]
    edges = [value % (1 << bits) for value in (*near, *(-value for value in near))]
    sized = st.integers(1, bits).flatmap(lambda size: st.integers(0, (1 << size) - 1))
    return st.one_of(st.sampled_from(edges), sized)


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def quotient(a: int, b: int) -> int:
    """Towards zero; 0 for a division by zero."""
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    return a - quotient(a, b) * b


def of_signed(function: Callable[[int, int], int], bits: int) -> Callable[[int, int], int]:
    return lambda a, b: function(signed(a, bits), signed(b, bits))


WORDS: dict[str, Callable[[int, int], int]] = {
    "__udivsi3": quotient,
    "__umodsi3": remainder,
    "__divsi3": of_signed(quotient, 32),
    "__modsi3": of_signed(remainder, 32),
}
LONGS: dict[str, Callable[[int, int], int]] = {
    "__udivdi3": quotient,
    "__umoddi3": remainder,
    "__divdi3": of_signed(quotient, 64),
    "__moddi3": of_signed(remainder, 64),
    "__muldi3": lambda a, b: a * b,
}
SHIFTS: dict[str, Callable[[int, int], int]] = {
    "__ashldi3": lambda a, count: a << count,
    "__lshrdi3": lambda a, count: a >> count,
    "__ashrdi3": lambda a, count: signed(a, 64) >> count,
}
PAIRS_OF_WORDS = st.lists(st.tuples(numbers(32), numbers(32)), min_size=1, max_size=100)
PAIRS_OF_LONGS = st.lists(st.tuples(numbers(64), numbers(64)), min_size=1, max_size=100)


def halves(value: int) -> tuple[int, int]:
    return value & 0xFFFFFFFF, value >> 32


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("name", WORDS)
@SETTINGS
@given(pairs=PAIRS_OF_WORDS)
def test_words(name: str, context: str, engines: str, pairs: list[tuple[int, int]]) -> None:
    called = name if context == "worker" else name.replace("__", "__supervisor_")
    found = call(called, pairs, context, engines)[:, 0].tolist()
    assert found == [WORDS[name](a, b) % (1 << 32) for a, b in pairs]


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("name", LONGS)
@SETTINGS
@given(pairs=PAIRS_OF_LONGS)
def test_longs(name: str, context: str, engines: str, pairs: list[tuple[int, int]]) -> None:
    found = call(name, [(*halves(a), *halves(b)) for a, b in pairs], context, engines)
    expected = [halves(LONGS[name](a, b) % (1 << 64)) for a, b in pairs]
    assert [tuple(row) for row in found[:, :2].tolist()] == expected


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("name", SHIFTS)
@SETTINGS
@given(values=st.lists(st.tuples(numbers(64), st.integers(0, 63)), min_size=1, max_size=100))
def test_shifts(name: str, context: str, engines: str, values: list[tuple[int, int]]) -> None:
    found = call(name, [(*halves(a), count) for a, count in values], context, engines)
    expected = [halves(SHIFTS[name](a, count) % (1 << 64)) for a, count in values]
    assert [tuple(row) for row in found[:, :2].tolist()] == expected
