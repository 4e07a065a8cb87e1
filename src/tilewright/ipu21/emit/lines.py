"""Straight supervisor code with what its instructions read and write, so that its cycles can be told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..isa import build
from ..kernels.supervisor import heights
from ..machine.timing import SUPERVISOR_LATENCY


class Line(NamedTuple):
    """One instruction: its word, the register it sets (-1: none), those it reads."""

    word: int
    sets: int = -1
    reads: tuple[int, ...] = ()


def constant(register: int, value: int) -> list[Line]:
    """Set a register to a 32-bit value; one under 2^20 takes one instruction."""
    lines = [Line(build.setzi(register, value & 0xFFFFF), register)]
    if value >> 20:
        word = build.or_high(register, register, value & 0xFFF00000)
        lines.append(Line(word, register, (register,)))
    return lines


def constants(values: Mapping[int, int]) -> list[Line]:
    """Set several registers. Upper halves come last, as far as possible from the lower ones they wait for."""
    pairs = [constant(register, value) for register, value in values.items()]
    large_first = sorted(pairs, key=len, reverse=True)
    return [pair[0] for pair in large_first] + [line for pair in large_first for line in pair[1:]]


def load(register: int, base: int, offset: int) -> Line:
    """Load the word `offset` bytes behind the address in a register."""
    return Line(build.ld32(register, base, build.ZERO, offset // 4), register, (base,))


def store(register: int, base: int, offset: int) -> Line:
    return Line(build.st32(register, base, build.ZERO, offset // 4), -1, (register, base))


def put(csr: int, register: int) -> Line:
    return Line(build.put(csr, register), -1, (register,))


def words_of(lines: Iterable[Line]) -> list[int]:
    return [line.word for line in lines]


def last_issue(lines: Sequence[Line]) -> int:
    """The cycle in which the last of these instructions issues, the first in cycle 0 at the earliest."""
    ready: dict[int, int] = {}
    clock = issued = 0
    for line in lines:
        issued = max([clock, *(ready.get(register, 0) for register in line.reads)])
        if line.sets >= 0:
            ready[line.sets] = issued + SUPERVISOR_LATENCY
        clock = issued + 1
    return issued


def early(lines: Sequence[Line]) -> list[Line]:
    """The same instructions in an order in which few wait for registers. No store may be to a word that a
    later instruction loads, or load one that an earlier instruction stores.
    """
    waits = _waits(lines)
    behind: list[list[tuple[int, int]]] = [[] for _ in lines]
    for later, before in enumerate(waits):
        for earlier, wait in before.items():
            behind[earlier].append((later, wait))
    height = heights(waits)
    left = [len(before) for before in waits]
    ready = {index: 0 for index, count in enumerate(left) if not count}
    earliest: dict[int, int] = {}
    result: list[Line] = []
    clock = 0
    while ready:
        chosen = min(ready, key=lambda index: (max(ready[index], clock), -height[index], index))
        issued = max(ready.pop(chosen), clock)
        clock = issued + 1
        result.append(lines[chosen])
        for later, wait in behind[chosen]:
            left[later] -= 1
            earliest[later] = max(earliest.get(later, 0), issued + wait)
            if not left[later]:
                ready[later] = earliest[later]
    return result


def _waits(lines: Sequence[Line]) -> list[dict[int, int]]:
    """Of each instruction, the earlier ones it must follow, and by how many cycles."""
    found: list[dict[int, int]] = []
    for later, line in enumerate(lines):
        before: dict[int, int] = {}
        for earlier in range(later):
            other = lines[earlier]
            if other.sets >= 0 and other.sets in line.reads:
                before[earlier] = SUPERVISOR_LATENCY
            elif line.sets >= 0 and (line.sets == other.sets or line.sets in other.reads):
                before[earlier] = 1
        found.append(before)
    return found
