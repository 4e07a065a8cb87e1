"""Static linker: objects to one image at absolute tile addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import LinkError
from ..machine.memory import IMAGE_BASE, REGION1_BASE
from .archives import members_needed
from .common import allocate_common
from .image import LinkedImage, LinkedSegment, provisional_words
from .objects import CODE_FILL, ObjectFile, SourceLine
from .placement import Interval, Placed, place_sections
from .relocations import apply_relocation
from .resolution import (
    Definition,
    Globals,
    SectionId,
    definition_of,
    own_definition,
    reachable,
    resolve_globals,
)
from .runtime_library import runtime_objects
from .source_lines import by_place
from .stack_sizes import linked_stack_sizes

CODE_REGION: tuple[Interval, ...] = ((IMAGE_BASE, REGION1_BASE),)
"""Everything the loader fills that can be executed."""


def link(
    objects: Sequence[ObjectFile],
    *,
    intervals: Sequence[Interval] = CODE_REGION,
    data_intervals: Sequence[Interval] | None = None,
    entry: str | None = None,
    roots: Sequence[str] = (),
    libraries: Sequence[Sequence[ObjectFile]] = (),
    externals: Mapping[str, int] | None = None,
) -> LinkedImage:
    """Link objects into an image, with what they need of the C runtime functions (`runtime_library`).

    Args:
        objects: in link order, which is also the order in memory.
        intervals: half-open address ranges for sections, all inside the executable region 0.
        data_intervals: ranges for sections that are not executable; without them data shares `intervals`.
        entry: symbol whose address becomes the image's entry.
        roots: symbols that must stay. With an entry or roots, sections nothing leads to are left out; with
            neither, every allocated section stays.
        libraries: members of archives; those are taken that define what would be undefined otherwise.
        externals: addresses of names defined elsewhere; they override definitions in the objects.

    Raises:
        LinkError: duplicate or undefined symbols (all at once), lack of room, or a value its relocation
        cannot hold.
    """
    outside = dict(externals or {})
    for name, address in outside.items():
        if not 0 <= address < 1 << 32:
            raise LinkError(f"external {name} = {address:#x} is no 32-bit address")
    wanted = list(dict.fromkeys([*([entry] if entry is not None else []), *roots]))
    if libraries and not objects and not wanted:
        raise LinkError("of archives alone nothing is needed", hint="name an entry or a root")
    objects = [*objects, *members_needed(objects, libraries, wanted, outside)]
    objects = allocate_common(objects, outside)
    given = len(objects)
    objects = [*objects, *runtime_objects(objects, wanted, outside)]
    globals_ = resolve_globals(objects, outside)
    kept = reachable(objects, wanted or None, globals_, given)
    placed = place_sections(objects, kept, intervals, data_intervals)
    addresses = {item.id: item.address for item in placed}

    contents = {item.id: _relocated(objects, item, globals_, addresses) for item in placed if item.size}
    symbols = _symbols(objects, addresses, globals_, outside)
    provisional = [
        word
        for item in placed
        if item.size and item.section.executable
        for word in provisional_words(item.address, bytes(contents[item.id]))
    ]
    return LinkedImage(
        segments=_segments([item for item in placed if item.size], contents),
        symbols=symbols,
        entry=_address(globals_.definitions[entry], addresses) if entry is not None else None,
        provisional=tuple(sorted(provisional)),
        stack_sizes=linked_stack_sizes(objects, symbols, globals_, addresses),
        warnings=_warnings(objects),
        lines=_lines(placed),
    )


def _warnings(objects: Sequence[ObjectFile]) -> tuple[str, ...]:
    """What sources told, and that objects of the older generation are taken: their instructions mean the same
    here (known).
    """
    older = [
        f"{item.name} is made for ipu2; its code runs on ipu21, but uses nothing that is new there"
        for item in objects
        if item.architecture == "ipu2"
    ]
    return (*(text for item in objects for text in item.warnings), *older)


def _lines(placed: Sequence[Placed]) -> tuple[SourceLine, ...]:
    rows = (
        line._replace(offset=item.address + line.offset) for item in placed for line in item.section.lines
    )
    return tuple(by_place(rows))


def _address(definition: Definition, addresses: Mapping[SectionId, int]) -> int:
    base = 0 if definition.section is None else addresses[definition.section]
    return base + definition.value


def _relocated(
    objects: Sequence[ObjectFile], item: Placed, globals_: Globals, addresses: Mapping[SectionId, int]
) -> bytearray:
    """The section's bytes with every relocation applied."""
    number, _ = item.id
    source = objects[number]
    data = bytearray(item.size) if item.section.nobits else bytearray(item.section.data)
    for relocation in item.section.relocations:
        definition = definition_of(objects, number, relocation.symbol, globals_)
        assert definition is not None  # `reachable` refused undefined symbols
        name = source.symbols[relocation.symbol].name
        try:
            apply_relocation(
                data, relocation.offset, relocation.type, _address(definition, addresses) + relocation.addend
            )
        except LinkError as error:
            target = name or "a local label"
            raise LinkError(
                f"{error.what}, for {target}",
                where=f"{source.name}, {item.section.name}+{relocation.offset:#x}",
            ) from None
    return data


def _symbols(
    objects: Sequence[ObjectFile],
    addresses: Mapping[SectionId, int],
    globals_: Globals,
    externals: Mapping[str, int],
) -> dict[str, int]:
    """Addresses of kept globals, then of local functions whose name nothing else has taken; each in input
    order.
    """
    result: dict[str, int] = {}
    for item in objects:
        for symbol in item.symbols:
            if symbol.binding == "local" or symbol.name in result:
                continue
            definition = globals_.definitions.get(symbol.name)
            if definition is not None and (definition.section is None or definition.section in addresses):
                result[symbol.name] = _address(definition, addresses)
    for number, item in enumerate(objects):
        for symbol in item.symbols:
            if symbol.binding != "local" or symbol.type != "function" or symbol.name in result:
                continue
            definition = own_definition(number, symbol)
            if definition.section in addresses:
                result[symbol.name] = _address(definition, addresses)
    for name, address in externals.items():
        result.setdefault(name, address)
    return result


def _segments(placed: Sequence[Placed], contents: Mapping[SectionId, bytearray]) -> tuple[LinkedSegment, ...]:
    """Neighbours of one kind become one segment; gaps inside code are nops, inside data zeros."""
    segments: list[LinkedSegment] = []
    data = bytearray()
    flags = ""
    start = 0
    interval = 0
    names: list[tuple[str, int]] = []

    def finish() -> None:
        if names:
            segments.append(LinkedSegment(start, bytes(data), flags, tuple(names)))

    for item in sorted(placed, key=lambda entry: entry.address):
        kind = "r" + ("w" if "w" in item.section.flags else "") + ("x" if item.section.executable else "")
        # A gap inside an interval is padding; memory between intervals belongs to somebody else.
        if names and kind == flags and interval == item.interval:
            end = start + len(data)
            data += _fill(end, item.address - end, item.section.executable)
        else:
            finish()
            data, flags, start, interval, names = bytearray(), kind, item.address, item.interval, []
        data += contents[item.id]
        names.append((item.section.name, item.address))
    finish()
    return tuple(segments)


def _fill(address: int, count: int, executable: bool) -> bytes:
    if not executable:
        return bytes(count)
    lead = min(-address % 4, count)
    words, tail = divmod(count - lead, 4)
    return bytes(lead) + CODE_FILL.to_bytes(4, "little") * words + bytes(tail)
