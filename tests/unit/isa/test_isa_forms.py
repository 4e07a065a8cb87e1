"""The instruction table itself: complete, unambiguous, well formed."""

from __future__ import annotations

import itertools

import pytest

from tilewright.ipu21.isa import FORMS, UNENCODABLE, Form, form, forms_named
from tilewright.ipu21.isa.forms import COISSUE, FORCED_SPELLING
from tilewright.ipu21.isa.table import table

pytestmark = pytest.mark.unit

ALL_BITS = 0xFFFFFFFF


def test_numbers_of_forms() -> None:
    assert len(FORMS) == 368
    assert len({item.text for item in FORMS}) == 368
    assert len({item.mnemonic for item in FORMS}) == 251
    assert [item.index for item in FORMS] == list(range(368))
    assert set(UNENCODABLE) == {"f16v8topk", "f32v4topk"}
    assert all(not forms_named(name) for name in UNENCODABLE)


def test_no_word_matches_two_forms() -> None:
    for one, other in itertools.combinations(FORMS, 2):
        assert (one.fixed ^ other.fixed) & one.mask & other.mask, f"{one.text} and {other.text}"


@pytest.mark.parametrize("item", FORMS, ids=lambda item: item.text.replace(" ", "_"))
def test_bits_are_used_once(item: Form) -> None:
    for word in range(item.words):
        used = 0
        if word == 0:
            used = COISSUE if item.coissue else 0
        for operand in item.operands:
            if operand.word != word:
                continue
            value_bits = 0
            for lsb, width, value_lsb in operand.pieces:
                bits = ((1 << width) - 1) << lsb
                assert not used & bits
                assert not item.fixed & bits or word
                used |= bits
                assert not value_bits & ((1 << width) - 1) << value_lsb
                value_bits |= ((1 << width) - 1) << value_lsb
        if word == 0:
            assert used | item.mask == ALL_BITS
            assert item.fixed & ~item.mask == 0
        else:
            assert used == ALL_BITS


def test_alignment_bits_belong_to_the_mask() -> None:
    pair = form("urand64 $aDst0:Dst0+1")
    assert pair.mask == 0x7FFFFF1F
    quad = form("f32v4acc $aSrc0:Src0+3")
    assert quad.mask == 0x7F3FFFFF
    short_quad = form("ld2xst64pace $aDst0:Dst0+3, $aSrc0:Src0+1, $mAddr0:Addr0+1+=, $mStride0, Strimm3x2")
    assert short_quad.mask & 0x000F0000 == 0x00030000


def test_only_the_send_group_has_bit_31_in_its_opcode_space() -> None:
    group = {item.mnemonic for item in FORMS if item.fixed >> 28 & 7 == 7}
    assert group == {"send", "sendoff", "sendpic", "sendpicp"}
    assert [item.mnemonic for item in FORMS if item.words == 2] == ["sendpicp"]
    assert {item.mnemonic for item in FORMS if not item.coissue} == {
        *("exitneg", "exitnz", "exitpos", "exitz", "run", "runall", "sync", "delay", "sans"),
        *("send", "sendoff", "sendpic", "delaypic", "delayxpic", "sendpicp"),
    }


def test_updated_registers_are_never_15() -> None:
    for item in FORMS:
        for operand in item.operands:
            if operand.kind == "mreg":
                updated = operand.suffix in ("+=", "++", "@", ">>")
                assert operand.maximum == (14 if updated else 15), item.text


def test_operand_order_follows_the_text() -> None:
    assert [item.name for item in form("sub $mDst0, $mSrc1, $mSrc0").operands] == ["mDst0", "mSrc1", "mSrc0"]
    picp = form("sendpicp count, srcWord, sctl, picSel")
    assert [item.name for item in picp.operands] == [
        *("count", "srcWord", "sctl", "picSel", "xpicSel", "xpicValue", "picValue"),
    ]


def test_spellings_that_force_a_form() -> None:
    assert forms_named("addz") == (form("add $mDst0, $mSrc0, zimm16"),)
    assert forms_named("adds") == (form("add $mDst0, $mSrc0, simm16"),)
    assert {item.pipeline for item in forms_named("orhi")} == {"main", "aux"}
    for item, spelling in FORCED_SPELLING.items():
        assert item in forms_named(spelling)
        assert spelling not in {other.mnemonic for other in FORMS}


def test_flag_families() -> None:
    families = {item.mnemonic: item.flag_family for item in FORMS if item.flag_family}
    assert families["f16v4hihov4amp"] == "TAMP_F16V4"
    assert families["f8v8hihov4amp"] == "TAMP_F8V8"
    assert families["f32sisoamp"] == "TAMP_F32"
    assert families["f8v8hihov4slic"] == "TSLIC_F16V4"
    assert families["f16v4stacc"] == "TSTACC"
    assert families["f32v2aop"] == "TAOP"
    assert set(families) == {
        item.mnemonic for item in FORMS if any(operand.name == "enumFlags" for operand in item.operands)
    }


def test_every_fact_has_a_source_and_a_tag() -> None:
    data = table()
    tags = set(data["evidence"])
    assert tags == {"known", "derived", "assumed", "open"}
    entries = [*data["forms"], *data["csrs"], *data["enums"].values(), *data["unencodable"]]
    entries.append(data["relocations"])
    for entry in entries:
        assert entry["evidence"] in tags
        assert entry["source"] or entry["evidence"] == "open"
        assert set(entry["source"]) <= set(data["sources"])


def test_relocation_numbers() -> None:
    values = table()["relocations"]["values"]
    assert values["R_COLOSSUS_20"] == 3
    assert values["R_COLOSSUS_19_S2"] == 8
    assert values["R_COLOSSUS_RUN"] == 9
