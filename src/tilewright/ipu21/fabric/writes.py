"""The register writes by which tiles receive placed messages."""

from __future__ import annotations

import numpy as np

from ..machine import topology
from . import routes
from .items import CONTINUE, FORMAT, MUX, MUXPAIR, POINTER
from .messages import Ints, Messages
from .pairing import early
from .transfers import TILE_IDS

_SWITCH = 2
"""Events by which the format changes before the first item that it holds for is stored."""


def register_writes(messages: Messages, starts: Ints) -> tuple[Ints, Ints, Ints]:
    """Controls of all receivers, from the events at which the messages leave.

    Returns:
        Rows (event, kind of ROW_ITEM, value, items; negative for 64-bit items) sorted by tile and event; the
        tile of each; and by tile id the event at which its row may end (0: it receives nothing).
    """
    owner = messages.owner
    mux = starts[owner] + messages.route + 1
    order = np.argsort(messages.tile << 40 | mux, kind="stable")
    owner, mux, tile, target = owner[order], mux[order], messages.tile[order], messages.target[order]
    words, items, wide = messages.words[owner], messages.items[owner], messages.wide[owner]
    sender = messages.source[owner]
    store = mux + topology.mux_to_store(tile)

    same = tile[1:] == tile[:-1]
    abuts = same & (mux[:-1] + items[:-1] == mux[1:])
    alike = wide[1:] == wide[:-1]
    held = np.concatenate([[False], abuts & alike & (sender[1:] == sender[:-1])])
    followed = np.concatenate([abuts & alike, [False]])
    way = routes.direction(sender, tile)
    kept = same & wide[1:] & wide[:-1] & (way[1:] == way[:-1])
    carried = same & (kept | ~wide[1:] & ~wide[:-1]) & (target[:-1] + 4 * words[:-1] == target[1:])
    running = np.concatenate([[False], carried])
    opens, closes = ~np.concatenate([[False], kept]), ~np.concatenate([kept, [False]])

    plain = ~wide
    first = wide & early(sender, tile)
    lane = topology.partner(sender) * (tile >> 1 & 1) + sender * (1 - (tile >> 1 & 1))
    neutral = np.full(len(tile), topology.MUX_NEUTRAL)
    nothing = np.zeros(len(tile), dtype=np.int64)
    last = mux + items
    groups = (
        (plain & ~held, mux, MUX, sender, nothing),
        (plain & ~followed, last, MUX, neutral, nothing),
        (first & ~held, mux - 1, MUXPAIR, lane, nothing),
        (first & ~followed, last - 1, MUXPAIR, neutral, nothing),
        (wide & opens, store - _SWITCH, FORMAT, way, nothing),
        (wide & closes, store + items - _SWITCH, FORMAT, nothing, nothing),
        (~running, store, POINTER, target, np.where(wide, -items, items)),
        (running, store, CONTINUE, target, np.where(wide, -items, items)),
    )
    columns = [
        np.stack([event[chosen], np.full(int(chosen.sum()), kind), value[chosen], size[chosen]], axis=1)
        for chosen, event, kind, value, size in groups
    ]
    controls = np.concatenate(columns)
    place = np.concatenate([tile[group[0]] for group in groups])
    # Every group is sorted already, so that a stable sort only merges them.
    order = np.argsort(place << 44 | controls[:, 0] << 3 | controls[:, 1], kind="stable")
    ends = np.zeros(TILE_IDS, dtype=np.int64)
    np.maximum.at(ends, tile, store + items + topology.RECEIVE_GUARD)
    return controls[order], place[order], ends
