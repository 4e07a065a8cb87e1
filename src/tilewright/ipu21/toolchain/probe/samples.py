"""What to assemble in order to learn an encoding: a base and one sample per operand bit."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...isa.forms import FORCED_SPELLING, Form, Operand
from ...isa.registers import register_name

CHECKS = 3
"""Random samples per form that test whether the bits found explain everything."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An instruction of a form. `bit` is (operand index, bit of its raw value) where it differs from the
    base in that bit alone; None for the base itself and for checks.
    """

    form: Form
    operands: tuple[int, ...]
    bit: tuple[int, int] | None = None
    flag: str | None = None

    @property
    def text(self) -> str:
        """In the vendor's syntax: registers, numbers, or the flag's name; no alias."""
        texts = []
        for operand, value in zip(self.form.operands, self.operands, strict=True):
            if operand.is_register:
                texts.append(register_name(operand.kind, value) + operand.suffix)
            elif self.flag is not None and operand.names == self.form.flag_family:
                texts.append(self.flag)
            else:
                texts.append(str(value) if abs(value) < 10 else hex(value))
        mnemonic = FORCED_SPELLING.get(self.form, self.form.mnemonic)
        if mnemonic.endswith("hi") and mnemonic in ("orhi", "andhi", "andchi"):
            # These spellings are ours alone; the values chosen make the plain mnemonic mean the same.
            mnemonic = self.form.mnemonic
        return f"{mnemonic} {', '.join(texts)}" if texts else mnemonic


def raw_bits(operand: Operand) -> list[int]:
    """Bits of the raw value (after the shift) that can be one."""
    step = operand.step >> operand.shift
    return [
        value_lsb + offset
        for _, width, value_lsb in operand.pieces
        for offset in range(width)
        if 1 << (value_lsb + offset) >= max(step, 1)
    ]


def raw_of(operand: Operand, value: int) -> int:
    """The raw value: shifted down, in two's complement of the operand's width."""
    raw = value >> operand.shift
    return raw & ((1 << operand.width) - 1) if operand.kind == "simm" else raw


def value_of(operand: Operand, raw: int) -> int:
    """The operand value with these raw bits."""
    if operand.kind == "simm" and raw >> (operand.width - 1) & 1:
        raw -= 1 << operand.width
    return raw << operand.shift


def base_operands(form: Form) -> tuple[int, ...]:
    """Operands such that the base and every single-bit change of it mean this form and nothing illegal."""
    values = []
    destinations = 0
    for operand in form.operands:
        value = 0
        if operand.kind[0] == "a" and "Dst" in operand.name and operand.is_register:
            destinations += 1
        if operand.kind == "uimm_shl20":
            value = 3 << 20  # never zero, which would mean the form with low bits
        values.append(value)
    if destinations > 1:
        # Two loads into overlapping registers are refused.
        seen = 0
        for index, operand in enumerate(form.operands):
            if operand.kind[0] == "a" and operand.is_register and "Dst" in operand.name:
                values[index] = 4 if seen == 0 else 14
                seen += 1
    return tuple(values)


def form_samples(form: Form) -> Iterator[Sample]:
    """The base, one sample per operand bit, then random checks."""
    base = base_operands(form)
    yield Sample(form, base)
    for index, operand in enumerate(form.operands):
        for bit in raw_bits(operand):
            value = value_of(operand, raw_of(operand, base[index]) ^ 1 << bit)
            if operand.accepts(value):
                yield Sample(form, (*base[:index], value, *base[index + 1 :]), (index, bit))
    chance = random.Random(form.text)
    for _ in range(CHECKS if form.operands else 0):
        yield Sample(form, _random_operands(form, base, chance))


def _random_operands(form: Form, base: tuple[int, ...], chance: random.Random) -> tuple[int, ...]:
    """Legal operands with about half of the bits changed; destinations stay apart as in the base."""
    values = []
    for operand, value in zip(form.operands, base, strict=True):
        apart = operand.kind[0] == "a" and "Dst" in operand.name and value in (4, 14)
        short = form.mnemonic == "rpt" and operand is form.operands[-1]
        if apart:
            values.append(value)
            continue
        for _ in range(20):
            raw = raw_of(operand, value)
            for bit in raw_bits(operand):
                raw ^= chance.getrandbits(1) << bit if not short or bit < 3 else 0
            candidate = value_of(operand, raw)
            if operand.accepts(candidate) and not (operand.kind == "uimm_shl20" and candidate == 0):
                value = candidate
                break
        values.append(value)
    return tuple(values)


def flag_samples(form: Form, names: Sequence[str]) -> Iterator[Sample]:
    """The form's base with each flag name."""
    for name in names:
        yield Sample(form, base_operands(form), flag=name)


def source_of(samples: list[Sample]) -> str:
    """One source with the samples in order, each behind a label `probe_N`."""
    lines = ['.section .text.probe, "ax"', ".balign 8"]
    mode = ""
    for number, sample in enumerate(samples):
        wanted = ".supervisor" if sample.form.mode == "supervisor" else ".worker"
        if wanted != mode:
            lines.append(wanted)
            mode = wanted
        if sample.form.words > 1:
            lines.append(".balign 8")
        if sample.form.mnemonic == "rpt":
            lines += [".balign 8", "nop"]  # so that the body is 8-byte aligned
        lines += [f"probe_{number}:", f"    {sample.text}"]
        if sample.form.mnemonic == "rpt":
            lines += ["    { nop ; fnop }"] * (sample.operands[-1] + 1)
    return "\n".join([*lines, ""])
