"""Tiles that can be held before chosen instructions, without changing a result or a cycle.

A breakpoint is a `trap` in the place of an instruction, put there before tiles run and taken away when they
stop, so nobody ever sees one. A tile that meets one has issued nothing yet; to go on, it issues the original
instruction first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from tilewright.ipu21.isa.build import trap
from tilewright.ipu21.machine.memory import TILE_BASE
from tilewright.ipu21.simulator.batch import run_tiles
from tilewright.ipu21.simulator.engine import Engine, Engines
from tilewright.ipu21.simulator.stops import ExceptionKind, Stop, StopKind
from tilewright.ipu21.simulator.tile import Tile
from tilewright.ipu21.simulator.together import TileByTile, Together

_TRAP = trap(0)
_TRAPPED = (ExceptionKind.BREAKPOINT0, ExceptionKind.IN_REPEAT)
"""A `trap` in the body of a repeat is no bundle, which is what the machine then complains about."""
_STEP_LIMIT = 10_000
"""Instructions other contexts may issue before the one that a tile was held at."""


@dataclass(frozen=True, eq=False)
class Hit:
    """A tile is about to issue the instruction at `address` in a context (0 supervisor, 1..6 workers)."""

    tile: Tile
    context: int
    address: int


class PausingTiles:
    """Tiles of another engine, held at breakpoints.

    Attributes (set them before the chip runs):
        wants: addresses at which a tile is to stop.
        met: told of a stop at one of them; False lets the tile go on at once.
        ready: whether to pause now, given the tiles of this run that are held and those that are not.
        paused: called with the tiles held when `ready` says so.
        keeps: whether a tile stays held after that; the others go on.
    """

    def __init__(self, inner: Engines) -> None:
        self._inner = inner
        self._held: dict[Tile, Hit] = {}
        self._resuming: dict[Tile, Hit] = {}
        self._stops: dict[Tile, Stop] = {}
        self.wants: Callable[[Tile], Iterable[int]] = lambda _: ()
        self.met: Callable[[Hit], bool] = lambda _: True
        self.ready: Callable[[Sequence[Tile], Sequence[Tile]], bool] = lambda held, others: bool(held)
        self.paused: Callable[[list[Hit]], None] = lambda _: None
        self.keeps: Callable[[Hit], bool] = lambda _: False

    @property
    def held(self) -> dict[Tile, Hit]:
        """Tiles that wait before an instruction."""
        return dict(self._held)

    def make(self, physical: int) -> Engine:
        return self._inner.make(physical)

    def run(self, tiles: Sequence[Engine], budget: int) -> list[Stop]:
        """Run every tile that is not held to its next stop; held ones report an exhausted budget."""
        mine = cast("Sequence[Tile]", tiles)
        self._stops.clear()
        pending = [tile for tile in mine if tile not in self._held]
        while pending:
            pending = self._round(pending, budget)
        held = [tile for tile in mine if tile in self._held]
        if held and self.ready(held, [tile for tile in mine if tile not in self._held]):
            hits = list(self._held.values())
            self.paused(hits)
            kept = {tile: hit for tile, hit in self._held.items() if at(hit) and self.keeps(hit)}
            # What a debugger has stepped beyond its breakpoint is not there any more.
            self._resuming.update({t: hit for t, hit in self._held.items() if t not in kept and at(hit)})
            self._held = kept
        return [self._stops.get(tile) or _nothing_left(tile) for tile in mine]

    def together(self, tiles: Sequence[Engine]) -> Together:
        """Tiles that a debugger may look at and change at any time are asked one by one."""
        return TileByTile(tiles, self.run)

    def deliver(self, tile: Tile, stop: Stop) -> None:
        """While paused: stepping has brought a held tile to a stop that the chip has to act upon."""
        self._stops[tile] = stop

    def stopped(self, tile: Tile) -> bool:
        """Whether that has happened."""
        return tile in self._stops

    def _round(self, tiles: list[Tile], budget: int) -> list[Tile]:
        """One run of each tile; returns those that only passed a breakpoint."""
        running = []
        for tile in tiles:
            hit = self._resuming.pop(tile, None)
            stop = self._step_over(tile, hit) if hit is not None else None
            if stop is None:
                running.append(tile)
            else:
                self._stops[tile] = stop
        if not running:
            return []
        armed = [(tile, _arm(tile, self.wants(tile))) for tile in running]
        try:
            stops = self._inner.run(running, budget)
        finally:
            for tile, words in armed:
                _disarm(tile, words)
        again = []
        for (tile, words), stop in zip(armed, stops, strict=True):
            if stop.kind is not StopKind.EXCEPTION or stop.exception not in _TRAPPED or stop.pc not in words:
                self._stops[tile] = stop
                continue
            tile.take_back_mark()
            hit = Hit(tile, stop.context, stop.pc)
            if self.met(hit):
                self._held[tile] = hit
            else:
                self._resuming[tile] = hit
                again.append(tile)
        return again

    def _step_over(self, tile: Tile, hit: Hit) -> Stop | None:
        """Issue the instruction a tile was held at, and whatever comes before it; its stop, if it stops."""
        for _ in range(_STEP_LIMIT):
            before = tile.counters[hit.context]
            stop = run_tiles([tile], budget=1)[0]
            if stop.kind is not StopKind.BUDGET:
                return stop
            if tile.counters[hit.context] != before:
                return None
        return None


def at(hit: Hit) -> bool:
    """Whether the tile still is where it was held."""
    place = hit.tile.pc if hit.context == 0 else hit.tile.worker_pc(hit.context - 1)
    return place == hit.address


def _arm(tile: Tile, addresses: Iterable[int]) -> dict[int, bytes]:
    words = {}
    for address in addresses:
        words[address] = tile.read(address, 4)
    for address in words:
        _put(tile, address, _TRAP.to_bytes(4, "little"))
    return words


def _disarm(tile: Tile, words: dict[int, bytes]) -> None:
    for address, word in words.items():
        _put(tile, address, word)


def _put(tile: Tile, address: int, word: bytes) -> None:
    offset = address - TILE_BASE
    tile.memory[offset : offset + 4] = list(word)
    tile.invalidate(address, 4)


def _nothing_left(tile: Tile) -> Stop:
    return Stop(StopKind.BUDGET, clock=tile.clock, pc=tile.pc)
