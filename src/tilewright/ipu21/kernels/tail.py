"""What a kernel's supervisor still does behind its prologue, as far as it concerns who executed that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..isa.decode import Instruction
from ..machine import sync_zones
from .prologue import BRANCHES, OPERATIONS, ZERO, Code, reads, writes

_FURTHEST = 2048
"""Instructions looked at."""


@dataclass(frozen=True)
class Tail:
    """The code from an instruction on.

    Attributes:
        live: registers it reads before it writes them.
        launch: operands of its `runall`, if all it does is start workers, wait for them, and return. Then
            only those registers are live.
    """

    live: frozenset[int]
    launch: tuple[int, ...] | None = None


def tail_of(code: Code, address: int) -> Tail:
    """The tail that begins at an address. Raises KeyError, InvalidInstruction for what is no code."""
    if _only_launches(code, address):
        launch = code.at(address).operands
        return Tail(frozenset(launch[:2]), launch)
    return Tail(frozenset(_live(code, address)))


def _only_launches(code: Code, address: int) -> bool:
    """True for `runall`, one `sync 2`, register instructions, `br`."""
    waits = 0
    if code.at(address).form.mnemonic != "runall":
        return False
    while code.holds(address := address + 4):
        instruction = code.at(address)
        mnemonic = instruction.form.mnemonic
        if mnemonic == "br":
            return waits == 1
        if mnemonic == "sync" and instruction.operands == (sync_zones.LOCAL,):
            waits += 1
        elif mnemonic != "ld32" and mnemonic not in OPERATIONS:
            return False
    return False


def _live(code: Code, start: int) -> set[int]:
    """Registers that are read on some way before they are written."""
    before: dict[int, set[int]] = {}
    order = list(_reachable(code, start))
    changed = True
    while changed:
        changed = False
        for address in reversed(order):
            instruction = code.at(address)
            behind: set[int] = set()
            for following in _following(instruction, address):
                behind |= before.get(following, set())
            read, written = _uses(instruction)
            now = read | (behind - written)
            if now != before.get(address, set()):
                before[address] = now
                changed = True
    return before[start] - {ZERO}


def _uses(instruction: Instruction) -> tuple[set[int], set[int]]:
    """Registers an instruction reads and writes. A return leaves the stack pointer to the caller."""
    named = zip(instruction.form.operands, instruction.operands, strict=True)
    registers = [(operand, number) for operand, number in named if operand.kind == "mreg"]
    read = {number for operand, number in registers if reads(operand)}
    return read, {number for operand, number in registers if writes(operand)}


def _following(instruction: Instruction, address: int) -> list[int]:
    mnemonic = instruction.form.mnemonic
    if mnemonic == "br":
        return []
    if mnemonic == "bri":
        return [instruction.operands[-1]]
    if mnemonic in BRANCHES or mnemonic == "brnzdec":
        return [address + 4, instruction.operands[-1]]
    return [address + 4]


def _reachable(code: Code, start: int) -> Iterator[int]:
    seen, waiting = {start}, [start]
    while waiting and len(seen) < _FURTHEST:
        address = waiting.pop()
        yield address
        for following in _following(code.at(address), address):
            if following not in seen:
                seen.add(following)
                waiting.append(following)
