"""Programs of all 1,472 tiles: host code, frames, step code and rows, at the same places everywhere.

Every tile runs `initialize` phases once and then loops for ever: input phases, steps, output phases. At the
top of the loop it waits for the host, so a session may run the program any number of times.

What the steps are is the caller's business: it gives the rows of each exchange step and a function that emits
the step code of a class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import align_up
from ..isa import build
from ..machine.host import owner_of
from ..machine.topology import TILES
from .choose_shared import choose_shared
from .host_code import Tables, copy_from_staging, phase
from .host_plan import Batches
from .host_sequence import HostSequence
from .lines import Line
from .memory_map import FRAME_ALIGNMENT
from .row_use import RowUse
from .shared_rows import PhaseRows, RowSet, SharedRow, routine, row_sets, sharable
from .step_code import StepCode

INTERNAL_BARRIERS, HOST_BARRIERS = 1, 2

StepEmitter = Callable[[int, Mapping[int, RowUse], int, int], StepCode]
"""Step code of a class from its index, how the row of each step in `PhaseRows` runs, the address it begins
at, and the address to go on at.
"""


class Frames(Protocol):
    """What step code keeps in memory beside itself: the same room on every tile, words of each class.

    Attributes:
        bytes: room it needs.
    """

    bytes: int

    def place(self, address: int) -> None:
        """Settle where the room is, before step code is made."""

    def words_of(self, index: int, returns: Sequence[tuple[int, int]]) -> NDArray[np.uint32]:
        """The words of a class, with what its step code decided: see `StepCode.returns`."""


class PlacedRow(NamedTuple):
    """A row of one tile: the step it belongs to, its byte address, its words as they stand there at first.

    `rewritten`: the program changes them.
    """

    step: int
    address: int
    words: NDArray[np.uint32]
    rewritten: bool = False


class Routine(NamedTuple):
    """Code of one tile beside that of its class: its byte address, its instructions."""

    address: int
    lines: list[Line]


@dataclass
class TileProgram:
    """What one tile executes beyond the shared runtime. Addresses are the same on all tiles.

    Attributes:
        opening: words at `Programs.start`: initialize phases, then input phases (the loop's head).
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
        tiles, idle: per physical id, tiles with and without a class.
        classes: step code per tile class; frames: the words it keeps in memory.
        rows: per physical id, its exchange rows.
        start, closing_address, frames_address, steps_address: byte addresses common to all tiles.
        end: one past the last byte any tile uses for programs.
        routines: per physical id, what rewrites its rows, where several take turns.
        uses: per tile class, how each step runs its row.
    """

    tiles: dict[int, TileProgram]
    idle: dict[int, TileProgram]
    classes: list[StepCode]
    frames: list[NDArray[np.uint32]]
    rows: dict[int, list[PlacedRow]]
    start: int
    closing_address: int
    frames_address: int
    steps_address: int
    end: int
    class_of: dict[int, int] = field(default_factory=dict)
    routines: dict[int, list[Routine]] = field(default_factory=dict)
    uses: list[dict[int, RowUse]] = field(default_factory=list)


@dataclass(frozen=True)
class HostTraffic:
    """Batches of the three groups."""

    weights: Batches
    inputs: Batches
    outputs: Batches


def assemble_programs(
    classes: Sequence[Sequence[int]],
    emit: StepEmitter,
    traffic: HostTraffic,
    phase_rows: PhaseRows,
    copy_address: int,
    start: int,
    *,
    frames: Frames | None = None,
    times: Mapping[int, int] | None = None,
    prologue: Sequence[int] = (),
    room: int | None = None,
) -> Programs:
    """Programs of all tiles.

    Args:
        classes: physical tiles of each class; tiles in none run the idle program.
        emit: makes the step code of a class.
        copy_address: entry of `copy_u64` on tiles with a class.
        start: where programs begin.
        frames: what the step code keeps in memory.
        times: how often each step of `phase_rows` runs; once if absent.
        prologue: words that tiles with a class execute once, before their first input phase; they must not
            depend on where they lie.
        room: address that programs should not pass. Rows of a tile share places as far as that needs it;
            if it takes more, the programs end beyond.
    """
    phases = sum((times or {}).get(step, 1) for step in phase_rows)
    class_of = {tile: index for index, tiles in enumerate(classes) for tile in tiles}
    groups = (traffic.weights, traffic.inputs, traffic.outputs)
    targets = {tile for group in groups for slots in group.slots for tile in slots}
    parts = {
        tile: _host_part(tile, traffic, copy_address)
        for tile in sorted({*class_of, *targets, *map(owner_of, targets)})
    }
    before = 4 * len(prologue) + 4
    closing_address = start + _align(max(4 * parts[tile].opening_words + before for tile in class_of))
    frames_address = closing_address + max(4 * len(parts[tile].closing) + 4 for tile in class_of)
    frames_address = align_up(frames_address, FRAME_ALIGNMENT)
    if frames:
        frames.place(frames_address)
    rows_start = frames_address + (align_up(frames.bytes, FRAME_ALIGNMENT) if frames else 0)
    sets = [row_sets(tiles, phase_rows) for tiles in classes]
    laid = _laid(rows_start, sets, [[] for _ in sets], emit, closing_address)
    if room is not None and laid.end > room:
        laid = _within(room, laid, rows_start, sets, emit, closing_address, times or {})
    places, codes, steps_address = laid.places, laid.codes, laid.steps_address
    active = {
        tile: parts[tile].active(start, closing_address, steps_address, prologue) for tile in sorted(class_of)
    }
    idle = {tile: part.idle(start, phases) for tile, part in parts.items() if tile not in class_of}
    bystanders = [tile for tile in range(TILES) if tile not in parts]
    if bystanders:
        alike = _host_part(bystanders[0], traffic, copy_address).idle(start, phases)
        idle |= dict.fromkeys(bystanders, alike)

    members = [(index, *item) for index, tiles in enumerate(classes) for item in enumerate(tiles)]
    kept = [frames.words_of(index, code.returns) for index, code in enumerate(codes)] if frames else []
    return Programs(
        active,
        idle,
        codes,
        kept,
        {tile: places[index].rows(number) for index, number, tile in members},
        start,
        closing_address,
        frames_address,
        steps_address,
        laid.end,
        class_of,
        {tile: places[index].routines(number) for index, number, tile in members},
        [each.uses for each in places],
    )


@dataclass
class _Places:
    """Where the rows of a class lie, with what rewrites them."""

    own: list[tuple[int, RowSet]]
    shared: list[tuple[int, SharedRow]]
    uses: dict[int, RowUse]
    end: int

    def rows(self, number: int) -> list[PlacedRow]:
        """Rows of the class's tile of a number, by step."""
        placed = [
            PlacedRow(step, address, one.rows[number])
            for address, one in self.own
            for step in one.steps
            if len(one.rows[number])
        ]
        placed += [
            PlacedRow(step, address, one.rows[number], one.patched)
            for address, one in self.shared
            for step in one.uses
        ]
        return sorted(placed, key=lambda row: row.step)

    def routines(self, number: int) -> list[Routine]:
        """What rewrites rows of the class's tile of a number."""
        return [
            Routine(address + one.row_bytes, routine(one.rewrites[number], address, one.arguments))
            for address, one in self.shared
            if one.patched
        ]


def _places(start: int, sets: Sequence[RowSet], shared: Sequence[SharedRow]) -> _Places:
    """Places from an address on: each row set in one, except those that share one."""
    joined = {id(one) for each in shared for one in each.sets}
    places = _Places([], [], {}, start)
    for each in sets:
        if id(each) in joined:
            continue
        places.own.append((places.end, each))
        places.uses |= dict.fromkeys(each.steps, RowUse(places.end))
        places.end += each.bytes
    for several in shared:
        places.shared.append((places.end, several))
        places.uses |= several.placed(places.end)
        places.end += several.row_bytes + several.routine_bytes
    return places


class _Laid(NamedTuple):
    """Rows of all classes, and behind them the step code."""

    places: list[_Places]
    codes: list[StepCode]
    steps_address: int
    end: int


def _laid(
    start: int,
    sets: Sequence[Sequence[RowSet]],
    shared: Sequence[Sequence[SharedRow]],
    emit: StepEmitter,
    closing_address: int,
) -> _Laid:
    places = [_places(start, own, joined) for own, joined in zip(sets, shared, strict=True)]
    address = max((each.end for each in places), default=start)
    codes = [emit(index, each.uses, address, closing_address) for index, each in enumerate(places)]
    end = address + _align(max((4 * len(code.words) for code in codes), default=0))
    return _Laid(places, codes, address, end)


def _within(
    room: int,
    laid: _Laid,
    start: int,
    sets: Sequence[Sequence[RowSet]],
    emit: StepEmitter,
    closing_address: int,
    times: Mapping[int, int],
) -> _Laid:
    """Rows and step code that end at `room`, or where they end when all is shared that can be.

    What is shared makes step code longer, so the room of rows is found step by step.
    """
    apart = [each.end for each in laid.places]
    offers = [sharable(own) for own in sets]
    count, best = 0, laid
    while laid.end > room:
        limit = laid.steps_address - (laid.end - room)
        shared = choose_shared(offers, [end - limit for end in apart], times)
        if sum(map(len, shared)) == count:
            break
        count = sum(map(len, shared))
        laid = _laid(start, sets, shared, emit, closing_address)
        best = min(best, laid, key=lambda each: each.end)
    return best


@dataclass
class _HostPart:
    """The host code of one tile, still without addresses."""

    initialize: HostSequence
    inputs: HostSequence
    closing: HostSequence
    tables: Tables
    reads: bool

    @property
    def opening_words(self) -> int:
        return len(self.initialize) + len(self.inputs)

    def active(
        self, start: int, closing_address: int, steps_address: int, prologue: Sequence[int]
    ) -> TileProgram:
        """The parts around the step code."""
        opening = [*self.initialize.words(start), *prologue]
        loop_address = start + 4 * len(opening)
        opening += self.inputs.words(loop_address)
        opening.append(build.bri(steps_address))
        closing = [*self.closing.words(closing_address), build.bri(loop_address)]
        return TileProgram(opening, loop_address, closing, self.tables, self.reads)

    def idle(self, start: int, phases: int) -> TileProgram:
        """The whole program of a tile that sits out every exchange step."""
        opening = self.initialize.words(start)
        loop_address = start + 4 * len(opening)
        loop = HostSequence()
        loop.extend(self.inputs)
        for _ in range(phases):
            loop.absent(INTERNAL_BARRIERS)
        loop.extend(self.closing)
        opening += loop.words(loop_address)
        opening.append(build.bri(loop_address))
        return TileProgram(opening, loop_address, [], self.tables, self.reads)


def _host_part(tile: int, traffic: HostTraffic, copy_address: int) -> _HostPart:
    tables = Tables(tile)
    reads = False
    parts = []
    for group, to_host in ((traffic.weights, False), (traffic.inputs, False), (traffic.outputs, True)):
        sequence = HostSequence()
        for slots, owners in zip(group.slots, group.owned, strict=True):
            slot, owned = slots.get(tile), owners.get(tile, [])
            if slot is None and not owned:
                sequence.absent(HOST_BARRIERS)
                continue
            sequence.add(phase(tile, slot, to_host, owned, tables))
            if slot is not None and not to_host:
                reads = True
                sequence.add(copy_from_staging(slot, copy_address))
        parts.append(sequence)
    initialize, inputs, closing = parts
    return _HostPart(initialize, inputs, closing, tables, reads)


def _align(size: int) -> int:
    return align_up(size, 8)
