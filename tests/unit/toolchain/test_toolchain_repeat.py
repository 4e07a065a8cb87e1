"""rpt: alignment of the body in both modes, and what a body may hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.ipu21.toolchain import AssemblyFaults, assemble

pytestmark = pytest.mark.unit

Words = Callable[[str], list[int]]
Faults = Callable[[str], AssemblyFaults]

BODY = "{ nop ; fnop }"
OPTIMISE = ".allow_optimizations\n"
NOP = 0x19E00000


def test_plain_mode_takes_aligned_bodies(words: Words) -> None:
    assert words(f"nop\nrpt $m3, 0\n{BODY}")[1] == 0x4330A000
    assert words(f"{{ rpt $m3, 0 ; fnop }}\n{BODY}")[0] == 0xC330A000
    assert assemble(f"nop\nrpt $m3, 0\n{BODY}").section(".text").alignment == 8


def test_plain_mode_refuses_misaligned_bodies(faults: Faults) -> None:
    assert "8-byte aligned" in str(faults(f"rpt $m3, 0\n{BODY}"))
    error = faults(f"nop\n{{ rpt $m3, 0 ; fnop }}\n{BODY}")
    assert "8-byte aligned" in str(error)
    assert len(error.diagnostics) == 1
    assert ".allow_optimizations" in str(error)


def test_repairs(words: Words) -> None:
    """A lone rpt is bundled with fnop, a bundled one loses its fnop, and a nop goes before any other."""
    body = words(BODY)
    assert words(f"{OPTIMISE}rpt $m3, 0\n{BODY}") == [0xC330A000, 0x9AD00000, *body]
    assert words(f"{OPTIMISE}nop\n{{ rpt $m3, 0 ; fnop }}\n{BODY}") == [NOP, 0x4330A000, *body]
    add = "f32add $a0, $a1, $a2"
    assert words(f"{OPTIMISE}nop\n{{ rpt $m3, 0 ; {add} }}\n{BODY}") == [
        NOP,
        NOP,
        *words(f"{{ rpt $m3, 0 ; {add} }}\n{BODY}"),
    ]


@pytest.mark.parametrize("before", ["", "nop\n"])
@pytest.mark.parametrize(
    "rpt", ["rpt $m3, 0", "{ rpt $m3, 0 ; fnop }", "{ rpt $m3, 0 ; f32add $a0, $a1, $a2 }"]
)
def test_repaired_bodies_are_aligned_and_labels_follow(before: str, rpt: str) -> None:
    item = assemble(f"{OPTIMISE}{before}{rpt}\nbody: {BODY}\nafter: bri body\n")
    offset = item.symbol("body").value
    assert offset % 8 == 0
    assert item.symbol("after").value == offset + 8
    assert item.section(".text").alignment == 8


def test_body_length_by_labels(words: Words) -> None:
    assert words(f"nop\nrpt $m3, (2f-1f)/8-1\n1:\n{BODY}\n{BODY}\n2:")[1] == 0x4330A001
    assert words(f"nop\nrpt 7, 1\n{BODY}\n{BODY}")[1] == 0x40000701


@pytest.mark.parametrize(
    ("body", "message", "line"),
    [
        ("nop\nnop", "takes bundles only", 3),
        (f"{BODY}\nnop", "takes bundles only", 4),
        (f"{BODY}\n{{ brz $m0, 0 ; fnop }}", "`brz` cannot be in the body", 4),
        (f"{BODY}\n{{ get $m0, 0 ; fnop }}", "`get` cannot be in the body", 4),
        (f"{BODY}\n{{ nop ; uput $FP_CLR, $a0 }}", "`uput` cannot be in the body", 4),
        (f"{BODY}\n{{ rpt $m0, 0 ; fnop }}\n{BODY}", "`rpt` cannot be in the body", 4),
        (BODY, "ends before its body does", 2),
        (f"{BODY}\n.long 1, 2", "has data here", 2),
    ],
)
def test_illegal_bodies(faults: Faults, body: str, message: str, line: int) -> None:
    error = faults(f"nop\nrpt $m3, 1\n{body}")
    assert message in str(error)
    assert error.diagnostics[0].line == line
