"""Single-step a tile and tell what every instruction read and wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..isa.csrs import CCCSLOAD
from ..isa.decode import Instruction, InvalidInstruction, decode
from ..isa.registers import register_name
from ..isa.text import format_instruction
from ..machine.memory import REGION1_BASE, TILE_BASE, TILE_END
from .stops import Stop, StopKind
from .tile import Tile
from .trace_access import Access, accesses
from .trace_registers import changed_accumulators, changed_csrs, changed_weights, read_csrs

M_STORAGE, A_STORAGE = 12, 8
_WIDEST = 1 << 128


@dataclass(frozen=True, slots=True)
class Step:
    """One issued instruction or bundle.

    Attributes:
        cycle: when it issued.
        context: 0 supervisor, 1..6 worker 0..5.
        address: of its first word.
        instructions: one, or the two halves of a bundle.
        text: vendor syntax, braces around a bundle.
        reads: registers it names as sources with their values, and memory it loads.
        writes: its destinations and every other register it changed with the new values, control registers,
            accumulators and weights among them, and memory it stores. Many accumulators or weights that
            changed are one value, lowest first.
    """

    cycle: int
    context: int
    address: int
    instructions: tuple[Instruction, ...]
    text: str
    reads: tuple[tuple[str, int], ...]
    writes: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return self.line()

    def line(self, place: str | None = None, source: str | None = None) -> str:
        """One line; `place` is the address as symbol + offset, `source` where the code was written."""
        context = "s " if self.context == 0 else f"w{self.context - 1}"
        where = f"{self.address:05x}" + (f" <{place}>" if place else "")
        reads = " ".join(f"{name}={_shown(value)}" for name, value in self.reads)
        writes = " ".join(f"{name}={_shown(value)}" for name, value in self.writes)
        line = f"{self.cycle:>7} {context} {where:<24} {self.text:<48}"
        line += f" {reads}" if reads else ""
        line = (f"{line} -> {writes}" if writes else line).rstrip()
        return f"{line}  # {source}" if source else line


def _shown(value: int) -> str:
    """A value in hexadecimal; of one wider than any register the lowest 32 bits."""
    return f"{value:#x}" if value < _WIDEST else f"{value & 0xFFFFFFFF:#010x}.."


def steps(tile: Tile, *, budget: int | None = None) -> Iterator[Step | Stop]:
    """Run a tile one issue at a time; yields every step, and last the stop, as `Tile.run` returns it.

    The order is the machine's: workers and supervisor interleave cycle by cycle.

    Args:
        budget: instructions and bundles before the run is judged endless; default that of the tile's checks.
    """
    left = tile.checks.budget if budget is None else budget
    while True:
        peeked = tile.run(budget=0)
        if peeked.kind is not StopKind.BUDGET or left <= 0:
            yield peeked
            return
        before = _Snapshot(tile)
        stop = tile.run(budget=1)
        left -= 1
        context = before.issuer(tile)
        if context is not None:
            yield before.step(tile, context, peeked.clock)
        if stop.kind is not StopKind.BUDGET:
            yield stop
            return


def fetch(tile: Tile, address: int) -> tuple[Instruction, ...]:
    """The instruction or bundle at an address; empty if there is none."""
    if address & 3 or not TILE_BASE <= address <= REGION1_BASE - 4:
        return ()
    words = np.frombuffer(tile.read(address, min(8, TILE_END - address)), dtype="<u4")
    try:
        first = decode(int(words[0]), int(words[-1]))
        if first.coissue and len(words) > 1:
            return first, decode(int(words[1]))
        return (first,)
    except InvalidInstruction:
        return ()


def instructions_text(instructions: tuple[Instruction, ...], mode: str) -> str:
    """One instruction, or a bundle in braces."""
    texts = [format_instruction(item, mode=mode) for item in instructions]
    return f"{{ {' ; '.join(texts)} }}" if len(texts) > 1 else "".join(texts) or "(no instruction)"


class _Snapshot:
    """What can differ after one issue."""

    def __init__(self, tile: Tile) -> None:
        self.counters = tile.counters
        self.weight_pointer = tile.csr(CCCSLOAD)
        self.places = [tile.pc, *(tile.worker_pc(worker) for worker in range(6))]
        self.m: NDArray[np.uint32] = tile.m.copy()
        self.a: NDArray[np.uint32] = tile.a.copy()
        self.csrs = tile.csrs
        self.accumulators: NDArray[np.float32] = tile.accumulators.copy()
        self.weights: NDArray[np.uint64] = tile.weights.copy()

    def issuer(self, tile: Tile) -> int | None:
        """The context that issued since then."""
        changed = np.flatnonzero(tile.counters != self.counters)
        return int(changed[0]) if len(changed) else None

    def step(self, tile: Tile, context: int, cycle: int) -> Step:
        address = self.places[context]
        # The instruction itself may have been stored over by now only if it stored over itself.
        instructions = fetch(tile, address)
        reads: list[tuple[str, int]] = []
        moved: list[Access] = []
        for instruction in instructions:
            reads += self._sources(instruction, context)
            reads += read_csrs(instruction, context, self.csrs[context], tile.m[context].tolist())
            moved += accesses(instruction, self._main(context), self.weight_pointer)
        loads = [(item.text, item.value(tile)) for item in moved if not item.store and item.inside]
        stores = [(item.text, item.value(tile)) for item in moved if item.store and item.inside]
        return Step(
            cycle=cycle,
            context=context,
            address=address,
            instructions=instructions,
            text=instructions_text(instructions, "worker" if context else "supervisor"),
            reads=tuple(dict.fromkeys([*reads, *loads])),
            writes=(*self._changes(tile, context, instructions), *stores),
        )

    def _main(self, context: int) -> list[int]:
        return [int(value) for value in self.m[context]]

    def _sources(self, instruction: Instruction, context: int) -> list[tuple[str, int]]:
        found = []
        for operand, number in zip(instruction.form.operands, instruction.operands, strict=True):
            if not operand.is_register or ("Dst" in operand.name and "SrcDst" not in operand.name):
                continue
            bank = self.m[context] if operand.kind[0] == "m" else self.a[context - 1]
            count = operand.step
            limit = 14 if operand.kind[0] == "m" else A_STORAGE
            if number < limit:
                value = sum(int(bank[number + index]) << (32 * index) for index in range(count))
                found.append((register_name(operand.kind, number), value))
        return found

    def _changes(
        self, tile: Tile, context: int, instructions: tuple[Instruction, ...]
    ) -> list[tuple[str, int]]:
        """Registers named as destinations, changed or not, and any other register that changed."""
        named = {
            (operand.kind[0], number + index)
            for instruction in instructions
            for operand, number in zip(instruction.form.operands, instruction.operands, strict=True)
            if operand.is_register and "Dst" in operand.name
            for index in range(operand.step)
        }
        found = []
        for file, count, now, before in (
            ("m", M_STORAGE, tile.m[context], self.m[context]),
            ("a", A_STORAGE if context else 0, tile.a[context - 1], self.a[context - 1]),
        ):
            found += [
                (f"${file}{number}", int(now[number]))
                for number in range(count)
                if now[number] != before[number] or (file, number) in named
            ]
        found += changed_csrs(instructions, context, self.csrs[context], tile.csrs[context])
        if context:
            worker = context - 1
            found += changed_accumulators(self.accumulators[worker], tile.accumulators[worker])
        found += changed_weights(self.weights, tile.weights)
        return found
