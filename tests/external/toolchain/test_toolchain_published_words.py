"""Published texts assemble to the published words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tilewright.ipu21.isa import decode
from tilewright.ipu21.toolchain import AssemblyFaults, assemble, disassemble

pytestmark = pytest.mark.external

_FILE = Path(__file__).parents[1] / "isa" / "data" / "published-words.json"
VECTORS = [
    (int(word, 16), text)
    for group in json.loads(_FILE.read_text(encoding="utf-8"))["vectors"].values()
    for word, text in group
    if text not in (None, "INVALID")
]

# Two texts are errors of their sources: see the encoder's test of the same words.
SOURCE_ERRORS = {0x4180000D, 0x42800001}
# The published text names one of two words; the assembler chooses the other.
OTHER_ENCODING = {
    0x2000002A, 0x2600002A, 0x2E00002A, 0x3100002A, 0x3700002A,  # zero-extended where sign-extended fits
    0x52EFC000, 0x52EFF000, 0x52EFD000, 0x52FFD000,  # a high immediate of zero
}  # fmt: skip
# A load that discards both halves into one register pair: decoded, but never assembled (known).
NOT_ASSEMBLED = {0x460EA0E0}


def statement(word: int, text: str) -> str:
    """The text as a whole source: without symbol annotations, with the payload or body that must follow."""
    text = re.sub(r"\s*<.*>$", "", text)
    text = re.sub(r"\b(SYNCZONE_\w+)", r"TEXCH_\1", text) if "TEXCH" not in text else text
    if text.startswith("sendpicp"):
        text += ", 0, 0, 0"
    if text.startswith("rpt"):
        text = f"nop\n{text}\n{{ nop ; fnop }}"
    if word >> 31 and not text.startswith("sendpicp"):
        form = decode(word).form
        text = f"{{ {text} ; fnop }}" if form.pipeline == "main" else f"{{ nop ; {text} }}"
    return text


@pytest.mark.parametrize(("word", "text"), VECTORS)
def test_published_text(word: int, text: str) -> None:
    source = statement(word, text)
    if word in NOT_ASSEMBLED:
        with pytest.raises(AssemblyFaults):
            assemble(source)
        return
    data = assemble(source).section(".text").data
    words = [int.from_bytes(data[index : index + 4], "little") for index in range(0, len(data), 4)]
    if word in SOURCE_ERRORS or word in OTHER_ENCODING:
        assert word not in words
    else:
        assert word in words


@pytest.mark.parametrize("word", sorted({word for word, _ in VECTORS}))
def test_disassembly_assembles_back(word: int) -> None:
    code = word.to_bytes(4, "little")
    assert assemble(disassemble(code)).section(".text").data == code
