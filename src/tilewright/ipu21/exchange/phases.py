"""The rows of a package, by exchange phase."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import PackageError, UsageError
from ...package.records import EXECUTE, Package
from ..emit.row_regions import ROW_SUFFIX
from ..fabric.parse import parse_row


@dataclass(frozen=True)
class Phase:
    """One exchange step of a package.

    Attributes:
        step: its profile step.
        name: that step's name.
        rows: words by physical tile, rising; tiles without a row sit the phase out.
        addresses: byte address of each row's first word.
    """

    step: int
    name: str
    rows: dict[int, NDArray[np.uint32]]
    addresses: dict[int, int]

    @property
    def length(self) -> int:
        """Events of the longest row. Raises ScheduleError for words that are no row."""
        # Tiles that share an image share the array.
        distinct = {id(words): (tile, words) for tile, words in self.rows.items()}
        return max(parse_row(words, tile=tile).end for tile, words in distinct.values())

    @property
    def row_bytes(self) -> int:
        """Bytes of all rows."""
        return sum(words.nbytes for words in self.rows.values())


def list_phases(package: Package) -> list[Phase]:
    """All phases with rows, in program order. Empty if the package names no rows.

    Raises PackageError for a row that lies outside its tile's code or is not made of whole words.
    """
    order: dict[str, int] = {}
    for number, step in enumerate(package.profile.steps):
        if step.kind == "exchange":
            order.setdefault(step.name, number)
    places: dict[str, dict[int, tuple[int, int]]] = {name: {} for name in order}
    for region in package.regions:
        name = region.name.removesuffix(ROW_SUFFIX)
        if name == region.name or name not in places:
            continue
        if not 0 <= region.physical_tile < len(package.tiles) or region.physical_tile in places[name]:
            raise PackageError(
                f"{region.name!r} names no row of one tile", where=f"tile {region.physical_tile}"
            )
        places[name][region.physical_tile] = (region.address, region.size)
    reader = _CodeReader(package)
    return [
        Phase(
            order[name],
            name,
            {tile: reader.words(tile, *place) for tile, place in sorted(found.items())},
            {tile: place[0] for tile, place in sorted(found.items())},
        )
        for name, found in sorted(places.items(), key=lambda item: order[item[0]])
        if found
    ]


def find_phase(package: Package, wanted: str | None) -> Phase:
    """The phase of a name or a step number; without either, the only one. Raises UsageError."""
    phases = list_phases(package)
    if not phases:
        raise UsageError("the package has no exchange phase that it names the rows of")
    names = ", ".join(phase.name for phase in phases[:12]) + (", ..." if len(phases) > 12 else "")
    if wanted is None:
        if len(phases) > 1:
            raise UsageError(f"which of {len(phases)} phases?", hint=f"--phase takes one of: {names}")
        return phases[0]
    for phase in phases:
        if wanted in (phase.name, str(phase.step)):
            return phase
    raise UsageError(f"there is no exchange phase {wanted!r}", hint=f"there are: {names}")


class _CodeReader:
    """Words from the code of tiles; tiles that share an image share what is read."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._known: dict[tuple[int, int, int], NDArray[np.uint32]] = {}

    def words(self, tile: int, address: int, size: int) -> NDArray[np.uint32]:
        image = self._package.tiles[tile].image
        key = (image, address, size)
        if key not in self._known:
            self._known[key] = self._read(tile, image, address, size)
        return self._known[key]

    def _read(self, tile: int, image: int, address: int, size: int) -> NDArray[np.uint32]:
        for segment in self._package.images[image].segments:
            begin = address - segment.address
            if segment.flags & EXECUTE and begin >= 0 and begin + size <= segment.file_size and size % 4 == 0:
                data = self._package.segment_bytes(segment)
                return np.frombuffer(data[begin : begin + size], "<u4").astype(np.uint32)
        raise PackageError(
            f"the row of {size} bytes at {address:#x} is not in its code", where=f"tile {tile}"
        )
