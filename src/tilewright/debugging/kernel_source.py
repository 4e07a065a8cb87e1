"""Source lines of kernels beside their instructions.

A package says in which line of which kernel's source an instruction was written. The text is not in it: it is
made again by the kernel of this version, and shown if it still has that instruction in that line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from tilewright.ipu21.isa.decode import InvalidInstruction, decode
from tilewright.ipu21.isa.text import format_instruction
from tilewright.ipu21.kernels import source_of

_LABEL = re.compile(r"^\s*([.A-Za-z_$][\w.$]*):\s*(.*)$")
_COMMENT = re.compile(r"//|#")
_SUFFIX = ".S"


@dataclass(frozen=True)
class SourceLine:
    """A line of a kernel's source: its number, its text, and the label before it, if one stands there."""

    number: int
    text: str
    label: str


@lru_cache(maxsize=64)
def kernel_text(file: str) -> tuple[str, ...]:
    """The lines of a kernel's source by the name packages give its file; empty if there is no such kernel."""
    try:
        return tuple(source_of(file.removesuffix(_SUFFIX)).splitlines())
    except KeyError:
        return ()


def kernel_line(file: str, number: int, code: bytes) -> SourceLine | None:
    """The line an instruction was written in; None if this version's kernel has another there.

    Args:
        file, number: as the package says. code: the instruction's bytes, up to 8.
    """
    lines = kernel_text(file)
    if not 0 < number <= len(lines):
        return None
    label, text = _statement(lines[number - 1])
    if number > 1 and not label:
        label, rest = _statement(lines[number - 2])
        label = "" if rest else label
    statements = [part.strip() for part in text.strip("{} ").split(";")]
    if not any(_same(statement, code) for statement in statements):
        return None
    return SourceLine(number, text, label)


def _statement(line: str) -> tuple[str, str]:
    """The label a line begins with, if any, and the rest without comments."""
    text = _COMMENT.split(line)[0].strip()
    match = _LABEL.match(text)
    return (match[1], match[2].strip()) if match is not None else ("", text)


def _same(statement: str, code: bytes) -> bool:
    """Whether an instruction has the name that a statement has."""
    if len(code) < 4 or not statement:
        return False
    try:
        instruction = decode(
            int.from_bytes(code[:4], "little"), int.from_bytes(code[4:8] or bytes(4), "little")
        )
    except InvalidInstruction:
        return False
    name = statement.split(maxsplit=1)[0]
    names = {instruction.form.mnemonic}
    for mode in ("supervisor", "worker"):
        names.add(format_instruction(instruction, mode=mode).split(maxsplit=1)[0])
    return name in names
