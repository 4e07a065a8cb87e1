"""Kernel calls whose prologue the compiler has executed: their frames lie ready in the tile's memory.

All calls of all tile classes, in all iterations of a loop, go through the kernel's own supervisor code at
once (`kernels.prologue`). What is left of a call is to load the few registers that the rest of that code
needs, and to go on there; where the rest only starts the workers and waits for them, it stands in the program
itself. Values that differ between iterations lie in memory and are moved on at the end of each.

A call is left as it is where its prologue cannot be executed ahead or differs between iterations in more than
equal steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import align_up
from ..kernels.copy_spans import SYMBOL as COPY_SPANS
from ..kernels.copy_spans import cycles
from ..kernels.prologue import RETURN, Code, Reached, Values, run_ahead
from ..kernels.runtime import STACK_TOP
from ..kernels.tail import Tail, tail_of
from ..lower.calls import Call
from ..lower.tile_work import Phase, TileWork
from ..place.placement import Placement
from ..toolchain import LinkedImage
from .copy_frames import CopyFrames, Launch, copy_frames
from .memory_map import FRAME_ALIGNMENT

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Moving:
    """A word of the frame area that every iteration but the first moves on.

    Attributes:
        offset: bytes from the beginning of the area.
        first: its value in the first iteration.
        step: what is added, modulo 2**32.
    """

    offset: int
    first: int
    step: int


@dataclass(frozen=True)
class Prepared:
    """What is left of one call of one class.

    Attributes:
        stop: where the kernel's code goes on; None if there is nothing to do.
        tail: what it does there.
        registers: values by number; those in `loaded` lie in the area, by offset, instead.
        puts: (CSR, the register that holds its value), in order.
        return_words: offsets in the area of words that want the return address.
        cycles: of the kernel's code up to `stop`.
    """

    stop: int | None
    tail: Tail
    registers: Mapping[int, int]
    loaded: Mapping[int, int]
    puts: tuple[tuple[int, int], ...]
    return_words: tuple[int, ...]
    cycles: int


@dataclass
class _Group:
    """Calls of one step that take the same way; arrays have a row per class and a column per iteration.

    Attributes:
        row_of: row of each class.
        registers: what the tail needs, and the values of `puts` in registers that it does not.
        moving: registers whose values lie behind the frame because they move.
    """

    reached: Reached
    tail: Tail
    row_of: dict[int, int]
    registers: dict[int, Values]
    frame: dict[int, Values]
    puts: tuple[tuple[int, int], ...]
    moving: list[int]


@dataclass
class _Step:
    """All prepared calls of one step; the frame lies between `bottom` and `top` of the area, `moving` words
    behind it."""

    arguments: dict[int, Values]
    classes: list[int]
    entry: int
    count: int
    groups: list[_Group]
    top: int = 0

    @property
    def depth(self) -> int:
        words = [offset for group in self.groups for offset in (*group.frame, *group.reached.return_words)]
        return -min(words, default=0)

    @property
    def moving(self) -> int:
        return max((len(group.moving) for group in self.groups), default=0)


class PreparedCalls:
    """All prepared calls of a program and their frame area, the same layout on every tile.

    Args:
        runs: how often a call must run in a run to have a frame; None: none has one.

    Attributes:
        bytes: of the area.
        address: where it lies; `place` sets it.
    """

    def __init__(
        self, work: TileWork, placement: Placement, image: LinkedImage, *, runs: int | None = 1
    ) -> None:
        self.code = Code(image)
        self.address = STACK_TOP
        self._classes = len(work.classes)
        times = work.plan.times()
        self._steps: dict[int, _Step] = {}
        self._areas = np.zeros((0, 0), dtype=np.uint32)
        self._moving: dict[int, list[list[Moving]]] = {}
        often = [
            (step, item) for step, item in enumerate(work.work) if runs is not None and times[step] >= runs
        ]
        for step, item in often:
            if isinstance(item, Call):
                self._steps[step] = _gather(item, work, placement, image.symbols[item.kernel], times[step])
        self._evaluate()
        cursor = 0
        for made in self._steps.values():
            if made.groups:
                made.top = align_up(cursor + made.depth, FRAME_ALIGNMENT)
                cursor = made.top + 4 * made.moving
        self._copies: dict[int, CopyFrames] = {}
        for step, item in often:
            if isinstance(item, Phase) and item.copies:
                cursor = align_up(cursor, FRAME_ALIGNMENT)
                self._copies[step] = copy_frames(item, work, placement, cursor)
                cursor += self._copies[step].bytes
        self._copy_entry = image.symbols.get(COPY_SPANS, 0)
        self.bytes = align_up(cursor, FRAME_ALIGNMENT)

    def place(self, address: int) -> None:
        """Put the area somewhere, a multiple of `FRAME_ALIGNMENT`."""
        self.address = address
        self._evaluate()
        self._areas = self._areas_without_returns()
        self._moving = {step: self._moving_words(made) for step, made in self._steps.items()}

    def _evaluate(self) -> None:
        for made in self._steps.values():
            made.groups = _evaluated(self.code, made, self.address + made.top)

    def of(self, step: int, index: int) -> Prepared | None:
        """What is left of a step's call on a class; None if all of it is."""
        made = self._steps.get(step)
        for group in made.groups if made else ():
            if index in group.row_of:
                return _prepared(group, group.row_of[index], self._steps[step].top)
        return None

    def copies(self, step: int, index: int) -> Launch | None:
        """How a class starts the copies of a step, if their frames lie ready."""
        made = self._copies.get(step)
        if made is None or index not in made.workers:
            return None
        return Launch(self._copy_entry, self.address + made.offset, made.stride, cycles(made.workers[index]))

    def moving(self, index: int, first: int, end: int) -> list[Moving]:
        """Words that iterations of a loop over the steps first .. end-1 move on, on one class, rising."""
        return [word for step, words in self._moving.items() if first <= step < end for word in words[index]]

    def _moving_words(self, made: _Step) -> list[list[Moving]]:
        """Of each class, the words of a step that move, rising."""
        found: list[list[Moving]] = [[] for _ in range(self._classes)]
        for group in made.groups:
            for offset, values in _words(group, made.top):
                steps = _steps(values)
                if steps.any():
                    for index, row in group.row_of.items():
                        if steps[row]:
                            found[index].append(Moving(offset, int(values[row, 0]), int(steps[row])))
        return found

    def words_of(self, index: int, returns: Sequence[tuple[int, int]]) -> NDArray[np.uint32]:
        """The area of a class before the first iteration, with return addresses at these offsets."""
        words: NDArray[np.uint32] = self._areas[index].copy()
        for offset, address in returns:
            words[offset // 4] = address
        return words

    def _areas_without_returns(self) -> NDArray[np.uint32]:
        areas = np.zeros((self._classes, self.bytes // 4), dtype=np.uint32)
        for made in self._steps.values():
            for group in made.groups:
                classes, rows = list(group.row_of), list(group.row_of.values())
                for offset, values in _words(group, made.top):
                    areas[classes, offset // 4] = values[rows, 0]
        for copied in self._copies.values():
            for index, words in copied.words().items():
                areas[index, copied.offset // 4 :][: len(words)] = words
        return areas


def _words(group: _Group, top: int) -> list[tuple[int, Values]]:
    """(offset in the area, values) of the frame and of the words behind it."""
    words = [(top + offset, values) for offset, values in group.frame.items()]
    words += [(top + 4 * index, group.registers[number]) for index, number in enumerate(group.moving)]
    return words


def _gather(call: Call, work: TileWork, placement: Placement, entry: int, count: int) -> _Step:
    """The arguments of a step's call on every class that makes it, in every iteration."""
    classes = [item.index for item in work.classes if call.active[item.representative]]
    tiles = np.array([work.classes[index].representative for index in classes], dtype=np.int64)
    count = count if call.strides else 1
    iterations = np.arange(count, dtype=np.int64)
    arguments: dict[int, Values] = {}
    register = 2
    for position, (name, offsets) in enumerate(call.operands):
        base = np.zeros(len(classes), dtype=np.int64)
        if name is not None:
            base = np.array([placement.address(index, name) for index in classes], dtype=np.int64)
        stride = call.strides[position][tiles] if position in call.strides else np.zeros_like(base)
        values = (base + offsets[tiles])[:, None] + stride[:, None] * iterations
        arguments[register] = (values.ravel() & 0xFFFFFFFF).astype(np.uint64)
        register += 1
    for values in call.registers:
        arguments[register] = np.repeat(values[tiles] & 0xFFFFFFFF, count).astype(np.uint64)
        register += 1
    return _Step(arguments, classes, entry, count, [])


def _evaluated(code: Code, made: _Step, stack: int) -> list[_Group]:
    if not made.classes:
        return []
    groups = []
    for reached in run_ahead(code, made.entry, made.arguments, stack):
        tail = tail_of(code, reached.stop) if reached.stop is not None else Tail(frozenset())
        wanted = tail.live - {RETURN} if RETURN in reached.returns else tail.live
        spare = [register for register in range(RETURN) if register not in wanted]
        if not wanted <= reached.registers.keys() or len(reached.puts) > len(spare):
            continue
        values = {number: reached.registers[number] for number in sorted(wanted)}
        values |= {register: value for register, (_, value) in zip(spare, reached.puts, strict=False)}
        puts = tuple((csr, register) for register, (csr, _) in zip(spare, reached.puts, strict=False))
        group = _group(reached, tail, values, puts, made)
        if group.row_of:
            groups.append(group)
    return groups


def _group(
    reached: Reached, tail: Tail, wanted: dict[int, Values], puts: tuple[tuple[int, int], ...], made: _Step
) -> _Group:
    """The classes of which all iterations are here and differ by equal steps."""
    which, counts = np.unique(reached.calls // made.count, return_counts=True)
    whole = np.isin(reached.calls // made.count, which[counts == made.count])

    def table(values: Values) -> Values:
        return values[whole].reshape(-1, made.count)

    registers = {number: table(values) for number, values in wanted.items()}
    frame = {offset: table(values) for offset, values in sorted(reached.frame.items())}
    even = np.ones(int(whole.sum()) // made.count, dtype=bool)
    for values in (*registers.values(), *frame.values()):
        steps = _steps(values)
        line: Values = values[:, :1] + np.multiply.outer(steps, np.arange(made.count, dtype=np.uint64))
        even &= ((line & np.uint64(0xFFFFFFFF)) == values).all(axis=1)
    rows = np.flatnonzero(even)
    names = which[counts == made.count]
    moving = [number for number, values in registers.items() if _steps(values).any()]
    row_of = {made.classes[int(names[row])]: int(row) for row in rows}
    return _Group(reached, tail, row_of, registers, frame, puts, moving)


def _steps(values: Values) -> Values:
    """What each row grows by from iteration to iteration, modulo 2**32."""
    if values.shape[1] == 1:
        return np.zeros(len(values), dtype=np.uint64)
    return (values[:, 1] - values[:, 0]) & np.uint64(0xFFFFFFFF)


def _prepared(group: _Group, row: int, top: int) -> Prepared:
    loaded = {number: top + 4 * index for index, number in enumerate(group.moving)}
    registers = {
        number: int(values[row, 0]) for number, values in group.registers.items() if number not in loaded
    }
    words = tuple(top + offset for offset in sorted(group.reached.return_words))
    return Prepared(
        group.reached.stop, group.tail, registers, loaded, group.puts, words, group.reached.cycles
    )
