"""The program of a tile class: its steps in order, the same words on every tile of the class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..isa import build
from ..kernels import KERNELS
from ..kernels.copy_spans import SYMBOL as COPY_SPANS
from ..kernels.prologue import RETURN
from ..lower.calls import Call
from ..lower.tile_work import Phase, TileClass, TileWork, copies_of
from ..machine.timing import RUN_LAUNCH, SUPERVISOR_BRANCH
from ..place.placement import Placement
from .call_code import (
    CALL,
    ITERATED,
    Block,
    argument_words,
    block_cycles,
    call_code,
    call_words,
    launch_block,
    launch_cycles,
    prepared_block,
)
from .copy_frames import Launch
from .lines import Line, constant, early, last_issue, load, store, words_of
from .memory_map import ITERATION
from .moving import move_lines, reset_lines
from .prepared import Moving, Prepared, PreparedCalls
from .row_use import RowUse, exchange_block, exchange_cycles
from .steps_profile import ProfileIndex

SHADOW = RUN_LAUNCH - 2
"""Instructions for which there is time between `runall` and `sync 2`, until the workers' first slot."""


@dataclass
class StepCode:
    """Words of a class program, where each profile step begins, and what its steps take.

    Attributes:
        words: to lie at the address the code was made for.
        marks: (byte offset, profile step).
        cycles: plan step -> cycles of its own code, without what kernels, copies and rows take.
        copying: plan step -> cycles of its local copies; copiers: what makes them.
        returns: (offset in the frame area, return address to be written there).
    """

    words: list[int] = field(default_factory=list)
    marks: list[tuple[int, int]] = field(default_factory=list)
    cycles: dict[int, int] = field(default_factory=dict)
    copying: dict[int, int] = field(default_factory=dict)
    copiers: dict[int, str] = field(default_factory=dict)
    returns: list[tuple[int, int]] = field(default_factory=list)

    def mark(self, step: int) -> None:
        self.marks.append((4 * len(self.words), step))


class ClassProgram:
    """Emits the steps of one tile class.

    Instructions that only set registers for what comes next, a step or another iteration, go where they cost
    nothing: between the start of workers and the wait for them.

    Args:
        tile_class: whose program it is.
        address_of: buffer name -> byte address on this class.
        symbols: addresses of the kernels' and the runtime's entry points.
        address: where the code begins.
        area: where the frames of prepared calls lie.
    """

    def __init__(
        self,
        tile_class: TileClass,
        address_of: Callable[[str], int],
        symbols: Mapping[str, int],
        address: int,
        area: int,
    ) -> None:
        self.tile = tile_class.representative
        self.address_of = address_of
        self.symbols = symbols
        self.address = address
        self.area = area
        self.code = StepCode()
        self._shadow = 0

    def _here(self) -> int:
        return self.address + 4 * len(self.code.words)

    def _add(self, block: Block, step: int) -> int:
        """A block of a profile step, its setup in the shadow of the launch before, as far as it has room.

        Returns how many instructions went there.
        """
        hidden = min(self._shadow, len(block.setup))
        self._hide(block.setup[:hidden])
        self.code.mark(step)
        self.code.words += words_of([*block.setup[hidden:], *block.body])
        self._shadow = SHADOW if block.launches else 0
        return hidden

    def _hide(self, lines: Sequence[Line]) -> None:
        """Instructions between the start of workers, with which the code ends, and the wait."""
        if not lines:
            return
        # Steps in which this class has no part begin behind the wait, too.
        end = 4 * len(self.code.words)
        marks = self.code.marks
        self.code.marks = [(end + 4 * len(lines) if at == end else at, number) for at, number in marks]
        self.code.words[-1:-1] = words_of(lines)

    def enter_loop(self, moving: Sequence[Moving]) -> int:
        """Begin with iteration 0; the byte address of the loop's head."""
        self._shadow = 0
        first = [*constant(0, 0), *constant(1, ITERATION), store(0, 1, 0)]
        self.code.words += words_of([*first, *reset_lines(moving, self.area)])
        return self._here()

    def close_loop(self, head: int, count: int, moving: Sequence[Moving], last: int) -> None:
        """Go on to the next iteration, if there is one.

        Args:
            last: plan step that the cycles of moving on are added to.
        """
        # Nobody returns from a call that is under way, so the register of return addresses is free.
        counting = [
            *constant(RETURN, ITERATION),
            load(0, RETURN, 0),
            Line(build.add_imm(0, 0, 1), 0, (0,)),
            store(0, RETURN, 0),
            Line(build.add_imm(RETURN, 0, -count), RETURN, (0,)),
        ]
        again = Line(build.brnz(RETURN, head), -1, (RETURN,))
        lines = [*early([*counting, *move_lines(moving, self.area)]), again]
        hidden = 0
        # Workers may still have to read what is stored.
        while lines[hidden].sets >= 0 and last_issue(lines[: hidden + 1]) < self._shadow:
            hidden += 1
        self._hide(lines[:hidden])
        self._shadow = 0
        self.code.words += words_of(lines[hidden:])
        taken = last_issue(lines[hidden:]) + SUPERVISOR_BRANCH
        self.code.cycles[last] = self.code.cycles.get(last, 0) + taken

    def compute(self, call: Call, number: int, step: int, prepared: Prepared | None) -> None:
        """Call a kernel; nothing if the class has no part in it.

        Args:
            number: the plan step.
            step: the profile step.
            prepared: what is left of the call, if it is prepared.
        """
        if not call.active[self.tile]:
            self.code.mark(step)
        elif prepared is None:
            self._plain(call, number, step)
        elif prepared.stop is None:
            self.code.mark(step)
            self.code.cycles[number] = -prepared.cycles
        else:
            block = prepared_block(prepared, self.area)
            hidden = self._add(block, step)
            self.code.cycles[number] = block_cycles(prepared, block, hidden)
            # Behind the kernel's return comes the stack pointer.
            self.code.returns += [(place, self._here() - 4) for place in prepared.return_words]

    def _plain(self, call: Call, number: int, step: int) -> None:
        values = [
            0 if name is None else self.address_of(name) + int(offsets[self.tile])
            for name, offsets in call.operands
        ]
        values += [int(register[self.tile]) for register in call.registers]
        strides = {position: int(stride[self.tile]) for position, stride in call.strides.items()}
        self._shadow = 0
        self.code.mark(step)
        self.code.words += call_code(values, strides, self.symbols[call.kernel])
        self.code.cycles[number] = len(argument_words(values)) + CALL + ITERATED * len(strides)

    def copies(self, phase: Phase, number: int, step: int, launch: Launch | None) -> None:
        """Copies of data that need not leave the tile.

        Args:
            launch: of workers whose frames lie ready; without it, one call after another.
        """
        if launch is not None:
            block = launch_block(launch)
            hidden = self._add(block, step)
            self.code.copying[number] = launch_cycles(launch, block, hidden)
            self.code.copiers[number] = COPY_SPANS
            return
        self.code.mark(step)
        for source, destination, source_offset, destination_offset, words in copies_of(phase, self.tile):
            self._shadow = 0
            values = [
                self.address_of(destination) + destination_offset,
                self.address_of(source) + source_offset,
                words,
            ]
            self.code.words += call_words(self.symbols, "copy_u64", values)
            cycles = int(KERNELS["copy_u64"].cycles(words)) + 3 + CALL
            self.code.copying[number] = self.code.copying.get(number, 0) + cycles
            self.code.copiers[number] = "copy_u64"

    def exchange(self, phase: Phase, number: int, step: int, use: RowUse) -> None:
        """One internal phase."""
        mine = use if phase.active[self.tile] else None
        block = exchange_block(mine)
        hidden = self._add(block, step)
        self.code.cycles[number] = exchange_cycles(mine, block, hidden)


def class_code(
    work: TileWork,
    placement: Placement,
    profile: ProfileIndex,
    symbols: Mapping[str, int],
    prepared: PreparedCalls,
    index: int,
    rows: Mapping[int, RowUse],
    address: int,
    next_address: int,
) -> StepCode:
    """Step code of one class of a lowered plan.

    Args:
        symbols: entry points of the linked runtime.
        prepared: the calls of which only a rest is left.
        index: which class.
        rows: how its row runs, for each plan step that is an exchange with traffic.
        address: where the code begins.
        next_address: where the program goes on behind the last step.
    """
    program = ClassProgram(
        work.classes[index],
        lambda name: placement.address(index, name),
        symbols,
        address,
        prepared.address,
    )
    begins = {loop.first: loop for loop in work.plan.loops}
    ends = {loop.end: loop for loop in work.plan.loops}
    head = 0
    moving: list[Moving] = []
    for step, item in enumerate([*work.work, None]):
        if loop := ends.get(step):
            program.close_loop(head, loop.count, moving, step - 1)
        if loop := begins.get(step):
            moving = prepared.moving(index, loop.first, loop.end)
            head = program.enter_loop(moving)
        if item is None:
            break
        if isinstance(item, Call):
            program.compute(item, step, profile.step[step], prepared.of(step, index))
            continue
        if step in profile.copies:
            program.copies(item, step, profile.copies[step], prepared.copies(step, index))
        if step in rows:
            program.exchange(item, step, profile.step[step], rows[step])
    program.code.words.append(build.bri(next_address))
    return program.code
