"""Register names: single registers, aligned pairs and quads of the main ($m) and aux ($a) files, aliases.

Source: the vendor's public compiler (known). Storage: $m0-$m11, $a0-$a7; $m15, $a14 and $a15 read as zero.
"""

from __future__ import annotations

import re

from .table import table

MAIN_ZERO = 15
"""$m15, which reads as zero; loads and stores without a delta encode it."""
AUX_ZERO = 15
"""$a15, which reads as zero."""

_SINGLE = re.compile(r"\$([ma])([1-9]?[0-9])")
_RANGE = re.compile(r"\$([ma])([1-9]?[0-9])\s*:\s*([1-9]?[0-9])")
_QUAD = re.compile(r"\$aq([0-3])")
_SIZES = {"mreg": 1, "areg": 1, "mpair": 2, "apair": 2, "aquad": 4}


def _aliases() -> dict[str, tuple[str, int]]:
    return {
        name: (kind, number)
        for kind, entry in table()["registers"].items()
        for name, number in entry["aliases"].items()
    }


ALIASES: dict[str, tuple[str, int]] = _aliases()
"""Alias to (kind, number), e.g. `$lr` to (`mreg`, 10)."""


def parse_register(text: str) -> tuple[str, int] | None:
    """(kind, number of the first register) of a register as written, or None if it is no register.

    Accepts `$m3`, `$a7`, `$m2:3`, `$a4:7`, `$aq1` (the quad `$a4:7`), blanks around the colon, and the
    aliases. Misaligned pairs and quads are no registers.
    """
    if text in ALIASES:
        return ALIASES[text]
    if match := _SINGLE.fullmatch(text):
        number = int(match[2])
        return (f"{match[1]}reg", number) if number < 16 else None
    if match := _RANGE.fullmatch(text):
        first, last = int(match[2]), int(match[3])
        kind = {2: f"{match[1]}pair", 4: f"{match[1]}quad"}.get(last - first + 1)
        return (kind, first) if kind in _SIZES and last < 16 and first % _SIZES[kind] == 0 else None
    if match := _QUAD.fullmatch(text):
        return "aquad", 4 * int(match[1])
    return None


def register_name(kind: str, number: int) -> str:
    """The plain name, e.g. (`apair`, 2) gives `$a2:3`. Raises ValueError for a number the kind lacks."""
    size = _SIZES[kind]
    if not 0 <= number < 16 or number % size:
        raise ValueError(f"{number} is no {kind} register")
    return f"${kind[0]}{number}" if size == 1 else f"${kind[0]}{number}:{number + size - 1}"
