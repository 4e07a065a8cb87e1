"""One exchange phase three ways: rows walked item by item, rows run by simulated tiles, and what was asked.

The simulated tiles execute the words of a row; the fabric of the simulator then resolves, checks and moves.
Nothing here knows how a schedule is made.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.fabric.execute import execute
from tilewright.ipu21.isa import csrs
from tilewright.ipu21.machine.memory import TILE_BASE, TILE_BYTES
from tilewright.ipu21.machine.topology import MUX_NEUTRAL
from tilewright.ipu21.simulator.batch import run_tiles
from tilewright.ipu21.simulator.fabric import resolve
from tilewright.ipu21.simulator.hazards import PhaseChecks, check_phase
from tilewright.ipu21.simulator.movement import move, move_by_word
from tilewright.ipu21.simulator.stops import StopKind
from tilewright.ipu21.simulator.tile import Tile
from tilewright.ipu21.simulator.traffic import IDS, Party, collect

PROGRAM, ROW = 0x4C100, 0x50000
"""A `sync 3` and a call, then the row: elements that no message of these tests touches."""
RELEASE = 1000
SYNC, CALL_ROW = 0x41800003, 0x18A00000 | ROW >> 2
INITIAL = {csrs.INCOMING_MUX: MUX_NEUTRAL, csrs.INCOMING_MUXPAIR: MUX_NEUTRAL, csrs.INCOMING_DCOUNT: 1}

Rows = Mapping[int, NDArray[np.uint32]]
Memories = dict[int, NDArray[np.uint8]]
Phase = tuple[NDArray[np.void], NDArray[np.void]]


def run_on_tiles(
    rows: Rows, memories: Memories, *, checks: PhaseChecks | None = None, by_word: bool = False
) -> dict[int, int]:
    """Run the rows on simulated tiles and move what they exchange between `memories`, in place.

    Returns the event at which each row ended. Raises SimulationError for a broken rule.
    """
    tiles = []
    for physical, words in rows.items():
        tile = Tile(physical)
        tile.load(PROGRAM, np.array([SYNC, CALL_ROW], np.uint32).tobytes(), 8)
        tile.load(ROW, words.tobytes(), 4 * len(words))
        for register, value in INITIAL.items():
            tile.set_csr(register, value)
        tile.pc = PROGRAM
        tiles.append(tile)
    for stop in run_tiles(tiles):
        assert stop.kind is StopKind.SYNC, stop
    for tile in tiles:
        tile.resume(RELEASE)
    parties, ends = [], {}
    for tile, stop in zip(tiles, run_tiles(tiles), strict=True):
        assert stop.kind is StopKind.WINDOW_CLOSED, stop
        ends[tile.physical] = stop.clock - RELEASE
        parties.append(
            Party(
                members=np.array([tile.physical], np.int64),
                log=tile.take_log(),
                mux=MUX_NEUTRAL,
                close=stop.clock,
                code=(ROW, ROW + 4 * len(rows[tile.physical])),
            )
        )
    traffic = collect(parties, RELEASE)
    pieces = resolve(traffic, np.zeros(IDS, np.int64)).pieces
    check_phase(traffic, pieces, checks or PhaseChecks())
    nothing = np.zeros(0, np.uint32)
    table = [memories[i].view("<u4") if i in memories else nothing for i in range(IDS)]
    (move_by_word if by_word else move)(pieces, table)
    return ends


def memories_of(phase: Phase, seed: int = 1) -> Memories:
    """Memories of all tiles of a phase: random where it reads, zero elsewhere."""
    random = np.random.default_rng(seed)
    transfers, destinations = phase
    tiles = np.union1d(transfers["source"], destinations["tile"]).tolist()
    result = {int(tile): np.zeros(TILE_BYTES, np.uint8) for tile in tiles}
    for source, address, words, _, _ in transfers.tolist():
        at = address - TILE_BASE
        result[source][at : at + 4 * words] = random.integers(0, 256, 4 * words, dtype=np.uint8)
    return result


def delivered(phase: Phase, before: Memories) -> Memories:
    """What the memories must be after a phase that forwards nothing."""
    after = {tile: data.copy() for tile, data in before.items()}
    for source, address, words, first, count in phase[0].tolist():
        at = address - TILE_BASE
        for tile, target in phase[1][first : first + count].tolist():
            to = target - TILE_BASE
            after[tile][to : to + 4 * words] = before[source][at : at + 4 * words]
    return after


def agree(rows: Rows, phase: Phase, *, walk: bool = True, seed: int = 1) -> None:
    """Assert that simulated tiles, and the walk if asked, leave exactly the memories that were asked for."""
    before = memories_of(phase, seed)
    expected = delivered(phase, before)
    simulated = {tile: data.copy() for tile, data in before.items()}
    run_on_tiles(rows, simulated)
    if walk:
        execute(rows, before)
    for tile, data in expected.items():
        assert np.array_equal(simulated[tile], data), f"tile {tile}: the simulator differs"
        assert not walk or np.array_equal(before[tile], data), f"tile {tile}: the walk differs"
