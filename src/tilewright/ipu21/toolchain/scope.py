"""What a name in an expression stands for while a source is being read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..isa.csrs import CSRS, csr_number, weight_number
from ..isa.enums import constant
from ..isa.registers import ALIASES, parse_register
from .diagnostics import SourceFault, did_you_mean
from .expressions import Address, Value
from .preprocess import public_constants
from .symbols import here

if TYPE_CHECKING:
    from .assembler import Assembler

_WEIGHT = re.compile(r"\$CWEI_(\d+)_(\d+)$")


def is_register(name: str) -> bool:
    """Whether a name with `$` means a register of the machine, of any kind."""
    return any(find(name) is not None for find in (parse_register, csr_number, _weight))


def _weight(name: str) -> int | None:
    """The number of `$CWEI_unit_entry`; None for any other name and for weights that do not exist."""
    found = _WEIGHT.match(name)
    if found is None:
        return None
    try:
        return weight_number(*map(int, found.groups()))
    except ValueError:
        return None


class Scope:
    """Names in expressions: assigned values at once, instruction set constants, labels by reference.

    `lookups` counts uses of names that a source may give another meaning later.
    """

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self.lookups = 0

    def name(self, name: str, offset: int) -> Value:
        self.lookups += 1
        symbols = self._assembler.symbols
        symbol = symbols.symbols.get(name)
        if symbol is None:
            number = constant(name)
            if number is None:
                number = public_constants().get(name)
            if number is not None:
                return number
            symbol = symbols.get(name)
        symbol.asked = True
        if symbol.value is not None:
            return symbol.value
        return Address(symbol, 0)

    def local(self, reference: str, offset: int) -> Value:
        self.lookups += 1
        try:
            return Address(self._assembler.symbols.local(reference), 0)
        except SourceFault as fault:
            raise SourceFault(fault.message, offset, hint=fault.hint) from None

    def register(self, name: str, offset: int) -> Value:
        symbol = self._assembler.symbols.symbols.get(name)
        if symbol is not None:
            return self.name(name, offset)
        for find in (csr_number, _weight):
            number = find(name)
            if number is not None:
                return number
        if parse_register(name) is not None:
            raise SourceFault(f"{name} is a register; a number is needed here", offset)
        known = [f"${item.name}" for item in CSRS] + list(ALIASES)
        raise SourceFault(f"there is no register {name}", offset, hint=did_you_mean(name, known))

    def here(self) -> Value:
        self.lookups += 1
        return here(self._assembler.section)
