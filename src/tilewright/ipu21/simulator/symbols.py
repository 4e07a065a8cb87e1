"""Names for addresses: the regions and symbols of a package."""

from __future__ import annotations

from bisect import bisect_right

from tilewright.package.records import ALL_TILES, NO_MARKS, Package


class Symbols:
    """Looks up `name+0xoffset` for an address on a tile.

    The first region that holds the address decides: one that every tile has means shared code, named by the
    nearest symbol at or before the address; any other names the place itself. Symbols and source lines are
    those of the tiles that run steps. Tiles without steps may have other code at the same addresses.
    """

    def __init__(self, package: Package) -> None:
        ordered = sorted(package.symbols, key=lambda symbol: symbol.address)
        self._names = [symbol.name for symbol in ordered]
        self._addresses = [symbol.address for symbol in ordered]
        self._regions = package.regions
        self._lines = package.lines
        runs_steps = [image.mark_table != NO_MARKS for image in package.images]
        self._others = (
            {item.physical_tile for item in package.tiles if not runs_steps[item.image]}
            if any(runs_steps)
            else set()
        )

    def name(self, tile: int | None, address: int) -> str | None:
        """The name of an address, or None if nothing names it."""
        other = tile in self._others
        for region in self._regions:
            if region.physical_tile not in (ALL_TILES, tile):
                continue
            if region.address <= address < region.address + region.size:
                if region.physical_tile == ALL_TILES and not other:
                    return self._nearest(address) or _offset(region.name, address - region.address)
                return _offset(region.name, address - region.address)
        return None if other else self._nearest(address)

    def place(self, tile: int | None, address: int) -> str | None:
        """The name of an address and, for code whose source is known, file and line: `f+0x8, f.S:12`."""
        name, source = self.name(tile, address), self._lines.find(address)
        if source is None or name is None or tile in self._others:
            return name
        return f"{name}, {source[0]}:{source[1]}"

    def _nearest(self, address: int) -> str | None:
        index = bisect_right(self._addresses, address) - 1
        if index < 0:
            return None
        return _offset(self._names[index], address - self._addresses[index])


def _offset(name: str, offset: int) -> str:
    return f"{name}+{offset:#x}" if offset else name
