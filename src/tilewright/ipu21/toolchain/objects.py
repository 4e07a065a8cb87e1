"""Relocatable objects in memory: what the assembler makes and the linker takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

STACK_SIZES = ".stack_sizes"
"""Section of (address, ULEB128 bytes) entries, one per function: the stack it uses (known)."""
CODE_FILL = 0x19E00000
"""`nop`, the vendor's padding of text sections (known)."""


@dataclass(frozen=True, slots=True)
class Relocation:
    """At byte `offset` of its section: relocation `type` (a number of `relocations`) with symbol + addend.

    `symbol` is an index into the object's symbols.
    """

    offset: int
    type: int
    symbol: int
    addend: int


@dataclass(frozen=True, slots=True)
class ObjectSymbol:
    """A symbol. `section` is an index into the object's sections, None when undefined or absolute.

    `binding` is local, global or weak; `type` is notype, object, function, section or file. A `common` symbol
    is memory that the linker gives once to all files that ask for it: `size` bytes aligned to `value`.
    """

    name: str
    value: int = 0
    size: int = 0
    binding: str = "local"
    type: str = "notype"
    section: int | None = None
    absolute: bool = False
    hidden: bool = False
    common: bool = False

    @property
    def defined(self) -> bool:
        return self.absolute or self.common or self.section is not None


class SourceLine(NamedTuple):
    """From `offset` (in an image: that address) on, up to the next entry, code was written in `line` (from 1)
    of `file`. Line 0 means that nothing is known from there on.
    """

    offset: int
    file: str
    line: int


@dataclass(slots=True)
class ObjectSection:
    """`flags` holds letters: a(llocated), w(ritable), x (executable). `size` counts a nobits section's bytes
    too. `lines` say where its code was written, by rising offset.
    """

    name: str
    data: bytes = b""
    flags: str = ""
    alignment: int = 1
    nobits: bool = False
    size: int = 0
    relocations: list[Relocation] = field(default_factory=list)
    lines: tuple[SourceLine, ...] = field(default=(), compare=False, repr=False)

    @property
    def allocated(self) -> bool:
        return "a" in self.flags

    @property
    def executable(self) -> bool:
        return "x" in self.flags


@dataclass(frozen=True, slots=True)
class Group:
    """Sections (indices) that stay or go together; of those with one signature a link keeps the first."""

    signature: int
    members: tuple[int, ...]
    comdat: bool = True


@dataclass(slots=True)
class ObjectFile:
    """A relocatable object. Local symbols come before the others, as ELF wants them.

    `architecture` is `ipu21`, `ipu2` (whose instructions ipu21 has too, with the same encodings) or
    `unstated`. `warnings` are what the source told by `.warning`; no file keeps them.
    """

    name: str = "<object>"
    sections: list[ObjectSection] = field(default_factory=list)
    symbols: list[ObjectSymbol] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    architecture: str = "ipu21"
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def signature(self, group: Group) -> str:
        """The name that identifies a group: that of its symbol, or of the section its symbol stands for."""
        symbol = self.symbols[group.signature]
        if not symbol.name and symbol.section is not None:
            return self.sections[symbol.section].name
        return symbol.name

    def section(self, name: str) -> ObjectSection:
        """The first section of that name. Raises KeyError."""
        for section in self.sections:
            if section.name == name:
                return section
        raise KeyError(name)

    def symbol(self, name: str) -> ObjectSymbol:
        """The symbol of that name. Raises KeyError."""
        for symbol in self.symbols:
            if symbol.name == name:
                return symbol
        raise KeyError(name)

    def to_bytes(self) -> bytes:
        """ELF32 little-endian relocatable file, with source lines as DWARF.

        Equal objects with equal lines give equal bytes.
        """
        from .debug_writer import with_debug_sections
        from .elf_writer import write_object

        return write_object(with_debug_sections(self))

    @classmethod
    def from_bytes(cls, data: bytes, *, name: str = "<object>") -> ObjectFile:
        """Read an ELF32 Colossus object; of debug sections only the source lines stay.

        Raises ObjectError naming `name` and the place of the fault.
        """
        from .debug_reader import take_debug_sections
        from .elf_reader import read_object

        return take_debug_sections(read_object(data, name=name))
