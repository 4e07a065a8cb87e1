"""Directives that concern sections, symbols and modes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import UsageError
from ...files import read_file
from .diagnostics import SourceFault, did_you_mean
from .expressions import ExpressionParser, Value
from .lexer import Token, string_bytes, tokenise
from .symbols import Section, Symbol

if TYPE_CHECKING:
    from .assembler import Assembler
    from .statements import Statement

MAXIMUM_ALIGNMENT = 1 << 16
SOURCE_LIMIT = 16 << 20
"""Bytes of a file read by `.include`."""


class Arguments:
    """The tokens behind a directive, read from left to right."""

    def __init__(self, assembler: Assembler, text: str, start: int) -> None:
        self.text = text
        self.start = start
        self.tokens = tokenise(text, start)
        self.index = 0
        self._assembler = assembler

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    @property
    def at_end(self) -> bool:
        return self.token.kind == "end"

    def accept(self, text: str) -> bool:
        if self.token.kind == "operator" and self.token.text == text:
            self.index += 1
            return True
        return False

    def comma(self) -> None:
        if not self.accept(","):
            raise SourceFault("expected `,`", self.token.offset)

    def finish(self) -> None:
        if not self.at_end:
            raise SourceFault(f"unexpected `{self.token.text}`", self.token.offset)

    def name(self) -> str:
        token = self.token
        if token.kind == "string":
            self.index += 1
            return string_bytes(token).decode()
        if token.kind != "name":
            raise SourceFault("expected a name", token.offset)
        self.index += 1
        return token.text

    def expression(self) -> Value:
        parser = ExpressionParser(self.tokens, self.index, self._assembler.scope)
        value = parser.parse()
        self.index = parser.index
        return value

    def number(self, what: str, minimum: int, maximum: int) -> int:
        """A number known now. Raises SourceFault naming `what` otherwise."""
        place = self.token.offset
        value = self.expression()
        if not isinstance(value, int):
            raise SourceFault(f"{what} must be a number known here", place)
        if not minimum <= value <= maximum:
            raise SourceFault(f"{what} is {value}, not in {minimum}..{maximum}", place)
        return value

    def string(self) -> bytes:
        token = self.token
        if token.kind != "string":
            raise SourceFault("expected a string", token.offset)
        self.index += 1
        return string_bytes(token)


Handler = Callable[["Assembler", Arguments, "Statement"], None]

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
_SECTION_NAME = re.compile(r'\s*(?:"([^"]+)"|([^\s,"]+))\s*')


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
    if arguments.accept(","):
        place = arguments.token.offset
        letters = arguments.string().decode()
        for letter in letters:
            if letter in _FLAG_FAULTS:
                raise SourceFault(_FLAG_FAULTS[letter], place)
            if letter not in "awxMSGo":
                raise SourceFault(f"unknown section flag {letter!r}", place, hint="a, w and x are known")
        flags = "".join(letter for letter in "awx" if letter in letters)
        if arguments.accept(","):
            if not (arguments.accept("@") or arguments.accept("%")):
                raise SourceFault("expected @progbits or @nobits", arguments.token.offset)
            place = arguments.token.offset
            kind = arguments.name()
            if kind not in ("progbits", "nobits", "note"):
                raise SourceFault(
                    f"unknown section type @{kind}", place, hint="@progbits and @nobits are known"
                )
            kind = "progbits" if kind == "note" else kind
            if arguments.token.text == "," and "M" in letters:
                arguments.comma()
                arguments.number("the entry size", 0, 1 << 20)  # merging is an optimisation nobody needs here
            if "o" in letters:
                # The section it goes with is found through its relocations.
                arguments.comma()
                arguments.name()
            if "G" in letters:
                group = _read_group(arguments)
    arguments.finish()
    key = name if group is None else f"{name}\0{group}"
    section = assembler.sections.get(key)
    if section is None:
        usual_flags, usual_kind = default_flags(name)
        section = Section(name, kind or usual_kind, usual_flags if flags is None else flags, group=group)
        assembler.sections[key] = section
    elif (flags is not None and flags != section.flags) or (kind is not None and kind != section.type):
        raise SourceFault(f"section {name} was described differently before", start)
    return section


def _read_group(arguments: Arguments) -> str:
    """The signature of a `G` section. Raises SourceFault when it is missing or the group no COMDAT."""
    arguments.comma()
    name = arguments.name()
    if arguments.accept(","):
        place = arguments.token.offset
        if arguments.name() != "comdat":
            raise SourceFault("expected `comdat`", place)
    return name


def _section(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    assembler.enter(read_section(assembler, arguments.text, arguments.start))


def _push_section(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    section = read_section(assembler, arguments.text, arguments.start)
    assembler.section_stack.append((assembler.section, assembler.previous))
    assembler.enter(section)


def _pop_section(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    arguments.finish()
    if not assembler.section_stack:
        raise SourceFault("`.popsection` without `.pushsection`")
    assembler.section, assembler.previous = assembler.section_stack.pop()


def _previous(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    arguments.finish()
    if assembler.previous is None:
        raise SourceFault("there is no previous section")
    assembler.enter(assembler.previous)


def _shorthand(name: str) -> Handler:
    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        arguments.finish()
        assembler.enter(assembler.named_section(name))

    return handler


def _mode(mode: str) -> Handler:
    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        arguments.finish()
        assembler.emitter.mode = mode

    return handler


def _allow_optimizations(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    arguments.finish()
    assembler.emitter.allow_optimizations = True


def _binding(binding: str) -> Handler:
    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        while True:
            place = arguments.token.offset
            name = arguments.name()
            symbol = assembler.symbols.get(name)
            if symbol.private:
                raise SourceFault(f"{name} is private to this file", place, hint="names starting with .L are")
            if (
                symbol.binding_stated
                and {symbol.binding, binding} != {"global", "weak"}
                and symbol.binding != binding
            ):
                raise SourceFault(f"{name} was declared {symbol.binding} before", place)
            # A name that is both global and weak is weak.
            symbol.binding = "weak" if "weak" in (symbol.binding, binding) else binding
            symbol.binding_stated = True
            if arguments.at_end:
                return
            arguments.comma()
            if arguments.token.text == "@":
                # A type after the name, as in `.type` (known: published kernels do it).
                _read_type(arguments, symbol)
                arguments.finish()
                return

    return handler


def _hidden(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    while True:
        assembler.symbols.get(arguments.name()).hidden = True
        if arguments.at_end:
            return
        arguments.comma()


_SYMBOL_TYPES = {"function": "function", "object": "object", "notype": "notype"}


def _type(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    symbol = assembler.symbols.get(arguments.name())
    arguments.accept(",")
    _read_type(arguments, symbol)
    arguments.finish()


def _read_type(arguments: Arguments, symbol: Symbol) -> None:
    if not (arguments.accept("@") or arguments.accept("%")) and arguments.token.kind != "string":
        raise SourceFault("expected @function or @object", arguments.token.offset)
    place = arguments.token.offset
    kind = arguments.name()
    if kind not in _SYMBOL_TYPES:
        raise SourceFault(
            f"unknown symbol type @{kind}", place, hint="@function, @object and @notype are known"
        )
    symbol.type = _SYMBOL_TYPES[kind]


def _size(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    symbol = assembler.symbols.get(arguments.name())
    arguments.comma()
    symbol.size = arguments.expression()
    arguments.finish()
    assembler.sizes.append((symbol, statement, arguments.start))


def _set(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    name = arguments.name()
    arguments.comma()
    value = arguments.expression()
    arguments.finish()
    assembler.assign(name, value, statement)


def _equiv(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    place = arguments.token.offset
    name = arguments.name()
    if assembler.symbols.get(name).defined:
        raise SourceFault(f"{name} is already defined", place)
    arguments.comma()
    value = arguments.expression()
    arguments.finish()
    assembler.assign(name, value, statement)


def _align(power: bool) -> Handler:
    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        place = arguments.token.offset
        value = arguments.number("the alignment", 0, 16 if power else MAXIMUM_ALIGNMENT)
        alignment = 1 << value if power else max(value, 1)
        if alignment & (alignment - 1):
            raise SourceFault(f"the alignment is {alignment}, not a power of two", place)
        fill: int | None = None
        most: int | None = None
        if arguments.accept(","):
            if arguments.token.text != ",":
                fill = arguments.number("the fill byte", -128, 255) if not arguments.at_end else None
            if arguments.accept(","):
                most = arguments.number("the most bytes to fill", 0, MAXIMUM_ALIGNMENT)
        arguments.finish()
        assembler.emitter.align(assembler.section, alignment, fill, most)

    return handler


def _error(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    text = "`.err` was reached" if arguments.at_end else arguments.string().decode()
    raise SourceFault(text)


def _ignored(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    """Debug and bookkeeping directives of compilers; nothing here depends on them."""


def _include(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    place = arguments.token.offset
    wanted = arguments.string().decode()
    arguments.finish()
    home = Path(assembler.origin(statement.line)[0]).parent
    for folder in (home, *assembler.include_dirs):
        path = folder / wanted
        if path.is_file():
            try:
                text = read_file(path, limit=SOURCE_LIMIT).decode()
            except (UsageError, UnicodeDecodeError) as error:
                raise SourceFault(f"cannot read {path}: {error}", place) from None
            assembler.include(str(path), text, statement)
            return
    raise SourceFault(f"there is no file {wanted}", place, hint="give its folder with -I")


def _unsupported(what: str) -> Handler:
    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        raise SourceFault(f"{what} not supported")

    return handler


HANDLERS: dict[str, Handler] = {
    ".section": _section,
    ".pushsection": _push_section,
    ".popsection": _pop_section,
    ".previous": _previous,
    ".text": _shorthand(".text"),
    ".data": _shorthand(".data"),
    ".bss": _shorthand(".bss"),
    ".rodata": _shorthand(".rodata"),
    ".supervisor": _mode("supervisor"),
    ".worker": _mode("worker"),
    ".allow_optimizations": _allow_optimizations,
    ".globl": _binding("global"),
    ".global": _binding("global"),
    ".weak": _binding("weak"),
    ".local": _binding("local"),
    ".hidden": _hidden,
    ".type": _type,
    ".size": _size,
    ".set": _set,
    ".equ": _set,
    ".equiv": _equiv,
    ".align": _align(power=False),
    ".balign": _align(power=False),
    ".p2align": _align(power=True),
    ".err": _error,
    ".error": _error,
    ".include": _include,
    ".altmacro": _unsupported("alternate macro syntax is"),
    ".comm": _unsupported("common symbols are"),
    ".org": _unsupported("moving the location is"),
    **dict.fromkeys(
        (".file", ".loc", ".ident", ".addrsig", ".addrsig_sym", ".extern", ".print", ".warning"), _ignored
    ),
}

_IGNORED_PREFIX = ".cfi_"


def run_directive(assembler: Assembler, word: str, text: str, start: int, statement: Statement) -> None:
    """Carry out a directive. Raises SourceFault."""
    from .data_directives import DATA_HANDLERS

    handler = HANDLERS.get(word) or DATA_HANDLERS.get(word)
    if handler is None:
        if word.startswith(_IGNORED_PREFIX):
            return
        from .assembler import CONTROL_WORDS

        known = [*HANDLERS, *DATA_HANDLERS, *CONTROL_WORDS]
        raise SourceFault(
            f"there is no directive `{word}`", start - len(word), hint=did_you_mean(word, known)
        )
    if handler is _ignored:
        return
    if handler in (_section, _push_section):
        # The name may hold characters that are no tokens, so these read the text themselves.
        arguments = Arguments(assembler, "", 0)
        arguments.text, arguments.start = text, start
    else:
        arguments = Arguments(assembler, text, start)
    handler(assembler, arguments, statement)
