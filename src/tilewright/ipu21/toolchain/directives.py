"""Directives that concern sections, symbols and modes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...errors import UsageError
from ...files import read_file
from .diagnostics import SourceFault, did_you_mean
from .expressions import ExpressionParser, Value
from .lexer import Token, string_bytes, tokenise
from .symbols import MAXIMUM_SECTION_BYTES, Section, Symbol

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
_KINDS = {
    **dict.fromkeys(("progbits", "note", "init_array", "fini_array", "preinit_array"), "progbits"),
    "nobits": "nobits",
}
_FLAGS = "awxMSGoR?"
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
            if not (arguments.accept("@") or arguments.accept("%")):
                raise SourceFault("expected @progbits or @nobits", arguments.token.offset)
            place = arguments.token.offset
            written = arguments.name()
            kind = _KINDS.get(written)
            if kind is None:
                raise SourceFault(
                    f"unknown section type @{written}", place, hint="@progbits and @nobits are known"
                )
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


_SYMBOL_TYPES = {
    **dict.fromkeys(("function", "STT_FUNC"), "function"),
    **dict.fromkeys(("object", "STT_OBJECT", "gnu_unique_object"), "object"),
    **dict.fromkeys(("notype", "STT_NOTYPE"), "notype"),
}


def _type(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    symbol = assembler.symbols.get(arguments.name())
    arguments.accept(",")
    _read_type(arguments, symbol)
    arguments.finish()


def _read_type(arguments: Arguments, symbol: Symbol) -> None:
    marked = arguments.accept("@") or arguments.accept("%") or arguments.token.kind == "string"
    place = arguments.token.offset
    written = arguments.name()
    if not marked and not written.startswith("STT_"):
        raise SourceFault("expected @function or @object", place)
    kind = _SYMBOL_TYPES.get(written)
    if kind is None:
        raise SourceFault(
            f"unknown symbol type @{written}", place, hint="@function, @object and @notype are known"
        )
    symbol.type = kind


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


def _align(power: bool, width: int = 1) -> Handler:
    """`width` is the number of bytes in the fill value."""

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
                least, most_fill = -(1 << 8 * width - 1), (1 << 8 * width) - 1
                fill = arguments.number("the fill", least, most_fill) if not arguments.at_end else None
            if arguments.accept(","):
                most = arguments.number("the most bytes to fill", 0, MAXIMUM_ALIGNMENT)
        arguments.finish()
        pattern = None if fill is None else (fill % (1 << 8 * width)).to_bytes(width, "little")
        assembler.emitter.align(assembler.section, alignment, pattern, most)

    return handler


def _error(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    text = "`.err` was reached" if arguments.at_end else arguments.string().decode()
    raise SourceFault(text)


def _ignored(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    """Debug, listing and bookkeeping directives; nothing here depends on them."""


def _include(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    place = arguments.token.offset
    wanted = arguments.string().decode()
    arguments.finish()
    path = assembler.sources.found(wanted, statement, place)
    try:
        text = read_file(path, limit=SOURCE_LIMIT).decode()
    except (UsageError, UnicodeDecodeError) as error:
        raise SourceFault(f"cannot read {path}: {error}", place) from None
    assembler.include(str(path), text, statement)


def _warning(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    text = "`.warning` was reached" if arguments.at_end else arguments.string().decode(errors="replace")
    arguments.finish()
    assembler.sources.warn(text, statement)


def _fail(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    """A number below 500 is a fault, any other a warning (GNU)."""
    value = arguments.number("the number", -(1 << 63), (1 << 63) - 1)
    arguments.finish()
    if value < 500:
        raise SourceFault(f"`.fail {value}` was reached")
    assembler.sources.warn(f"`.fail {value}` was reached", statement)


def _origin(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    place = arguments.token.offset
    target = arguments.expression()
    fill = arguments.number("the fill byte", -128, 255) if arguments.accept(",") else 0
    arguments.finish()
    assembler.move_to(target, fill, place)


def _local_common(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    _reserve(assembler, arguments, statement, assembler.symbols.get(arguments.name()))


def _common(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    place = arguments.token.offset
    symbol = assembler.symbols.get(arguments.name())
    if not symbol.binding_stated or symbol.binding != "local":
        raise SourceFault(
            "common symbols are not supported", place, hint=f"define {symbol.name} in .bss, or make it .local"
        )
    _reserve(assembler, arguments, statement, symbol)


def _reserve(assembler: Assembler, arguments: Arguments, statement: Statement, symbol: Symbol) -> None:
    """Bytes of a local symbol in .bss: its size and maybe its alignment follow."""
    arguments.comma()
    size = arguments.number("the size", 0, MAXIMUM_SECTION_BYTES)
    most = arguments.number("the alignment", 1, MAXIMUM_ALIGNMENT) if arguments.accept(",") else 0
    arguments.finish()
    home = assembler.named_section(".bss")
    usual = min(1 << max(size.bit_length() - 1, 0), 16)  # GNU's default
    assembler.emitter.align(home, most or usual, None, None)
    assembler.symbols.define_label(symbol.name, home, statement)
    symbol.type, symbol.size = "object", size
    home.reserve(size)


def _end(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    assembler.stop_reading()


def _alternate(switched_on: bool) -> Handler:
    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        arguments.finish()
        assembler.alternate = assembler.evaluated if switched_on else None

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
    ".balignw": _align(power=False, width=2),
    ".balignl": _align(power=False, width=4),
    ".p2alignw": _align(power=True, width=2),
    ".p2alignl": _align(power=True, width=4),
    ".err": _error,
    ".error": _error,
    ".include": _include,
    ".altmacro": _alternate(True),
    ".noaltmacro": _alternate(False),
    ".comm": _common,
    ".lcomm": _local_common,
    ".org": _origin,
    ".warning": _warning,
    ".fail": _fail,
    ".abort": _error,
    ".end": _end,
    **dict.fromkeys(
        (
            *(".file", ".loc", ".line", ".ln", ".ident", ".version", ".addrsig", ".addrsig_sym", ".extern"),
            *(".print", ".func", ".endfunc", ".protected", ".internal"),
            *(".title", ".sbttl", ".list", ".nolist", ".eject", ".psize"),
        ),
        _ignored,
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
