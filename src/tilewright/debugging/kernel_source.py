"""Source lines of kernels beside their instructions.

Packages carry no line numbers. The sources of this version's kernels are plain statements, so statement and
instruction follow each other in the same order; a kernel whose every statement meets an instruction of the
same name is shown with its source, any other without.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilewright.ipu21.isa.decode import InvalidInstruction, decode
from tilewright.ipu21.isa.text import format_instruction
from tilewright.ipu21.kernels import KERNELS

_LABEL = re.compile(r"^\s*([.A-Za-z_$][\w.$]*):\s*(.*)$")
_ALIGN = re.compile(r"^\.b?align\s+(\d+)$")


@dataclass(frozen=True)
class SourceLine:
    """A line of a kernel's source: its number, its text, and the label before it, if one stands there."""

    number: int
    text: str
    label: str


def kernel_lines(symbol: str, address: int, code: bytes) -> dict[int, SourceLine]:
    """Source lines by the address of their first instruction; empty if source and code do not agree.

    Args:
        symbol: name of the kernel. address: where it begins. code: its bytes.
    """
    kernel = KERNELS.get(symbol)
    if kernel is None:
        return {}
    found: dict[int, SourceLine] = {}
    offset, label, begun = 0, "", False
    for number, line in enumerate(kernel.source().splitlines(), 1):
        text = re.split(r"//|#", line)[0].strip()
        match = _LABEL.match(text)
        if match is not None:
            label, text = match[1], match[2].strip()
            begun = begun or label == symbol
        aligned = _ALIGN.match(text)
        if begun and aligned is not None:
            step = max(int(aligned[1]), 1)
            offset += -(address + offset) % step
        if not begun or not text or text.startswith("."):
            continue
        statements = [part.strip() for part in text.strip("{} ").split(";")]
        for place, statement in enumerate(statements):
            if not _same(statement, code[offset : offset + 8]):
                return {}
            if place == 0:
                found[address + offset] = SourceLine(number, text, label)
                label = ""
            offset += 4
    return found


def _same(statement: str, code: bytes) -> bool:
    """Whether an instruction has the name that a statement has."""
    if len(code) < 4:
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
