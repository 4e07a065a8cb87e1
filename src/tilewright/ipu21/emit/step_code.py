"""The program of a tile class: its steps in order, the same words on every tile of the class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..isa import build, csrs
from ..lower.calls import Call
from ..lower.tile_work import Phase, TileClass, TileWork, copies_of
from ..place.placement import Placement
from .memory_map import ITERATION
from .steps_profile import ProfileIndex

SYNC_ABSENT, SYNC_INTERNAL = 1, 3


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
        address: where the code begins.
    """

    def __init__(
        self,
        tile_class: TileClass,
        address_of: Callable[[str], int],
        symbols: Mapping[str, int],
        address: int,
    ) -> None:
        self.tile = tile_class.representative
        self.address_of = address_of
        self.symbols = symbols
        self.address = address
        self.code = StepCode()

    def enter_loop(self) -> int:
        """Begin with iteration 0; the byte address of the loop's head."""
        self.code.words += [
            build.setzi(0, 0),
            build.setzi(1, ITERATION),
            build.st32(0, 1, build.ZERO, 0),
        ]
        return self.address + 4 * len(self.code.words)

    def close_loop(self, head: int, count: int) -> None:
        """Go on to the next iteration, if there is one."""
        self.code.words += [
            build.setzi(1, ITERATION),
            build.ld32(0, 1, build.ZERO, 0),
            build.add_imm(0, 0, 1),
            build.st32(0, 1, build.ZERO, 0),
            build.add_imm(0, 0, -count),
            build.brnz(0, head),
        ]

    def compute(self, call: Call, step: int) -> None:
        """Load the call registers m2, m3, ... and call the kernel; nothing if the class has no part in it."""
        self.code.mark(step)
        if not call.active[self.tile]:
            return
        values = [
            0 if name is None else self.address_of(name) + int(offsets[self.tile])
            for name, offsets in call.operands
        ]
        values += [int(register[self.tile]) for register in call.registers]
        strides = {position: int(stride[self.tile]) for position, stride in call.strides.items()}
        self.code.words += call_code(values, strides, self.symbols[call.kernel])

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
    """Load the call registers $m2, $m3, ... and call a kernel."""
    return [*argument_words(values), build.call(10, symbols[symbol])]


def call_code(values: Sequence[int], strides: Mapping[int, int], entry: int) -> list[int]:
    """Load the call registers, move those of iterated operands to the current iteration, and call.

    Args:
        strides: operand position -> bytes from one iteration's part to the next.
    """
    words = [build.setzi(1, ITERATION), build.ld32(0, 1, build.ZERO, 0)] if strides else []
    words += argument_words(values)
    for position, stride in strides.items():
        words += [
            build.setzi(1, stride),
            build.mul(1, 1, 0),
            build.add(2 + position, 2 + position, 1),
        ]
    return [*words, build.call(10, entry)]


def argument_words(values: Sequence[int]) -> list[int]:
    """Load $m2, $m3, ... with 32-bit values; those under 2^20 take one instruction.

    Upper halves come last, as far as possible from the lower halves that they wait for.
    """
    large = [(register, value) for register, value in enumerate(values, 2) if value >> 20]
    small = [(register, value) for register, value in enumerate(values, 2) if not value >> 20]
    words = [build.setzi(register, value & 0xFFFFF) for register, value in [*large, *small]]
    return words + [build.or_high(register, register, value & 0xFFF00000) for register, value in large]


def class_code(
    work: TileWork,
    placement: Placement,
    profile: ProfileIndex,
    symbols: Mapping[str, int],
    index: int,
    rows: Mapping[int, int],
    address: int,
    next_address: int,
) -> StepCode:
    """Step code of one class of a lowered plan.

    Args:
        symbols: entry points of the linked runtime.
        index: which class.
        rows: address of its row for each plan step that is an exchange with traffic.
        address: where the code begins.
        next_address: where the program goes on behind the last step.
    """
    program = ClassProgram(work.classes[index], lambda name: placement.address(index, name), symbols, address)
    begins = {loop.first: loop for loop in work.plan.loops}
    ends = {loop.end: loop for loop in work.plan.loops}
    head = 0
    for step, item in enumerate(work.work):
        if step in ends:
            program.close_loop(head, ends[step].count)
        if step in begins:
            head = program.enter_loop()
        if isinstance(item, Call):
            program.compute(item, profile.step[step])
            continue
        if step in profile.copies:
            program.copies(item, profile.copies[step])
        if step in rows:
            program.exchange(item, profile.step[step], rows[step])
    if len(work.work) in ends:
        program.close_loop(head, ends[len(work.work)].count)
    program.code.words.append(build.bri(next_address))
    return program.code
