"""The simulated chip: all tiles from one blocked moment to the next.

Tiles run one after another, each until it needs something from outside: a barrier, words, its own identity.
When none can run, the chip resolves the exchange phase that is going on, serves the host's packets, completes
a barrier, or is blocked: for the host, or for ever. The order in which tiles run never shows, because they
meet only there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import SimulationError
from tilewright.ipu21.isa.csrs import INCOMING_DCOUNT, INCOMING_MUX
from tilewright.ipu21.machine.topology import TILES
from tilewright.package.records import Package

from .activity import ActivityLog, note_release, note_stop
from .barrier import (
    HOST,
    INTERNAL,
    NO_OWNERS,
    ZONES,
    Completion,
    Standing,
    barrier_of,
    completion,
    deadlock,
    no_zone,
)
from .class_table import ClassTable
from .classes import NO_ITEMS, State, TileClass, load_classes, word_at, word_table
from .doubts import warn_of_rounding_down
from .engine import Engines
from .exchange_log import SEND
from .fabric import resolve
from .hazards import PhaseChecks, check_phase
from .hostport import Guest, HostPort, LateHost, words_of_all
from .movement import NO_MOVES, move, stored_ranges
from .noted import Noted
from .phase_cache import Phase, PhaseCache
from .sent_words import check_sent
from .stop_table import Stops
from .stops import Stop, StopKind, context_name
from .symbols import Symbols
from .together import Together
from .traffic import DIRECTIONS, IDS, collect

RUN_BUDGET = 1_000_000
"""Instructions a tile may issue before the chip looks up, so that it can be interrupted."""
BARRIERS_KEPT = 4096
"""Length of the record of the latest barriers."""


@dataclass(frozen=True)
class BarrierRecord:
    """A barrier that happened. `arrived` includes tiles without a program; cycles are global."""

    group: int
    arrived: int
    excused: int
    last: int
    release: int


class Chip:
    """1,472 tiles with the fabric and the host port between them.

    Args:
        package: what is loaded. Tiles that it does not name count as arrived in every barrier.
        port: the host port; the host attaches pages to it.
        engines: makes and runs tiles.
        phase_checks: rules of an exchange phase.
        host_latency: cycles from a tile's `sync 0` to its release once the host's words are there; the real
            time is not a property of the device.
        late_host: delays on top of that, before words and before acknowledgements.
        instruction_limit: instructions between two stops of a tile after which it is judged endless.
    """

    def __init__(
        self,
        package: Package,
        port: HostPort,
        engines: Engines,
        *,
        phase_checks: PhaseChecks | None = None,
        host_latency: int = 0,
        late_host: LateHost | None = None,
        instruction_limit: int = 4_000_000_000,
    ) -> None:
        self.port = port
        self.credit = 0
        self.table = ClassTable(load_classes(package, engines))
        self.barriers: deque[BarrierRecord] = deque(maxlen=BARRIERS_KEPT)
        self.barrier_count = 0
        self.recording = False
        self.activity = ActivityLog()
        self._images = package.images
        self._symbols = Symbols(package)
        self._engines = engines
        self._instruction_limit = instruction_limit
        self._phase_checks = phase_checks or PhaseChecks()
        self._host_latency = host_latency
        self._late_host = late_host or LateHost(None)
        self._absent = TILES - sum(len(group.members) for group in self.classes)
        self._pointers = np.zeros(IDS, np.int64)
        self._phases = PhaseCache()
        self._all: Together | None = None
        self._all_partition = 0
        self._phase_release: int | None = None
        self._failed: SimulationError | None = None

    @property
    def classes(self) -> list[TileClass]:
        return self.table.classes

    @property
    def clock(self) -> int:
        """The latest cycle that any tile has reached."""
        return max((group.tile.clock for group in self.classes), default=0)

    @property
    def failed(self) -> SimulationError | None:
        return self._failed

    def record(self, wanted: bool) -> None:
        """Whether to note, for tiles with profile marks, what they do inside their steps (see `activity`)."""
        self.recording = wanted
        for group in self.classes:
            group.tile.note_spans(wanted and group.watched)

    def advance(self) -> None:
        """Runs until nothing can move without the host.

        Raises SimulationError for a fault of the program or a deadlock; the chip then stays failed and raises
        the same error again.
        """
        if self._failed is not None:
            raise self._failed
        try:
            while self._step():
                pass
        except SimulationError as error:
            if error.address is not None and error.symbol is None:
                error.name(self._symbols.place(error.tile, error.address))
            self._failed = error
            raise
        except BaseException:
            self._failed = SimulationError(
                "the simulation was interrupted", category="host", hint="load the package again"
            )
            raise

    def wait_text(self) -> str | None:
        """What the chip waits for from the host, or None when every tile has ended."""
        done = completion([group.standing() for group in self.classes])
        if done is None:
            return None
        return (
            f"a host barrier ({done.arrived} tiles arrived, {done.excused} excused) waits for a mark in GS2"
        )

    # Steps ------------------------------------------------------------------------------------------------

    def _step(self) -> bool:
        """Does the next thing that can be done; False if there is none."""
        places = np.flatnonzero(self.table.rows["state"] == State.RUNNABLE)
        if len(places):
            tiles = self._together()
            stops = tiles.run(places, RUN_BUDGET)
            self._take_notes(tiles, places)
            self._take_stops(places, stops)
            return True
        if self._phase_release is not None:
            self._resolve(self._phase_release)
            return True
        if self._serve_host():
            return True
        return self._barrier()

    def _together(self) -> Together:
        """The tiles of all classes."""
        if self._all is None or self._all_partition != self.table.partition:
            self._all_partition = self.table.partition
            self._all = self._engines.together([group.tile for group in self.classes])
        return self._all

    def _take_notes(self, tiles: Together, places: NDArray[np.int64]) -> None:
        """What the tiles of these classes have marked and logged while they ran."""
        self.table.marks.add(tiles.take_marks(places))
        if tiles.doubtful(places):
            warn_of_rounding_down()
        log, active = tiles.take_logs(places), self.table.rows["active"]
        self.table.items.add(log.of(active))
        for place, items in log.of(~active).each():
            group = self.classes[place]
            sent = items[(items["kind"] == SEND) & ((items["control"] & DIRECTIONS) != 0)]
            group.sends = np.concatenate([group.sends, sent]) if len(group.sends) else sent

    def _take_stops(self, places: NDArray[np.int64], stops: Stops) -> None:
        """Acts on the stops of these classes."""
        if self.recording:
            for place, kind, clock in zip(
                places.tolist(), stops.kinds.tolist(), stops.clocks.tolist(), strict=True
            ):
                if self.classes[place].watched:
                    note_stop(self.classes[place], StopKind(kind), clock, self._phase_release)
        rows = self.table.rows
        spent = rows["spent"][places]
        rows["spent"][places] = 0
        waits = (stops.kinds == StopKind.SYNC) & np.isin(stops.zones, ZONES)
        closed = stops.kinds == StopKind.WINDOW_CLOSED
        for mask, state in ((waits, State.ARRIVED), (closed, State.CLOSED)):
            rows["state"][places[mask]] = state
        rows["zone"][places[waits]] = stops.zones[waits]
        usual = waits | closed
        rows["since"][places[usual]] = stops.clocks[usual]
        for index in np.flatnonzero(~usual).tolist():
            self._stopped(self.classes[places[index]], stops[index], int(spent[index]))

    def _stopped(self, group: TileClass, stop: Stop, spent: int) -> None:
        """Acts on a stop that is neither at a barrier nor behind an exchange window.

        `spent`: instructions since the last stop that was not the budget's.
        """
        kind = stop.kind
        if kind is StopKind.SYNC:
            self._sync(group, stop)
        elif kind is StopKind.NEEDS_IDENTITY:
            self.table.separate(group, group.members.tolist())
        elif kind is StopKind.ENDED:
            self._ended(group, stop)
        elif kind is StopKind.BUDGET and spent < self._instruction_limit:
            group.row["spent"] = spent + RUN_BUDGET
        else:
            raise SimulationError(
                stop.text,
                category=stop.category,
                tile=group.first,
                context=context_name(stop.context),
                address=stop.pc,
                cycle=stop.clock,
            )

    def _sync(self, group: TileClass, stop: Stop) -> None:
        group.row["zone"], group.row["since"] = stop.zone, stop.clock
        if stop.zone == 0:
            group.row["state"] = State.RECEIVING
            self._release_receivers([group])
        elif stop.zone == 1:
            group.row["state"] = State.EXCUSED
            if group.tile.sans == 0:
                self._go(group, stop.clock + 1)
        else:
            raise no_zone(stop.zone, group.first, stop.pc, stop.clock)

    def _ended(self, group: TileClass, stop: Stop) -> None:
        address = self._images[group.image].diagnostic_address
        if address and word_at(group, address) != 1:
            raise SimulationError(
                f"the program branched to 0 without a 1 in its completion word at {address:#x}",
                tile=group.first,
                context="supervisor",
                address=stop.pc,
                cycle=stop.clock,
            )
        group.row["state"], group.row["since"] = State.ENDED, stop.clock

    def _go(self, group: TileClass, clock: int) -> None:
        self._note_release(group, clock)
        group.row["state"] = State.RUNNABLE
        group.tile.resume(clock)

    def _note_release(self, group: TileClass, clock: int) -> None:
        if self.recording and group.watched:
            note_release(group, clock)

    # The exchange -----------------------------------------------------------------------------------------

    def _resolve(self, release: int) -> None:
        """Moves the words of the phase that began at `release`, and lets everybody go on."""
        log = self.table.items.of_all(len(self.classes))
        if (log.rows["kind"] == SEND).any():
            self._exchange(log, release)
        else:
            self._keep_pointers(log)
        self._phase_release = None
        rows = self.table.rows
        rows["state"][rows["active"] & (rows["state"] == State.CLOSED)] = State.RUNNABLE
        for place in np.flatnonzero(rows["state"] == State.HELD).tolist():
            self._go(self.classes[place], int(rows["resume_at"][place]))
        rows["active"] = False
        self.table.items.clear()

    def _keep_pointers(self, log: Noted) -> None:
        """A phase without sends still leaves the pointers it wrote."""
        traffic = collect([self.classes[place].party(items) for place, items in log.each() if len(items)], 0)
        self._pointers[traffic.pointer["tile"]] = traffic.pointer["value"]

    def _exchange(self, log: Noted, release: int) -> None:
        key = None
        # Whoever records needs to see the words themselves.
        if not self.recording:
            standing = self._together().pcs_and_workers()
            key = self._phases.key(self.table, log, release, self._pointers, standing)
        phase = self._phases.get(key)
        if phase is not None:
            phase.moves.make()
            self._apply(phase)
            self._check_sent()
            return
        partition = self.table.partition
        traffic = collect([self.classes[place].party(items) for place, items in log.each()], release)
        resolution = resolve(traffic, self._pointers)
        pieces = resolution.pieces
        check_phase(traffic, pieces, self._phase_checks)
        if self.recording:
            self.activity.exchange(traffic.runs, pieces, release)
        stored = np.bincount(
            pieces["destination"], weights=pieces["items"] * pieces["item_bytes"] // 4, minlength=IDS
        ).astype(np.int64)
        receivers = np.flatnonzero(stored)
        self._separate(receivers)
        moves = move(pieces, word_table(self.classes))
        phase = Phase(
            moves or NO_MOVES,
            receivers,
            stored[receivers],
            stored_ranges(pieces),
            resolution.pointer_tile,
            resolution.pointer_value,
        )
        self._apply(phase)
        if key is not None and moves is not None and self.table.partition == partition:
            self._phases.put(key, phase)
        self._check_sent()

    def _check_sent(self) -> None:
        """What has left tiles in the phase must have been written."""
        if self._phase_checks.unwritten:
            check_sent(self.table, self._together())

    def _apply(self, phase: Phase) -> None:
        """What a phase leaves behind, its words having been moved."""
        self._pointers[phase.pointer_tile] = phase.pointer_value
        tiles = self._together()
        tiles.count_down(phase.receivers, phase.words)
        tiles.invalidate(*phase.ranges.T)

    def _separate(self, tiles: NDArray[np.int64]) -> None:
        """Gives each of these tiles a class of its own."""
        for group in list(self.classes):
            if len(group.members) > 1:
                chosen = group.members[np.isin(group.members, tiles)]
                if len(chosen):
                    self.table.separate(group, chosen.tolist())

    # The host ---------------------------------------------------------------------------------------------

    def _serve_host(self) -> bool:
        """Serves what tiles have sent to the host since the last time; False if nobody sent."""
        senders = [group for group in self.classes if len(group.sends)]
        if not senders:
            return False
        self._separate(np.concatenate([group.members for group in senders]))
        senders = sorted((g for g in self.classes if len(g.sends)), key=lambda group: group.first)
        guests = [Guest(g.first, g.tile.memory, g.tile.csr(INCOMING_MUX), g.tile.pc) for g in senders]
        sends = words_of_all([group.sends for group in senders], guests)
        words = [self.port.take_request(guest, sent) for guest, sent in zip(guests, sends, strict=True)]
        for group in senders:
            group.sends = NO_ITEMS
        counts = self.port.serve_all(guests, words)
        for group, guest, counted in zip(senders, guests, counts, strict=True):
            for address, size in guest.stored:
                group.tile.invalidate(address, size)
            if counted:
                self._count(group, counted)
        self._release_receivers(senders)
        return True

    def _count(self, group: TileClass, words: int) -> None:
        expected = group.tile.csr(INCOMING_DCOUNT)
        if words > expected:
            raise SimulationError(
                f"{words} words arrive from the host, INCOMING_DCOUNT expects {expected}",
                tile=group.first,
                context="supervisor",
                address=group.tile.pc,
            )
        group.tile.set_csr(INCOMING_DCOUNT, expected - words)

    def _release_receivers(self, groups: Sequence[TileClass]) -> None:
        for group in groups:
            if group.state is State.RECEIVING and group.tile.csr(INCOMING_DCOUNT) == 0:
                self._go(group, group.since + 1 + self._host_latency + self._late_host.cycles())

    # Barriers ---------------------------------------------------------------------------------------------

    def _barrier(self) -> bool:
        """Completes the barrier that all are ready for; False if the host must act or all have ended."""
        standings: list[Standing] = []
        tiles = self._together()
        sans, clocks = tiles.excused()
        done = self._usual_barrier(sans, clocks)
        if done is None or self.recording:
            standings = [group.standing() for group in self.classes]
            done = completion(standings)
        if done is None:
            if all(group.state is State.ENDED for group in self.classes):
                if self.credit:
                    raise SimulationError(
                        f"every tile has ended, and GS2 still holds {self.credit}", category="host"
                    )
                return False
            blamed = [s for s in standings if not s.ready]
            raise deadlock("deadlock, no barrier can complete", standings, blamed)
        if done.group == HOST and not self.credit:
            return False
        if done.group == HOST:
            done = replace(done, release=done.release + self._late_host.cycles())
        self._record(done)
        if self.recording:
            self.activity.barrier(done, standings)
        rows = self.table.rows
        if done.group == HOST:
            self.credit -= 1
            if self.port.open:
                self.port.leave()
            if len(done.owners):
                self.port.enter(done.owners)
        else:
            self._phase_release = done.release
            rows["active"] = (rows["state"] == State.ARRIVED) & (sans == 0)
            rows["begun"] = tiles.begun()
            self.table.items.clear()
        going = np.flatnonzero(sans == 0)
        if self.recording:
            for place in going.tolist():
                self._note_release(self.classes[place], done.release)
        rows["state"][going] = State.RUNNABLE
        tiles.resume(going, done.release)
        for place in np.flatnonzero(sans).tolist():
            self._pass_excused(self.classes[place], done)
        return True

    def _usual_barrier(self, sans: NDArray[np.int64], clocks: NDArray[np.int64]) -> Completion | None:
        """`completion` where nobody is missing and all that wait do so in `sync 3`, or all in `sync 7`.

        `sans`, `clocks`: how many barriers each class is still excused from, and since when.
        """
        rows, sizes, waiting = self.table.rows, self.table.sizes, sans == 0
        if not waiting.any() or (rows["state"][waiting] != State.ARRIVED).any():
            return None
        zones = rows["zone"][waiting]
        zone = int(zones[0])
        if zone not in (INTERNAL, HOST) or (zones != zone).any():
            return None
        last = int(np.where(waiting, rows["since"], clocks).max())
        return barrier_of(zone, int(sizes[waiting].sum()), int(sizes[~waiting].sum()), last, NO_OWNERS)

    def _record(self, done: Completion) -> None:
        self.barrier_count += 1
        arrived = done.arrived + self._absent
        self.barriers.append(BarrierRecord(done.group, arrived, done.excused, done.last, done.release))

    def _pass_excused(self, group: TileClass, done: Completion) -> None:
        """What a completed barrier does to a class that is excused from it."""
        group.tile.sans -= 1
        if group.state is State.ARRIVED and done.release > group.since:
            raise SimulationError(
                f"`sync {group.zone}` while the tile is excused from a barrier that has not happened yet",
                tile=group.first,
                context="supervisor",
                address=group.tile.pc,
                cycle=group.since,
                hint="`sync 1` waits for the excused barriers",
            )
        if group.state is State.EXCUSED and group.tile.sans == 0:
            resume_at = max(done.release, group.since + 1)
            if done.group == INTERNAL:
                group.row["state"], group.row["resume_at"] = State.HELD, resume_at
            else:
                self._go(group, resume_at)
