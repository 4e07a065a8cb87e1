"""How much of each tile's memory a package uses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.package import Package


def tile_bytes_max(package: Package) -> int:
    """Bytes used on the fullest tile: what its image loads or clears, and its data buffers.

    Ranges that overlap count once. The rest of a tile's memory is never touched by the program.
    """
    from tilewright.package.records import ALL_TILES

    images = [
        [(segment.address, segment.address + segment.memory_size) for segment in image.segments]
        for image in package.images
    ]
    regions: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for region in package.regions:
        regions[region.physical_tile].append((region.address, region.address + region.size))
    everywhere = regions[ALL_TILES]
    return max(
        (covered([*images[tile.image], *regions[tile.physical_tile], *everywhere]) for tile in package.tiles),
        default=0,
    )


def covered(ranges: Iterable[tuple[int, int]]) -> int:
    """Bytes in the union of half-open ranges."""
    total, reached = 0, 0
    for begin, end in sorted(ranges):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total
