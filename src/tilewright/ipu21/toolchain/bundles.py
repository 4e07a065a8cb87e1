"""What may be issued together: pipelines, forms that go alone, and registers written twice."""

from __future__ import annotations

from .instructions import Instruction, written_registers

_TWO_DISCARDS = "zero registers count too; discard two results into different ones, such as $a14:15 and $a8:9"


def check_registers(instruction: Instruction) -> None:
    """Refuse a load whose two destinations overlap (known: the vendor's assembler refuses it)."""
    if instruction.form.mnemonic != "ld2x64pace":
        return
    first, second = (
        instruction.register(index) for index, _, _, plain in written_registers(instruction.form) if plain
    )
    if first == second:
        raise instruction.fault(
            "both halves of this load go to the same registers",
            hint="to discard both, use $a14:15 and $a8:9",
        )


def check_bundle(main: Instruction, aux: Instruction) -> None:
    """Raise SourceFault unless the two can be one bundle, main pipeline first.

    Known: a register written by both halves is refused, the zero registers and the unwritten element of
    `ld64a32` included.
    """
    if main.form.pipeline == "aux" and aux.form.pipeline == "main":
        raise main.fault(
            "the main-pipeline instruction comes first in a bundle",
            hint=f"write {{ {aux.mnemonic} ... ; {main.mnemonic} ... }}",
        )
    for instruction, pipeline in ((main, "main"), (aux, "aux")):
        if instruction.form.pipeline != pipeline:
            raise instruction.fault(
                f"`{instruction.mnemonic}` belongs to the {instruction.form.pipeline} pipeline",
                hint="a bundle holds one main and one aux instruction",
            )
        if instruction.form.mode == "supervisor" or not instruction.form.coissue:
            raise instruction.fault(f"`{instruction.mnemonic}` cannot be in a bundle")
    check_registers(main)
    taken = _aux_registers(main)
    for register in _aux_registers(aux):
        if register in taken:
            raise aux.fault(
                f"both halves of the bundle write $a{register}",
                hint=_TWO_DISCARDS if register >= 14 else None,
            )


def _aux_registers(instruction: Instruction) -> list[int]:
    registers: list[int] = []
    for index, file, count, _ in written_registers(instruction.form):
        if file == "a":
            first = instruction.register(index)
            registers.extend(range(first, first + count))
    return registers
