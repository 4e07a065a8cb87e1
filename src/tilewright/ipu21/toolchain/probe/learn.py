"""From assembled samples to encodings, and what differs from our table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...isa.enums import ENUMS
from ...isa.forms import FORMS, Form
from ...overlay import FormOverlay, Overlay, Pieces
from ..objects import ObjectFile
from .outside import Refused
from .samples import Sample, base_operands, flag_samples, form_samples, raw_bits, raw_of, source_of

BATCH = 48
"""Forms that share one file at first; a file that is refused is halved until the culprits are alone."""

Assemble = Callable[[str], ObjectFile]
Progress = Callable[[int, int], None]


@dataclass
class Finding:
    """What one form taught.

    Attributes:
        verdict: `same`, `differs`, `refused`, `partly` (a field is left to the linker, so it was not seen) or
            `unexplained` (the words do not depend on the operands bit by bit).
        encoding: what was found, None when refused or unexplained.
        text: the reason, or what differs, on one line.
    """

    form: Form
    verdict: str
    encoding: FormOverlay | None = None
    text: str = ""


@dataclass
class ProbeReport:
    """Everything learnt from one assembler.

    Attributes:
        findings: one per form of the table, in its order.
        flags: family -> name -> number it has there. refused: flag name -> why.
        contradictions: names to which two forms gave different numbers.
    """

    assembler: str
    findings: list[Finding]
    flags: dict[str, dict[str, int]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    contradictions: list[str] = field(default_factory=list)

    def count(self, verdict: str) -> int:
        return sum(finding.verdict == verdict for finding in self.findings)

    @property
    def changed_flags(self) -> dict[str, tuple[int, int]]:
        """Flag name -> (our number, theirs) where they differ."""
        return {
            name: (ENUMS[family][name], number)
            for family, values in self.flags.items()
            for name, number in values.items()
            if ENUMS[family][name] != number
        }

    def overlay(self) -> Overlay:
        """The overlay that makes our tool chain and simulator agree with this assembler."""
        refused = {item.form.text: item.text for item in self.findings if item.verdict == "refused"}
        return Overlay(
            assembler=self.assembler,
            forms={
                item.form.text: item.encoding
                for item in self.findings
                if item.verdict == "differs" and item.encoding is not None
            },
            constants={family: dict(values) for family, values in self.flags.items() if values},
            refused=refused | self.refused,
        )


def probe(
    assemble: Assemble,
    *,
    assembler: str = "",
    forms: Sequence[Form] = FORMS,
    batch: int = BATCH,
    progress: Progress | None = None,
) -> ProbeReport:
    """Assemble samples of every form and flag name, and compare with the table.

    Args:
        assemble: takes a source, gives its object; raises Refused.
        batch: forms per file.
        progress: called with forms done and all forms.
    """
    findings: dict[Form, Finding] = {}
    for begin in range(0, len(forms), batch):
        _probe_forms(assemble, list(forms[begin : begin + batch]), findings)
        if progress is not None:
            progress(len(findings), len(forms))
    report = ProbeReport(assembler, [findings[form] for form in forms])
    _probe_flags(assemble, findings, report)
    return report


def _probe_forms(assemble: Assemble, forms: list[Form], findings: dict[Form, Finding]) -> None:
    samples = [sample for form in forms for sample in form_samples(form)]
    try:
        words, linked = _words(assemble(source_of(samples)), samples)
    except Refused as refusal:
        if len(forms) == 1:
            findings[forms[0]] = Finding(forms[0], "refused", text=str(refusal))
            return
        middle = len(forms) // 2
        _probe_forms(assemble, forms[:middle], findings)
        _probe_forms(assemble, forms[middle:], findings)
        return
    position = 0
    for form in forms:
        mine = [sample for sample in samples[position:] if sample.form is form]
        span = slice(position, position + len(mine))
        findings[form] = _learn(form, mine, words[span], linked[span])
        position += len(mine)


def _words(item: ObjectFile, samples: Sequence[Sample]) -> tuple[list[int], list[bool]]:
    """The 64 bits of each sample (words two and on are the payload), and whether a relocation touches it."""
    places = {symbol.name: symbol for symbol in item.symbols if symbol.section is not None}
    words, linked = [], []
    for number, sample in enumerate(samples):
        symbol = places.get(f"probe_{number}")
        if symbol is None or symbol.section is None:
            raise Refused(f"its object has no symbol probe_{number}")
        section = item.sections[symbol.section]
        size = 4 * sample.form.words
        data = section.data[symbol.value : symbol.value + size]
        if len(data) < size:
            raise Refused(f"its object ends before probe_{number}")
        words.append(int.from_bytes(data, "little"))
        linked.append(
            any(symbol.value <= entry.offset < symbol.value + size for entry in section.relocations)
        )
    return words, linked


def _learn(form: Form, samples: list[Sample], words: list[int], linked: list[bool]) -> Finding:
    """Where each operand bit is. The base comes first, checks last."""
    base_word, base = words[0], base_operands(form)
    where: list[dict[int, int]] = [{} for _ in form.operands]
    partly = linked[0]
    for sample, word, open_ in zip(samples[1:], words[1:], linked[1:], strict=True):
        if sample.bit is None:
            continue
        index, bit = sample.bit
        change = word ^ base_word
        if open_ and change == 0:
            partly = True
            continue
        if change == 0 or change & (change - 1):
            return Finding(form, "unexplained", text=f"`{sample.text}` changes bits {change:#x}")
        where[index][bit] = change.bit_length() - 1
    operands: list[Pieces] = []
    fixed = base_word
    for operand, bits, value in zip(form.operands, where, base, strict=True):
        pieces = _pieces(bits, 32 * operand.word)
        if pieces is None:
            return Finding(form, "unexplained", text=f"{operand.name} lies in the other word")
        operands.append(pieces)
        fixed ^= _placed(bits, raw_of(operand, value))
    for sample, word, open_ in zip(samples, words, linked, strict=True):
        expected = fixed
        for operand, bits, value in zip(form.operands, where, sample.operands, strict=True):
            expected |= _placed(bits, raw_of(operand, value))
        if expected != word and not (open_ or partly):
            return Finding(
                form, "unexplained", text=f"`{sample.text}` is {word:#x}, its bits say {expected:#x}"
            )
    encoding = FormOverlay(
        fixed & 0xFFFFFFFF,
        tuple(
            _with_zero_bits(operand.pieces, pieces)
            for operand, pieces in zip(form.operands, operands, strict=True)
        ),
    )
    if partly:
        return Finding(form, "partly", encoding, "a field is filled by the linker")
    difference = _difference(form, fixed, where)
    return Finding(form, "differs" if difference else "same", encoding, difference)


def _placed(bits: dict[int, int], raw: int) -> int:
    return sum(1 << place for bit, place in bits.items() if raw >> bit & 1)


def _pieces(bits: dict[int, int], word_base: int) -> Pieces | None:
    """Runs of consecutive bits; None if a bit lies outside the word at `word_base`."""
    pieces: list[tuple[int, int, int]] = []
    for bit in sorted(bits):
        place = bits[bit] - word_base
        if not 0 <= place < 32:
            return None
        if pieces:
            lsb, width, value_lsb = pieces[-1]
            if lsb + width == place and value_lsb + width == bit:
                pieces[-1] = (lsb, width + 1, value_lsb)
                continue
        pieces.append((place, 1, bit))
    return tuple(pieces)


def _with_zero_bits(known: Pieces, found: Pieces) -> Pieces:
    """Give a pair's or quad's number back its low bits, which are zero and so never seen."""
    lowest = min((value_lsb for _, _, value_lsb in known), default=0)
    pieces = sorted(found, key=lambda piece: piece[2])
    if pieces:
        lsb, width, value_lsb = pieces[0]
        missing = value_lsb - lowest
        if 0 < missing <= lsb:
            pieces[0] = (lsb - missing, width + missing, lowest)
    original = {piece[2]: order for order, piece in enumerate(known)}
    return tuple(sorted(pieces, key=lambda piece: original.get(piece[2], len(original))))


def _difference(form: Form, fixed: int, where: list[dict[int, int]]) -> str:
    parts = []
    if fixed & 0xFFFFFFFF != form.fixed:
        parts.append(f"opcode {fixed & 0xFFFFFFFF:#010x}, ours {form.fixed:#010x}")
    for operand, bits in zip(form.operands, where, strict=True):
        mine = {
            value_lsb + offset: 32 * operand.word + lsb + offset
            for lsb, width, value_lsb in operand.pieces
            for offset in range(width)
        }
        moved = {bit: place for bit, place in bits.items() if mine.get(bit) != place}
        if moved or set(raw_bits(operand)) - set(bits):
            shown = ", ".join(f"{bit}->{place}" for bit, place in sorted(bits.items()))
            parts.append(f"{operand.name} bits {shown}")
    return "; ".join(parts)


def _probe_flags(assemble: Assemble, findings: dict[Form, Finding], report: ProbeReport) -> None:
    """Every flag name in every form that takes it and whose encoding is known by now."""
    samples = [
        sample
        for form, finding in findings.items()
        if form.flag_family is not None and finding.encoding is not None
        for sample in flag_samples(form, list(ENUMS[form.flag_family]))
    ]
    for sample, outcome in zip(samples, _outcomes(assemble, samples), strict=True):
        name, family = sample.flag, sample.form.flag_family
        encoding = findings[sample.form].encoding
        assert name is not None and family is not None and encoding is not None
        if isinstance(outcome, str):
            report.refused.setdefault(name, outcome)
            continue
        index = next(index for index, operand in enumerate(sample.form.operands) if operand.names == family)
        number = 0
        for lsb, width, value_lsb in encoding.operands[index]:
            number |= (outcome >> lsb & ((1 << width) - 1)) << value_lsb
        known = report.flags.setdefault(family, {})
        if known.setdefault(name, number) != number:
            report.contradictions.append(f"{name} is {known[name]}, but {number} for {sample.form.mnemonic}")
    for values in report.flags.values():
        for name in values:
            report.refused.pop(name, None)


def _outcomes(assemble: Assemble, samples: list[Sample]) -> list[int | str]:
    """The word of each sample, or why there is none."""
    if not samples:
        return []
    try:
        return [*_words(assemble(source_of(samples)), samples)[0]]
    except Refused as refusal:
        if len(samples) == 1:
            return [str(refusal)]
        middle = len(samples) // 2
        return _outcomes(assemble, samples[:middle]) + _outcomes(assemble, samples[middle:])
