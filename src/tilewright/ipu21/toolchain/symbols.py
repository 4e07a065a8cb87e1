"""Symbols and sections while a source is being assembled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .diagnostics import SourceFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from .expressions import Address, Value
    from .statements import Statement

MAXIMUM_SECTION_BYTES = 1 << 24
"""Far above tile memory; stops a mistyped `.space` or endless repetition from eating the host's memory."""


@dataclass(slots=True, eq=False)
class Symbol:
    """A name of the source: a label once `section` is set, an assigned value once `value` is."""

    name: str
    section: Section | None = None
    offset: int = 0
    value: Value | None = None
    binding: str = "local"
    binding_stated: bool = False
    hidden: bool = False
    type: str = "notype"
    size: Value | None = None
    defined_by: Statement | None = None
    common: tuple[int, int] | None = None  # size and alignment of what the linker is to give
    asked: bool = False  # its own name is used
    asked_weakly: bool = False  # another name for it may be used without it being defined

    @property
    def private(self) -> bool:
        """True for names that never reach the object's symbol table (`.L` names and numeric labels)."""
        return self.name.startswith(".L")

    @property
    def defined(self) -> bool:
        return self.section is not None or self.value is not None or self.common is not None


@dataclass(slots=True, eq=False)
class Section:
    """Bytes gathered under one section name; `offset` is where the next byte goes.

    `group` is the signature of the COMDAT group it belongs to. Bytes may go to numbered subsections, which
    follow each other in the order of their numbers: `data` and `reserved` are those of subsection `number`,
    which begins at `starts[number]`, and `others` holds the rest until `join` puts all together.
    """

    name: str
    type: str
    flags: str
    alignment: int = 1
    data: bytearray = field(default_factory=bytearray)
    reserved: int = 0  # size of a section without file bytes (nobits)
    group: str | None = None
    number: int = 0
    starts: dict[int, int] = field(default_factory=dict)
    others: dict[int, tuple[bytearray, int]] = field(default_factory=dict)

    @property
    def executable(self) -> bool:
        return "x" in self.flags

    @property
    def offset(self) -> int:
        start = self.starts.get(self.number, 0) if self.number else 0
        return start + (self.reserved if self.type == "nobits" else len(self.data))

    def select(self, number: int) -> None:
        """Go on in a subsection."""
        if number != self.number:
            self.others[self.number] = self.data, self.reserved
            self.data, self.reserved = self.others.pop(number, (bytearray(), 0))
            self.number = number

    @contextmanager
    def at(self, number: int) -> Iterator[None]:
        """In a subsection for a while."""
        before = self.number
        self.select(number)
        yield
        self.select(before)

    def join(self) -> dict[int, int]:
        """Put all subsections together; returns where each but the first begins."""
        self.select(0)
        found: dict[int, int] = {}
        for number, (data, reserved) in sorted(self.others.items()):
            found[number] = self.offset
            self.data += data
            self.reserved += reserved
        self.others.clear()
        return found

    def append(self, data: bytes) -> None:
        """Add bytes. Raises SourceFault for content in a nobits section or an outsized section."""
        if self.type == "nobits":
            if any(data):
                raise SourceFault(
                    f"section {self.name} holds no bytes, only reserved space", hint="use .data or .space"
                )
            self.reserve(len(data))
            return
        if len(self.data) + len(data) > MAXIMUM_SECTION_BYTES:
            raise SourceFault(f"section {self.name} grows beyond {MAXIMUM_SECTION_BYTES} bytes")
        self.data += data

    def reserve(self, count: int) -> None:
        if self.reserved + count > MAXIMUM_SECTION_BYTES:
            raise SourceFault(f"section {self.name} grows beyond {MAXIMUM_SECTION_BYTES} bytes")
        self.reserved += count

    def require_alignment(self, alignment: int) -> None:
        self.alignment = max(self.alignment, alignment)


class SymbolTable:
    """All names of one source, in order of first appearance, with numeric labels kept apart."""

    def __init__(self, where: Callable[[int], str] = "line {}".format) -> None:
        """`where` puts a line number into words."""
        self._where = where
        self.symbols: dict[str, Symbol] = {}
        self._local_counts: dict[str, int] = {}

    def get(self, name: str) -> Symbol:
        symbol = self.symbols.get(name)
        if symbol is None:
            symbol = self.symbols[name] = Symbol(name)
        return symbol

    def define_label(self, name: str, section: Section, statement: Statement) -> Symbol:
        """Place a label at the section's current offset. Raises SourceFault when the name is taken."""
        symbol = self.get(name)
        if symbol.defined:
            line = f" on {self._where(symbol.defined_by.line)}" if symbol.defined_by else ""
            raise SourceFault(f"{name} is already defined{line}")
        symbol.section, symbol.offset, symbol.defined_by = section, section.offset, statement
        return symbol

    def assign(self, name: str, value: Value, statement: Statement) -> None:
        """Give a name a value (`.set`); it may be given another later. Raises SourceFault for a label."""
        symbol = self.get(name)
        if symbol.section is not None:
            raise SourceFault(f"{name} is a label and cannot be assigned")
        symbol.value, symbol.defined_by = value, statement

    def define_local(self, number: str, section: Section, statement: Statement) -> None:
        """Place the next instance of numeric label `number`."""
        count = self._local_counts.get(number, 0)
        self._local_counts[number] = count + 1
        self.define_label(self._local_name(number, count), section, statement)

    def local(self, reference: str) -> Symbol:
        """Symbol meant by a numeric reference (`1b`, `1f`). Raises SourceFault if none precedes `1b`."""
        number, direction = reference[:-1], reference[-1]
        count = self._local_counts.get(number, 0)
        if direction == "b":
            if count == 0:
                raise SourceFault(f"no label {number}: stands before this use")
            count -= 1
        return self.get(self._local_name(number, count))

    @staticmethod
    def _local_name(number: str, instance: int) -> str:
        # A blank cannot occur in a written name, so these never meet a user's `.L` name.
        return f".L {int(number)} {instance}"


def here(section: Section) -> Address:
    """The address of the section's next byte, as a nameless label."""
    from .expressions import Address

    return Address(Symbol(".L here", section=section, offset=section.offset), 0)
