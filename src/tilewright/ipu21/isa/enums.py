"""Named constants of the vendor's assembly sources: sync zones, instruction flags, exception causes, ...

Values are the published first-generation ones (known), except the flags of the matrix, slice and transpose
instructions: their names are public, their numbers are not, and the numbers here are ours (assumed).
Everything that depends on such a number is listed in `PROVISIONAL` or found by `is_provisional`.
"""

from __future__ import annotations

from typing import Final

from .. import overlay
from .table import original_flags, table

ENUMS: dict[str, dict[str, int]] = {name: dict(entry["values"]) for name, entry in table()["enums"].items()}
"""Enum name to its constants, in the order of the data file."""

_FAMILIES = {name: entry for name, entry in table()["enums"].items() if entry.get("flag_family")}

FLAG_FAMILIES: frozenset[str] = frozenset(_FAMILIES)
"""Families of instruction flags whose numbers are not public, e.g. `TAMP_F16V4`."""

PROVISIONAL: frozenset[str] = frozenset(
    name for entry in _FAMILIES.values() for name in entry["values"] if name not in entry.get("known", ())
)
"""Names whose number is ours. Hardware may use another."""

_CONSTANTS = {name: value for values in ENUMS.values() for name, value in values.items()}

# A zone's preferred name: what it synchronises, not which of the numbered groups it is.
_ZONES = {
    value: name
    for name, value in reversed(ENUMS["TileSyncZone"].items())
    if "EXTERNAL" not in name and name != "TEXCH_SYNCZONE_INTERNAL0"
}

SEND_EAST: Final = 1
"""Control bit of `send`: drive the words eastwards (known)."""
SEND_WEST: Final = 2
"""Control bit of `send`: drive the words westwards (known)."""
SEND_64: Final = 4
"""Control bit of `send`: items of 8 bytes, using the partner's lane too (known)."""


def constant(name: str) -> int | None:
    """The value of a named constant, or None."""
    return _CONSTANTS.get(name)


def constants() -> dict[str, int]:
    """Every named constant with its value."""
    return dict(_CONSTANTS)


def constant_name(enum: str, value: int) -> str | None:
    """The name an enum or flag family gives to a value, or None."""
    if enum == "TileSyncZone":
        return _ZONES.get(value)
    for name, number in ENUMS.get(enum, {}).items():
        if number == value:
            return name
    return None


UNKNOWN_FLAG: Final = 0xFF
"""What `flag_map` gives for a number that no name of the family has."""


def flag_map(family: str) -> tuple[int, ...] | None:
    """For each of the 256 encoded numbers the one the meaning functions understand; None if it is the same.

    The two differ only under an overlay, which brings a real assembler's numbers.
    """
    meant = original_flags()[family]
    if not overlay.in_force() or ENUMS[family] == meant:
        return None
    mapped = [UNKNOWN_FLAG] * 256
    for name, number in ENUMS[family].items():
        mapped[number] = meant[name]
    return tuple(mapped)


def flag_is_provisional(family: str, value: int) -> bool:
    """True if the meaning of this flag value in this family rests on a number that is not public."""
    entry = _FAMILIES[family]
    return all(entry["values"][name] != value for name in entry.get("known", ()))
