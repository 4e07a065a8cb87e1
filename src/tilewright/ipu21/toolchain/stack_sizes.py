"""The stack bytes that functions state in `.stack_sizes`: entries of an address and a ULEB128 number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ...errors import ObjectError
from . import relocations
from .leb128 import leb128, read_leb128
from .objects import STACK_SIZES, ObjectFile
from .resolution import Globals, SectionId, definition_of

if TYPE_CHECKING:
    from .image import LinkedImage

_MAXIMUM = 1 << 32


def read_entries(data: bytes, where: str) -> Iterator[tuple[int, int]]:
    """(address, bytes) of each entry. Raises ObjectError when the last one is cut off or out of range."""
    for _, address, size in _entries(data, where):
        yield address, size


def _entries(data: bytes, where: str) -> Iterator[tuple[int, int, int]]:
    """(offset, address, bytes) of each entry."""
    position = 0
    while position < len(data):
        start = position
        try:
            value, position = read_leb128(data, position + 4)
        except ValueError:
            raise ObjectError("the last entry is cut off", where=f"{where}+{start:#x}") from None
        if value >= _MAXIMUM:
            raise ObjectError(f"a stack of {value} bytes", where=f"{where}+{start:#x}")
        yield start, int.from_bytes(data[start : start + 4], "little"), value


def linked_stack_sizes(
    objects: Sequence[ObjectFile],
    symbols: Mapping[str, int],
    globals_: Globals,
    addresses: Mapping[SectionId, int],
) -> dict[str, int]:
    """Function -> stack bytes of the functions that stay in a link; by address where no name is known."""
    named = {address: name for name, address in reversed(list(symbols.items()))}
    sizes: dict[str, int] = {}
    for number, item in enumerate(objects):
        for index, section in enumerate(item.sections):
            if section.name != STACK_SIZES or (number, index) in globals_.discarded:
                continue
            placed = {entry.offset: entry for entry in section.relocations if entry.type == relocations.R32}
            for offset, _, size in _entries(section.data, f"{item.name}, {STACK_SIZES}"):
                relocation = placed.get(offset)
                if relocation is None:
                    continue
                definition = definition_of(objects, number, relocation.symbol, globals_)
                if definition is None or definition.section is None or definition.section not in addresses:
                    continue
                address = addresses[definition.section] + definition.value + relocation.addend
                sizes[named.get(address, f"{address:#x}")] = size
    return sizes


def write_entries(image: LinkedImage) -> bytes:
    """The section of a linked file."""
    data = bytearray()
    for name, size in image.stack_sizes.items():
        address = image.symbols[name] if name in image.symbols else int(name, 16)
        data += address.to_bytes(4, "little") + leb128(size)
    return bytes(data)
