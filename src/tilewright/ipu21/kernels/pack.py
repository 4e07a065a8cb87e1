"""Packs straight worker code into bundles.

The code is written one instruction after the other. What comes out does the same in bundles of a main and an
auxiliary instruction, which both read before either writes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .supervisor import heights
from .text import Pair

_AUXILIARY = re.compile(r"^(f\d|uput |(setzi|or) \$a)")
_FLOATS = re.compile(r"\$a(\d)(?::(\d))?")
_INTEGERS = re.compile(r"\$m\d+")
_STEPPED = re.compile(r"(\$m\d+)\+=")
_ACCUMULATORS = re.compile(r"acc |mac |aop |gina |mix |FP_CLR")


class _Instruction:
    """What one line reads and writes: registers, accumulators, $TAS, and places of memory by their text; a
    branch leaves the code.
    """

    def __init__(self, line: str) -> None:
        self.line = line
        self.is_main = not _AUXILIARY.match(line)
        mnemonic, _, rest = line.partition(" ")
        first, _, others = rest.partition(", ")
        stores = mnemonic.startswith("st")
        self.leaves = mnemonic.startswith("br")
        self.is_access = stores or mnemonic.startswith("ld")
        keeps = stores or self.leaves or mnemonic in ("f16v8acc", "f32v2mac", "f32v2aop", "uput")
        self.reads = _registers(rest if keeps else others)
        self.writes = set() if keeps else _registers(first)
        self.writes |= set(_STEPPED.findall(rest))
        if _ACCUMULATORS.search(line):
            self.writes.add("accumulators")
        if mnemonic == "f16v4mix":
            self.reads.add("$TAS")
        if first == "$TAS":
            self.writes.add("$TAS")
        if self.is_access:
            (self.writes if stores else self.reads).add(others)


def _registers(text: str) -> set[str]:
    found = set(_INTEGERS.findall(text))
    for first, last in _FLOATS.findall(text):
        found |= {f"$a{number}" for number in range(int(first), int(last or first) + 1)}
    return found


def pack(lines: Sequence[str]) -> list[Pair]:
    """The lines in few bundles, in an order that keeps their meaning; first what most others wait for.

    For straight code, which branches may leave for an end that nothing matters to. No access moves in front
    of such a branch, and no store must precede one. Stores and loads of the same place must be written with
    the same operands.
    """
    work = [_Instruction(line) for line in lines]
    before = _waits(work)
    height = heights(before)
    issued: dict[int, int] = {}
    result: list[Pair] = []
    while len(issued) < len(work):
        chosen: dict[bool, str] = {}
        while ready := [
            index
            for index, instruction in enumerate(work)
            if index not in issued
            and instruction.is_main not in chosen
            and all(e in issued and issued[e] + wait <= len(result) for e, wait in before[index].items())
        ]:
            best = max(ready, key=lambda index: (height[index], -index))
            issued[best] = len(result)
            chosen[work[best].is_main] = work[best].line
        result.append((chosen.get(True, "nop"), chosen.get(False, "fnop")))
    return result


def _waits(work: Sequence[_Instruction]) -> list[dict[int, int]]:
    """Of each instruction, the earlier ones it must follow and by how many bundles."""
    before: list[dict[int, int]] = []
    for later, instruction in enumerate(work):
        waits = {}
        for earlier, other in enumerate(work[:later]):
            left = other.leaves and (instruction.is_access or instruction.leaves)
            if left or other.writes & (instruction.reads | instruction.writes):
                waits[earlier] = 1
            elif other.reads & instruction.writes:
                waits[earlier] = 0
        before.append(waits)
    return before
