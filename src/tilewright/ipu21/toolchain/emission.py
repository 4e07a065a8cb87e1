"""Puts instructions and data into sections; what is not known yet is left open for `settling`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..isa.forms import Form, form
from .bundles import check_bundle, check_registers
from .diagnostics import SourceFault
from .expressions import Address, Value
from .instructions import Instruction, encode_instruction
from .layout import Layout
from .leb128 import leb128
from .matching import Candidate
from .objects import CODE_FILL
from .statements import Statement
from .symbols import Section

_NOP = Instruction("nop", (Candidate(form("setzi $mDst0, zimm20"), (None, None), (14, 0)),), [], 0)
_FNOP = Instruction("fnop", (Candidate(form("setzi $aDst0, zimm20"), (None, None), (13, 0)),), [], 0)
_NOP_WORD = CODE_FILL.to_bytes(4, "little")


@dataclass(slots=True)
class CodeFixup:
    """An instruction at `offset` with a value that was open when it was placed."""

    section: Section
    offset: int
    instruction: Instruction
    coissue: bool
    statement: Statement


@dataclass(slots=True)
class DataFixup:
    """A data item at `offset` with a value that was open; `place` is where the statement gives it."""

    section: Section
    offset: int
    size: int
    value: Value
    place: int
    statement: Statement


@dataclass(slots=True)
class RepeatBody:
    """The body of an rpt, to be checked once everything is placed."""

    section: Section
    start: int
    instruction: Instruction
    statement: Statement


@dataclass(slots=True)
class PlacedRelocation:
    """A relocation of `type` (a number of `relocations`) for `value` at `offset`."""

    section: Section
    offset: int
    type: int
    value: Address
    statement: Statement
    place: int


@dataclass(slots=True)
class RelocationRequest:
    """A relocation that the source asks for itself, at an offset that may be open."""

    section: Section
    offset: Value
    type: int
    value: Value
    place: int
    statement: Statement


@dataclass(slots=True)
class NumberFixup:
    """A LEB128 number at `offset` whose value was open; it is the `index`th of these."""

    section: Section
    offset: int
    index: int
    signed: bool
    value: Value
    place: int
    statement: Statement


@dataclass(slots=True)
class Emitter:
    """Where instructions and data go, and the rules of placing them.

    `code` maps offsets to what was placed there: the forms of an instruction or bundle, or nothing where
    a fault was found. `origins` says where a compiler found what follows in a section, `origin_of` where it
    found what was placed. `where` puts a line number into words.
    """

    where: Callable[[int], str]
    layout: Layout
    mode: str | None = None
    allow_optimizations: bool = False
    code_fixups: list[CodeFixup] = field(default_factory=list)
    data_fixups: list[DataFixup] = field(default_factory=list)
    number_fixups: list[NumberFixup] = field(default_factory=list)
    requests: list[RelocationRequest] = field(default_factory=list)
    repeats: list[RepeatBody] = field(default_factory=list)
    relocations: list[PlacedRelocation] = field(default_factory=list)
    code: dict[Section, dict[int, tuple[tuple[Form, ...], Statement]]] = field(default_factory=dict)
    origins: dict[Section, tuple[str, int]] = field(default_factory=dict)
    origin_of: dict[tuple[Section, int], tuple[str, int]] = field(default_factory=dict)

    def emit_single(self, section: Section, instruction: Instruction, statement: Statement) -> None:
        """Place one instruction. Raises SourceFault when it may not stand here."""
        self._check_mode(instruction)
        check_registers(instruction)
        self._open_code(section, instruction)
        if instruction.form.mnemonic == "rpt":
            section.require_alignment(8)
            if section.offset % 8 == 0 and self.allow_optimizations:
                self._place(section, (instruction, _FNOP), statement)
            else:
                self._place(section, (instruction,), statement)
            self._expect_body(section, instruction, statement)
            return
        if instruction.form.words > 1:
            section.require_alignment(8)
            if section.offset % 8:
                what = f"{instruction.mnemonic} must be 8-byte aligned"
                raise instruction.fault(what, hint="put `.align 8` before it")
        self._place(section, (instruction,), statement)

    def emit_bundle(
        self, section: Section, main: Instruction, aux: Instruction, statement: Statement
    ) -> None:
        """Place a bundle. Raises SourceFault when the two may not be issued together or not here."""
        if self.mode == "supervisor":
            raise main.fault("a supervisor cannot issue bundles", hint="is `.worker` missing?")
        check_bundle(main, aux)
        self._open_code(section, main)
        if main.form.mnemonic != "rpt":
            self._place(section, (main, aux), statement)
            return
        section.require_alignment(8)
        if section.offset % 8 and self.allow_optimizations:
            if aux.mnemonic == "fnop":
                self._place(section, (main,), statement)
            else:
                self._place(section, (_NOP,), statement)
                self._place(section, (main, aux), statement)
        else:
            self._place(section, (main, aux), statement)
        self._expect_body(section, main, statement)

    def stand_in(self, section: Section, size: int, statement: Statement) -> None:
        """Keep the place of a faulty instruction, so that alignments after it are still judged rightly."""
        if section.executable and section.type != "nobits" and section.offset % 4 == 0:
            self.code.setdefault(section, {})[section.offset] = ((), statement)
            section.append(bytes(size))

    def _check_mode(self, instruction: Instruction) -> None:
        mode = instruction.form.mode
        if self.mode is not None and mode != "both" and mode != self.mode:
            raise instruction.fault(
                f"`{instruction.mnemonic}` with these operands is for the {mode} only",
                hint=f"this is {self.mode} code; `.{mode}` switches",
            )

    def _open_code(self, section: Section, instruction: Instruction) -> None:
        if not section.executable or section.type == "nobits":
            raise instruction.fault(
                f"section {section.name} is not executable", hint='use .text or .section name,"ax",@progbits'
            )
        if section.offset % 4:
            raise instruction.fault(
                "instructions must be 4-byte aligned", hint="put `.align 4` before this one"
            )
        section.require_alignment(4)

    def _place(self, section: Section, instructions: tuple[Instruction, ...], statement: Statement) -> None:
        coissue = len(instructions) == 2
        forms = tuple(item.form for item in instructions)
        self.code.setdefault(section, {})[section.offset] = (forms, statement)
        if section in self.origins:
            self.origin_of[section, section.offset] = self.origins[section]
        fault: SourceFault | None = None
        for instruction in instructions:
            data: bytes | None = None
            try:
                encoded = encode_instruction(instruction, coissue=coissue, final=False)
                if encoded is None:
                    self.code_fixups.append(
                        CodeFixup(
                            section, section.offset, instruction, coissue, instruction.statement or statement
                        )
                    )
                else:
                    data = b"".join(word.to_bytes(4, "little") for word in encoded.words)
            except SourceFault as found:
                fault = fault or SourceFault(
                    found.message, found.offset, hint=found.hint, statement=instruction.statement
                )
            section.append(data or bytes(4 * instruction.form.words))
        if fault is not None:
            raise fault

    def _expect_body(self, section: Section, instruction: Instruction, statement: Statement) -> None:
        if section.offset % 8:
            raise instruction.fault(
                "the body of this rpt would not be 8-byte aligned",
                hint="bundle the rpt with fnop (or drop it), put a nop before it, or .allow_optimizations",
            )
        self.repeats.append(RepeatBody(section, section.offset, instruction, statement))

    def emit_value(self, section: Section, size: int, value: Value, place: int, statement: Statement) -> None:
        """Place a number or address of `size` bytes."""
        if isinstance(value, int):
            section.append(pack(value, size, place))
            return
        self.data_fixups.append(DataFixup(section, section.offset, size, value, place, statement))
        section.append(bytes(size))

    def emit_number(
        self, section: Section, value: Value, signed: bool, place: int, statement: Statement
    ) -> None:
        """Place a LEB128 number; an open one takes the bytes the layout foresees."""
        if isinstance(value, int):
            section.append(leb128(value, signed=signed))
            return
        index = len(self.number_fixups)
        if index == len(self.layout.lengths):
            self.layout.lengths.append(1)
        self.number_fixups.append(
            NumberFixup(section, section.offset, index, signed, value, place, statement)
        )
        section.append(bytes(self.layout.lengths[index]))

    def align(self, section: Section, alignment: int, fill: bytes | None, most: int | None) -> None:
        """Pad to a multiple of `alignment` with `fill`, unless that takes over `most` bytes.

        Without a fill, code is padded with nops and data with zeros.
        """
        section.require_alignment(alignment)
        count = -section.offset % alignment
        if most is not None and count > most:
            return
        if section.type == "nobits":
            section.reserve(count)
        elif section.executable and fill is None:
            section.append(bytes(count % 4) + _NOP_WORD * (count // 4))
        else:
            section.append(((fill or b"\0") * count)[:count])


def pack(value: int, size: int, place: int) -> bytes:
    """Little-endian bytes of a signed or unsigned number. Raises SourceFault when it does not fit."""
    if not -(1 << (8 * size - 1)) <= value < 1 << (8 * size):
        raise SourceFault(
            f"{value} ({value:#x}) does not fit in {size} byte{'s' if size != 1 else ''}", place
        )
    return (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
