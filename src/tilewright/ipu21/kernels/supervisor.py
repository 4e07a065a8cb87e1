"""Orders straight supervisor code so that few instructions wait for operands, and gives it registers."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

from ..machine.timing import RUN_LAUNCH, RUN_RELEASE, SUPERVISOR_BRANCH, SUPERVISOR_LATENCY, WORKER_SLOTS

_REGISTER = re.compile(r"\$m\d+\b|%\w+")
_PLACE = re.compile(r"^(?:ld|st)32 [^,]*, (\$m11, \$mzero, \d+)$")
_KEEPS = ("movnz ",)
"""Instructions that also read what they write."""
_NEVER = 1 << 30
_SHAKE = 12
"""Cycles by which a seed may raise an instruction's rank."""


class _Instruction:
    """What one line reads and writes: registers, names, and words of the frame at $m11."""

    def __init__(self, line: str) -> None:
        self.line = line
        named = _REGISTER.findall(line)
        stores = line.startswith(("st32 ", "runall ", "br"))
        self.reads = set(named if stores or line.startswith(_KEEPS) else named[1:])
        self.writes = set() if stores else set(named[:1])
        if place := _PLACE.match(line):
            (self.writes if line.startswith("st32") else self.reads).add(place[1])
        self.names = {name for name in named if name.startswith("%")}


def to_frame(register: str, word: int) -> str:
    """Store a word of the frame at $m11."""
    return f"st32 {register}, $m11, $mzero, {word}"


def load_back(register: str, word: int) -> str:
    """Load a word of the frame at $m11."""
    return f"ld32 {register}, $m11, $mzero, {word}"


def to_frames(register: str, word: int, words: int) -> list[str]:
    """Store a word that is the same in all six workers' frames, which follow each other in that at $m11.

    Args:
        words: of a worker's frame.
    """
    return [to_frame(register, worker * words + word) for worker in range(WORKER_SLOTS)]


def launch(frame_bytes: int, words: int = 0) -> tuple[str, ...]:
    """Run the worker code at $m9, drop the frame and return.

    Args:
        words: of a worker's frame, see `to_frames`; 0 if all workers share one.
    """
    return (f"runall $m9, $m11, {words}", f"add $m11, $m11, {frame_bytes}", "sync 2", "br $m10")


def schedule(
    lines: Sequence[str], pool: Sequence[str] = (), given: Mapping[str, str] | None = None, *, seed: int = 0
) -> list[str]:
    """The instructions in an order that keeps their meaning and issues early what others wait for.

    For straight code: register operations, loads of what nobody stores meanwhile, loads and stores of the
    frame at $m11; labels, branches, `runall` and `sync` must not occur. `%name` is a value that gets a
    register of the pool from its first write to its last use.

    Args:
        given: names that have a value at the start, and the register it is in; the register joins the pool.
        seed: shakes the ranking of instructions unless 0: where registers are short, some seed gives a better
            order than the plain ranking.

    Raises ValueError if the pool is too small.
    """
    work = [_Instruction(line) for line in lines]
    before = _waits(work)
    height = heights(before)
    if seed:
        shaken = random.Random(seed)
        height = [rank + shaken.randrange(_SHAKE) for rank in height]
    tries = [_ordered(work, before, height, pool, given or {}, spare) for spare in range(5)]
    found = [attempt for attempt in tries if attempt]
    if not found:
        raise ValueError(f"too few registers for {lines[0]!r} and what follows")
    return min(found, key=lambda attempt: attempt[0])[1]


def heights(before: Sequence[Mapping[int, int]]) -> list[int]:
    """For how long at least something else has to wait for each instruction.

    Args:
        before: of each, the earlier ones it must follow and by how much.
    """
    height = [0] * len(before)
    for later in reversed(range(len(before))):
        for earlier, wait in before[later].items():
            height[earlier] = max(height[earlier], height[later] + wait)
    return height


def _ordered(
    work: Sequence[_Instruction],
    before: Sequence[Mapping[int, int]],
    height: Sequence[int],
    pool: Sequence[str],
    given: Mapping[str, str],
    spare: int,
) -> tuple[int, list[str]] | None:
    """(cycles, lines) if `spare` registers are kept for what comes first in the text; None if stuck."""
    uses: dict[str, int] = {}
    for instruction in work:
        for name in instruction.names:
            uses[name] = uses.get(name, 0) + 1
    place = dict(given)
    free = [*pool, *(place.pop(name) for name in list(place) if name not in uses)]
    issued: dict[int, int] = {}
    result: list[str] = []
    cycle = 0
    while len(result) < len(work):
        earliest, chosen = _NEVER, -1
        first = next(index for index in range(len(work)) if index not in issued)
        for index, instruction in enumerate(work):
            if index in issued or not all(e in issued for e in before[index]):
                continue
            last = sum(uses[name] == 1 and name in place for name in instruction.names)
            wanted = sum(name not in place for name in instruction.names)
            if wanted and len(free) + last < wanted + (spare if index != first else 0):
                continue
            at = max((issued[e] + wait for e, wait in before[index].items()), default=0)
            better = (max(at, cycle), -height[index]) < (max(earliest, cycle), -height[chosen])
            if chosen < 0 or better:
                earliest, chosen = at, index
        if chosen < 0:
            return None
        cycle = max(cycle, earliest)
        issued[chosen] = cycle
        cycle += 1
        instruction = work[chosen]
        old = [name for name in sorted(instruction.names) if name in place]
        registers = {name: place[name] for name in old}
        for name in instruction.names:
            uses[name] -= 1
        free += [place.pop(name) for name in old if not uses[name]]
        for name in sorted(instruction.names - set(old)):
            registers[name] = place[name] = free.pop(0)
            if not uses[name]:
                free.append(place.pop(name))
        text = _REGISTER.sub(partial(_placed, registers), instruction.line)
        result.append(text)
    return cycle, result


def _placed(registers: Mapping[str, str], match: re.Match[str]) -> str:
    return registers.get(match[0], match[0])


def _waits(work: Sequence[_Instruction]) -> list[dict[int, int]]:
    """Of each instruction, the earlier ones it must follow and by how many cycles."""
    before: list[dict[int, int]] = []
    for later, instruction in enumerate(work):
        waits = {}
        for earlier in range(later):
            other = work[earlier]
            passed = other.writes & instruction.reads
            if any("," not in name for name in passed):
                waits[earlier] = SUPERVISOR_LATENCY
            elif passed or other.writes & instruction.writes or other.reads & instruction.writes:
                waits[earlier] = 1
        before.append(waits)
    return before


def launch_cycle(lines: Sequence[str]) -> int:
    """Cycle in which the `runall` of a call issues; its first instruction issues in cycle 0.

    `lines` are the instructions on the way there in order, a branch that is taken marked by a leading "!".
    """
    ready: dict[str, int] = {}
    cycle = 0
    for line in lines:
        instruction = _Instruction(line.lstrip("!"))
        cycle = max([cycle, *(ready.get(name, 0) for name in instruction.reads)])
        if line.startswith("runall"):
            break
        for name in instruction.writes:
            ready[name] = cycle + (1 if "," in name else SUPERVISOR_LATENCY)
        cycle += SUPERVISOR_BRANCH if line.startswith("!") else 1
    return cycle


def call_cycles(lines: Sequence[str]) -> int:
    """Cycles of a call beside its workers' slots; see `launch_cycle`. It ends with `sync 2` and `br`."""
    return _launch_cycle(tuple(lines)) + RUN_LAUNCH + RUN_RELEASE + SUPERVISOR_BRANCH


@lru_cache(maxsize=512)
def _launch_cycle(lines: tuple[str, ...]) -> int:
    return launch_cycle(lines)
