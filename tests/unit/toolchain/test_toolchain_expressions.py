"""Expressions against Python's operators where they agree, hand values where they do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.toolchain import AssemblyFaults, assemble
from tilewright.ipu21.toolchain.scope import is_register

pytestmark = pytest.mark.unit


def value(expression: str, prelude: str = "") -> int:
    data = assemble(f"{prelude}\n.data\n.quad {expression}\n").section(".data").data
    return int.from_bytes(data[-8:], "little", signed=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("7/2", 3),
        ("-7/2", -3),
        ("-7%3", -1),
        ("7%-3", 1),
        ("1<<4|1", 17),
        ("~0", -1),
        ("!0 + !5", 1),
        ("0x10UL + 3u", 19),
        (r"'a + 1", 98),
        (r"'\' + 1", 40),
        (r"'\'' + '\\'", 39 + 92),
        (r"'\n - '\t'", 1),
        ("- - 3", 3),
        ("0x10 + 0b101 + 010", 16 + 5 + 8),
        ("'a'", 97),
        (r"'\n'", 10),
        ("3 == 3", -1),
        ("(3 < 2) || (2 > 1)", 1),
        ("1 && 0", 0),
        ("10 - 4 - 3", 3),
        ("64 >> 2 >> 1", 8),
        ("1.0h", 0x3C00),
        ("-1.0h", 0xBC00),
        ("1.5 + 0", 0x3FC00000),
        ("-2.0f", 0xC0000000),
        ("TEXCH_SYNCZONE_LOCAL", 2),
        ("$TILE_ID", 3),
        ("CSR_S_TILE_ID__INDEX", 3),
        ("CSR_W_FP_CTL__RND__MASK << CSR_W_FP_CTL__RND__SHIFT", 7 << 16),
        ("CTXT_WORKERS", 6),
        ("$CWEI_15_3", 63),
    ],
)
def test_values(text: str, expected: int) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 << 3", 1 + (2 << 3)),
        ("6 & 3 + 1", (6 & 3) + 1),
        ("1 | 2 & 3", (1 | 2) & 3),
        ("2 | 1 ^ 3", (2 | 1) ^ 3),
        ("4 - 2 == 2 & 1", 0),
        ("1 << 2 * 3", (1 << 2) * 3),
        ("8 - 6 / 2 - 1", 4),
        ("2 < 3 == -1", -1),
    ],
)
def test_operator_order_is_that_of_gnu_and_not_of_c(text: str, expected: int) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1/0", "division by zero"),
        ("5%0", "division by zero"),
        ("1<<64", "shift by 64"),
        ("1<<-1", "shift by -1"),
        ("1<<63<<63", "64 bits"),
        ("(1", r"expected `\)`"),
        ("1+", "expected an expression"),
        ("*2", "expected an expression"),
        ("08", "octal"),
        ("0x1ffffffffffffffff", "64 bits"),
        ("$m0", "a number is needed"),
        ("$TILEID", "did you mean"),
        ("(" * 200 + "1" + ")" * 200, "nested too deeply"),
        ("-" * 200 + "1", "nested too deeply"),
        ("70000.0h", "out of range"),
        ("1b", "no label 1"),
    ],
)
def test_faults(text: str, message: str) -> None:
    with pytest.raises(AssemblyFaults, match=message):
        value(text)


def test_label_differences_forward_and_backward() -> None:
    source = ".text\na: nop\nnop\nb:\n.data\n.long b-a, (c-a)/4-1, a-b\n.text\nnop\nc:\n"
    data = assemble(source).section(".data").data
    assert [int.from_bytes(data[i : i + 4], "little", signed=True) for i in (0, 4, 8)] == [8, 2, -8]


def test_difference_across_sections_is_refused(faults: Callable[[str], AssemblyFaults]) -> None:
    error = faults(".text\na: nop\n.data\nb: .long a-b\n")
    assert "only after linking" in str(error)
    assert error.diagnostics[0].line == 4


def test_assigned_names_are_evaluated_where_used() -> None:
    source = ".set x, 1\n.data\n.byte x\n.set x, x+1\n.byte x\nx = 7\n.byte x\n"
    assert assemble(source).section(".data").data == bytes([1, 2, 7])


def test_assigned_name_used_before_its_definition() -> None:
    assert assemble(".data\n.byte late+1\n.set late, 4\n").section(".data").data == bytes([5])


def test_assigned_name_of_a_later_difference() -> None:
    source = ".set n, (b-a)/4\n.data\n.long n\n.text\na: nop\nnop\nb: nop\n"
    assert assemble(source).section(".data").data == (2).to_bytes(4, "little")


def test_names_of_the_source_come_before_known_constants() -> None:
    assert value("CTXT_WORKERS + CSR_W_WSR__INDEX", ".set CTXT_WORKERS, 40\n") == 41


def test_definition_by_itself_is_refused(faults: Callable[[str], AssemblyFaults]) -> None:
    assert "defined by itself" in str(faults(".set a, a\n"))
    assert "refers to itself" in str(faults(".data\n.long a\n.set a, b+1\n.set b, c+1\n.set c, a+1\n"))


_NUMBERS = st.integers(0, 1 << 20).map(str)
_EXPRESSIONS = st.recursive(
    _NUMBERS,
    lambda inner: (
        st.builds(
            lambda left, operator, right: f"({left} {operator} {right})",
            inner,
            st.sampled_from(["+", "-", "*", "&", "|", "^"]),
            inner,
        )
        | inner.map(lambda text: f"(-{text})")
        | inner.map(lambda text: f"(~{text})")
    ),
    max_leaves=6,
)


@given(_EXPRESSIONS)
def test_agrees_with_python(text: str) -> None:
    expected = int(eval(text))  # numbers and operators only, built above
    if -(1 << 63) <= expected < 1 << 63:
        assert value(text) == expected


@given(left=st.integers(-1000, 1000), right=st.integers(-50, 50).filter(bool))
def test_division_truncates_towards_zero(left: int, right: int) -> None:
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    assert value(f"{left} / {right}") == quotient
    assert value(f"{left} % {right}") == left - right * quotient


@pytest.mark.parametrize("name", ["$CWEI_16_0", "$CWEI_0_4", "$CWEI_99_9"])
def test_a_weight_that_does_not_exist_is_no_register(name: str) -> None:
    assert is_register("$CWEI_15_3") and not is_register(name)
    with pytest.raises(AssemblyFaults, match="there is no register"):
        value(name)
