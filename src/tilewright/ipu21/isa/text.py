"""Instructions as text, in the vendor's syntax, such that the text assembles to the same word again."""

from __future__ import annotations

from collections.abc import Callable

from .aliases import printed_aliases
from .csrs import UPPER, csr_name
from .decode import Instruction
from .enums import constant_name
from .forms import FORCED_SPELLING, Form, Operand
from .registers import register_name

DECIMAL_LIMIT = 0x10000
"""From here on unsigned numbers are printed in hexadecimal."""


def format_instruction(
    instruction: Instruction, *, symbolic: Callable[[int], str] | None = None, mode: str | None = None
) -> str:
    """One instruction without its bundle braces, e.g. `ld64step $a0:1, $m15, $m2+=, 3`.

    The aliases nop, fnop, zero, mov and movnz stand for the words the vendor's disassembler shows them for.
    Where the plain mnemonic would select another form for the same operands, the forcing spelling is printed
    (`addz`, `orhi`).

    Args:
        symbolic: text for a branch target, given its byte address; without it targets are hexadecimal.
        mode: `worker` or `supervisor` names the control registers whose numbers the two modes use
            differently; without it those stay numbers.
    """
    form = instruction.form
    for alias in printed_aliases(form):
        written = alias.contract(instruction.operands)
        if written is not None:
            texts = [register_name(kind, value) for kind, value in zip(alias.operands, written, strict=True)]
            return _join(alias.mnemonic, texts)
    texts = [
        _operand_text(operand, value, symbolic, mode)
        for operand, value in zip(form.operands, instruction.operands, strict=True)
    ]
    return _join(_mnemonic(form, instruction.operands), texts)


def _join(mnemonic: str, texts: list[str]) -> str:
    return f"{mnemonic} {', '.join(texts)}" if texts else mnemonic


def _mnemonic(form: Form, operands: tuple[int, ...]) -> str:
    spelling = FORCED_SPELLING.get(form)
    if spelling is None:
        return form.mnemonic
    for operand, value in zip(form.operands, operands, strict=True):
        # The assembler prefers the sign-extended 16-bit form, and the low 12 bits over the high ones.
        if (operand.kind == "uimm" and value < 0x8000) or (operand.kind == "uimm_shl20" and value == 0):
            return spelling
    return form.mnemonic


def _operand_text(
    operand: Operand, value: int, symbolic: Callable[[int], str] | None, mode: str | None
) -> str:
    if operand.is_register:
        return register_name(operand.kind, value) + operand.suffix
    if operand.kind == "word_address":
        return symbolic(value) if symbolic is not None else f"{value:#x}"
    if operand.names is not None:
        name = _constant_text(operand.names, value, mode)
        if name is not None:
            return name
    return f"{value:#x}" if value >= DECIMAL_LIMIT else str(value)


def _constant_text(names: str, value: int, mode: str | None) -> str | None:
    if names == "csr":
        name = csr_name(value, mode)
    elif names == "upper_csr":
        name = csr_name(value + UPPER, "worker")
    else:
        return constant_name(names, value)
    return None if name is None else f"${name}"
