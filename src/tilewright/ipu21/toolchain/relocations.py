"""Colossus relocations: what each type checks, and which bits it writes.

Numbers, fields and limits are `known` (published relocation list of the vendor's linker, with its tests).
All types are absolute; a field is overwritten, never added to.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import LinkError
from ..machine.memory import TILE_BASE

NONE = 0
R8 = 1
R16 = 2
R20 = 3
R32 = 4
R64 = 5
RELATIVE_16_S2 = 6
R18_S2 = 7
R19_S2 = 8
RUN = 9
R16_S3 = 14
R16_S4 = 15
R16_S5 = 16
R21 = 17


@dataclass(frozen=True, slots=True)
class RelocationType:
    """One type: `size` bytes touched, value >> `shift` stored in `bits` bits (relative to tile memory if
    `relative`).
    """

    number: int
    name: str
    size: int
    bits: int
    shift: int = 0
    relative: bool = False
    spelling: str | None = None

    @property
    def largest(self) -> int:
        """Largest symbol value that fits."""
        return (((1 << self.bits) - 1) << self.shift) + (TILE_BASE if self.relative else 0)


TYPES: dict[int, RelocationType] = {
    kind.number: kind
    for kind in (
        RelocationType(NONE, "R_COLOSSUS_NONE", 0, 0),
        RelocationType(R8, "R_COLOSSUS_8", 1, 8, spelling="8"),
        RelocationType(R16, "R_COLOSSUS_16", 2, 16, spelling="16"),
        RelocationType(R20, "R_COLOSSUS_20", 4, 20, spelling="20"),
        RelocationType(R32, "R_COLOSSUS_32", 4, 32, spelling="32"),
        RelocationType(R64, "R_COLOSSUS_64", 8, 64, spelling="64"),
        RelocationType(RELATIVE_16_S2, "R_COLOSSUS_RELATIVE_16_S2", 2, 16, 2, True, "relative@16@s2"),
        RelocationType(R18_S2, "R_COLOSSUS_18_S2", 4, 18, 2, spelling="18@s2"),
        RelocationType(R19_S2, "R_COLOSSUS_19_S2", 4, 19, 2, spelling="19@s2"),
        RelocationType(RUN, "R_COLOSSUS_RUN", 4, 16, 2, True, "run"),
        RelocationType(R16_S3, "R_COLOSSUS_16_S3", 2, 16, 3, spelling="16@s3"),
        RelocationType(R16_S4, "R_COLOSSUS_16_S4", 2, 16, 4, spelling="16@s4"),
        RelocationType(R16_S5, "R_COLOSSUS_16_S5", 2, 16, 5, spelling="16@s5"),
        RelocationType(R21, "R_COLOSSUS_21", 4, 21, spelling="21"),
    )
}
"""Every known type by number; 10..13 are unassigned."""

_OLDER_SPELLINGS = {"abs18@s2": R18_S2, "abs19@s2": R19_S2, "abs@21": R21}

BY_SPELLING: dict[str, int] = {
    **{kind.spelling: kind.number for kind in TYPES.values() if kind.spelling is not None},
    **_OLDER_SPELLINGS,
}
"""Assembler spelling after `symbol@` -> type. `run`, plain sizes other than 21, and `s3`..`s5` are ours, so
that a disassembly can name every relocation (assumed); the rest are the vendor's (known)."""


def field_of(kind: RelocationType, value: int) -> int:
    """The field that `value` (symbol + addend) becomes. Raises LinkError when it is out of range or
    misaligned.
    """
    if value < 0:
        raise LinkError(f"{kind.name}: value {value:#x} is negative")
    if value & ((1 << kind.shift) - 1):
        raise LinkError(f"{kind.name}: value {value:#x} is not a multiple of {1 << kind.shift}")
    field = value - (TILE_BASE if kind.relative else 0)
    if field < 0:
        raise LinkError(f"{kind.name}: value {value:#x} lies below tile memory ({TILE_BASE:#x})")
    field >>= kind.shift
    if field >> kind.bits:
        raise LinkError(f"{kind.name}: value {value:#x} is over {kind.largest:#x}, the largest that fits")
    return field


def apply_relocation(data: bytearray, offset: int, number: int, value: int) -> None:
    """Write `value` (symbol + addend) into `data` at `offset` as relocation type `number` does.

    Raises LinkError for an unknown type, a value that does not fit, or bytes outside `data`.
    """
    kind = TYPES.get(number)
    if kind is None:
        raise LinkError(f"relocation type {number} is not assigned")
    if kind.number == NONE:
        return
    if offset < 0 or offset + kind.size > len(data):
        raise LinkError(f"{kind.name} at offset {offset:#x} reaches outside its section of {len(data)} bytes")
    field = field_of(kind, value)
    if kind.number == RUN:
        placed, mask = (field & 0xFFF) | (field >> 12 << 16), 0x000F0FFF
    else:
        placed, mask = field, (1 << kind.bits) - 1
    old = int.from_bytes(data[offset : offset + kind.size], "little")
    data[offset : offset + kind.size] = ((old & ~mask) | placed).to_bytes(kind.size, "little")
