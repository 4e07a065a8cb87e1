"""Composing rows: the instruction words that carry out timed items at exactly their events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import ScheduleError
from ..machine import topology
from .encoding import encode_operations
from .items import CONTINUE, FORMAT, MUX, MUXPAIR, POINTER, ROW_ITEM, SEND
from .sequence import FAULTS, OPERATION_COLUMNS, operation_bound, sequence_rows


def compose_row(items: NDArray[np.void], end: int, *, tile: int | None = None) -> NDArray[np.uint32]:
    """Words of one row.

    Args:
        items: ROW_ITEM array, in any order.
        end: event at which the row ends, at least that of its last item.
        tile: physical tile, for messages.

    Returns:
        uint32 words, `br $m10` last. The row must start at an address that is a multiple of 8.

    Raises:
        ScheduleError: items that no row can carry out, with their event.
    """
    return compose_rows([items], [end], tiles=[-1 if tile is None else tile])[0]


def compose_rows(
    items: Sequence[NDArray[np.void]], ends: Sequence[int], *, tiles: Sequence[int]
) -> list[NDArray[np.uint32]]:
    """Words of several rows; see `compose_row`."""
    for tile, row in zip(tiles, items, strict=True):
        _check_items(row, tile)
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in items])]).astype(np.int64)
    flat = np.concatenate([np.zeros(0, ROW_ITEM), *items])
    owner = np.repeat(np.arange(len(items)), np.diff(offsets))
    flat_order = np.lexsort((flat["kind"], flat["event"], owner))
    flat, owner = flat[flat_order], owner[flat_order]
    sending = flat["kind"] == SEND
    sends = np.stack([flat[name][sending] for name in ("event", "words", "value", "control")], axis=1)
    controls = np.stack(
        [flat[name][~sending].astype(np.int64) for name in ("event", "kind", "value", "words")], axis=1
    )
    controls[:, 3] *= np.where(flat["control"][~sending] & 4, -1, 1)
    rows = np.arange(len(items) + 1)
    words, word_offsets = compose_arrays(
        sends.astype(np.int64),
        np.searchsorted(owner[sending], rows),
        controls,
        np.searchsorted(owner[~sending], rows),
        np.asarray(ends, dtype=np.int64),
        np.asarray(tiles, dtype=np.int64),
    )
    return [words[word_offsets[i] : word_offsets[i + 1]] for i in range(len(items))]


def compose_arrays(
    sends: NDArray[np.int64],
    send_offsets: NDArray[np.int64],
    controls: NDArray[np.int64],
    control_offsets: NDArray[np.int64],
    ends: NDArray[np.int64],
    tiles: NDArray[np.int64],
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Words of many rows from checked arrays (columns as in `sequence`). Returns (words, word offsets)."""
    ops = np.empty((operation_bound(sends, controls, ends), OPERATION_COLUMNS), dtype=np.int64)
    offsets = np.zeros(len(ends) + 1, dtype=np.int64)
    row, fault, event = sequence_rows(sends, send_offsets, controls, control_offsets, ends, ops, offsets)
    if fault:
        tile = int(tiles[row])
        raise ScheduleError(
            FAULTS[fault], where=f"tile {tile}, event {event}" if tile >= 0 else f"event {event}"
        )
    return encode_operations(ops[: offsets[-1]], offsets)


def _check_items(items: NDArray[np.void], tile: int) -> None:
    place = f"tile {tile}, " if tile >= 0 else ""
    if items.dtype != ROW_ITEM:
        raise ScheduleError("a row is composed from ROW_ITEM records")
    kind, value = items["kind"], items["value"]
    is_mux = (kind == MUX) | (kind == MUXPAIR)
    wide = (kind == SEND) & (items["control"] & 4 != 0)
    aligned = (kind == SEND) | (kind == POINTER) | (kind == CONTINUE)
    faults = (
        (kind > CONTINUE, "unknown kind of item"),
        (items["event"] < 0, "item before event 0"),
        (items["event"] >= 1 << 40, "item too late"),
        ((kind == SEND) & (items["words"] == 0), "a send of no words"),
        (items["control"] > 7, "direction bits above 7"),
        (is_mux & (value > topology.MUX_NEUTRAL), "mux number above the neutral one"),
        ((kind == FORMAT) & (value > 2), "unknown incoming format"),
        (aligned & (value % 4 != 0), "address not aligned to 4 bytes"),
        (wide & (value % 8 != 0), "64-bit send not aligned to 8 bytes"),
        (aligned & (value >= 1 << 20), "address above 1 MiB"),
    )
    for bad, what in faults:
        if bad.any():
            raise ScheduleError(what, where=f"{place}event {int(items['event'][np.argmax(bad)])}")
