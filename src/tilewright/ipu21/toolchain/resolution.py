"""Which definition every symbol means, and which sections a program needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...errors import LinkError
from .objects import ObjectFile, ObjectSymbol

SectionId = tuple[int, int]
"""(index of the object, index of its section)."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Where a symbol lives: a section and offset, or an absolute value (`section` None)."""

    section: SectionId | None
    value: int


@dataclass(slots=True)
class Globals:
    """The definition each global name has in this link, and the sections that lost to an equal group."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)
    discarded: frozenset[SectionId] = frozenset()


def discarded_sections(objects: Sequence[ObjectFile]) -> frozenset[SectionId]:
    """Members of every COMDAT group whose signature an earlier group has."""
    signatures: set[str] = set()
    discarded: set[SectionId] = set()
    for number, item in enumerate(objects):
        for group in item.groups:
            if not group.comdat:
                continue
            name = item.signature(group)
            if name in signatures:
                discarded.update((number, member) for member in group.members)
            signatures.add(name)
    return frozenset(discarded)


def own_definition(number: int, symbol: ObjectSymbol) -> Definition:
    """The definition a defined symbol of object `number` gives."""
    if symbol.absolute or symbol.section is None:
        return Definition(None, symbol.value)
    return Definition((number, symbol.section), symbol.value)


def resolve_globals(objects: Sequence[ObjectFile], externals: Mapping[str, int]) -> Globals:
    """Pick one definition per global name: external addresses first, then strong, then the first weak one.

    Raises LinkError naming every pair of strong definitions.
    """
    result = Globals(discarded=discarded_sections(objects))
    weak: dict[str, Definition] = {}
    weak_owners: dict[str, int] = {}
    duplicates: list[str] = []
    for name, address in externals.items():
        result.definitions[name] = Definition(None, address)
    for number, item in enumerate(objects):
        for symbol in item.symbols:
            if symbol.binding == "local" or not symbol.defined or symbol.name in externals:
                continue
            definition = own_definition(number, symbol)
            if definition.section in result.discarded:
                continue  # the group that stays defines it
            if symbol.binding == "weak":
                if symbol.name not in weak:
                    weak[symbol.name] = definition
                    weak_owners[symbol.name] = number
                continue
            if symbol.name in result.owners:
                first = objects[result.owners[symbol.name]].name
                duplicates.append(f"{symbol.name} ({first} and {item.name})")
                continue
            result.definitions[symbol.name] = definition
            result.owners[symbol.name] = number
    if duplicates:
        raise LinkError(
            "defined more than once: " + ", ".join(duplicates), hint="make all but one weak or local"
        )
    for name, definition in weak.items():
        if name not in result.definitions:
            result.definitions[name] = definition
            result.owners[name] = weak_owners[name]
    return result


def definition_of(
    objects: Sequence[ObjectFile], number: int, index: int, globals_: Globals
) -> Definition | None:
    """What symbol `index` of object `number` means; None when nothing does. A weak undefined one is 0."""
    symbol = objects[number].symbols[index]
    if symbol.binding == "local":
        return own_definition(number, symbol) if symbol.defined else None
    found = globals_.definitions.get(symbol.name)
    if found is None and symbol.binding == "weak":
        return Definition(None, 0)
    return found


def reachable(
    objects: Sequence[ObjectFile], roots: Sequence[str] | None, globals_: Globals, given: int
) -> list[SectionId]:
    """Sections to keep, in input order: all allocated ones of the first `given` objects, or with `roots`
    those the roots lead to, and what these need.

    Raises LinkError listing every missing root and undefined symbol of the kept sections at once.
    """
    missing: dict[str, str] = {}
    kept: set[SectionId] = set()
    pending: list[SectionId] = []

    def keep(section: SectionId | None, why: str) -> None:
        if section is None or section in kept:
            return
        item = objects[section[0]]
        if section in globals_.discarded:
            name = item.sections[section[1]].name
            raise LinkError(
                f"{why} leads into {name}, which another object's group replaces", where=item.name
            )
        if not item.sections[section[1]].allocated:
            raise LinkError(
                f"{why} leads into {item.sections[section[1]].name}, which is not loaded", where=item.name
            )
        kept.add(section)
        pending.append(section)

    if roots is None:
        for number, item in enumerate(objects[:given]):
            for index, section in enumerate(item.sections):
                if section.allocated and (number, index) not in globals_.discarded:
                    keep((number, index), section.name)
    else:
        for name in roots:
            definition = globals_.definitions.get(name)
            if definition is None:
                missing.setdefault(name, "asked for as entry or root")
            else:
                keep(definition.section, name)
    while pending:
        number, index = pending.pop()
        item = objects[number]
        for entry in item.sections[index].relocations:
            definition = definition_of(objects, number, entry.symbol, globals_)
            name = item.symbols[entry.symbol].name
            if definition is None:
                missing.setdefault(
                    name, f"used in {item.name}, {item.sections[index].name}+{entry.offset:#x}"
                )
            else:
                keep(definition.section, name or item.sections[index].name)
    if missing:
        listed = "; ".join(f"{name} ({where})" for name, where in sorted(missing.items()))
        raise LinkError(
            f"undefined: {listed}", hint="link the object that defines it, or give it as an external"
        )
    return sorted(kept)
