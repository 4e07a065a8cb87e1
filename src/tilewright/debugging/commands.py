"""The debugger's language: one command a line, for a terminal and for scripts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import numpy as np

from tilewright.errors import UsageError

from .breakpoints import place
from .debugger import Debugger, Stopped

HELP = """\
break operator|phase NAME          hold all tiles before its first instruction
break kernel|address NAME [TILE]   stop the first tile (or only TILE) that comes there; 0x5c010, symbol+0x10
breaks                             list breakpoints; delete N, or delete all
run, continue                      go on to the next breakpoint, or to the end
step [N] [TILE]                    N instructions of a held tile, of whichever context's turn it is
step phase, step operator          to the next exchange phase or operator, on all tiles
tile [N]                           whose registers and memory are meant from now on; what it does
registers [CONTEXT]                0 supervisor (default), 1..6 workers
disassemble [PLACE] [N]            N instructions (8) from a place, or from where the tile is
memory PLACE [N]                   N words (8) of memory
writer PLACE                       who wrote the word there last
values                             values of the graph that can be shown
tensor NAME [INDEX ...]            a value gathered from all tiles, compared with the reference
where                              where the run is
quit"""
_SHOWN = 6
_MOST = 10_000


class Commands:
    """Runs commands on a debugger and writes what they say.

    Args:
        write: takes one line of output.
    """

    def __init__(self, debugger: Debugger, write: Callable[[str], None]) -> None:
        self._debugger = debugger
        self._write = write
        self._tile: int | None = None
        self._stopped: Stopped | None = None
        self.ended = False
        """Whether `quit` was said."""

    def run(self, line: str) -> None:
        """One command; an empty line and one that begins with `#` do nothing. Raises UsageError."""
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise UsageError(f"{line.strip()!r}: {error}") from None
        if not words:
            return
        name, *rest = words
        commands: dict[str, Callable[[list[str]], None]] = {
            "break": self._break,
            "breaks": self._breaks,
            "delete": self._delete,
            "run": self._continue,
            "continue": self._continue,
            "c": self._continue,
            "step": self._step,
            "s": self._step,
            "tile": self._choose,
            "registers": self._registers,
            "disassemble": self._disassemble,
            "memory": self._memory,
            "writer": self._writer,
            "values": self._values,
            "tensor": self._tensor,
            "where": self._where,
            "help": lambda _: self._lines(HELP),
            "quit": self._quit,
        }
        if name not in commands:
            raise UsageError(f"there is no command {name[:40]!r}", hint="`help` lists them")
        commands[name](rest)

    def _lines(self, text: str) -> None:
        for line in text.splitlines():
            self._write(line)

    def _quit(self, words: list[str]) -> None:
        self.ended = True

    # Going ------------------------------------------------------------------------------------------------

    def _break(self, words: list[str]) -> None:
        if len(words) < 2:
            raise UsageError("break WHAT NAME [TILE]", hint="`help` lists what")
        tile = _number(words[2]) if len(words) > 2 else None
        self._write(f"{len(self._debugger.breakpoints)}: {self._debugger.break_at(words[0], words[1], tile)}")

    def _breaks(self, words: list[str]) -> None:
        for number, item in enumerate(self._debugger.breakpoints):
            self._write(f"{number}: {item}")

    def _delete(self, words: list[str]) -> None:
        if words == ["all"]:
            self._debugger.breakpoints.clear()
            return
        number = _number(words[0]) if len(words) == 1 else -1
        if not 0 <= number < len(self._debugger.breakpoints):
            raise UsageError("delete N, or delete all", hint="`breaks` lists them")
        del self._debugger.breakpoints[number]

    def _continue(self, words: list[str]) -> None:
        self._at(self._debugger.resume())

    def _at(self, stopped: Stopped | None) -> None:
        self._stopped, self._tile = stopped, None
        if stopped is None:
            names = ", ".join(f"{name} {list(a.shape)}" for name, a in (self._debugger.outputs or {}).items())
            self._write(f"the run is over; outputs {names}")
            return
        self._write(str(stopped))

    def _step(self, words: list[str]) -> None:
        if words == ["phase"]:
            self._at(self._debugger.step_phase())
            return
        if words == ["operator"]:
            self._at(self._debugger.step_operator())
            return
        count = _number(words[0]) if words else 1
        tile = _number(words[1]) if len(words) > 1 else self._tile
        if not 1 <= count <= _MOST:
            raise UsageError(f"{count} instructions", hint=f"1 to {_MOST:,}")
        held = self._debugger.held(tile)
        done = self._debugger.step(tile, count)
        for item in done:
            self._write(item.line(self._debugger.symbol(held.physical, item.address)))
        if len(done) < count:
            self._write("the tile has come to a barrier, or to words it needs: `continue` leads on")

    def _where(self, words: list[str]) -> None:
        if self._stopped is None:
            self._write("the run is over" if self._debugger.over else "the run has not begun")
            return
        self._write(str(self._stopped))

    # Looking ----------------------------------------------------------------------------------------------

    def _choose(self, words: list[str]) -> None:
        if words:
            self._debugger.tile(_number(words[0]))
            self._tile = _number(words[0])
        tile = self._tile if self._tile is not None else self._debugger.held().physical
        self._write(f"tile {tile} {self._debugger.state(tile)}")

    def _registers(self, words: list[str]) -> None:
        context = _number(words[0]) if words else 0
        names = list(self._debugger.registers(self._tile, context).items())
        for begin in range(0, len(names), 4):
            self._write("  ".join(f"{name:>4} {value:#010x}" for name, value in names[begin : begin + 4]))

    def _disassemble(self, words: list[str]) -> None:
        count = _bounded(words[1], 1000) if len(words) > 1 else 8
        address = place(self._debugger.package, words[0]) if words else None
        for line in self._debugger.disassemble(self._tile, address, count):
            self._write(line)

    def _memory(self, words: list[str]) -> None:
        if not words:
            raise UsageError("memory PLACE [N]")
        address = place(self._debugger.package, words[0])
        count = _bounded(words[1], 1000) if len(words) > 1 else 8
        data = self._debugger.memory(address, 4 * count, self._tile)
        for begin in range(0, count, 4):
            part = data[4 * begin : 4 * min(begin + 4, count)]
            values = " ".join(f"{word:08x}" for word in np.frombuffer(part, "<u4").tolist())
            halves = " ".join(f"{half:.4g}" for half in np.frombuffer(part, "<f2").astype(float).tolist())
            self._write(f"{address + 4 * begin:#x}  {values:<35}  {halves}")

    def _writer(self, words: list[str]) -> None:
        if len(words) != 1:
            raise UsageError("writer PLACE")
        address = place(self._debugger.package, words[0])
        found = self._debugger.writer(address, self._tile)
        by = f"{found.who} at {found.address:#x} <{found.symbol}>" if found.symbol else found.who
        tail = f", brought by step {found.step}" if found.step else ""
        held = f" (buffer {found.buffer}{tail})" if found.buffer else ""
        self._write(f"{address:#x}: {by}{held}")

    def _values(self, words: list[str]) -> None:
        self._write(", ".join(self._debugger.values()) or "none")

    def _tensor(self, words: list[str]) -> None:
        if not words:
            raise UsageError("tensor NAME [INDEX ...]")
        found = self._debugger.tensor(words[0])
        array = found.array
        if len(words) > 1:
            index = tuple(_number(word) for word in words[1:])
            if len(index) > array.ndim or any(
                not 0 <= i < n for i, n in zip(index, array.shape, strict=False)
            ):
                raise UsageError(f"index {list(index)} of a value of shape {list(array.shape)}")
            shown = np.asarray(array[index]).reshape(-1)
        else:
            shown = array.reshape(-1)
        values = " ".join(f"{value:.5g}" for value in shown[:_SHOWN].tolist())
        more = " ..." if len(shown) > _SHOWN else ""
        self._write(f"{words[0]} {list(array.shape)}: {values}{more}")
        if found.state:
            self._write(f"it {found.state}")
        elif found.expected is None:
            self._write("the package does not say what it should be")
        elif found.difference is None:
            self._write(f"as expected; largest difference from float32 {found.largest:.3g}")
        else:
            wrong = found.difference
            where = f"element {list(wrong.element)} on tile {wrong.tile} at {wrong.address:#x}"
            self._write(
                f"not as expected: {where} is {wrong.found:.6g}, not {wrong.expected:.6g}; {wrong.wrong:,} "
                f"elements on {wrong.tiles:,} tiles are wrong"
            )


def _number(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise UsageError(f"{text[:40]!r} is no number")
    return int(text)


def _bounded(text: str, limit: int) -> int:
    value = _number(text)
    if not 1 <= value <= limit:
        raise UsageError(f"{value} is outside 1..{limit}")
    return value
