"""Directives that put bytes into the current section."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from ...errors import UsageError
from ...files import read_file
from .diagnostics import SourceFault
from .directives import Arguments, Handler
from .emission import pack
from .lexer import float_value, number_value
from .objects import CODE_FILL
from .settling import check_number
from .symbols import MAXIMUM_SECTION_BYTES

if TYPE_CHECKING:
    from .assembler import Assembler
    from .statements import Statement


_FLONUM = re.compile(r"\A0[fFdDeErRhH](?=[-+.\d])")
"""Prefix of a floating-point number in the GNU assembler; its letter means nothing."""
_FLOAT_SIZES = {2: "<e", 4: "<f", 8: "<d"}


def _integers(size: int) -> Handler:
    """Numbers and addresses; a number with a point has the floating-point format of the size."""

    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        while not arguments.at_end:
            place = arguments.token.offset
            pointed = _pointed(arguments) if size in _FLOAT_SIZES else None
            if pointed is not None:
                assembler.section.append(_packed(_FLOAT_SIZES[size], pointed, place))
            else:
                value = arguments.expression()
                assembler.emitter.emit_value(assembler.section, size, value, place, statement)
            if arguments.at_end:
                return
            arguments.comma()
            if arguments.at_end:
                raise SourceFault("expected a value", arguments.token.offset)

    return handler


def _pointed(arguments: Arguments) -> str | None:
    """The text of an argument that is nothing but a number with a point and without a suffix, now read."""
    tokens, index = arguments.tokens, arguments.index
    signed = tokens[index].text in ("-", "+")
    token = tokens[index + signed]
    if token.kind != "float" or token.text[-1] in "hf" or tokens[index + signed + 1].text not in ("", ","):
        return None
    arguments.index = index + signed + 1
    return (tokens[index].text if signed else "") + token.text


def _packed(code: str, text: str, place: int) -> bytes:
    """A floating-point number in the format `code` of struct. Raises SourceFault."""
    sign = -1.0 if text.startswith("-") else 1.0
    body = _FLONUM.sub("", text.lstrip("+-").strip())
    if body[:1] in ("-", "+"):  # behind a GNU prefix
        sign, body = (-sign if body[0] == "-" else sign), body[1:]
    try:
        return struct.pack(
            code, sign * (float_value(body) if body[-1:] not in "uUlL" else number_value(body))
        )
    except (ValueError, OverflowError):
        raise SourceFault(f"{text.strip()} is no number of this size", place) from None


def _floats(size: int) -> Handler:
    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        # Read as text: some of its numbers are no tokens of expressions, such as 0f-1.5.
        place = arguments.start
        for text in arguments.text[place:].split(","):
            lead = len(text) - len(text.lstrip())
            assembler.section.append(_packed(_FLOAT_SIZES[size], text.strip(), place + lead))
            place += len(text) + 1

    return handler


def _strings(ending: bytes) -> Handler:
    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        while True:
            assembler.section.append(arguments.string() + ending)
            if arguments.at_end:
                return
            arguments.accept(",")

    return handler


def _space(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    count = arguments.number("the size", 0, MAXIMUM_SECTION_BYTES)
    fill = arguments.number("the fill byte", -128, 255) if arguments.accept(",") else 0
    arguments.finish()
    assembler.section.append(bytes([fill & 0xFF]) * count)


def _fill(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    count = arguments.number("the count", 0, MAXIMUM_SECTION_BYTES)
    size, value = 1, 0
    if arguments.accept(","):
        size = arguments.number("the size", 1, 8)
        if arguments.accept(","):
            value = arguments.number("the value", -(1 << 63), (1 << 64) - 1)
    arguments.finish()
    if count * size > MAXIMUM_SECTION_BYTES:
        raise SourceFault(f"{count * size} bytes are more than a section holds")
    assembler.section.append((value & ((1 << 8 * size) - 1)).to_bytes(size, "little") * count)


def _leb128(signed: bool) -> Handler:
    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        while True:
            place = arguments.token.offset
            value = arguments.expression()
            if isinstance(value, int):
                check_number(value, signed, place)
            assembler.emitter.emit_number(assembler.section, value, signed, place, statement)
            if arguments.at_end:
                return
            arguments.comma()

    return handler


def _repeated(size: int, floating: bool = False) -> Handler:
    """`.dcb`: a count and one value, which is 0 if there is none."""

    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        count = arguments.number("the count", 0, MAXIMUM_SECTION_BYTES // size)
        arguments.comma()
        place = arguments.token.offset
        if floating:
            data = _packed(_FLOAT_SIZES[size], arguments.text[place:].strip(), place)
        else:
            value = arguments.number("the value", -(1 << 8 * size - 1), (1 << 8 * size) - 1)
            arguments.finish()
            data = pack(value, size, place)
        assembler.section.append(data * count)

    return handler


def _reserved(size: int) -> Handler:
    """`.ds`: a number of elements that are zero."""

    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        count = arguments.number("the count", 0, MAXIMUM_SECTION_BYTES // size)
        arguments.finish()
        assembler.section.append(bytes(size * count))

    return handler


def _wide_strings(size: int) -> Handler:
    """Characters of `size` bytes with a zero at the end."""

    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        while True:
            text = arguments.string() + b"\0"
            assembler.section.append(b"".join(bytes([item]) + bytes(size - 1) for item in text))
            if arguments.at_end:
                return
            arguments.comma()

    return handler


def _large(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    """`.octa`: numbers of 16 bytes, which are no expressions."""
    place = arguments.start
    for text in arguments.text[place:].split(","):
        word = text.strip()
        try:
            value = number_value(word.lstrip("-"))
        except ValueError:
            raise SourceFault(f"{word!r} is no number", place) from None
        assembler.section.append(pack(-value if word.startswith("-") else value, 16, place))
        place += len(text) + 1


def _include_bytes(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    place = arguments.token.offset
    wanted = arguments.string().decode()
    skip, count = 0, MAXIMUM_SECTION_BYTES
    if arguments.accept(","):
        if arguments.token.text != ",":
            skip = arguments.number("the bytes to skip", 0, MAXIMUM_SECTION_BYTES)
        if arguments.accept(","):
            count = arguments.number("the bytes to take", 0, MAXIMUM_SECTION_BYTES)
    arguments.finish()
    path = assembler.sources.found(wanted, statement, place)
    try:
        data = read_file(path, limit=MAXIMUM_SECTION_BYTES)
    except UsageError as error:
        raise SourceFault(f"cannot read {path}: {error}", place) from None
    assembler.section.append(data[skip : skip + count])


def _nops(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    place = arguments.token.offset
    count = arguments.number("the size", 0, MAXIMUM_SECTION_BYTES)
    arguments.finish()
    if count % 4:
        raise SourceFault(f"{count} bytes are no whole number of instructions", place)
    assembler.section.append(CODE_FILL.to_bytes(4, "little") * (count // 4))


DATA_HANDLERS: dict[str, Handler] = {
    **dict.fromkeys((".byte", ".dc.b"), _integers(1)),
    **dict.fromkeys((".short", ".half", ".hword", ".value", ".2byte", ".dc", ".dc.w"), _integers(2)),
    **dict.fromkeys((".long", ".word", ".int", ".4byte", ".dc.l", ".dc.a"), _integers(4)),
    **dict.fromkeys((".quad", ".8byte"), _integers(8)),
    ".octa": _large,
    **dict.fromkeys((".float16", ".hfloat"), _floats(2)),
    **dict.fromkeys((".float", ".single", ".dc.s"), _floats(4)),
    **dict.fromkeys((".double", ".dc.d"), _floats(8)),
    **dict.fromkeys((".dcb", ".dcb.w"), _repeated(2)),
    ".dcb.b": _repeated(1),
    ".dcb.l": _repeated(4),
    ".dcb.s": _repeated(4, floating=True),
    ".dcb.d": _repeated(8, floating=True),
    **dict.fromkeys((".ds", ".ds.w"), _reserved(2)),
    ".ds.b": _reserved(1),
    **dict.fromkeys((".ds.l", ".ds.s"), _reserved(4)),
    ".ds.d": _reserved(8),
    **dict.fromkeys((".ds.p", ".ds.x"), _reserved(12)),
    ".string16": _wide_strings(2),
    ".string32": _wide_strings(4),
    ".string64": _wide_strings(8),
    ".ascii": _strings(b""),
    **dict.fromkeys((".asciz", ".string", ".string8"), _strings(b"\0")),
    **dict.fromkeys((".space", ".skip", ".zero"), _space),
    ".fill": _fill,
    ".nops": _nops,
    ".incbin": _include_bytes,
    ".uleb128": _leb128(signed=False),
    ".sleb128": _leb128(signed=True),
}
