"""Directives that concern symbols, alignment, modes and messages."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from ...errors import UsageError
from ...files import read_file
from .diagnostics import SourceFault, did_you_mean
from .expressions import ExpressionParser, Value
from .lexer import Token, string_bytes, tokenise
from .scope import is_register
from .symbols import Symbol

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
        if token.kind != "name" and (token.kind != "register" or is_register(token.text)):
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


def _print(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    text = arguments.string().decode(errors="replace")
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


def _end(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    assembler.stop_reading()


def _alternate(switched_on: bool) -> Handler:
    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        arguments.finish()
        assembler.alternate = assembler.evaluated if switched_on else None

    return handler


HANDLERS: dict[str, Handler] = {
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
    ".align32": _align(power=False, width=4),
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
    ".org": _origin,
    ".warning": _warning,
    ".print": _print,
    ".fail": _fail,
    ".abort": _error,
    ".end": _end,
    **dict.fromkeys(
        (
            *(".line", ".ln", ".ident", ".version", ".addrsig", ".addrsig_sym", ".extern"),
            *(".func", ".endfunc", ".protected", ".internal"),
            *(".title", ".sbttl", ".list", ".nolist", ".eject", ".psize", ".macros_on", ".macros_off"),
            *(".cg_profile", ".lto_discard", ".lto_set_conditional", ".linefile", ".vtable_entry"),
            *(".vtable_inherit", ".stabs", ".stabn", ".stabd", ".no_dead_strip", ".gnu_attribute"),
        ),
        _ignored,
    ),
}

_IGNORED_PREFIX = ".cfi_"


@cache
def all_handlers() -> dict[str, Handler]:
    """Every directive that is no control word."""
    from .data_directives import DATA_HANDLERS
    from .linkage_directives import LINKAGE_HANDLERS
    from .origin_directives import ORIGIN_HANDLERS
    from .section_directives import SECTION_HANDLERS

    return HANDLERS | DATA_HANDLERS | SECTION_HANDLERS | LINKAGE_HANDLERS | ORIGIN_HANDLERS


def run_directive(assembler: Assembler, word: str, text: str, start: int, statement: Statement) -> None:
    """Carry out a directive. Raises SourceFault."""
    from .section_directives import READ_AS_TEXT

    handler = all_handlers().get(word)
    if handler is None:
        if word.startswith(_IGNORED_PREFIX):
            return
        from .assembler import CONTROL_WORDS

        known = [*all_handlers(), *CONTROL_WORDS]
        raise SourceFault(
            f"there is no directive `{word}`", start - len(word), hint=did_you_mean(word, known)
        )
    if handler is _ignored:
        return
    if handler in READ_AS_TEXT:
        arguments = Arguments(assembler, "", 0)
        arguments.text, arguments.start = text, start
    else:
        arguments = Arguments(assembler, text, start)
    handler(assembler, arguments, statement)
