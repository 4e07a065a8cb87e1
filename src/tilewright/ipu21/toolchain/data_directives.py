"""Directives that put bytes into the current section."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from .diagnostics import SourceFault
from .directives import Arguments, Handler
from .symbols import MAXIMUM_SECTION_BYTES

if TYPE_CHECKING:
    from .assembler import Assembler
    from .statements import Statement


def _integers(size: int) -> Handler:
    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        if arguments.at_end:
            raise SourceFault("expected a value", arguments.token.offset)
        while True:
            place = arguments.token.offset
            assembler.emitter.emit_value(assembler.section, size, arguments.expression(), place, statement)
            if arguments.at_end:
                return
            arguments.comma()

    return handler


def _floats(code: str) -> Handler:
    def handler(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
        while True:
            sign = -1.0 if arguments.accept("-") else 1.0
            token = arguments.token
            if token.kind not in ("float", "number", "name"):
                raise SourceFault("expected a number", token.offset)
            arguments.index += 1
            try:
                data = struct.pack(
                    code, sign * float(token.text.rstrip("f") if token.kind == "float" else token.text)
                )
            except (ValueError, OverflowError):
                raise SourceFault(f"{token.text} is no number of this size", token.offset) from None
            assembler.section.append(data)
            if arguments.at_end:
                return
            arguments.comma()

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


def _uleb128(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    value = arguments.number("the value", 0, (1 << 64) - 1)
    arguments.finish()
    out = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        out.append(low | (0x80 if value else 0))
        if not value:
            break
    assembler.section.append(bytes(out))


DATA_HANDLERS: dict[str, Handler] = {
    ".byte": _integers(1),
    **dict.fromkeys((".short", ".half", ".hword", ".2byte"), _integers(2)),
    **dict.fromkeys((".long", ".word", ".int", ".4byte"), _integers(4)),
    **dict.fromkeys((".quad", ".8byte"), _integers(8)),
    **dict.fromkeys((".float", ".single"), _floats("<f")),
    ".double": _floats("<d"),
    ".ascii": _strings(b""),
    **dict.fromkeys((".asciz", ".string"), _strings(b"\0")),
    **dict.fromkeys((".space", ".skip", ".zero"), _space),
    ".fill": _fill,
    ".uleb128": _uleb128,
}
