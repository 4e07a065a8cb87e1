"""`.file` and `.loc`: where a compiler found what it made code of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .diagnostics import SourceFault
from .directives import Arguments, Handler

if TYPE_CHECKING:
    from .assembler import Assembler
    from .statements import Statement

_MOST = (1 << 31) - 1


def _file(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    """`.file NUMBER ["folder"] "name" ...` names a file; without a number it says nothing of lines."""
    if arguments.token.kind == "string":
        return
    number = arguments.number("the file's number", 0, _MOST)
    name = arguments.string().decode(errors="replace")
    if arguments.token.kind == "string":
        inside = arguments.string().decode(errors="replace")
        name = inside if inside.startswith("/") else f"{name}/{inside}"
    # What may follow are a digest and the text itself.
    assembler.files[number] = name


def _location(assembler: Assembler, arguments: Arguments, statement: Statement) -> None:
    """`.loc FILE LINE [COLUMN] ...`: what follows in this section was written there; line 0 says nowhere."""
    place = arguments.token.offset
    number = arguments.number("the file's number", 0, _MOST)
    if number not in assembler.files:
        raise SourceFault(f"no `.file` names file {number}", place)
    line = arguments.number("the line", 0, _MOST)
    assembler.emitter.origins[assembler.section] = (assembler.files[number], line) if line else ("", 0)


ORIGIN_HANDLERS: dict[str, Handler] = {".file": _file, ".loc": _location}
