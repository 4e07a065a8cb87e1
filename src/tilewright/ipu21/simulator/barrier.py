"""When a barrier completes, and what to say when it never can.

State per tile: the zone of the `sync` it waits in, and its outstanding `sans` count. A barrier completes when
every tile has arrived or has a count above 0, at least one arrived, and all arrivals are of one group (zone
modulo 8). Evidence: known sequences, derived rule; the release times are assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import SimulationError
from tilewright.ipu21.machine.timing import BARRIER_HOST, BARRIER_INTERNAL

INTERNAL, HOST = 3, 7
"""Groups of zones that this chip has a use for; the others belong to loaders and to other chips."""
MASTER = 15
"""The zone with which a tile that owns host requests enters a host phase; of the host's group."""
PLACES_SHOWN = 8
"""Places that the report of a deadlock names, those of the tiles at fault first."""
ZONES = (INTERNAL, HOST, MASTER)
NO_OWNERS = np.zeros(0, np.int64)


@dataclass(eq=False, slots=True)
class Standing:
    """Where the tiles of one class are.

    `zone` is the `sync` they wait in (None: no barrier), issued at cycle `since`. They are excused from
    `count` barriers, by a `sans` at `count_since`. `pc` is their next instruction, `doing` says it in words.
    """

    tiles: NDArray[np.int64]
    zone: int | None
    since: int
    count: int
    count_since: int
    pc: int
    doing: Callable[[], str]

    @property
    def ready(self) -> bool:
        return self.zone is not None or self.count > 0


@dataclass(frozen=True)
class Completion:
    """A barrier in which all are ready.

    `arrived` and `excused` count tiles, `last` and `release` are cycles; `owners` arrived in the master form.
    """

    group: int
    arrived: int
    excused: int
    last: int
    release: int
    owners: NDArray[np.int64]


def completion(standings: Sequence[Standing]) -> Completion | None:
    """The barrier that can complete now, if one can.

    Raises SimulationError when all are ready and their zones do not belong to one group.
    """
    arrived = [s for s in standings if s.zone is not None]
    if not arrived or not all(s.ready for s in standings):
        return None
    groups = {s.zone % 8 for s in arrived if s.zone is not None}
    if len(groups) > 1:
        raise deadlock("barriers of different groups meet", standings, arrived)
    group = groups.pop()
    excused = [s for s in standings if s.zone is None]
    last = max([s.since for s in arrived] + [s.count_since for s in excused])
    owners = [s.tiles for s in arrived if s.zone == MASTER]
    return barrier_of(
        group,
        sum(len(s.tiles) for s in arrived),
        sum(len(s.tiles) for s in excused),
        last,
        np.sort(np.concatenate(owners)) if owners else NO_OWNERS,
    )


def barrier_of(group: int, arrived: int, excused: int, last: int, owners: NDArray[np.int64]) -> Completion:
    """A barrier whose last arrival was at cycle `last`."""
    # A supervisor issues one instruction per cycle, so nobody goes on in the cycle of the last `sync`.
    wait = BARRIER_INTERNAL if group == INTERNAL else max(BARRIER_HOST, 1)
    return Completion(group, arrived, excused, last, last + wait, owners)


def no_zone(zone: int, tile: int, address: int, cycle: int) -> SimulationError:
    """The fault of a `sync` in a zone of loaders or of other chips."""
    return SimulationError(
        f"`sync {zone}` waits for a loader or for another chip",
        category="unsupported" if zone in (4, 5, 6, 12, 13, 14) else "program",
        tile=tile,
        context="supervisor",
        address=address,
        cycle=cycle,
        hint="a program uses zones 0 to 3, 7 and 15",
    )


def deadlock(what: str, standings: Iterable[Standing], blamed: Sequence[Standing] = ()) -> SimulationError:
    """The report of a chip that cannot go on: where every tile is, alike ones together."""
    places: dict[str, list[NDArray[np.int64]]] = {}
    for standing in [*blamed, *(s for s in standings if not any(s is other for other in blamed))]:
        places.setdefault(standing.doing(), []).append(standing.tiles)
    parts = [f"{tile_names(np.concatenate(tiles))} {doing}" for doing, tiles in places.items()]
    if len(parts) > PLACES_SHOWN:
        parts[PLACES_SHOWN:] = [f"and {len(parts) - PLACES_SHOWN} more places"]
    first = min(blamed, key=lambda s: int(s.tiles.min()), default=None)
    return SimulationError(
        f"{what}: {'; '.join(parts)}",
        tile=None if first is None else int(first.tiles.min()),
        context=None if first is None else "supervisor",
        address=None if first is None else first.pc,
    )


def tile_names(tiles: NDArray[np.int64], limit: int = 6) -> str:
    """ "tile 5" or "1470 tiles (1, 2, 3, 4, 5, 6, ...)", physical ids."""
    names = np.sort(tiles).tolist()
    if len(names) == 1:
        return f"tile {names[0]}"
    shown = ", ".join(map(str, names[:limit]))
    return f"{len(names)} tiles ({shown}{', ...' if len(names) > limit else ''})"
