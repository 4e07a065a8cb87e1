"""Directives that choose where the following goes: sections, their subsections, and back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .diagnostics import SourceFault
from .directives import Arguments, Handler
from .elf_format import SHT_NOBITS
from .symbols import Section

if TYPE_CHECKING:
    from .assembler import Assembler
    from .statements import Statement

DEFAULTS: tuple[tuple[str, str, str], ...] = (
    (".text", "ax", "progbits"),
    (".data", "aw", "progbits"),
    (".bss", "aw", "nobits"),
    (".rodata", "a", "progbits"),
)
"""Section name (or prefix before a dot) -> flags and type when none are written."""

_FLAG_FAULTS = {
    "T": "thread-local sections are not supported",
}
_KINDS = {
    **dict.fromkeys(("progbits", "note", "unwind", "init_array", "fini_array", "preinit_array"), "progbits"),
    "nobits": "nobits",
}
_FLAGS = "awxMSGoRe?"
_SECTION_NAME = re.compile(r'\s*(?:"([^"]+)"|([^\s,"]+))\s*')
_SUBSECTION = re.compile(r'\s*(?:"[^"]+"|[^\s,"]+)\s*,\s*(?P<number>[\w(][^,"]*)')
MAXIMUM_SUBSECTION = 8192
"""As in the assemblers of the LLVM family."""


def default_flags(name: str) -> tuple[str, str]:
    """Flags and type of a section nobody described."""
    for prefix, flags, kind in DEFAULTS:
        if name == prefix or name.startswith(prefix + "."):
            return flags, kind
    return "", "progbits"


def read_section(assembler: Assembler, text: str, start: int) -> Section:
    """The section named behind `.section`. Raises SourceFault for contradicting or unsupported attributes."""
    match = _SECTION_NAME.match(text, start)
    if match is None:
        raise SourceFault("expected a section name", start)
    name = match.group(1) or match.group(2)
    arguments = Arguments(assembler, text, match.end())
    flags: str | None = None
    kind: str | None = None
    group: str | None = None
    unique = ""
    if arguments.accept(","):
        place = arguments.token.offset
        letters = arguments.string().decode()
        for letter in letters:
            if letter in _FLAG_FAULTS:
                raise SourceFault(_FLAG_FAULTS[letter], place)
            if letter not in _FLAGS:
                raise SourceFault(f"unknown section flag {letter!r}", place, hint="a, w and x are known")
        flags = "".join(letter for letter in "awx" if letter in letters)
        if arguments.accept(","):
            kind = _read_kind(arguments)
            if arguments.token.text == "," and "M" in letters:
                arguments.comma()
                arguments.number("the entry size", 0, 1 << 20)  # merging is an optimisation nobody needs here
            if "o" in letters:
                # The section it goes with is found through its relocations.
                arguments.comma()
                arguments.name()
            if "G" in letters:
                group = _read_group(arguments)
            unique = _read_unique(arguments)
        if "?" in letters:
            group = assembler.section.group
    arguments.finish()
    key = "\0".join((name, group or "", unique)) if group is not None or unique else name
    section = assembler.sections.get(key)
    if section is None:
        usual_flags, usual_kind = default_flags(name)
        section = Section(name, kind or usual_kind, usual_flags if flags is None else flags, group=group)
        assembler.add_section(key, section)
    elif (flags is not None and flags != section.flags) or (kind is not None and kind != section.type):
        raise SourceFault(f"section {name} was described differently before", start)
    return section


def _read_kind(arguments: Arguments) -> str:
    """The type of a section: a name, or the number of one whose bytes are kept. Raises SourceFault."""
    if not (arguments.accept("@") or arguments.accept("%")):
        raise SourceFault("expected @progbits or @nobits", arguments.token.offset)
    place = arguments.token.offset
    if arguments.token.kind == "number":
        return "nobits" if arguments.number("the type", 1, (1 << 32) - 1) == SHT_NOBITS else "progbits"
    written = arguments.name()
    kind = _KINDS.get(written)
    if kind is None and not written.startswith("llvm_"):
        raise SourceFault(f"unknown section type @{written}", place, hint="@progbits and @nobits are known")
    return kind or "progbits"


def _read_group(arguments: Arguments) -> str:
    """The signature of a `G` section. Raises SourceFault when it is missing or the group no COMDAT."""
    arguments.comma()
    name = arguments.name()
    if arguments.accept(","):
        place = arguments.token.offset
        if arguments.name() != "comdat":
            raise SourceFault("expected `comdat`", place)
    return name


def _read_unique(arguments: Arguments) -> str:
    """The number of `unique,N`, which keeps a section apart from others of its name; empty without it."""
    if arguments.at_end:
        return ""
    arguments.comma()
    place = arguments.token.offset
    if arguments.name() != "unique":
        raise SourceFault("expected `unique`", place)
    arguments.comma()
    return str(arguments.number("the number", 0, 1 << 32))


def _section(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    assembler.enter(read_section(assembler, arguments.text, arguments.start))


def _push_section(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    place = assembler.place, assembler.previous
    match = _SUBSECTION.match(arguments.text, arguments.start)
    if match is None:
        assembler.enter(read_section(assembler, arguments.text, arguments.start))
    else:
        # A number behind the name; then everything else, which follows as usual.
        named = arguments.text[: match.start("number")].rstrip().removesuffix(",")
        text = named + arguments.text[match.end("number") :]
        number = Arguments(assembler, match["number"], 0).number("the subsection", 0, MAXIMUM_SUBSECTION)
        assembler.enter(read_section(assembler, text, arguments.start), number)
    assembler.section_stack.append(place)


def _pop_section(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    arguments.finish()
    if not assembler.section_stack:
        raise SourceFault("`.popsection` without `.pushsection`")
    place, previous = assembler.section_stack.pop()
    assembler.enter(*place)
    assembler.previous = previous


def _previous(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    arguments.finish()
    if assembler.previous is None:
        raise SourceFault("there is no previous section")
    assembler.enter(*assembler.previous)


def _subsection(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    assembler.enter(assembler.section, _read_subsection(arguments))


def _read_subsection(arguments: Arguments) -> int:
    """The number that says where in its section the following goes, 0 without one. Raises SourceFault."""
    number = 0 if arguments.at_end else arguments.number("the subsection", 0, MAXIMUM_SUBSECTION)
    arguments.finish()
    return number


def _shorthand(name: str) -> Handler:
    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        assembler.enter(assembler.named_section(name), _read_subsection(arguments))

    return handler


SECTION_HANDLERS: dict[str, Handler] = {
    ".section": _section,
    ".pushsection": _push_section,
    ".popsection": _pop_section,
    ".previous": _previous,
    ".subsection": _subsection,
    ".text": _shorthand(".text"),
    ".data": _shorthand(".data"),
    ".bss": _shorthand(".bss"),
    ".rodata": _shorthand(".rodata"),
}
READ_AS_TEXT = frozenset((_section, _push_section))
"""Handlers that read their arguments themselves: a name may hold characters that are no tokens."""
