"""How faults are gathered and shown."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import AssemblyError
from tilewright.ipu21.toolchain import AssemblyFaults, assemble

pytestmark = pytest.mark.unit

Faults = Callable[[str], AssemblyFaults]


def test_all_faults_in_source_order(faults: Faults) -> None:
    error = faults(
        "  addd $m0, $m0, 1\n\tbri .Lx\nnop\nadd $m0, $m0, 70000 # note\nsetzi $m0, late\n.set late, -1\n"
    )
    assert isinstance(error, AssemblyError)
    assert [(item.line, item.column) for item in error.diagnostics] == [(1, 3), (2, 6), (4, 15), (5, 12)]
    text = str(error)
    assert text.splitlines()[0] == "kernel.S: 4 faults in the source"
    assert "kernel.S:4:15: 70000 (0x11170) does not fit `add`" in text


def test_caret_stands_under_the_fault(faults: Faults) -> None:
    lines = str(faults("\tadd $m0, $m0, 70000")).splitlines()
    source, caret = lines[2], lines[3]
    assert source == "    \tadd $m0, $m0, 70000"
    assert caret == "    \t" + " " * len("add $m0, $m0, ") + "^"


def test_positions_in_bundles_and_behind_comments(faults: Faults) -> None:
    error = faults("/* two\nlines */ { add $m0, $m0, 1 ;\n   f32ad $a0, $a1, $a2 }\nnop; nop; addd $m1\n")
    assert [(item.line, item.column) for item in error.diagnostics] == [(3, 4), (4, 11)]


def test_cap(faults: Faults) -> None:
    error = faults("\n".join(f"bad{index}" for index in range(200)))
    assert len(error.diagnostics) == 50
    assert "first 50" in str(error)


def test_words_behind_a_hash_are_a_comment() -> None:
    item = assemble("#define A nop\n# defined by the caller\n#if you ask\n# if so\n# include me\nA\n")
    assert len(item.section(".text").data) == 4


def test_comment_forms() -> None:
    item = assemble("nop # a { b ; c\nnop // d } e\n/* f ; { */ nop /* g\n h */ ; nop\n#\n//\n")
    assert len(item.section(".text").data) == 16


def test_unclosed_comment(faults: Faults) -> None:
    assert "never closed" in str(faults("nop /* x"))


@given(
    st.text(alphabet=st.sampled_from("add$mafnop0123456789:;,{}()[]\"'\\.#/*+-<>=@% \n\tLbf"), max_size=80)
)
def test_any_text_is_assembled_or_refused_politely(text: str) -> None:
    try:
        assemble(text)
    except AssemblyFaults as error:
        assert error.diagnostics
        lines = text.split("\n")
        for item in error.diagnostics:
            assert 1 <= item.line <= len(lines)
            assert 1 <= item.column <= max(len(item.source), len(lines[item.line - 1])) + 1


_PIECES = st.sampled_from(
    """
    .macro M a|.endm|M 1|M|.if 1|.if x|.else|.endif|.rept 2|.endr|{|}|nop|fnop|{ nop ; fnop }|rpt $m0, 0
    .set x, 1|.set x, x+1|l:|1:|bri 1b|bri 1f|bri l|.long x|.irp q, 1, 2|.byte \\q|.data|.text|.align 8
    .byte 1|.exitm|\\a|.allow_optimizations
    """.replace("\n", "|").split("|")
)


@given(st.lists(_PIECES, max_size=14))
def test_any_order_of_statements_ends_well(pieces: list[str]) -> None:
    try:
        assemble("\n".join(pieces))
    except AssemblyFaults as error:
        assert error.diagnostics


def test_so_many_faults_of_cutting_too() -> None:
    """They are found before anything is read."""
    with pytest.raises(AssemblyFaults) as caught:
        assemble('"\n' * 60)
    assert len(caught.value.diagnostics) == 50
    assert "first 50" in str(caught.value)
