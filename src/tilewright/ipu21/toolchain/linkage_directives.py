"""Directives about what files share: common symbols, other names, versions, and plain relocations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .diagnostics import SourceFault, did_you_mean
from .directives import MAXIMUM_ALIGNMENT, Arguments, Handler
from .emission import RelocationRequest
from .expressions import Address
from .relocations import TYPES
from .symbols import MAXIMUM_SECTION_BYTES, Symbol

if TYPE_CHECKING:
    from .assembler import Assembler
    from .statements import Statement

_RELOCATIONS = {kind.name: kind for kind in TYPES.values()} | {
    f"BFD_RELOC_{kind.name.removeprefix('R_COLOSSUS_')}": kind for kind in TYPES.values() if not kind.shift
}


def _size_and_alignment(arguments: Arguments) -> tuple[int, int]:
    """What follows the name of a common symbol. Without an alignment, GNU's choice by the size."""
    arguments.comma()
    size = arguments.number("the size", 0, MAXIMUM_SECTION_BYTES)
    stated = arguments.number("the alignment", 1, MAXIMUM_ALIGNMENT) if arguments.accept(",") else 0
    arguments.finish()
    return size, stated or min(1 << max(size.bit_length() - 1, 0), 16)


def _common(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    """Memory that every file may ask for and the linker gives once, as much as the largest asks."""
    place = arguments.token.offset
    symbol = assembler.symbols.get(arguments.name())
    size, alignment = _size_and_alignment(arguments)
    if alignment & (alignment - 1):
        raise SourceFault(f"the alignment is {alignment}, not a power of two", place)
    if symbol.binding_stated and symbol.binding == "local":
        _reserve(assembler, symbol, size, alignment, statement)
        return
    if symbol.common is None and symbol.defined:
        raise SourceFault(f"{symbol.name} is already defined", place)
    if symbol.private:
        raise SourceFault(f"{symbol.name} is private to this file", place, hint="use .lcomm")
    before = symbol.common or (0, 1)
    symbol.common = max(size, before[0]), max(alignment, before[1])
    symbol.type, symbol.defined_by = "object", statement


def _local_common(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    symbol = assembler.symbols.get(arguments.name())
    _reserve(assembler, symbol, *_size_and_alignment(arguments), statement)


def _reserve(assembler: Assembler, symbol: Symbol, size: int, alignment: int, statement: Statement) -> None:
    """Bytes of a local symbol in .bss."""
    home = assembler.named_section(".bss")
    with home.at(0):
        assembler.emitter.align(home, alignment, None, None)
        assembler.symbols.define_label(symbol.name, home, statement)
        symbol.type, symbol.size = "object", size
        home.reserve(size)


def _weak_reference(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    """`.weakref A, B`: A is B, which may stay undefined if nothing else asks for it."""
    place = arguments.token.offset
    name = arguments.name()
    arguments.comma()
    target = assembler.symbols.get(arguments.name())
    arguments.finish()
    if assembler.symbols.get(name).defined:
        raise SourceFault(f"{name} is already defined", place)
    target.asked_weakly = True
    assembler.assign(name, Address(target, 0), statement)


def _version(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    """`.symver NAME, OTHER@VERSION`: nothing here has versions, so OTHER is one more name."""
    target = assembler.symbols.get(arguments.name())
    arguments.comma()
    name = arguments.name()
    for _ in range(3):
        if not arguments.accept("@"):
            break
    if not arguments.at_end and arguments.token.text != ",":
        arguments.index += 1
    if arguments.accept(","):
        arguments.name()  # remove, local, hidden
    arguments.finish()
    other = assembler.symbols.get(name)
    if other is not target and not other.defined:
        assembler.assign(name, Address(target, 0), statement)
        other.binding, other.binding_stated = "global", True


def _relocation(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    """`.reloc OFFSET, TYPE, EXPRESSION`: a relocation and no bytes."""
    place = arguments.token.offset
    offset = arguments.expression()
    arguments.comma()
    named = arguments.token.offset
    name = arguments.name()
    kind = _RELOCATIONS.get(name)
    if kind is None:
        raise SourceFault(
            f"there is no relocation {name}", named, hint=did_you_mean(name, list(_RELOCATIONS))
        )
    value = arguments.expression() if arguments.accept(",") else 0
    arguments.finish()
    if kind.number:
        request = RelocationRequest(assembler.section, offset, kind.number, value, place, statement)
        assembler.emitter.requests.append(request)


LINKAGE_HANDLERS: dict[str, Handler] = {
    **dict.fromkeys((".comm", ".common"), _common),
    ".lcomm": _local_common,
    ".weakref": _weak_reference,
    ".symver": _version,
    ".reloc": _relocation,
}
