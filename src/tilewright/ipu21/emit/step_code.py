"""The program of a tile class: its steps in order, the same words on every tile of the class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..isa import build, csrs
from ..isa.encode import encode
from ..lower.calls import Call
from ..lower.tile_work import Phase, TileClass, TileWork, copies_of
from ..place.placement import Placement
from .steps_profile import ProfileIndex

SYNC_ABSENT, SYNC_INTERNAL = 1, 3
_OR_HIGH = "or $mDst0, $mSrc0, immz12"


@dataclass
class StepCode:
    """Words of a class program and where each profile step begins.

    Attributes:
        words: to lie at the address the code was made for.
        marks: (byte offset, profile step).
    """

    words: list[int] = field(default_factory=list)
    marks: list[tuple[int, int]] = field(default_factory=list)

    def mark(self, step: int) -> None:
        self.marks.append((4 * len(self.words), step))


class ClassProgram:
    """Emits the steps of one tile class.

    Args:
        tile_class: whose program it is.
        address_of: buffer name -> byte address on this class.
        symbols: addresses of the kernels' and the runtime's entry points.
    """

    def __init__(
        self, tile_class: TileClass, address_of: Callable[[str], int], symbols: Mapping[str, int]
    ) -> None:
        self.tile = tile_class.representative
        self.address_of = address_of
        self.symbols = symbols
        self.code = StepCode()

    def compute(self, call: Call, step: int) -> None:
        """Load the call registers m2, m3, ... and call the kernel; nothing if the class has no part in it."""
        self.code.mark(step)
        if not call.active[self.tile]:
            return
        values = [self.address_of(name) + int(offsets[self.tile]) for name, offsets in call.operands]
        values += [int(scalar[self.tile]) for scalar in call.scalars]
        self._call(call.kernel, values)

    def copies(self, phase: Phase, step: int) -> None:
        """Copies of data that need not leave the tile."""
        self.code.mark(step)
        for source, destination, source_offset, destination_offset, words in copies_of(phase, self.tile):
            self._call(
                "copy_u64",
                [
                    self.address_of(destination) + destination_offset,
                    self.address_of(source) + source_offset,
                    words,
                ],
            )

    def exchange(self, phase: Phase, step: int, row_address: int) -> None:
        """One internal phase."""
        self.code.mark(step)
        self.code.words += exchange_words(self.symbols, row_address if phase.active[self.tile] else None)

    def _call(self, symbol: str, values: list[int]) -> None:
        self.code.words += call_words(self.symbols, symbol, values)


def exchange_words(symbols: Mapping[str, int], row_address: int | None) -> list[int]:
    """One internal phase: drain the workers, meet the other tiles, run the row; without a row, stay away.

    The instructions from `sync 3` to the row's first word are the same on every tile that has a row.
    """
    if row_address is None:
        return [build.sans(0), build.sync(SYNC_ABSENT)]
    return [
        build.call(7, symbols["worker_barrier"]),
        build.setzi(8, 1),
        build.put(csrs.INCOMING_DCOUNT, 8),
        build.sync(SYNC_INTERNAL),
        build.call(10, row_address),
    ]


def call_words(symbols: Mapping[str, int], symbol: str, values: Sequence[int]) -> list[int]:
    """Load the call registers m2, m3, ... and call a kernel."""
    loads = [word for index, value in enumerate(values) for word in load_words(2 + index, value)]
    return [*loads, build.call(10, symbols[symbol])]


def load_words(register: int, value: int) -> list[int]:
    """Put a 32-bit value into a register: one instruction for 20 bits, two for more."""
    low, high = value & 0xFFFFF, value & ~0xFFFFF
    words = [build.setzi(register, low)]
    return [*words, *encode(_OR_HIGH, register, register, high)] if high else words


def class_code(
    work: TileWork,
    placement: Placement,
    profile: ProfileIndex,
    symbols: Mapping[str, int],
    index: int,
    rows: Mapping[int, int],
    next_address: int,
) -> StepCode:
    """Step code of one class of a lowered plan.

    Args:
        symbols: entry points of the linked runtime.
        index: which class.
        rows: address of its row for each plan step that is an exchange with traffic.
        next_address: where the program goes on behind the last step.
    """
    program = ClassProgram(work.classes[index], lambda name: placement.address(index, name), symbols)
    for step, item in enumerate(work.work):
        if isinstance(item, Call):
            program.compute(item, profile.step[step])
            continue
        if step in profile.copies:
            program.copies(item, profile.copies[step])
        if step in rows:
            program.exchange(item, profile.step[step], rows[step])
    program.code.words.append(build.bri(next_address))
    return program.code
