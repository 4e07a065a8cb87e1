"""One written instruction: from text to a form and operands, and on to words once all values are known."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from ...errors import TilewrightError
from ..isa.csrs import UPPER, csr_name, csr_number
from ..isa.encode import encode
from ..isa.forms import Form, Operand
from . import relocations
from .diagnostics import SourceFault
from .expressions import Address, Value, evaluate
from .matching import Candidate, match
from .operands import Written
from .statements import Statement

_WORD_LIMIT = 1 << 32


@dataclass(slots=True)
class Instruction:
    """An instruction whose form is settled up to the choice of an immediate encoding.

    All candidates share registers, pipeline, mode and flags, so `form` (the first) speaks for them there.
    `encodings` remembers the words outside (False) and inside (True) a bundle once they are known.
    """

    mnemonic: str
    candidates: tuple[Candidate, ...]
    operands: list[Written]
    offset: int
    statement: Statement | None = None
    encodings: dict[bool, Encoded] = field(default_factory=dict)

    def again(self, offset: int, statement: Statement) -> Instruction:
        """The same instruction written at another place."""
        return Instruction(self.mnemonic, self.candidates, self.operands, offset, statement, self.encodings)

    def fault(self, message: str, *, hint: str | None = None) -> SourceFault:
        """A fault of this instruction."""
        return SourceFault(message, self.offset, hint=hint, statement=self.statement)

    @property
    def form(self) -> Form:
        return self.candidates[0].form

    def register(self, index: int) -> int:
        """Number of the form's register operand `index`."""
        candidate = self.candidates[0]
        argument = candidate.arguments[index]
        if argument is None:
            return candidate.values[index]
        value = self.operands[argument].value
        assert isinstance(value, int)
        return value


@dataclass(frozen=True, slots=True)
class Encoded:
    """Words of an instruction, and the relocation of the first, if any: type, value, where written."""

    words: tuple[int, ...]
    relocation: tuple[int, Address, int] | None = None


def read_instruction(
    mnemonic: str, operands: list[Written], offset: int, statement: Statement
) -> Instruction:
    """Settle the form. Raises SourceFault."""
    return Instruction(mnemonic, match(mnemonic, operands, offset), operands, offset, statement)


def _named(operand: Operand, value: Value, offset: int) -> Value:
    """`value` with a control register's number put into the space the operand counts in."""
    if (
        isinstance(value, Address)
        and value.modifier is None
        and not value.symbol.defined
        and value.addend == 0
    ):
        number = csr_number(value.symbol.name)
        if number is not None:
            value = number
    if not isinstance(value, int):
        return value
    if operand.names == "upper_csr":
        if value >= UPPER:
            return value - UPPER
    elif value >= UPPER:
        name = csr_name(value)
        raise SourceFault(
            f"control register {'$' + name if name else value} is reached only with an $a register",
            offset,
            hint="use uget or uput",
        )
    return value


def _normalised(operand: Operand, value: int) -> int:
    """The value in the range the operand is written in: high immediates may be given negative."""
    if operand.kind == "uimm_shl20" and -(1 << 31) <= value < 0:
        return value + _WORD_LIMIT
    return value


def _settle(candidate: Candidate, written: list[Value], operands: list[Written]) -> list[Value]:
    values: list[Value] = []
    for operand, argument, fixed in zip(
        candidate.form.operands, candidate.arguments, candidate.values, strict=True
    ):
        if argument is None:
            values.append(fixed)
            continue
        value = written[argument]
        if operand.names in ("csr", "upper_csr"):
            value = _named(operand, value, operands[argument].offset)
        if isinstance(value, int):
            value = _normalised(operand, -value if argument in candidate.negated else value)
        values.append(value)
    return values


def _relocation(operand: Operand, form: Form, value: Address, offset: int) -> int:
    """The relocation type that fills this operand."""
    if value.modifier is not None:
        number = named_relocation(value.modifier, offset)
        if number != natural_relocation(operand, form) and not fills(relocations.TYPES[number], operand):
            raise SourceFault(f"@{value.modifier} does not fill this operand of `{form.mnemonic}`", offset)
        return number
    natural = natural_relocation(operand, form)
    if natural is None:
        raise SourceFault(
            f"`{form.mnemonic}` needs a number here, but {value.symbol.name} is known only after linking",
            offset,
            hint="no relocation fills it"
            if operand.kind != "simm"
            else "a sign-extended field cannot hold an address",
        )
    return natural


def named_relocation(spelling: str, offset: int) -> int:
    """The relocation type of a spelling after `symbol@`. Raises SourceFault."""
    number = relocations.BY_SPELLING.get(spelling)
    if number is None:
        known = ", ".join(f"@{item}" for item in relocations.BY_SPELLING)
        raise SourceFault(f"there is no relocation @{spelling}", offset, hint=f"there are {known}")
    return number


def natural_relocation(operand: Operand, form: Form) -> int | None:
    """The relocation type an address in this operand takes without being told, or None if there is none."""
    if operand.kind == "word_address":
        return relocations.R19_S2
    if operand.kind != "uimm":
        return None
    if form.mnemonic in ("run", "runall") and operand.width == 16:
        return relocations.RUN
    if operand.pieces[0][0] == 0 and len(operand.pieces) == 1:
        if operand.width == 20:
            return relocations.R20
        if operand.width == 16:
            return relocations.R16
    return None


def fills(kind: relocations.RelocationType, operand: Operand) -> bool:
    """True if the relocation writes exactly this operand's bits."""
    return (
        operand.pieces[0][0] == 0
        and len(operand.pieces) == 1
        and kind.bits == operand.width
        and kind.number != relocations.RUN
    ) or (operand.kind == "word_address" and kind.number in (relocations.R18_S2, relocations.R19_S2))


def encode_instruction(instruction: Instruction, *, coissue: bool, final: bool) -> Encoded | None:
    """Words of an instruction, or None while a value in it is still open and this is not the `final` attempt.

    Raises SourceFault for values the encoding cannot hold.
    """
    known = instruction.encodings.get(coissue)
    if known is not None:
        return known
    written: list[Value] = []
    for operand in instruction.operands:
        value = operand.value
        if not isinstance(value, int):
            if not final and not (_is_csr(instruction, value)):
                return None
            try:
                value = evaluate(value) if not _is_csr(instruction, value) else value
            except SourceFault as fault:
                raise SourceFault(fault.message, fault.offset or operand.offset, hint=fault.hint) from None
        written.append(value)

    refusal: tuple[int, Value] | None = None
    for candidate in instruction.candidates:
        form = candidate.form
        values = _settle(candidate, written, instruction.operands)
        relocated = [index for index, value in enumerate(values) if not isinstance(value, int)]
        numbers = [value if isinstance(value, int) else 0 for value in values]
        bad = [
            index
            for index, operand in enumerate(form.operands)
            if index not in relocated and not operand.accepts(numbers[index])
        ]
        if bad:
            refusal = refusal or (bad[0], values[bad[0]])
            continue
        relocation = None
        if relocated:
            index = relocated[0]
            value = values[index]
            assert isinstance(value, Address)
            place = _written_offset(instruction, candidate, index)
            if len(relocated) > 1:
                raise SourceFault("two operands of one instruction cannot both be addresses", place)
            if (
                candidate is not instruction.candidates[-1]
                and natural_relocation(form.operands[index], form) is None
            ):
                continue
            if candidate.arguments[index] in candidate.negated:
                raise SourceFault("an address cannot be negated", place)
            relocation = (_relocation(form.operands[index], form, value, place), value, place)
        try:
            result = Encoded(encode(form, *numbers, coissue=coissue), relocation)
        except TilewrightError as error:
            raise SourceFault(error.what, instruction.offset, hint=error.hint) from None
        if relocation is None:
            instruction.encodings[coissue] = result
        return result
    assert refusal is not None
    raise _out_of_range(instruction, *refusal)


def _is_csr(instruction: Instruction, value: Value) -> bool:
    """True for a bare control register name in an operand that takes one."""
    if not isinstance(value, Address) or value.symbol.defined:
        return False
    takes = any(operand.names in ("csr", "upper_csr") for operand in instruction.form.operands)
    return takes and csr_number(value.symbol.name) is not None


def _written_offset(instruction: Instruction, candidate: Candidate, index: int) -> int:
    argument = candidate.arguments[index]
    return instruction.offset if argument is None else instruction.operands[argument].offset


def _out_of_range(instruction: Instruction, index: int, value: Value) -> SourceFault:
    """Why operand `index` of the first candidate cannot be `value`, with the ranges of all candidates."""
    offset = _written_offset(instruction, instruction.candidates[0], index)
    if instruction.form.operands[index].is_register:
        return SourceFault(
            f"register {value} cannot stand here in `{instruction.mnemonic}`",
            offset,
            hint="a register the instruction updates cannot be $m15",
        )
    ranges = []
    for candidate in instruction.candidates:
        operand = candidate.form.operands[index]
        low, high = operand.minimum, operand.maximum
        if candidate.negated:
            low, high = -high, -low
        ranges.append(
            f"{low:#x} to {high:#x} in steps of {operand.step:#x}" if operand.step > 1 else f"{low} to {high}"
        )
    shown = f"{value} ({value:#x})" if isinstance(value, int) and abs(value) > 9 else str(value)
    return SourceFault(
        f"{shown} does not fit `{instruction.mnemonic}`",
        offset,
        hint="it takes " + " or ".join(dict.fromkeys(ranges)),
    )


@functools.cache
def written_registers(form: Form) -> tuple[tuple[int, str, int, bool], ...]:
    """Registers a form writes: (operand index, file `m` or `a`, how many from its number, is a plain
    destination).
    """
    found = []
    for index, operand in enumerate(form.operands):
        if not operand.is_register:
            continue
        destination = "Dst" in operand.name
        if destination or operand.suffix in ("+=", "++", "@", ">>"):
            found.append((index, operand.kind[0], operand.step, destination))
    return tuple(found)


def load_constant(operands: list[Written], offset: int, statement: Statement) -> list[Instruction]:
    """`ldconst` as one or two instructions: setzi below 2^20, `or` with a high immediate, or both
    (known).

    An address takes one setzi: all of tile memory lies below 2^20.
    """
    if len(operands) != 2 or operands[0].kind not in ("mreg", "areg") or operands[1].kind != "expr":
        raise SourceFault("`ldconst` takes a register and a value", offset)
    target, value = operands
    if not isinstance(value.value, int):
        return [read_instruction("setzi", operands, offset, statement)]
    number = value.value
    if not -(1 << 31) <= number < 1 << 32:
        raise SourceFault(f"{number} ({number:#x}) does not fit in 32 bits", value.offset)
    number &= 0xFFFFFFFF
    low, high = number & 0xFFFFF, number & 0xFFF00000
    result = []
    if low or not high:
        result.append(
            read_instruction("setzi", [target, Written("expr", low, value.offset)], offset, statement)
        )
    if high:
        source = target if low else Written(target.kind, 15, target.offset)
        result.append(
            read_instruction("or", [target, source, Written("expr", high, value.offset)], offset, statement)
        )
    return result
