"""The worker code reachable from an entry: steps (instructions and bundles), repeat bodies, basic blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...isa.forms import FORMS
from ...machine.memory import REGION1_BASE, TILE_BASE
from .. import codes
from ..engine_decode import find_form, meant_immediate
from ..instruction_tables import (
    FIELDS,
    IMMEDIATE,
    INFO_COISSUE,
    INFO_GROUP,
    INFO_NO_REPEAT,
    INFO_WORKER,
    ROW,
    instruction_tables,
)

STEP_LIMIT = 3000
"""Code with more steps is left to the other engine."""

Code = NDArray[np.uint32]


class TooLarge(Exception):
    """More code is reachable than is translated."""


@dataclass(frozen=True)
class Operation:
    """One decoded instruction.

    Attributes:
        word: its bits. info, places: from its row of the instruction tables.
        immediate: the value the engine would use, unsigned; flags as value functions understand them.
    """

    word: int
    info: int
    places: int
    immediate: int
    mnemonic: str

    @property
    def group(self) -> int:
        return self.info >> INFO_GROUP & 15

    @property
    def function(self) -> int:
        return self.info & 1023

    def place(self, index: int) -> int:
        """The lsb + 1 of an operand place, 0 if empty, 63 for the immediate."""
        return self.places >> 6 * index & 63

    def register(self, index: int) -> int:
        """The register number in an operand place."""
        return self.word >> (self.place(index) - 1) & 15


@dataclass(frozen=True)
class Step:
    """What a worker issues in one turn.

    Attributes:
        main, aux: the instructions; both for a bundle. Neither: the issue is an exception.
        following: the address behind.
        body: of `rpt`, the repeated steps. body_end: the address behind them.
    """

    address: int
    main: Operation | None
    aux: Operation | None
    following: int
    body: tuple[Step, ...] = ()
    body_end: int = 0

    @property
    def faulty(self) -> bool:
        return self.main is None and self.aux is None

    def control(self) -> int:
        """The control function of the main instruction, or -1."""
        if self.main is not None and self.main.group == codes.GROUP_CONTROL:
            return self.main.function
        return -1


@dataclass
class Block:
    """Steps that are issued one after the other; only the last may branch or leave."""

    address: int
    steps: list[Step] = field(default_factory=list)


@dataclass
class Program:
    """Reachable code.

    Attributes:
        entry: address of the first step.
        blocks: by address.
        returns: addresses behind calls and other known targets: where an indirect branch may go.
        ranges: (address, words) of the code it was made from.
    """

    entry: int
    blocks: dict[int, Block]
    returns: set[int]
    ranges: list[tuple[int, int]]

    def steps(self) -> list[Step]:
        """All steps, repeat bodies included."""
        found = []
        for block in self.blocks.values():
            for step in block.steps:
                found += [step, *step.body]
        return found


def _operation(code: Code, address: int) -> Operation | None:
    if not TILE_BASE <= address < REGION1_BASE or address & 3:
        return None
    tables = instruction_tables().array
    word = int(code[(address - TILE_BASE) >> 2])
    form = find_form(tables, word)
    if form <= 0:
        return None
    info = int(tables[ROW * form])
    immediate = int(meant_immediate(tables, word, int(tables[ROW * form + IMMEDIATE])))
    places = int(tables[ROW * form + FIELDS])
    return Operation(word, info, places, immediate, FORMS[form - 1].mnemonic)


def _step(code: Code, address: int, repeating: bool) -> Step:
    """The step at an address, with the checks that do not depend on data."""
    fault = Step(address, None, None, address + 4)
    first = _operation(code, address)
    if first is None or not first.info >> INFO_WORKER & 1:
        return fault
    aux = first.group >= codes.GROUP_AUX_WORDS
    if not first.word >> 31:
        if repeating or first.group == codes.GROUP_NONE:
            return fault
        return Step(address, None if aux else first, first if aux else None, address + 4)
    second = _operation(code, address + 4)
    if second is None or codes.GROUP_NONE in (first.group, second.group):
        return fault
    legal = first.info >> INFO_COISSUE & second.info >> INFO_COISSUE & second.word >> 31 & 1
    if not legal or aux or second.group < codes.GROUP_AUX_WORDS:
        return fault
    if repeating and (first.info | second.info) >> INFO_NO_REPEAT & 1:
        return fault
    return Step(address, first, second, address + 8)


def _with_body(code: Code, step: Step) -> Step:
    """A `rpt` with its body."""
    assert step.main is not None
    first = step.following
    end = first + 8 * ((step.main.word & 0xFF) + 1)
    body: tuple[Step, ...] = ()
    if first & 7 == 0 and end <= REGION1_BASE:
        body = tuple(_step(code, address, True) for address in range(first, end, 8))
    return Step(step.address, step.main, step.aux, step.following, body, end)


def _targets(step: Step) -> list[int]:
    """Where control may go from here other than behind the step, as far as that is known."""
    function = step.control()
    if function in (codes.BRI, codes.BRZ, codes.BRNZ, codes.BRNEG, codes.BRPOS, codes.BRNZDEC, codes.CALL):
        assert step.main is not None
        return [step.main.immediate]
    return []


def _falls_through(step: Step) -> bool:
    function = step.control()
    ends = (codes.BR, codes.BRI, codes.CALL, codes.EXITZ, codes.EXITNZ, codes.EXITNEG, codes.EXITPOS)
    return not step.faulty and function not in (*ends, codes.TRAP)


def program(code: Code, entry: int, targets: Iterable[int] = ()) -> Program:
    """Everything reachable from a worker entry. `code` holds region 0 in words.

    Args:
        targets: addresses that indirect branches are known to go to, beside those behind calls.

    Raises TooLarge.
    """
    steps: dict[int, Step] = {}
    returns = set(targets)
    leaders = {entry, *returns}
    pending = [entry, *returns]
    size = 0
    while pending:
        address = pending.pop()
        while address not in steps:
            step = _step(code, address, False)
            if step.control() == codes.RPT:
                step = _with_body(code, step)
            steps[address] = step
            size += 1 + len(step.body)
            if size > STEP_LIMIT:
                raise TooLarge
            for target in _targets(step):
                leaders.add(target)
                pending.append(target)
            if step.control() == codes.CALL:
                returns.add(step.following)
                leaders.add(step.following)
                pending.append(step.following)
            if not _falls_through(step):
                break
            address = step.body_end or step.following
            if _targets(step):
                leaders.add(address)
    blocks: dict[int, Block] = {}
    for leader in sorted(leaders):
        block = blocks[leader] = Block(leader)
        address = leader
        while True:
            step = steps[address]
            block.steps.append(step)
            address = step.body_end or step.following
            if _targets(step) or not _falls_through(step) or address in leaders:
                break
    return Program(entry, blocks, returns, _ranges(steps))


def _ranges(steps: dict[int, Step]) -> list[tuple[int, int]]:
    """The words the steps were decoded from, as (address, number of words)."""
    words: set[int] = set()
    for step in steps.values():
        words.update(range(step.address, max(step.following, step.body_end), 4))
        if step.faulty:
            words.update((step.address, step.address + 4))
    ranges: list[tuple[int, int]] = []
    for address in sorted(word for word in words if TILE_BASE <= word < REGION1_BASE):
        if ranges and ranges[-1][0] + 4 * ranges[-1][1] == address:
            ranges[-1] = (ranges[-1][0], ranges[-1][1] + 1)
        else:
            ranges.append((address, 1))
    return ranges
