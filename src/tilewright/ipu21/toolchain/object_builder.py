"""From the assembler's sections and symbols to a relocatable object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .diagnostics import SourceFault
from .expressions import evaluate
from .objects import Group, ObjectFile, ObjectSection, ObjectSymbol, Relocation, SourceLine
from .source_lines import joined
from .symbols import Section, Symbol

if TYPE_CHECKING:
    from .assembler import Assembler


def build_object(assembler: Assembler) -> ObjectFile:
    """Sections with content, symbols (locals first) and relocations. Faults are reported to the assembler.

    Private labels (`.L`, numeric) are reached through their section's symbol; every other label keeps its
    name.
    """
    for symbol, statement, place in assembler.sizes:
        if not symbol.defined:
            continue  # published kernels state sizes of functions that this file does not hold
        try:
            size = evaluate(symbol.size or 0)
            if not isinstance(size, int) or not 0 <= size < 1 << 32:
                raise SourceFault("the size must be a number from 0")
            symbol.size = size
        except SourceFault as fault:
            assembler.sources.report(SourceFault(fault.message, place, hint=fault.hint), statement)

    named = [symbol for symbol in assembler.symbols.symbols.values() if not symbol.private]
    homes = {symbol.section for symbol in named if symbol.section is not None}
    used = {entry.value.symbol.section for entry in assembler.emitter.relocations}
    kept = [
        section
        for section in assembler.sections.values()
        if section.offset or section in homes or section in used
    ]
    indices = {section: index for index, section in enumerate(kept)}

    # Relocations first decide which section symbols and undefined names are needed.
    section_symbols: dict[Section, int] = {}
    groups: dict[str, list[int]] = {}
    for section in kept:
        if section.group is not None:
            groups.setdefault(section.group, []).append(indices[section])
    needed: dict[Symbol, None] = {assembler.symbols.get(name): None for name in groups}
    known = set(named)
    named += [symbol for symbol in needed if symbol not in known]
    for entry in assembler.emitter.relocations:
        symbol = entry.value.symbol
        if symbol.section is None:
            if symbol.private:
                name = symbol.name
                text = (
                    f"label {name.split()[1]}: does not follow" if " " in name else f"{name} is not defined"
                )
                assembler.sources.report(SourceFault(text, entry.place), entry.statement)
                continue
            needed[symbol] = None
        elif symbol.private:
            section_symbols.setdefault(symbol.section, len(section_symbols))
    for section in kept:
        if section in assembler.emitter.code and section not in homes:
            # Source lines need something to be relative to.
            section_symbols.setdefault(section, len(section_symbols))

    symbols = [ObjectSymbol("", type="section", section=indices[section]) for section in section_symbols]
    positions: dict[Symbol, int] = {}
    ordered = sorted(named, key=lambda symbol: _binding(symbol, symbol in needed) != "local")
    for symbol in ordered:
        made = _object_symbol(assembler, symbol, indices, symbol in needed)
        if made is not None:
            positions[symbol] = len(symbols)
            symbols.append(made)

    result = ObjectFile(assembler.sources.filename, [], symbols, warnings=tuple(assembler.sources.warnings))
    for section in kept:
        nobits = section.type == "nobits"
        result.sections.append(
            ObjectSection(
                section.name,
                b"" if nobits else bytes(section.data),
                section.flags,
                section.alignment,
                nobits,
                section.offset,
                lines=_lines(assembler, section),
            )
        )
    result.groups += [
        Group(positions[assembler.symbols.get(name)], tuple(members)) for name, members in groups.items()
    ]
    for entry in sorted(assembler.emitter.relocations, key=lambda item: item.offset):
        symbol, addend = entry.value.symbol, entry.value.addend
        if symbol.section is not None and symbol.private:
            number, addend = section_symbols[symbol.section], addend + symbol.offset
        elif symbol in positions:
            number = positions[symbol]
        else:
            continue  # reported above
        if not -(1 << 31) <= addend < 1 << 31:
            assembler.sources.report(
                SourceFault(f"offset {addend} is too large", entry.place), entry.statement
            )
            continue
        result.sections[indices[entry.section]].relocations.append(
            Relocation(entry.offset, entry.type, number, addend)
        )
    return result


def _lines(assembler: Assembler, section: Section) -> tuple[SourceLine, ...]:
    """Where the instructions of a section were written, by rising offset."""
    lines: list[SourceLine] = []
    end = 0
    for offset, (forms, statement) in sorted(assembler.emitter.code.get(section, {}).items()):
        if lines and offset > end:
            lines.append(SourceLine(end, "", 0))
        origin = assembler.emitter.origin_of.get((section, offset))
        lines.append(SourceLine(offset, *(origin or assembler.sources.origin(statement.line))))
        end = offset + 4 * sum(form.words for form in forms)
    if lines:
        lines.append(SourceLine(end, "", 0))
    return tuple(joined(lines))


def _binding(symbol: Symbol, needed: bool) -> str:
    if symbol.common is not None and not symbol.binding_stated:
        return "global"
    if symbol.asked_weakly and not symbol.asked and not symbol.defined and not symbol.binding_stated:
        return "weak"
    if symbol.binding == "local" and not symbol.defined and needed:
        return "global"
    return symbol.binding


def _object_symbol(
    assembler: Assembler, symbol: Symbol, indices: dict[Section, int], needed: bool
) -> ObjectSymbol | None:
    """The symbol as it appears in the object, or None if it does not."""
    binding = _binding(symbol, needed)
    size = symbol.size if isinstance(symbol.size, int) else 0
    if symbol.common is not None:
        size, alignment = symbol.common
        return ObjectSymbol(
            symbol.name, alignment, size, binding, symbol.type, hidden=symbol.hidden, common=True
        )
    if symbol.section is not None:
        return ObjectSymbol(
            symbol.name,
            symbol.offset,
            size,
            binding,
            symbol.type,
            indices[symbol.section],
            hidden=symbol.hidden,
        )
    if symbol.value is not None:
        if binding == "local":
            return None  # an assigned name of this file only: its value went where it was used
        assert symbol.defined_by is not None
        try:
            value = evaluate(symbol.value)
        except SourceFault as fault:
            assembler.sources.report(SourceFault(fault.message, hint=fault.hint), symbol.defined_by)
            return None
        if isinstance(value, int):
            if not -(1 << 31) <= value < 1 << 32:
                assembler.sources.report(SourceFault(f"{value} does not fit in 32 bits"), symbol.defined_by)
                return None
            return ObjectSymbol(symbol.name, value & 0xFFFFFFFF, size, binding, symbol.type, absolute=True)
        target = value.symbol
        if target.section is None:
            assembler.sources.report(
                SourceFault(f"{symbol.name} stands for the undefined {target.name}"), symbol.defined_by
            )
            return None
        return ObjectSymbol(
            symbol.name, target.offset + value.addend, size, binding, symbol.type, indices[target.section]
        )
    if needed or symbol.binding_stated:
        if symbol.binding == "local" and symbol.binding_stated:
            return None
        return ObjectSymbol(symbol.name, binding="weak" if binding == "weak" else "global", type=symbol.type)
    return None
