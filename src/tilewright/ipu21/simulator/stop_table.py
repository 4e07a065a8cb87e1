"""Where many tiles stopped, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from .stops import (
    STOP_ASSISTANCE,
    STOP_ENDED,
    STOP_NEEDS_IDENTITY,
    STOP_SYNC,
    STOP_WINDOW_CLOSED,
    Stop,
    StopKind,
)

PLAIN = (STOP_SYNC, STOP_WINDOW_CLOSED, STOP_NEEDS_IDENTITY, STOP_ENDED)
"""Stops about which there is nothing more to say than the engine reports."""
SPECIAL: NDArray[np.bool_] = ~np.isin(np.arange(STOP_ASSISTANCE + 1), PLAIN)
"""By number, whether there is."""


class Stops(Sequence[Stop]):
    """One stop per tile, in the order of the tiles.

    Attributes:
        kinds, clocks: of each, as in `Stop`.
    """

    def __init__(self, reports: NDArray[np.int64], told: Mapping[int, Stop]) -> None:
        """`reports`: what `state.REPORT` says of each tile. `told`: by index, those that are not PLAIN."""
        self.kinds, self.clocks = reports[:, 0], reports[:, 1]
        self._reports, self._told = reports, told

    @cached_property
    def zones(self) -> NDArray[np.int64]:
        """Of each tile the zone of its barrier, or -1."""
        return np.where(self.kinds == STOP_SYNC, self._reports[:, 4], -1)

    @staticmethod
    def of(stops: Sequence[Stop]) -> Stops:
        """Stops that are known one by one."""
        rows = [(stop.kind, stop.clock, stop.context, stop.pc, stop.zone) for stop in stops]
        return Stops(np.array(rows, np.int64).reshape(-1, 5), dict(enumerate(stops)))

    @staticmethod
    def joined(parts: Sequence[Stops]) -> Stops:
        """Those of all parts, one part after the other."""
        told: dict[int, Stop] = {}
        begin = 0
        for part in parts:
            told.update({begin + index: stop for index, stop in part._told.items()})
            begin += len(part)
        return Stops(np.concatenate([part._reports for part in parts]), told)

    def __len__(self) -> int:
        return len(self._reports)

    @overload
    def __getitem__(self, index: int) -> Stop: ...

    @overload
    def __getitem__(self, index: slice) -> list[Stop]: ...

    def __getitem__(self, index: int | slice) -> Stop | list[Stop]:
        if isinstance(index, slice):
            return [self[place] for place in range(len(self))[index]]
        place = range(len(self))[index]
        if place in self._told:
            return self._told[place]
        kind, clock, context, pc, _ = self._reports[place].tolist()
        return Stop(StopKind(kind), clock, pc, context, int(self.zones[place]))
