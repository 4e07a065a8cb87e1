"""Registers, control registers, named constants and aliases."""

from __future__ import annotations

import pytest

from tilewright.ipu21.isa import (
    PROVISIONAL,
    aliases_named,
    constant,
    csrs,
    encode,
    parse_register,
    register_name,
)
from tilewright.ipu21.isa.aliases import ALIASES
from tilewright.ipu21.isa.enums import ENUMS, constant_name, constants

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$m0", ("mreg", 0)),
        ("$m15", ("mreg", 15)),
        ("$a7", ("areg", 7)),
        ("$m2:3", ("mpair", 2)),
        ("$a14:15", ("apair", 14)),
        ("$a4:7", ("aquad", 4)),
        ("$a4 : 7", ("aquad", 4)),
        ("$aq1", ("aquad", 4)),
        ("$lr", ("mreg", 10)),
        ("$sp", ("mreg", 11)),
        ("$mvertex_base", ("mreg", 13)),
        ("$mzero", ("mreg", 15)),
        ("$azero", ("areg", 15)),
        ("$azeros", ("apair", 14)),
        ("$azeroq", ("aquad", 12)),
    ],
)
def test_register(text: str, expected: tuple[str, int]) -> None:
    assert parse_register(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "m0",
        "$m16",
        "$a16",
        "$a1:2",
        "$a2:5",
        "$m0:3",
        "$a14:17",
        "$a0:2",
        "$a3:2",
        "$aq4",
        "$x",
        "",
        "$m0\n",
        "$m01",
        "$m٣",
    ],
)
def test_no_register(text: str) -> None:
    assert parse_register(text) is None


def test_register_names_read_back() -> None:
    for kind, size in (("mreg", 1), ("areg", 1), ("mpair", 2), ("apair", 2), ("aquad", 4)):
        for number in range(0, 16, size):
            assert parse_register(register_name(kind, number)) == (kind, number)
        for number in (-size, 16, *([1] if size > 1 else [])):
            with pytest.raises(ValueError, match="is no"):
                register_name(kind, number)


def test_csr_numbers() -> None:
    # Numbers of the published table of second-generation CSRs.
    assert csrs.csr_number("TILE_ID") == csrs.csr_number("$TILE_ID") == csrs.TILE_ID == 3
    assert (csrs.CCCSLOAD, csrs.INCOMING_MUX, csrs.EXCHANGE_ADJ) == (0x50, 0xA0, 0xAB)
    assert (csrs.FP_STS, csrs.TAS, csrs.FP_SCL) == (0x100, 0x108, 0x10A)
    assert (csrs.FP_INFMT, csrs.FP_ISCL) == (0x31, 0x33)
    assert csrs.csr_number("NO_SUCH") is None
    assert len(csrs.CSRS) == 59
    assert csrs.weight_number(15, 3) == 63
    with pytest.raises(ValueError, match="no weight"):
        csrs.weight_number(16, 0)


def test_csr_names_depend_on_the_mode() -> None:
    assert csrs.csr_name(1) is None
    assert csrs.csr_name(1, "supervisor") == "SSR"
    assert csrs.csr_name(1, "worker") == "WSR"
    assert csrs.csr_name(0) == csrs.csr_name(0, "worker") == "PC"
    assert csrs.csr_name(0xA0) == "INCOMING_MUX"
    assert csrs.csr_name(0xA0, "worker") is None
    for mode in ("supervisor", "worker"):
        names = [csrs.csr_name(number, mode) for number in range(0x200)]
        expected = {item.name for item in csrs.CSRS if item.context in ("both", mode)}
        assert {name for name in names if name is not None} == expected


def test_csr_fields() -> None:
    fp_ctl = csrs.csr("FP_CTL")
    assert fp_ctl is not None
    assert fp_ctl.field("RND") == (16, 3)
    with pytest.raises(KeyError):
        fp_ctl.field("NONE")
    for item in csrs.CSRS:
        used = 0
        for _, lsb, width in item.fields:
            bits = ((1 << width) - 1) << lsb
            assert not used & bits
            assert bits < 1 << 32
            used |= bits


def test_constants() -> None:
    assert constant("TEXCH_SYNCZONE_LOCAL") == 2
    assert constant("TEXCH_SYNCZONE_GS2H_MSR") == 15
    assert constant("TFPU_ROUND_ZERO") == 3
    assert constant("TAMP_F16V4_E4_P3") == 3
    assert constant("NO_SUCH") is None
    assert constant_name("TileSyncZone", 7) == "TEXCH_SYNCZONE_GS2H"
    assert constant_name("TAMP_F16V4", 16) == "TAMP_F16V4_E2_P0"
    assert constant_name("TAMP_F16V4", 63) is None
    assert constant_name("TAOP", 0) is None


def test_no_name_has_two_values() -> None:
    seen: dict[str, int] = {}
    for values in ENUMS.values():
        for name, value in values.items():
            assert seen.setdefault(name, value) == value
    assert constants() == seen


def test_provisional_names() -> None:
    assert {name.split("_")[0] for name in PROVISIONAL} == {"TAMP", "TSLIC", "TISTACC", "TSTACC"}
    assert len(PROVISIONAL) == 24 + 2 + 2 + 1
    assert "TSTACC_P0" not in PROVISIONAL
    for family in ("TAMP_F16V4", "TAMP_F32", "TAMP_F8V8"):
        assert len(set(ENUMS[family].values())) == len(ENUMS[family])


@pytest.mark.parametrize(
    ("mnemonic", "kinds", "written", "word"),
    [
        # Published words.
        ("nop", (), (), 0x19E00000),
        ("fnop", (), (), 0x1AD00000),
        ("zero", ("mreg",), (8,), 0x44F0F381),
        ("mov", ("mreg", "mreg"), (7, 0), 0x42079000),
        ("mov", ("mreg", "areg"), (15, 14), 0x5D0F00E0),
        ("movnz", ("mreg", "mreg", "mreg"), (15, 11, 10), 0x47BAFA00),
        ("get", ("areg", "uimm"), (15, 0), 0x510F0800),
        ("put", ("uimm", "areg"), (0, 15), 0x51F08000),
        # By definition of the alias.
        ("strap", (), (), 0x43F080FF),
        ("sub", ("mreg", "mreg", "simm"), (1, 2, 4), 0x2221FFFC),
        ("swap16", ("areg", "areg"), (1, 2), 0x58202614),
    ],
)
def test_alias(mnemonic: str, kinds: tuple[str, ...], written: tuple[int, ...], word: int) -> None:
    (alias,) = [item for item in aliases_named(mnemonic) if item.operands == kinds]
    operands = alias.expand(*written)
    assert encode(alias.form, *operands) == (word,)
    assert alias.contract(operands) == written


def test_aliases_stand_only_for_what_they_expand_to() -> None:
    (mov,) = [item for item in aliases_named("mov") if item.operands == ("mreg", "mreg")]
    assert mov.contract((1, 2, 3)) is None
    (swap,) = [item for item in aliases_named("swap16") if item.operands == ("mreg", "mreg")]
    assert swap.contract((1, 2, 3)) is None
    for alias in ALIASES:
        assert len(alias.arguments) == len(alias.form.operands)
        assert {index for index in alias.arguments if index is not None} == set(range(len(alias.operands)))
