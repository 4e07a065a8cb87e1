"""Who sends what to whom and when, followed from the rows of a phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import ScheduleError
from ..fabric.parse import parse_row
from ..fabric.trace import Send, TileTrace, trace
from ..machine import topology

FLOW = np.dtype(
    [
        ("source", "<u2"),
        ("destination", "<u2"),
        ("words", "<u4"),
        ("items", "<u4"),
        ("send", "<i8"),
        ("store", "<i8"),
        ("read", "<u4"),
        ("write", "<u4"),
    ]
)
"""Words that travel from one tile to another without a gap: 32-bit `words` in `items` of 4 or 8 bytes, one
item per event, from the sender's event `send` and address `read` to the receiver's event `store` and address
`write`."""


@dataclass(frozen=True)
class Traffic:
    """What a phase does.

    Attributes:
        tiles: physical tiles with a row, rising.
        ends: event at which each row ends.
        flows: FLOW records by send event, source and destination.
        sends: per tile index, its messages as (event, items, bytes per item, address).
    """

    tiles: list[int]
    ends: list[int]
    flows: NDArray[np.void]
    sends: list[list[tuple[int, int, int, int]]]

    @property
    def horizon(self) -> int:
        """Events of the longest row."""
        return max(self.ends, default=0)


def follow(rows: Mapping[int, NDArray[np.uint32]]) -> Traffic:
    """Traffic of a phase's rows by physical tile.

    Raises ScheduleError for rows that do not parse, and for words that arrive before any pointer.
    """
    traces = trace({tile: parse_row(words, tile=tile) for tile, words in rows.items()})
    tiles = sorted(traces)
    records = [record for tile in tiles for record in _flows(tile, traces)]
    flows = np.array(records, FLOW)
    order = np.lexsort((flows["destination"], flows["source"], flows["send"]))
    return Traffic(
        tiles,
        [traces[tile].end for tile in tiles],
        flows[order],
        [
            [(send.event, send.items, send.size, send.address) for send in traces[tile].sends]
            for tile in tiles
        ],
    )


def _flows(tile: int, traces: Mapping[int, TileTrace]) -> list[tuple[int, ...]]:
    stores = traces[tile].stores
    sources = np.array([store.source for store in stores], np.int64)
    routes = topology.time_to_mux(sources, np.full(len(stores), tile, np.int64)).tolist()
    result: list[tuple[int, ...]] = []
    for store, route in zip(stores, routes, strict=True):
        if store.address is None:
            raise ScheduleError("words arrive before any pointer", where=f"tile {tile}, event {store.event}")
        near = store.event - topology.mux_to_store(tile) - route - 1
        left = _left(traces[store.source].sends, store.source_address, near)
        words = store.bytes // 4
        record = (
            store.source,
            tile,
            words,
            store.items,
            left,
            store.event,
            store.source_address,
            store.address,
        )
        result.append(record)
    return result


def _left(sends: list[Send], address: int, near: int) -> int:
    """Event at which the item at an address left, in the send that fits its arrival best: what is received as
    64-bit items may come by way of the partner, which takes a few events more or less."""
    events = [
        send.event + (address - send.address) // send.size
        for send in sends
        if send.address <= address < send.address + send.items * send.size
    ]
    return min(events, key=lambda event: abs(event - near), default=near)
