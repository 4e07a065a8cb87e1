"""Which memory an instruction is about to touch, for traces. Follows the engine's address rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..isa.decode import Instruction
from ..isa.meaning.address import ADDRESS, third_address
from ..machine.memory import TILE_BASE, TILE_END
from .codes import (
    DELTA_LOAD,
    DELTA_LOAD_PAIR,
    LD2X64PACE,
    LD2XST64PACE,
    LD64A32,
    LD64A32PACE,
    LD64B16PACE,
    LDB16B16,
    LDST64PACE,
    LOAD,
    LOAD_STEP,
    MEMORY_CODES,
    ST64PACE,
    STM,
    STM_STEP,
    STORE,
    STORE_STEP,
)
from .tile import Tile

_WORD = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Access:
    """`size` bytes at `address`, loaded or stored."""

    address: int
    size: int
    store: bool

    @property
    def inside(self) -> bool:
        """True if all of it is in tile memory."""
        return TILE_BASE <= self.address <= TILE_END - self.size

    @property
    def text(self) -> str:
        return f"[{self.address:#x}:{self.size}]"

    def value(self, tile: Tile) -> int:
        """The bytes there now, little-endian."""
        return int.from_bytes(tile.read(self.address, self.size), "little")


def accesses(instruction: Instruction, m: Sequence[int], weight_pointer: int) -> list[Access]:
    """Accesses of an instruction before it issues.

    Args:
        m: the context's sixteen M registers.
        weight_pointer: $CCCSLOAD.
    """
    mnemonic = instruction.form.mnemonic
    if mnemonic in ("ld64putcs", "ld128putcs"):
        return [Access(weight_pointer, 8 if mnemonic == "ld64putcs" else 16, False)]
    if instruction.form.pipeline != "main" or mnemonic not in MEMORY_CODES:
        return []
    function, size_log, _ = MEMORY_CODES[mnemonic]
    operands = instruction.operands
    if function in (LOAD, LOAD_STEP, STORE, STORE_STEP):
        return [_plain(instruction, m, function, size_log)]
    if function in (STM, STM_STEP):
        base = m[operands[1]]
        address = base + (m[operands[2]] << 2) if function == STM else base
        return [Access(address & _WORD, 4, True)]
    if function == LD64A32:
        address = m[operands[2]] + (m[operands[3]] & 0xFFFF)
        return [Access(m[operands[1]], 8, False), Access(address & _WORD, 4, False)]
    if function == LDB16B16:
        base, deltas = m[operands[1]], m[operands[2]]
        return [Access((base + delta) & _WORD, 2, False) for delta in (deltas & 0xFFFF, deltas >> 16)]
    if function in (DELTA_LOAD, DELTA_LOAD_PAIR):
        delta = m[operands[3]]
        list_size = 4 if function == DELTA_LOAD_PAIR else 2
        address = m[operands[2]] + (delta >> 16 if function == DELTA_LOAD_PAIR else delta)
        return [Access(address & _WORD, 1 << size_log, False), Access(m[operands[1]], list_size, False)]
    return _paced(operands, m, function)


def _plain(instruction: Instruction, m: Sequence[int], function: int, size_log: int) -> Access:
    operands = instruction.operands
    address = m[operands[1]] + m[operands[2]]
    if function in (LOAD, STORE):
        last = instruction.form.operands[3]
        offset = m[operands[3]] if last.is_register else operands[3]
        address += offset << size_log
    return Access(address & _WORD, 1 << size_log, function in (STORE, STORE_STEP))


def _paced(operands: Sequence[int], m: Sequence[int], function: int) -> list[Access]:
    if function not in (LD2X64PACE, LDST64PACE, LD2XST64PACE, ST64PACE, LD64A32PACE, LD64B16PACE):
        return []
    pair = operands[1] if function == ST64PACE else operands[2]
    low, high = m[pair], m[pair + 1]
    a0, a1, a2 = low & ADDRESS, high & ADDRESS, third_address(low, high)
    load0, store2 = Access(a0, 8, False), Access(a2, 8, True)
    if function == ST64PACE:
        return [store2]
    if function == LDST64PACE:
        return [load0, store2]
    if function == LD2XST64PACE:
        return [load0, Access(a1, 8, False), store2]
    second = {LD2X64PACE: 8, LD64A32PACE: 4, LD64B16PACE: 2}[function]
    return [load0, Access(a1, second, False)]
