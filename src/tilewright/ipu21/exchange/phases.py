"""The rows of a package, by exchange phase."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import PackageError, ScheduleError, UsageError
from ...package.records import EXECUTE, NO_MARKS, Package
from ..emit.ready_row import ready_row
from ..emit.row_regions import ROW_SUFFIX
from ..fabric.parse import parse_row


@dataclass(frozen=True)
class Phase:
    """One exchange step of a package.

    Attributes:
        step: its profile step.
        name: that step's name.
        rows: words by physical tile, rising, as they are when they run; tiles without a row sit the phase
            out.
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

    Raises PackageError for a row that lies outside its tile's code or is not made of whole words, and for a
    program that is no preparation of its row.
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
            {tile: reader.row(tile, order[name], *place) for tile, place in sorted(found.items())},
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
    """Rows from the code of tiles; tiles that share an image share what is read."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._known: dict[tuple[int, int, int], NDArray[np.uint32]] = {}
        self._code: dict[int, list[tuple[int, NDArray[np.uint32]]]] = {}

    def row(self, tile: int, step: int, address: int, size: int) -> NDArray[np.uint32]:
        """The row of a tile at an address as it is when a profile step runs it."""
        image = self._package.tiles[tile].image
        key = (image, step, address)
        if key not in self._known:
            words = self._read(tile, image, address, size)
            begin = self._begin(image, step)
            if begin is not None:
                words = self._ready(tile, image, begin, address, words)
            self._known[key] = words
        return self._known[key]

    def _begin(self, image: int, step: int) -> int | None:
        """Where the program begins a step; None for a package that does not say so."""
        table = self._package.images[image].mark_table
        if table == NO_MARKS:
            return None
        marks = self._package.profile.mark_tables[table]
        found = marks["address"][marks["step"] == step]
        return int(found[0]) if len(found) else None

    def _ready(
        self, tile: int, image: int, begin: int, address: int, words: NDArray[np.uint32]
    ) -> NDArray[np.uint32]:
        try:
            ready = ready_row(lambda at: int(self._read(tile, image, at, 4)[0]), begin)
            if ready.row == address:
                return ready.row_words(words)
        except ScheduleError as error:
            raise PackageError(
                f"the program before the row at {address:#x}: {error}", where=f"tile {tile}"
            ) from error
        raise PackageError(
            f"the program runs a row at {ready.row:#x} where one at {address:#x} is named",
            where=f"tile {tile}",
        )

    def _read(self, tile: int, image: int, address: int, size: int) -> NDArray[np.uint32]:
        pieces = self._pieces(image)
        found = bisect_right(pieces, address, key=lambda piece: piece[0]) - 1
        if found >= 0 and address % 4 == 0 and size % 4 == 0:
            begin, words = pieces[found]
            first = (address - begin) // 4
            if first + size // 4 <= len(words):
                return words[first : first + size // 4]
        raise PackageError(f"{size} bytes at {address:#x} are not in its code", where=f"tile {tile}")

    def _pieces(self, image: int) -> list[tuple[int, NDArray[np.uint32]]]:
        """The code of an image: byte address and words of each segment, by address."""
        if image not in self._code:
            self._code[image] = sorted(
                (
                    (part.address, _whole_words(self._package.segment_bytes(part)))
                    for part in self._package.images[image].segments
                    if part.flags & EXECUTE
                ),
                key=lambda piece: piece[0],
            )
        return self._code[image]


def _whole_words(data: bytes) -> NDArray[np.uint32]:
    return np.frombuffer(data, "<u4", count=len(data) // 4).astype(np.uint32)
