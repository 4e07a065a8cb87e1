"""Tiles that cannot be told apart share one simulated tile, until something tells them apart.

A class starts as all tiles with one image. It splits when a member reads its own id, receives words from the
exchange, or talks to the host; classes never join again. So tiles that do nothing cost one tile together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import PackageError
from tilewright.ipu21.isa.csrs import INCOMING_DCOUNT, INCOMING_FORMAT, INCOMING_MUX, INCOMING_MUXPAIR
from tilewright.ipu21.machine.memory import IMAGE_BASE, TILE_BASE, TILE_END
from tilewright.ipu21.machine.topology import TILES
from tilewright.package.records import EXECUTE, NO_MARKS, WRITE, Package

from .barrier import Standing
from .engine import Engine, Engines
from .exchange_log import EXCHANGE_ITEM
from .traffic import IDS, Party

NO_ITEMS = np.zeros(0, EXCHANGE_ITEM)
BEGUN = (INCOMING_MUX, INCOMING_MUXPAIR, INCOMING_FORMAT, INCOMING_DCOUNT)
"""Registers that decide where the words of a phase go, as far as its items do not change them."""


class State(IntEnum):
    """What the tiles of a class are doing between runs."""

    RUNNABLE = 0
    ARRIVED = 1
    EXCUSED = 2
    RECEIVING = 3
    HELD = 4
    CLOSED = 5
    ENDED = 6


_DOING = {
    State.RUNNABLE: "runs",
    State.ARRIVED: "waits in a barrier",
    State.EXCUSED: "waits until its excused barriers have happened",
    State.RECEIVING: "waits for words",
    State.HELD: "goes on when the exchange phase is resolved",
    State.CLOSED: "has left its exchange window",
    State.ENDED: "has ended",
}

ROW = np.dtype(
    [(name, "<i8") for name in ("state", "zone", "since", "resume_at", "spent")]
    + [("active", "?"), ("begun", "<i8", len(BEGUN))]
)
"""What changes of a class from run to run.

state: a State. zone, since: zone and issue cycle of the latest `sync` or end.
resume_at: of HELD, the cycle at which it goes on. spent: instructions since the last stop that was not the
budget's. active: takes part in the exchange phase that is going on. begun: the registers BEGUN when it began.
"""


@dataclass(eq=False)
class TileClass:
    """One simulated tile and the physical tiles (sorted) it stands for.

    Attributes:
        row: a ROW, that of a `ClassTable` once the class is in one. place: where in that table.
        sends: sends outside phases, not yet served. watched: whether there are profile marks to come.
        activity, spans: what `activity` has noted: (kind, detail, begin, end), and worker runs.
    """

    tile: Engine
    members: NDArray[np.int64]
    image: int
    row: np.void = field(default_factory=lambda: np.zeros(1, ROW)[0])
    place: int = 0
    sends: NDArray[np.void] = field(default_factory=lambda: NO_ITEMS)
    activity: list[tuple[int, int, int, int]] = field(default_factory=list)
    spans: list[NDArray[np.void]] = field(default_factory=list)
    watched: bool = False

    @property
    def state(self) -> State:
        return State(int(self.row["state"]))

    @property
    def zone(self) -> int:
        return int(self.row["zone"])

    @property
    def since(self) -> int:
        return int(self.row["since"])

    @property
    def runs(self) -> bool:
        return self.state is State.RUNNABLE

    @property
    def first(self) -> int:
        return int(self.members[0])

    def standing(self) -> Standing:
        """Where the members are with respect to barriers."""
        count = self.tile.sans
        zone = self.zone if self.state is State.ARRIVED and count == 0 else None
        return Standing(self.members, zone, self.since, count, self.tile.sans_clock, self.tile.pc, self.doing)

    def doing(self) -> str:
        """What the members do, for a report."""
        count, tile = self.tile.sans, self.tile
        at = f" at {tile.pc:#x}"
        if self.state is State.ARRIVED:
            left = f" with {count} excused barriers left" if count else ""
            return f"wait in `sync {self.zone}`{at}{left}"
        if self.state is State.EXCUSED:
            return f"wait in `sync 1`{at} for {count} excused barriers"
        if self.state is State.RECEIVING:
            return f"wait in `sync 0`{at} for {tile.csr(INCOMING_DCOUNT)} more words"
        return _DOING[self.state]

    def party(self, items: NDArray[np.void]) -> Party:
        """The members' part in the phase that is going on, of which they have logged these items."""
        pcs = items["pc"]
        mux, mux_pair, form, data_count = self.row["begun"].tolist()
        low = int(pcs.min()) if len(pcs) else 0
        return Party(
            members=self.members,
            log=items,
            mux=mux,
            mux_pair=mux_pair,
            format=form,
            active=bool(self.row["active"]),
            close=self.since,
            code=(low, max(int(pcs.max()), self.tile.pc) + 4) if len(pcs) else (0, 0),
            data_count=data_count,
            workers=self.tile.active_workers,
        )


def load_classes(package: Package, engines: Engines) -> list[TileClass]:
    """One class per image: memory filled from the package, its profile marks watched.

    Raises PackageError for tiles that do not exist or have two images, and for segments outside tile memory.
    """
    members: dict[int, list[int]] = {}
    for entry in package.tiles:
        if not 0 <= entry.physical_tile < TILES:
            raise PackageError(f"there is no tile {entry.physical_tile}", where="tile images")
        members.setdefault(entry.image, []).append(entry.physical_tile)
    if len({entry.physical_tile for entry in package.tiles}) < len(package.tiles):
        raise PackageError("a tile has two images", where="tile images")
    classes = []
    for index in sorted(members):
        image = package.images[index]
        ids = np.array(sorted(members[index]), np.int64)
        tile = engines.make(int(ids[0]))
        tile.pc, tile.shared = IMAGE_BASE, len(ids) > 1
        for segment in image.segments:
            if segment.address < TILE_BASE or segment.address + segment.memory_size > TILE_END:
                raise PackageError(
                    f"a segment of {segment.memory_size} bytes at {segment.address:#x}: not in tile memory",
                    where=f"image {index}",
                )
            tile.load(segment.address, package.segment_bytes(segment), segment.memory_size)
            if segment.flags & EXECUTE and segment.flags & WRITE:
                tile.allow_rewriting(segment.address, segment.memory_size)
        if image.mark_table != NO_MARKS:
            table = package.profile.mark_tables[image.mark_table]
            tile.set_watch(table["address"].astype(np.int64), table["step"].astype(np.int64))
        classes.append(TileClass(tile, ids, index, watched=image.mark_table != NO_MARKS))
    return classes


def split(group: TileClass, chosen: Iterable[int]) -> list[TileClass]:
    """Takes tiles out of a class, each into a class of its own; `group` keeps the others.

    Returns the classes of the chosen tiles. If all members are chosen, `group` becomes the first of them.
    """
    singles = sorted(chosen)
    rest = group.members[~np.isin(group.members, singles)]
    result = []
    if not len(rest):
        if len(group.members) > 1:
            for physical in singles[1:]:
                result.append(_alone(group, physical))
            _identify(group.tile, singles[0])
            group.members = np.array(singles[:1], np.int64)
        return [group, *result]
    for physical in singles:
        result.append(_alone(group, physical))
    group.members = rest
    if len(rest) == 1:
        _identify(group.tile, int(rest[0]))
    return result


def _identify(tile: Engine, physical: int) -> None:
    tile.physical, tile.shared = physical, False


def _alone(group: TileClass, physical: int) -> TileClass:
    copy = TileClass(**{name: getattr(group, name) for name in group.__dataclass_fields__})
    copy.tile = group.tile.copy(physical)
    _identify(copy.tile, physical)
    copy.members = np.array([physical], np.int64)
    copy.activity, copy.spans = list(group.activity), list(group.spans)
    return copy


def word_table(classes: Iterable[TileClass]) -> list[NDArray[np.uint32]]:
    """Memory of every physical tile as 32-bit words; members of one class share it, others have none."""
    nothing = np.zeros(0, np.uint32)
    table = [nothing] * IDS
    for group in classes:
        words = group.tile.memory.view("<u4")
        for physical in group.members.tolist():
            table[physical] = words
    return table


def word_at(group: TileClass, address: int) -> int:
    offset = address - TILE_BASE
    return int(group.tile.memory[offset : offset + 4].view("<u4")[0])
