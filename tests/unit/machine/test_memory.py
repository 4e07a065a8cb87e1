"""The memory map against published addresses."""

from __future__ import annotations

import pytest

from tilewright.ipu21.machine import memory

pytestmark = pytest.mark.unit


def test_published_sums() -> None:
    assert memory.TILE_END == 0xE8000
    assert memory.IMAGE_BASE + 643 * 992 == memory.LOADABLE_END == 0xE7BB0
    assert memory.TILE_END - memory.LOADABLE_END == 0x450
    assert (memory.HOST_WINDOW - memory.TILE_BASE) >> 5 == 0x200


def test_regions() -> None:
    assert memory.REGION1_BASE - memory.TILE_BASE == 13 * memory.ELEMENT_BYTES
    assert memory.TILE_END - memory.REGION1_BASE == 13 * memory.INTERLEAVED_ELEMENT_BYTES
    assert memory.is_executable(memory.REGION1_BASE - 1)
    assert not memory.is_executable(memory.REGION1_BASE)
    assert not memory.is_executable(memory.TILE_BASE - 1)
    assert memory.is_interleaved(memory.REGION1_BASE)
    assert not memory.is_interleaved(memory.TILE_END)


@pytest.mark.parametrize(("address", "element"), [(0x65000, 25), (0x60000, 24), (0x4C000, 19), (0x7FFFF, 31)])
def test_elements_of_region_0(address: int, element: int) -> None:
    assert memory.effective_element(address) == memory.access_element(address) == element


@pytest.mark.parametrize(("address", "unit"), [(0x88000, 1), (0x98000, 3), (0x80000, 0), (0xE7FFF, 12)])
def test_units_of_region_1(address: int, unit: int) -> None:
    assert memory.effective_element(address) == 32 + unit


def test_words_of_region_1_alternate_between_two_elements() -> None:
    elements = [memory.access_element(0x88000 + 8 * k) for k in range(4)]
    assert elements == [34, 35, 34, 35]


def test_effective_elements_of_ranges() -> None:
    assert list(memory.effective_elements(0x63FFC, 0x64004)) == [24, 25]
    assert list(memory.effective_elements(0x63FFC, 0x64000)) == [24]
    assert list(memory.effective_elements(0x7FFFC, 0x88001)) == [31, 32, 33]
    assert list(memory.effective_elements(0x60000, 0x60000)) == []


@pytest.mark.parametrize(
    ("address", "boundary"),
    [(0x586E0, 0x5C000), (0x5C000, 0x5C000), (0x7FFFF, 0x80000), (0x80001, 0x88000), (0x88000, 0x88000)],
)
def test_next_boundary(address: int, boundary: int) -> None:
    assert memory.next_element_boundary(address) == boundary
