"""Programs of all 1,472 tiles: host code, step code and rows, laid out at the same places everywhere.

Every tile runs `initialize` phases once and then loops for ever: input phases, steps, output phases. At the
top of the loop it waits for the host, so a session may run the program any number of times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import align_up
from ..isa import build
from ..lower.calls import Call
from ..lower.tile_work import TileWork
from ..machine.host import owner_of
from ..machine.topology import TILES, to_physical
from ..place.placement import Placement
from .host_code import Tables, copy_from_staging, phase
from .host_plan import Batches, Slot
from .memory_map import PROGRAM
from .step_code import SYNC_ABSENT, ClassProgram, StepCode
from .steps_profile import ProfileIndex


@dataclass
class TileProgram:
    """What one tile executes beyond the shared runtime. Addresses are the same on all tiles.

    Attributes:
        opening: words at PROGRAM: initialize phases, then input phases (the loop's head).
        loop_address: where the input phases begin.
        closing: words at `Programs.closing_address`: output phases and the jump back.
        tables: request words and packet headers.
        reads: true if the host sends it anything, so that it needs staging room.
    """

    opening: list[int]
    loop_address: int
    closing: list[int]
    tables: Tables
    reads: bool = False


@dataclass
class Programs:
    """All programs and where their parts lie.

    Attributes:
        tiles: per physical id.
        classes: step code per tile class.
        rows: per physical id, (address, words) of each exchange row.
        closing_address, steps_address: byte addresses common to all tiles.
        end: one past the last byte any tile uses for programs.
    """

    tiles: dict[int, TileProgram]
    idle: dict[int, TileProgram]
    classes: list[StepCode]
    rows: dict[int, list[tuple[int, NDArray[np.uint32]]]]
    closing_address: int
    steps_address: int
    end: int
    class_of: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class HostTraffic:
    """Batches of the three groups."""

    weights: Batches
    inputs: Batches
    outputs: Batches


def assemble_programs(
    work: TileWork,
    placement: Placement,
    traffic: HostTraffic,
    phase_rows: Mapping[int, Mapping[int, NDArray[np.uint32]]],
    profile: ProfileIndex,
    symbols: Mapping[str, int],
) -> Programs:
    """Programs of all tiles.

    Args:
        phase_rows: step index -> physical tile -> row words, for every step that is an exchange with traffic.
        symbols: entry points of the linked runtime of active tiles.
    """
    class_of = {int(to_physical(tile)): int(work.class_of[tile]) for tile in range(work.plan.tiles)}
    active = {tile: _host_part(tile, traffic, symbols["copy_u64"]) for tile in class_of}
    idle = {tile: _host_part(tile, traffic, 0) for tile in range(TILES) if tile not in class_of}

    closing_address = PROGRAM + _align(max(4 * len(part.opening) + 4 for part in active.values()))
    steps_address = closing_address + _align(max(4 * len(part.closing) + 4 for part in active.values()))
    for program in active.values():
        program.opening.append(build.bri(steps_address))
        program.closing.append(build.bri(program.loop_address))
    absences = [build.sans(0), build.sync(SYNC_ABSENT)] * len(phase_rows)
    for program in idle.values():
        program.opening += [*absences, *program.closing, build.bri(program.loop_address)]
        program.closing = []

    lengths = [_row_lengths(work, index, phase_rows) for index in range(len(work.classes))]
    placeholder = [
        _class_code(work, index, placement, dict.fromkeys(phase_rows, 0), profile, symbols, closing_address)
        for index in range(len(work.classes))
    ]
    rows_start = steps_address + _align(max((4 * len(code.words) for code in placeholder), default=0))
    classes, addresses = [], []
    end = rows_start
    for index in range(len(work.classes)):
        cursor, where = rows_start, {}
        for step, length in lengths[index].items():
            where[step] = cursor
            cursor += _align(4 * length)
        addresses.append(where)
        end = max(end, cursor)
        classes.append(_class_code(work, index, placement, where, profile, symbols, closing_address))
    rows = {
        tile: [
            (addresses[class_of[tile]][step], rows_of[tile])
            for step, rows_of in phase_rows.items()
            if tile in rows_of
        ]
        for tile in class_of
    }
    return Programs(active, idle, classes, rows, closing_address, steps_address, end, class_of)


def _host_part(tile: int, traffic: HostTraffic, copy_address: int) -> TileProgram:
    tables = Tables(tile)
    opening: list[int] = []
    reads = False
    loop_address = PROGRAM
    for group in (traffic.weights, traffic.inputs):
        loop_address = PROGRAM + 4 * len(opening)
        for slots in group.slots:
            slot = slots.get(tile)
            opening += phase(tile, slot, False, _owned(tile, slots), tables)
            if slot is not None:
                reads = True
                opening += copy_from_staging(slot, copy_address)
    closing: list[int] = []
    for slots in traffic.outputs.slots:
        closing += phase(tile, slots.get(tile), True, _owned(tile, slots), tables)
    return TileProgram(opening, loop_address, closing, tables, reads)


def _owned(tile: int, slots: Mapping[int, Slot]) -> list[int]:
    """Targets of a phase that this tile requests traffic for."""
    if tile != owner_of(tile):
        return []
    return [target for target in sorted(slots) if owner_of(target) == tile]


def _class_code(
    work: TileWork,
    index: int,
    placement: Placement,
    rows: Mapping[int, int],
    profile: ProfileIndex,
    symbols: Mapping[str, int],
    closing_address: int,
) -> StepCode:
    program = ClassProgram(work.classes[index], lambda name: placement.address(index, name), symbols)
    for step, item in enumerate(work.work):
        if isinstance(item, Call):
            program.compute(item, profile.step[step])
            continue
        if step in profile.copies:
            program.copies(item, profile.copies[step])
        if step in rows:
            program.exchange(item, profile.step[step], rows[step])
    program.code.words.append(build.bri(closing_address))
    return program.code


def _row_lengths(
    work: TileWork, index: int, phase_rows: Mapping[int, Mapping[int, NDArray[np.uint32]]]
) -> dict[int, int]:
    """Longest row, in words, of each phase over the tiles of a class."""
    tiles = [int(to_physical(int(tile))) for tile in work.classes[index].tiles]
    return {
        step: max((len(rows[tile]) for tile in tiles if tile in rows), default=0)
        for step, rows in phase_rows.items()
    }


def _align(size: int) -> int:
    return align_up(size, 8)
