"""Classes of equal tiles, packages that cannot be loaded, and names for addresses."""

from __future__ import annotations

import numpy as np
import pytest
import worked_example as example
from fake_tile import FakeTiles

from tilewright.errors import PackageError
from tilewright.ipu21.machine.memory import TILE_BASE
from tilewright.ipu21.simulator.classes import load_classes, split, word_table
from tilewright.ipu21.simulator.symbols import Symbols
from tilewright.package.records import NO_MARKS, Region, Symbol, TileImage
from tilewright.package.validation import validate

pytestmark = pytest.mark.sim


def test_the_example_is_a_valid_package() -> None:
    validate(example.worked_package())


def test_equal_images_are_one_tile() -> None:
    classes = load_classes(example.worked_package(), FakeTiles())
    assert sorted(len(group.members) for group in classes) == [1, 1, 1470]
    idle = max(classes, key=lambda group: len(group.members))
    table = word_table(classes)
    assert table[1].base is table[2].base
    assert len(table[1472]) == 0
    assert int(table[0][(0x50000 - TILE_BASE) // 4]) == 1
    assert idle.first == 1


def test_splitting_keeps_every_member_once() -> None:
    package = example.worked_package()
    package.tiles = package.tiles[:64]
    classes = load_classes(package, FakeTiles())
    idle = max(classes, key=lambda group: len(group.members))
    new = split(idle, [7, 3])
    assert [group.members.tolist() for group in new] == [[3], [7]]
    assert len(idle.members) == 60
    assert [group.tile.csr(3) for group in new] == [3, 7]
    new[0].tile.memory[100] = 9
    assert idle.tile.memory[100] == 0
    rest = split(idle, idle.members.tolist())
    assert rest[0] is idle
    assert sorted(int(g.members[0]) for g in rest) == sorted(set(range(64)) - {0, 53, 3, 7})
    assert all(not group.tile.shared for group in rest[:5])


def test_the_last_member_learns_who_it_is() -> None:
    package = example.worked_package()
    package.tiles = [tile for tile in package.tiles if tile.physical_tile in (8, 9)]
    (group,) = load_classes(package, FakeTiles())
    assert group.tile.shared
    split(group, [9])
    assert not group.tile.shared
    assert (group.members.tolist(), group.tile.csr(3)) == ([8], 8)


@pytest.mark.parametrize("physical", [-1, 1472, 1 << 31])
def test_tiles_that_do_not_exist(physical: int) -> None:
    package = example.worked_package()
    package.tiles[5] = TileImage(physical, 0)
    with pytest.raises(PackageError, match="there is no tile"):
        load_classes(package, FakeTiles())


def test_a_tile_with_two_images() -> None:
    package = example.worked_package()
    package.tiles[5] = TileImage(0, 1)
    with pytest.raises(PackageError, match="two images"):
        load_classes(package, FakeTiles())


@pytest.mark.parametrize(("address", "size"), [(0x4BFFC, 8), (0xE7FFC, 8), (0x58000, 1 << 40)])
def test_segments_outside_memory(address: int, size: int) -> None:
    package = example.worked_package()
    segment = package.images[0].segments[-1]
    segment.address, segment.memory_size = address, size
    with pytest.raises(PackageError, match="not in tile memory"):
        load_classes(package, FakeTiles())


def test_names_of_addresses() -> None:
    package = example.worked_package()
    package.symbols = [Symbol("main", 0x4C100), Symbol("start", 0x4C014)]
    package.regions = [
        Region(7, 0x5C000, 0x100, "rows"),
        Region(0xFFFFFFFF, 0x4C000, 0x1000, "code"),
        Region(0xFFFFFFFF, 0x5C000, 0x100, "aperture"),
    ]
    names = Symbols(package)
    assert names.name(3, 0x4C014) == "start"
    assert names.name(3, 0x4C104) == "main+0x4"
    assert names.name(7, 0x5C010) == "rows+0x10"
    assert names.name(3, 0x4C000) == "code"
    assert names.name(3, 0x4BFFC) is None
    assert names.name(None, 0x4C200) == "main+0x100"


def test_names_are_those_of_tiles_with_steps() -> None:
    package = example.worked_package()
    package.symbols = [Symbol("start", 0x4C014)]
    package.regions = [Region(0xFFFFFFFF, 0x50000, 0x1000, "aperture")]
    shown = [item.physical_tile for item in package.tiles]
    for number, image in enumerate(package.images):
        image.mark_table = NO_MARKS if number else 0
    names = Symbols(package)
    steps = {item.physical_tile for item in package.tiles if item.image == 0}
    assert {tile for tile in shown if names.place(tile, 0x4C014) == "start"} == steps
    assert {names.place(tile, 0x50010) for tile in set(shown) - steps} == {"aperture+0x10"}
    assert names.place(None, 0x4C014) == "start"


def test_memory_of_the_segments() -> None:
    group = load_classes(example.worked_package(), FakeTiles())[0]
    words = group.tile.memory.view("<u4")
    assert int(words[4]) == 0x19E00000
    assert words[(0x50000 - TILE_BASE) // 4 :][:4].tolist() == example.PACKETS_0
    assert np.count_nonzero(words[(0x50180 - TILE_BASE) // 4 :]) == 0
