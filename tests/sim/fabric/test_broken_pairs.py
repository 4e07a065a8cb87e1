"""Broken rows, 64-bit ones too: verifier and simulator both name the tile and the event."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from phase_on_tiles import ROW, Phase, memories_of, run_on_tiles
from random_graphs import SOURCE, TARGET, Builder

from tilewright.errors import SimulationError
from tilewright.ipu21.fabric.items import FORMAT, MUXPAIR, POINTER, SEND, row_items
from tilewright.ipu21.fabric.parse import parse_row
from tilewright.ipu21.fabric.rows import compose_row
from tilewright.ipu21.fabric.schedule import schedule
from tilewright.ipu21.fabric.verify import verify
from tilewright.ipu21.machine.topology import MUX_NEUTRAL

pytestmark = pytest.mark.sim

Item = tuple[int, int, int, int, int]
Change = Callable[[list[Item]], list[Item]]


@pytest.fixture
def phase() -> Phase:
    """64 items from tile 0 to the pair 64, 66; words from 66 to 0 in other elements."""
    builder = Builder(8)
    builder.add(0, SOURCE, 128, [64, 66])
    builder.add(66, SOURCE, 40, [9])
    return builder.build()


def moved(kind: int, by: int, values: tuple[int, ...] | None = None) -> Change:
    def change(items: list[Item]) -> list[Item]:
        return [
            (e + by, k, c, w, v) if k == kind and (values is None or v in values) else (e, k, c, w, v)
            for e, k, c, w, v in items
        ]

    return change


def replaced(kind: int, old: int, new: int) -> Change:
    return lambda items: [(e, k, c, w, new if (k, v) == (kind, old) else v) for e, k, c, w, v in items]


def dropped(kind: int, value: int) -> Change:
    return lambda items: [item for item in items if (item[1], item[4]) != (kind, value)]


BREAKS: dict[str, tuple[int, Change, set[str], str | None]] = {
    "send early": (0, moved(SEND, -1), {"cut"}, None),
    "send late": (0, moved(SEND, 1), {"cut"}, None),
    "pair mux late": (64, moved(MUXPAIR, 1, (0,)), {"cut"}, None),
    "swapped source": (64, replaced(MUXPAIR, 0, 2), {"source", "delivery"}, None),
    "no neutral": (64, dropped(MUXPAIR, MUX_NEUTRAL), {"neutral"}, None),
    "format late": (66, moved(FORMAT, 1, (1,)), {"format"}, "tile 66.*INCOMING_FORMAT"),
    "format dropped": (64, dropped(FORMAT, 1), {"format"}, "tile 64.*INCOMING_FORMAT"),
    "format back early": (66, moved(FORMAT, -1, (0,)), {"format"}, "tile 66.*INCOMING_FORMAT"),
    "wrong way": (64, replaced(FORMAT, 1, 2), {"format"}, "tile 64.*INCOMING_FORMAT"),
    "pointer late": (66, moved(POINTER, 1), {"pointer", "delivery"}, "tile 66.*pointer"),
    "pointer not aligned": (66, replaced(POINTER, TARGET, TARGET + 4), {"address"}, "tile 66.*not aligned"),
    "wrong element": (64, replaced(POINTER, TARGET, ROW + 0x2000), {"fetch"}, "tile 64.*memory element"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_broken_pairs(phase: Phase, name: str) -> None:
    tile, change, kinds, message = BREAKS[name]
    rows: dict[int, NDArray[np.uint32]] = dict(schedule(*phase).rows)
    row = parse_row(rows[tile])
    rows[tile] = compose_row(row_items(change(row.items.tolist())), row.end + 2)
    found = verify(rows, dict.fromkeys(rows, ROW), *phase)
    assert kinds <= {conflict.kind for conflict in found}, [str(conflict) for conflict in found]
    assert all(f"tile {conflict.tile}, event {conflict.event}" in str(conflict) for conflict in found)
    before = memories_of(phase)
    after = {number: data.copy() for number, data in before.items()}
    if message is None:
        # No rule of the fabric is broken: words get lost, and the memories show it.
        if name == "no neutral":
            return
        run_on_tiles(rows, after)
        assert not np.array_equal(after[64][TARGET - 0x4C000 :][:512], before[0][SOURCE - 0x4C000 :][:512])
        return
    with pytest.raises(SimulationError, match=message) as error:
        run_on_tiles(rows, after)
    assert error.value.tile == tile
    assert "event" in str(error.value)


def test_the_partner_must_not_send_meanwhile(phase: Phase) -> None:
    rows = dict(schedule(*phase).rows)
    start = int(parse_row(rows[0]).items["event"][0])
    rows[2] = compose_row(row_items([(start + 20, SEND, 1, 8, SOURCE)]), start + 40)
    lanes = [conflict for conflict in verify(rows, {}) if conflict.kind == "lane"]
    assert [(conflict.tile, conflict.event) for conflict in lanes] == [(0, start + 20)]
    memories = memories_of(phase) | {2: np.zeros(624 * 1024, np.uint8)}
    with pytest.raises(SimulationError, match="borrows the lane of tile 2"):
        run_on_tiles(rows, memories)


def test_two_writes_at_one_event_are_refused(phase: Phase) -> None:
    """A pair mux and a pointer merged into one instruction: composing refuses it, the verifier finds it."""
    words = [0xF0000000 | 60 << 21, (1 << 13 | 5) << 18 | TARGET >> 2, 0x43A00000]
    found = verify({64: np.array(words, np.uint32)}, {})
    assert ("control", 64, 1) in [(conflict.kind, conflict.tile, conflict.event) for conflict in found]
