"""Tiles whose workers run as translated native code; everything else in the compiled engine."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ....native.objects import binding
from ...machine.memory import TILE_BASE
from .. import state as at
from ..batch import run_states, run_tiles
from ..stop_table import Stops
from ..tile import Tile
from ..tiles import CompiledTiles
from . import scratch as sc
from .emit import changes_control, module_source
from .half_tables import SINGLES_TABLE, fill_tables, table_of_singles
from .library import RUNTIME, library_source, wrapper_name
from .native import FULL, LIGHT, compile_module, native_halves
from .program import TooLarge, program
from .reasons import NAMES
from .sources import symbol

_OVERRUN = 20_000_000
"""Issues by which a launch may exceed the budget of a run."""
_RECORDS = 8192
"""Most translations of one process; further code is left to the compiled engine."""


@dataclass(frozen=True)
class Statistics:
    """What has run natively so far, over all threads.

    Attributes:
        issues: worker issues (a bundle counts once). launches: launches carried through.
        races: launches undone because workers shared words. undone: for other reasons.
        translations: translated entries.
        reasons: launches left to the compiled engine, by reason in words (see `reasons`).
    """

    issues: int
    launches: int
    races: int
    undone: int
    translations: int
    reasons: dict[str, int] = field(default_factory=dict)


class Translator:
    """All translations of this process, and the tables through which native code finds them.

    Attributes:
        avoid_fast: make plain code at once, without waiting for the first infinity or NaN.
    """

    def __init__(self) -> None:
        from .. import codes
        from ..instruction_tables import instruction_tables

        self.heads: NDArray[np.int64] = np.zeros(sc.REGION0_WORDS, dtype=np.int64)
        self.records: NDArray[np.int64] = np.zeros((_RECORDS, sc.RECORD), dtype=np.int64)
        self.avoid_fast = False
        self._count = 0
        self._keep: list[Any] = []
        self._segments: dict[int, list[tuple[int, NDArray[np.uint32]]]] = {}
        self._targets: dict[int, frozenset[int]] = {}
        self._lock = threading.Lock()
        self._scratches: list[sc.Scratch] = []
        self._local = threading.local()
        halves = native_halves()
        self._library, _ = compile_module("library", lambda: library_source(halves), FULL)
        llvm = binding()
        names = [symbol(function) for function in RUNTIME]
        for group in (codes.GROUP_HALVES, codes.GROUP_SINGLES, codes.GROUP_WHOLE, codes.GROUP_STATE):
            count = len(instruction_tables().groups[group].functions)
            names += [wrapper_name(group, number) for number in range(count)]
        for name in names:
            llvm.add_symbol(name, self._library.address(name))
        singles, tables = table_of_singles(), fill_tables(self._library.address)
        self._tables = (singles, *tables.values())
        llvm.add_symbol(SINGLES_TABLE, singles.ctypes.data)
        for name, table in tables.items():
            llvm.add_symbol(name, table.ctypes.data)
        self.assist = self._library.address("tw.runtime.assist")

    def scratch(self) -> sc.Scratch:
        """This thread's working memory."""
        mine = getattr(self._local, "scratch", None)
        if mine is None:
            mine = self._local.scratch = sc.Scratch(self.heads, self.records)
            self._scratches.append(mine)
        return cast("sc.Scratch", mine)

    def forget(self) -> None:
        """Drop all translations. No tile may be running."""
        with self._lock:
            self.heads[:] = 0
            self._count = 0
            self._keep.clear()
            self._segments.clear()
            self._targets.clear()

    def statistics(self) -> Statistics:
        totals = [
            sum(int(item.words[place]) for item in self._scratches)
            for place in (sc.NATIVE_ISSUES, sc.PHASES, sc.RACES, sc.UNDONE)
        ]
        counts = {
            number: sum(int(item.words[sc.REASON_COUNTS + number]) for item in self._scratches)
            for number in NAMES
        }
        found = {NAMES[number]: count for number, count in counts.items() if count}
        return Statistics(totals[0], totals[1], totals[2], totals[3], self._count, found)

    def serve(self, tile: Tile) -> None:
        """Make the translation for which a tile has stopped."""
        places = (at.STOP_DETAIL, at.STOP_ADDRESS, at.STOP_OTHER)
        self.translate(tile, *(int(tile._state[place]) for place in places))

    def translate(self, tile: Tile, entry: int, flavour: int, target: int = 0) -> None:
        """Make a translation of the tile's code at an entry known to native code.

        `target`: where an indirect branch has gone that earlier translations do not know; 0: nowhere.
        """
        if self.avoid_fast and flavour == sc.FAST:
            flavour = sc.PLAIN
        code = tile.memory[: 4 * sc.REGION0_WORDS].view(np.uint32)
        with self._lock:
            targets: set[int] = {target} if target else set()
            if self._known(code, entry, flavour, targets):
                # Another tile of the same batch has asked before.
                return
            if self._count + 1 >= len(self.records):
                # No room: from here on such entries are met again and again, and left to the other engine.
                self._refuse(entry)
                return
            self._add(code.copy(), entry, flavour, targets)

    def _known(self, code: NDArray[np.uint32], entry: int, flavour: int, targets: set[int]) -> bool:
        """Whether there is a translation that will do. Adds what others have found to `targets`."""
        wanted = set(targets)
        number = int(self.heads[(entry - TILE_BASE) >> 2])
        while number:
            record = self.records[number]
            segments = self._segments[number]
            if all(np.array_equal(code[begin : begin + len(want)], want) for begin, want in segments):
                usable = int(record[sc.FLAVOUR]) in (flavour, sc.GENERAL) and not record[sc.SPECIAL]
                if usable and wanted <= self._targets[number]:
                    return True
                targets |= self._targets[number]
            number = int(record[sc.NEXT])
        return False

    def _refuse(self, entry: int) -> None:
        index = (entry - TILE_BASE) >> 2
        record = self.records[len(self.records) - 1]
        record[:] = 0
        record[sc.FLAVOUR] = sc.GENERAL
        record[sc.NEXT] = 0
        self.heads[index] = len(self.records) - 1

    def _add(self, code: NDArray[np.uint32], entry: int, flavour: int, targets: set[int]) -> None:
        function = 0
        ranges: list[tuple[int, int]] = [(entry, 1)]
        try:
            found = program(code, entry, targets)
        except TooLarge:
            flavour = sc.GENERAL
        else:
            ranges = found.ranges
            targets = found.returns
            if changes_control(found):
                flavour = sc.GENERAL
            digest = hashlib.sha256(repr((entry, flavour, sorted(found.returns), found.ranges)).encode())
            for address, words in ranges:
                digest.update(code[(address - TILE_BASE) >> 2 :][:words].tobytes())
            name = "worker"
            compiled, _ = compile_module(
                digest.hexdigest()[:32],
                lambda: module_source(found, flavour, native_halves(), name),
                LIGHT,
            )
            self._keep.append(compiled)
            function = compiled.address(name)
        self._count += 1
        number = self._count
        self._targets[number] = frozenset(targets)
        segments = np.zeros((len(ranges), sc.SEGMENT), dtype=np.int64)
        for row, (address, words) in zip(segments, ranges, strict=True):
            expected = code[(address - TILE_BASE) >> 2 :][:words].copy()
            self._segments.setdefault(number, []).append(((address - TILE_BASE) >> 2, expected))
            row[:] = (address - TILE_BASE) >> 2, words, expected.ctypes.data
        self._keep.append(segments)
        index = (entry - TILE_BASE) >> 2
        record = self.records[number]
        record[:] = 0
        record[sc.NEXT] = self.heads[index]
        record[sc.SEGMENTS], record[sc.SEGMENT_COUNT] = segments.ctypes.data, len(ranges)
        record[sc.FLAVOUR], record[sc.FUNCTION] = flavour, function
        record[sc.LOW] = min((address for address, _ in ranges), default=0)
        record[sc.HIGH] = max((address + 4 * words for address, words in ranges), default=0)
        # Published last: other threads read the table without a lock.
        self.heads[index] = number


_TRANSLATOR: Translator | None = None
_ONCE = threading.Lock()


def translator() -> Translator:
    """This process's translator; the library is compiled or loaded on first use."""
    global _TRANSLATOR
    with _ONCE:
        if _TRANSLATOR is None:
            _TRANSLATOR = Translator()
        return _TRANSLATOR


def run_translated(tiles: Sequence[Tile], *, budget: int | None = None, overrun: int = _OVERRUN) -> Stops:
    """Run each tile to its next stop, as `batch.run_tiles` does.

    Args:
        budget: instructions per tile; default from the checks of the first.
        overrun: how far a launch that began within the budget may exceed it. 0 makes budgets exact.
    """
    return run_tiles(tiles, budget=budget, assistance=_assistance(overrun), assist=translator().serve)


def _assistance(overrun: int = _OVERRUN) -> tuple[int, int]:
    """The native function that runs workers, and this thread's argument of it."""
    mine = translator()
    scratch = mine.scratch()
    scratch.words[sc.OVERRUN] = overrun
    return mine.assist, scratch.address


class TranslatedTiles(CompiledTiles):
    """Makes tiles of the compiled engine and runs them natively where that is possible, in threads."""

    def _compile(self) -> None:
        super()._compile()
        translator()

    def _run_chunk(self, addresses: NDArray[np.int64], tiles: Sequence[Tile], budget: int) -> Stops:
        return run_states(addresses, tiles, budget, _assistance(), translator().serve)
