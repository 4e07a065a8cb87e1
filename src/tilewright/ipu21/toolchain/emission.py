"""Puts instructions and data into sections; what is not known yet is patched at the end."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..isa.forms import Form, form
from . import relocations
from .bundles import check_bundle, check_registers
from .diagnostics import SourceFault
from .expressions import Address, Value, evaluate
from .instructions import Instruction, encode_instruction
from .matching import Candidate
from .objects import CODE_FILL
from .statements import Statement
from .symbols import Section

_NOP = Instruction("nop", (Candidate(form("setzi $mDst0, zimm20"), (None, None), (14, 0)),), [], 0)
_FNOP = Instruction("fnop", (Candidate(form("setzi $aDst0, zimm20"), (None, None), (13, 0)),), [], 0)
_DATA_TYPES = {1: relocations.R8, 2: relocations.R16, 4: relocations.R32, 8: relocations.R64}


@dataclass(slots=True)
class CodeFixup:
    section: Section
    offset: int
    instruction: Instruction
    coissue: bool
    statement: Statement


@dataclass(slots=True)
class DataFixup:
    section: Section
    offset: int
    size: int
    value: Value
    place: int
    statement: Statement


@dataclass(slots=True)
class RepeatBody:
    """A body to be checked once everything is placed: `count` holds bundles - 1."""

    section: Section
    start: int
    instruction: Instruction
    statement: Statement


@dataclass(slots=True)
class PlacedRelocation:
    section: Section
    offset: int
    type: int
    value: Address
    statement: Statement
    place: int


@dataclass(slots=True)
class Emitter:
    """The growing content of all sections, and the rules of placing instructions."""

    mode: str | None = None
    allow_optimizations: bool = False
    code_fixups: list[CodeFixup] = field(default_factory=list)
    data_fixups: list[DataFixup] = field(default_factory=list)
    repeats: list[RepeatBody] = field(default_factory=list)
    relocations: list[PlacedRelocation] = field(default_factory=list)
    code: dict[Section, dict[int, tuple[tuple[Form, ...], Statement]]] = field(default_factory=dict)

    # ---- instructions

    def emit_single(self, section: Section, instruction: Instruction, statement: Statement) -> None:
        """Place one instruction. Raises SourceFault when it may not stand here."""
        self._check_mode(instruction)
        check_registers(instruction)
        self._open_code(section, instruction.offset)
        if instruction.form.mnemonic == "rpt":
            section.require_alignment(8)
            if (section.offset + 4) % 8 and self.allow_optimizations:
                self._place_bundle(section, instruction, _FNOP, statement)
            else:
                self._place(section, (instruction,), statement)
            self._expect_body(section, instruction, statement)
            return
        if instruction.form.words > 1:
            section.require_alignment(8)
            if section.offset % 8:
                raise SourceFault(
                    f"{instruction.mnemonic} must be 8-byte aligned",
                    instruction.offset,
                    hint="put `.align 8` before it",
                )
        self._place(section, (instruction,), statement)

    def emit_bundle(
        self, section: Section, main: Instruction, aux: Instruction, statement: Statement
    ) -> None:
        """Place a bundle. Raises SourceFault when the two may not be issued together or not here."""
        if self.mode == "supervisor":
            raise SourceFault("a supervisor cannot issue bundles", main.offset, hint="is `.worker` missing?")
        check_bundle(main, aux)
        self._open_code(section, main.offset)
        if main.form.mnemonic != "rpt":
            self._place_bundle(section, main, aux, statement)
            return
        section.require_alignment(8)
        if section.offset % 8 and self.allow_optimizations:
            if aux.form is _FNOP.form and aux.mnemonic == "fnop":
                self._place(section, (main,), statement)
            else:
                self._place(section, (_NOP,), statement)
                self._place_bundle(section, main, aux, statement)
        else:
            self._place_bundle(section, main, aux, statement)
        self._expect_body(section, main, statement)

    def _check_mode(self, instruction: Instruction) -> None:
        mode = instruction.form.mode
        if self.mode is not None and mode != "both" and mode != self.mode:
            raise SourceFault(
                f"`{instruction.mnemonic}` with these operands is for the {mode} only",
                instruction.offset,
                hint=f"this is {self.mode} code; `.{mode}` switches",
            )

    def _open_code(self, section: Section, offset: int) -> None:
        if not section.executable or section.type == "nobits":
            raise SourceFault(
                f"section {section.name} is not executable",
                offset,
                hint='use .text or .section name,"ax",@progbits',
            )
        if section.offset % 4:
            raise SourceFault(
                "instructions must be 4-byte aligned", offset, hint="put `.align 4` before this one"
            )
        section.require_alignment(4)

    def _place_bundle(
        self, section: Section, main: Instruction, aux: Instruction, statement: Statement
    ) -> None:
        self._place(section, (main, aux), statement)

    def _place(self, section: Section, instructions: tuple[Instruction, ...], statement: Statement) -> None:
        coissue = len(instructions) == 2
        self.code.setdefault(section, {})[section.offset] = (
            tuple(item.form for item in instructions),
            statement,
        )
        for instruction in instructions:
            encoded = encode_instruction(instruction, coissue=coissue, final=False)
            if encoded is None:
                self.code_fixups.append(CodeFixup(section, section.offset, instruction, coissue, statement))
                section.append(bytes(4 * instruction.form.words))
            else:
                for word in encoded.words:
                    section.append(word.to_bytes(4, "little"))

    def _expect_body(self, section: Section, instruction: Instruction, statement: Statement) -> None:
        if section.offset % 8:
            raise SourceFault(
                "the body of this rpt would not be 8-byte aligned",
                instruction.offset,
                hint="bundle the rpt with fnop (or drop the fnop), put a nop before it, or .allow_optimizations",
            )
        self.repeats.append(RepeatBody(section, section.offset, instruction, statement))

    # ---- data

    def emit_value(self, section: Section, size: int, value: Value, place: int, statement: Statement) -> None:
        """Place a number or address of `size` bytes."""
        if isinstance(value, int):
            section.append(pack(value, size, place))
            return
        self.data_fixups.append(DataFixup(section, section.offset, size, value, place, statement))
        section.append(bytes(size))

    def align(self, section: Section, alignment: int, fill: int | None, most: int | None) -> None:
        """Pad to a multiple of `alignment`, unless that takes over `most` bytes. Code is padded with nops."""
        section.require_alignment(alignment)
        count = -section.offset % alignment
        if most is not None and count > most:
            return
        if section.type == "nobits":
            section.reserve(count)
        elif section.executable and fill is None:
            section.append(bytes(count % 4) + CODE_FILL.to_bytes(4, "little") * (count // 4))
        else:
            section.append(bytes([(fill or 0) & 0xFF]) * count)

    # ---- the end

    def settle_code(self, fixup: CodeFixup) -> None:
        """Patch an instruction whose values were open. Raises SourceFault."""
        encoded = encode_instruction(fixup.instruction, coissue=fixup.coissue, final=True)
        assert encoded is not None  # the final attempt either encodes or raises
        data = b"".join(word.to_bytes(4, "little") for word in encoded.words)
        fixup.section.data[fixup.offset : fixup.offset + len(data)] = data
        if encoded.relocation is not None:
            number, value = encoded.relocation
            self.relocations.append(
                PlacedRelocation(
                    fixup.section, fixup.offset, number, value, fixup.statement, fixup.instruction.offset
                )
            )

    def settle_data(self, fixup: DataFixup) -> None:
        """Patch a data item whose value was open. Raises SourceFault."""
        value = evaluate(fixup.value)
        if isinstance(value, int):
            data = pack(value, fixup.size, fixup.place)
            fixup.section.data[fixup.offset : fixup.offset + fixup.size] = data
            return
        number = _DATA_TYPES[fixup.size]
        if value.modifier is not None:
            chosen = relocations.BY_SPELLING.get(value.modifier)
            if chosen is None:
                known = ", ".join(f"@{spelling}" for spelling in relocations.BY_SPELLING)
                raise SourceFault(
                    f"there is no relocation @{value.modifier}", fixup.place, hint=f"there are {known}"
                )
            if relocations.TYPES[chosen].size != fixup.size:
                size = relocations.TYPES[chosen].size
                raise SourceFault(f"@{value.modifier} fills {size} bytes, this has {fixup.size}", fixup.place)
            number = chosen
        self.relocations.append(
            PlacedRelocation(fixup.section, fixup.offset, number, value, fixup.statement, fixup.place)
        )

    def check_repeat(self, body: RepeatBody) -> tuple[Statement, SourceFault] | None:
        """The first thing wrong with a repeat body, with the statement at fault."""
        instruction = body.instruction
        value = evaluate(instruction.operands[1].value)
        if not isinstance(value, int):
            return None  # already refused when the rpt itself was encoded
        code = self.code.get(body.section, {})
        for number in range(value + 1):
            found = code.get(body.start + 8 * number)
            if found is None:
                what = (
                    "ends before its body does"
                    if body.start + 8 * number >= body.section.offset
                    else "has data here"
                )
                return body.statement, SourceFault(
                    f"the body of this rpt is {value + 1} bundle{'s' if value else ''}, but the section {what}"
                    f" (bundle {number + 1})",
                    instruction.offset,
                    hint="the second operand counts bundles minus one",
                )
            forms, statement = found
            if len(forms) != 2:
                return statement, SourceFault(
                    f"the body of the rpt on line {body.statement.line} takes bundles only",
                    hint="write { instruction ; fnop } or { nop ; instruction }, or check the body's length",
                )
            bad = next((item for item in forms if item.flags & {"control", "system"}), None)
            if bad is not None:
                return statement, SourceFault(
                    f"`{bad.mnemonic}` cannot be in the body of an rpt (line {body.statement.line})",
                    hint="control and system instructions are not repeated",
                )
        return None


def pack(value: int, size: int, place: int) -> bytes:
    """Little-endian bytes of a signed or unsigned number. Raises SourceFault when it does not fit."""
    if not -(1 << (8 * size - 1)) <= value < 1 << (8 * size):
        raise SourceFault(
            f"{value} ({value:#x}) does not fit in {size} byte{'s' if size != 1 else ''}", place
        )
    return (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
