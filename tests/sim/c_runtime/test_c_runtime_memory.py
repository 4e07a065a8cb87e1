"""Moves, fills, comparisons and small stores against slices of NumPy arrays, at every alignment."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tilewright.tile import TileBench, TileProgram

pytestmark = pytest.mark.sim

SETTINGS = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
CONTEXTS = pytest.mark.parametrize("context", ["worker", "supervisor"])
SIZE = 192
MEMORY = st.binary(min_size=SIZE, max_size=SIZE)
PLACE = st.integers(0, SIZE // 2)
COUNT = st.one_of(st.integers(0, 5), st.sampled_from([8, 16, 31, 32, 33, 64]), st.integers(0, SIZE // 2))
STORES = {
    "__st8": (1, 1),
    "__st16": (2, 2),
    "__st16_misaligned": (2, 1),
    "__st32_align1": (4, 1),
    "__st32_align2": (4, 2),
    "__supervisor_st16_misaligned": (2, 1),
    "__supervisor_st32_align1": (4, 1),
    "__supervisor_st32_align2": (4, 2),
    "__st16f": (2, 2),
    "__st16f_misaligned": (2, 1),
    "__st32f_align1": (4, 1),
    "__st32f_align2": (4, 2),
}
"""Name -> bytes stored and their alignment."""


@lru_cache(maxsize=64)
def _program(name: str) -> TileProgram:
    return TileProgram.from_source(f".globl f\nf: bri {name}\n")


def run(
    name: str, memory: bytes, places: list[int], rest: list[int], context: str, engines: str, a0: int = 0
) -> tuple[NDArray[np.uint8], int, int]:
    """Memory afterwards, where it lies, and $m0. Places are offsets in memory and the first arguments."""
    bench = TileBench(_program(name), engines=engines)
    item = bench.put("memory", np.frombuffer(memory, dtype=np.uint8))
    values = [item.address + place for place in places] + rest
    registers = {f"m{number}": value for number, value in enumerate(values)}
    if context == "supervisor":
        result, row = bench.call("f", registers), 0
    else:
        result, row = bench.run_vertex("f", workers=1, registers=registers | {"a0": a0}), 1
    return bench.array("memory"), item.address, int(result.m[row, 0])


@CONTEXTS
@SETTINGS
@given(memory=MEMORY, to=PLACE, source=PLACE, count=COUNT, apart=st.booleans())
def test_moves(
    context: str, engines: str, memory: bytes, to: int, source: int, count: int, apart: bool
) -> None:
    name = "memmove"
    if apart:
        name, count = "memcpy", min(count, abs(to - source))
    expected = np.frombuffer(memory, dtype=np.uint8).copy()
    expected[to : to + count] = expected[source : source + count].copy()
    found, base, result = run(name, memory, [to, source], [count], context, engines)
    np.testing.assert_array_equal(found, expected)
    assert result == base + to


@SETTINGS
@given(memory=MEMORY, to=PLACE, source=PLACE, count=COUNT)
def test_the_copy_of_vertices(engines: str, memory: bytes, to: int, source: int, count: int) -> None:
    """Bytes $m8 from $m0 to $m1, without a stack."""
    count = min(count, abs(to - source))
    expected = np.frombuffer(memory, dtype=np.uint8).copy()
    expected[to : to + count] = expected[source : source + count]
    bench = TileBench(_program("_Longmemcpy_entry"), engines=engines)
    item = bench.put("memory", np.frombuffer(memory, dtype=np.uint8))
    registers = {"m0": item.address + source, "m1": item.address + to, "m8": count, "m11": 0}
    bench.run_vertex("f", workers=1, registers=registers)
    np.testing.assert_array_equal(bench.array("memory"), expected)


@CONTEXTS
@SETTINGS
@given(memory=MEMORY, to=PLACE, value=st.integers(0, (1 << 32) - 1), count=COUNT)
def test_fills(context: str, engines: str, memory: bytes, to: int, value: int, count: int) -> None:
    expected = np.frombuffer(memory, dtype=np.uint8).copy()
    expected[to : to + count] = value & 0xFF
    found, base, result = run("memset", memory, [to], [value, count], context, engines)
    np.testing.assert_array_equal(found, expected)
    assert result == base + to


@CONTEXTS
@SETTINGS
@given(memory=MEMORY, first=PLACE, second=PLACE, count=COUNT, data=st.data())
def test_comparisons(
    context: str, engines: str, memory: bytes, first: int, second: int, count: int, data: st.DataObject
) -> None:
    changed = bytearray(memory)
    changed[first : first + count] = memory[second : second + count]
    if count:
        changed[first + data.draw(st.integers(0, count - 1))] = data.draw(st.integers(0, 255))
    a, b = bytes(changed[first : first + count]), bytes(changed[second : second + count])
    _, _, result = run("memcmp", bytes(changed), [first, second], [count], context, engines)
    found = result - (1 << 32 if result >> 31 else 0)
    assert (found > 0) - (found < 0) == (a > b) - (a < b)


@CONTEXTS
def test_lengths(context: str, engines: str) -> None:
    text = b"tile processor".ljust(SIZE, b"\0")
    for start in range(15):
        assert run("strlen", text, [start], [], context, engines)[2] == 14 - start


@pytest.mark.parametrize("name", STORES)
@SETTINGS
@given(memory=MEMORY, place=PLACE, value=st.integers(0, (1 << 32) - 1))
def test_small_stores(name: str, engines: str, memory: bytes, place: int, value: int) -> None:
    size, alignment = STORES[name]
    context = "supervisor" if "supervisor" in name else "worker"
    place -= place % alignment
    expected = bytearray(memory)
    expected[place : place + size] = value.to_bytes(4, "little")[:size]
    found, _, _ = run(name, memory, [place], [value], context, engines, a0=value)
    assert found.tobytes() == bytes(expected)
