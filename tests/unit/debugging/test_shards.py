"""Tensors in many memories: gathered and compared, with the first wrong element and tile named."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.debugging.shards import compare, gather
from tilewright.package.orders import pack_slices
from tilewright.package.records import SLICE, Binding
from tilewright.package.target import TILE_BASE, TILE_BYTES

pytestmark = pytest.mark.unit


def scattered() -> tuple[Binding, NDArray[np.float32], dict[int, NDArray[np.uint8]]]:
    """A 4 x 20 matrix in two halves of rows, the first of which two tiles hold."""
    rows = [
        (3, 0x60000, 0, 128, 0, 2, 2, 0, 20, 32),
        (9, 0x60100, 0, 128, 0, 2, 2, 0, 20, 32),
        (7, 0x80000, 128, 128, 2, 2, 2, 0, 20, 32),
    ]
    binding = Binding("v", "float32", "float16", (4, 20), "a16", (4, 20), np.array(rows, SLICE))
    array = np.arange(80, dtype=np.float32).reshape(4, 20)
    data = pack_slices(binding, array)
    memory = {tile: np.zeros(TILE_BYTES, np.uint8) for tile in (3, 7, 9)}
    for tile, address, offset, size, *_ in rows:
        part = np.frombuffer(data, np.uint8)[offset : offset + size]
        memory[tile][address - TILE_BASE : address - TILE_BASE + size] = part
    return binding, array, memory


def poke(memory: NDArray[np.uint8], address: int, value: float) -> None:
    memory[address - TILE_BASE :][:2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)


def test_gathered_as_it_was_scattered() -> None:
    binding, array, memory = scattered()
    assert np.array_equal(gather(memory.__getitem__, binding), array)
    result = compare(memory.__getitem__, binding, array, 0.0)
    assert result.difference is None and result.worst == 0


def test_the_first_wrong_element_and_the_lowest_tile_with_it() -> None:
    binding, array, memory = scattered()
    # Row 1, column 17: the second panel of 16 columns begins after 2 x 16 elements.
    place = 2 * (32 + 16 + 1)
    poke(memory[9], 0x60100 + place, 99)
    poke(memory[7], 0x80000, -1)
    found = compare(memory.__getitem__, binding, array, 0.5).difference
    assert found is not None
    assert (found.tile, found.address, found.element) == (9, 0x60100 + place, (1, 17))
    assert (found.found, found.expected, found.bound) == (99, 37, 0.5)
    assert (found.wrong, found.tiles) == (2, 2)
    poke(memory[3], 0x60000 + place, 99)
    both = compare(memory.__getitem__, binding, array, 0.5).difference
    assert both is not None and both.tile == 3 and both.tiles == 3 and both.wrong == 2


def test_bounds_per_element_and_what_is_no_number() -> None:
    binding, array, memory = scattered()
    poke(memory[7], 0x80000, 41)
    bounds = np.zeros((4, 20))
    assert compare(memory.__getitem__, binding, array, bounds).difference is not None
    bounds[2, 0] = 1
    result = compare(memory.__getitem__, binding, array, bounds)
    assert result.difference is None and result.worst == 1
    poke(memory[7], 0x80000, float("nan"))
    assert compare(memory.__getitem__, binding, array, 1e9).difference is not None
    assert compare(memory.__getitem__, binding, array, np.nan).difference is not None
    expected = array.copy()
    expected[2, 0] = np.nan
    assert compare(memory.__getitem__, binding, expected, 0.0).difference is None
    poke(memory[7], 0x80000, float("inf"))
    expected[2, 0] = np.inf
    assert compare(memory.__getitem__, binding, expected, 0.0).difference is None
    expected[2, 0] = -np.inf
    assert compare(memory.__getitem__, binding, expected, 1e9).difference is not None
