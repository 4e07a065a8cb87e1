"""Decoding and encoding judged by 556 instruction words other people published with their text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tilewright.ipu21.isa import Instruction, InvalidInstruction, decode, encode, format_instruction

pytestmark = pytest.mark.external

_DATA = json.loads((Path(__file__).parent / "data" / "published-words.json").read_text(encoding="utf-8"))
VECTORS = [(int(word, 16), text) for group in _DATA["vectors"].values() for word, text in group]

# Two texts are errors of their sources.
MASTER_ZONE = 0x4180000D
"""The boot loader's listing labels zone 13, the master form, with the name of the plain zone 5."""
AND_WITHOUT_BIT_15 = 0x42800001
"""One encoder forgets a bit of `and $m, $m, imm`; the other sources have 0x42808001 for the same text."""
SOURCE_ERRORS = {MASTER_ZONE, AND_WITHOUT_BIT_15}

# Our text forces the form where the published text would assemble to another word.
FORCED = {
    "addz": "add",
    "cmpeqz": "cmpeq",
    "maxz": "max",
    "minz": "min",
    "subz": "sub",
    "andhi": "and",
    "andchi": "andc",
}
# The vendor writes the aux-side CSR accesses with the main-side mnemonics.
AUX_CSR = {"uget": "get", "uput": "put"}
# The vendor's disassembler also shows `or` with a zero immediate in the high bits as a move.
HIGH_ZERO_MOVES = {0x52EFD000, 0x52FFD000}


def _split(text: str) -> tuple[str, list[str]]:
    mnemonic, _, rest = text.partition(" ")
    return mnemonic, [item.strip() for item in rest.split(",")] if rest else []


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?(0x[0-9a-f]+|\d+)", text) is not None


def agrees(published: str, instruction: Instruction) -> bool:
    """True if a published text means the instruction.

    Numbers are compared as values, registers and names as printed. Dropped from the comparison: symbol
    annotations, the `TEXCH_` prefix of zone names, the payload of `sendpicp` (published as one word), forced
    spellings.
    """
    theirs, their_operands = _split(re.sub(r"\s*<.*>$", "", published))
    ours, our_operands = _split(format_instruction(instruction, mode="supervisor"))
    ours = AUX_CSR.get(ours, FORCED.get(ours, ours))
    if instruction.form.mnemonic == "sendpicp":
        our_operands = our_operands[:4]
    if ours != theirs or len(our_operands) != len(their_operands):
        return False
    # Printed aliases have register operands only, so no number is ever compared with the wrong operand here.
    pairs = zip(their_operands, our_operands, instruction.operands, strict=False)
    return all(
        int(their, 0) == value if _is_number(their) else their == our.removeprefix("TEXCH_")
        for their, our, value in pairs
    )


def test_the_whole_collection_is_here() -> None:
    assert len(VECTORS) == 556
    assert sum(text is None for _, text in VECTORS) == 11
    assert sum(text == "INVALID" for _, text in VECTORS) == 24


IDS = [f"{word:08x}-{position}" for position, (word, _) in enumerate(VECTORS)]


@pytest.mark.parametrize(("word", "text"), VECTORS, ids=IDS)
def test_published_word(word: int, text: str | None) -> None:
    if text == "INVALID":
        with pytest.raises(InvalidInstruction):
            decode(word)
        return
    if word in SOURCE_ERRORS:
        return
    instruction = decode(word)
    assert encode(instruction.form, *instruction.operands, coissue=instruction.coissue)[0] == word
    if text is None:
        return
    if word in HIGH_ZERO_MOVES:
        assert format_instruction(instruction) == text.replace("mov", "orhi") + ", 0"
    else:
        assert agrees(text, instruction), f"{format_instruction(instruction)!r} against {text!r}"


def test_words_where_the_source_errs() -> None:
    assert format_instruction(decode(MASTER_ZONE)) == "sync TEXCH_SYNCZONE_GS1H_MSR"
    assert format_instruction(decode(0x41800005)) == "sync TEXCH_SYNCZONE_GS1H"
    with pytest.raises(InvalidInstruction):
        decode(AND_WITHOUT_BIT_15)
    assert format_instruction(decode(AND_WITHOUT_BIT_15 | 0x8000)) == "and $m0, $m8, 1"


def test_the_comparison_can_fail() -> None:
    instruction = decode(0x22440001)
    assert agrees("add $m4, $m4, 1", instruction)
    assert agrees("add $m4, $m4, 0x1", instruction)
    for wrong in ("add $m4, $m4, 2", "add $m3, $m4, 1", "sub $m4, $m4, 1", "add $m4, $m4"):
        assert not agrees(wrong, instruction)
    assert not agrees("sync SYNCZONE_LOCAL", decode(0x41800003))
