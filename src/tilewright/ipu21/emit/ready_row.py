"""A row as it is when it runs: what the supervisor's program does to it from the beginning of its step on.

The program itself is followed, instruction by instruction, so that what is judged or shown is what the tile
will do, and not what some record says about it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...errors import ScheduleError
from ..fabric.addresses import relocated
from ..isa import csrs
from ..isa.decode import Instruction, InvalidInstruction, decode
from ..machine import sync_zones

MOST = 1 << 14
"""Instructions between the beginning of a step and its row, at most."""
_WORD = 0xFFFFFFFF


@dataclass
class ReadyRow:
    """What a tile has done when it meets the others.

    Attributes:
        row: address of the row it runs; 0 if it runs none.
        stored: words by byte address.
        bases: values of exchange registers by number.
    """

    row: int = 0
    stored: dict[int, int] = field(default_factory=dict)
    bases: dict[int, int] = field(default_factory=dict)

    def row_words(self, words: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The row as it runs, from the words that stand in its place at first.

        Raises ScheduleError for addresses outside the reach of a row.
        """
        changed = words.copy()
        for address, word in self.stored.items():
            place = (address - self.row) // 4
            if 0 <= place < len(words):
                changed[place] = word
        outgoing, incoming = (self.bases.get(csr, 0) for csr in (csrs.OUTGOING_BASE, csrs.INCOMING_BASE))
        if not outgoing and not incoming:
            return changed
        moved = relocated(changed, outgoing, incoming)
        if moved is None:
            raise ScheduleError(f"bases {outgoing:#x} and {incoming:#x} take a row out of tile memory")
        return moved


def ready_row(read: Callable[[int], int], begin: int) -> ReadyRow:
    """Follow a step of an exchange from its first instruction.

    Args:
        read: the word at a byte address.

    Raises ScheduleError for anything that such a step does not do.
    """
    found = ReadyRow()
    registers = [0] * 16
    synchronised = False
    at = begin
    for _ in range(MOST):
        word = read(at)
        instruction = _decoded(word)
        if instruction is None:
            raise ScheduleError(f"{word:#010x} is no instruction", where=f"{at:#x}")
        text, operands = instruction.form.text, instruction.operands
        at += 4
        target: int | None = None
        match text:
            case "setzi $mDst0, zimm20":
                target, value = operands
            case "or $mDst0, $mSrc0, immz12":
                target, value = operands[0], registers[operands[1]] | operands[2]
            case "add $mDst0, $mSrc0, $mSrc1":
                target, value = operands[0], registers[operands[1]] + registers[operands[2]] & _WORD
            case "st32 $mSrc0, $mBase0, $mDelta0, zimm12":
                source, base, delta, offset = operands
                found.stored[registers[base] + registers[delta] + 4 * offset & _WORD] = registers[source]
            case "put zimm8, $mSrc0":
                found.bases[operands[0]] = registers[operands[1]]
            case "call $mDst0, zimm20":
                if synchronised:
                    found.row = operands[1]
                    return found
                target, value, at = operands[0], at, operands[1]
            case "br $mSrc0":
                at = registers[operands[0]]
            case "sync zimm4":
                if operands[0] != sync_zones.INTERNAL:
                    return found
                synchronised = True
            case "sans zimm19":
                return found
            case _:
                raise ScheduleError(
                    f"{instruction.form.mnemonic} has no place before a row", where=f"{at - 4:#x}"
                )
        if target is not None:
            registers[target] = value
            registers[15] = 0
    raise ScheduleError(f"no row within {MOST:,} instructions", where=f"{begin:#x}")


@lru_cache(maxsize=1 << 16)
def _decoded(word: int) -> Instruction | None:
    try:
        return decode(word)
    except InvalidInstruction:
        return None
