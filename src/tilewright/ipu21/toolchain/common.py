"""Common symbols: memory that several objects ask for and a link gives once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from .objects import ObjectFile, ObjectSection, ObjectSymbol


def allocate_common(objects: Sequence[ObjectFile], externals: Collection[str]) -> list[ObjectFile]:
    """The objects with every common symbol turned into a reference, and one more object that defines them.

    A name gets the largest size and alignment any object asks for, in a section of its own. Where an object
    has a definition that is not weak, or there is an external address, the name means that.
    """
    wanted: dict[str, tuple[int, int]] = {}
    for item in objects:
        for symbol in item.symbols:
            if symbol.common:
                size, alignment = wanted.get(symbol.name, (0, 1))
                wanted[symbol.name] = max(size, symbol.size), max(alignment, symbol.value)
    if not wanted:
        return list(objects)
    defined = set(externals) | {
        symbol.name
        for item in objects
        for symbol in item.symbols
        if symbol.binding == "global" and symbol.defined and not symbol.common
    }
    given = ObjectFile("common symbols")
    for name, (size, alignment) in wanted.items():
        if name in defined:
            continue
        given.symbols.append(ObjectSymbol(name, 0, size, "global", "object", section=len(given.sections)))
        given.sections.append(
            ObjectSection(f".bss.{name}", flags="aw", alignment=alignment, nobits=True, size=size)
        )
    return [*(_referring(item) for item in objects), *([given] if given.symbols else [])]


def _referring(item: ObjectFile) -> ObjectFile:
    """The object with references in place of its common symbols."""
    symbols = [
        ObjectSymbol(symbol.name, binding="global", type=symbol.type) if symbol.common else symbol
        for symbol in item.symbols
    ]
    return replace(item, symbols=symbols) if symbols != item.symbols else item
