"""Which pairs may be issued together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.ipu21.toolchain import AssemblyFaults

pytestmark = pytest.mark.unit

Words = Callable[[str], list[int]]
Faults = Callable[[str], AssemblyFaults]

PLAIN = [0xC4506041, 0x9AD00000]


@pytest.mark.parametrize(
    "text",
    [
        "{ add $m4, $m5, $m6 ; fnop }",
        "{add $m4,$m5,$m6;fnop}",
        "{ add $m4, $m5, $m6\n fnop }",
        "{\n add $m4, $m5, $m6 // main\n ; fnop # aux\n}",
        "{ add $m4, $m5, $m6 ; fnop ; }",
        ".macro MAIN\nadd $m4, $m5, $m6\n.endm\n{ MAIN ; fnop }",
        "{ add $m4, $m5, $m6\n.if 1\nfnop\n.else\nf32add $a0, $a0, $a0\n.endif\n}",
        '.macro IN open close\n\\open add $m4, $m5, $m6\n\\close\n.endm\nIN "{" "fnop ; }"',
    ],
)
def test_spellings(words: Words, text: str) -> None:
    assert words(text) == PLAIN


def test_label_before_a_bundle(words: Words) -> None:
    assert words("loop: { add $m4, $m5, $m6 ; fnop }\nadd $m0, $m0, (loop2 - loop)/8\nloop2:")[:2] == PLAIN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ fnop ; nop }", "main-pipeline instruction comes first"),
        ("{ nop ; nop }", "`nop` belongs to the main pipeline"),
        ("{ fnop ; fnop }", "`fnop` belongs to the aux pipeline"),
        ("{ exitz $m0 ; fnop }", "cannot be in a bundle"),
        ("{ runall $m0, $m1, 0 ; fnop }", "cannot be in a bundle"),
        ("{ sync 3 ; fnop }", "cannot be in a bundle"),
        ("{ nop }", "has 1"),
        ("{ }", "has 0"),
        ("{ nop ; fnop ; fnop }", "has 3"),
        ("{ nop ; fnop", "not closed"),
        ("{ nop ; { nop ; fnop }", "not closed"),
        ("nop }", "`}` without `{`"),
        ("{ ld32 $a0, $m0, 0 ; f32add $a0, $a1, $a1 }", "both halves of the bundle write $a0"),
        ("{ ld64 $a0:1, $m0, 0 ; f32add $a1, $a1, $a1 }", "write $a1"),
        ("{ ld64 $azeros, $m0, 0 ; f32v2add $azeros, $a0:1, $a0:1 }", "write $a14"),
        ("{ ld64 $azeros, $m0, 0 ; f32add $azero, $a0, $a0 }", "write $a15"),
        # The quad's element 0 is not written, and counts all the same.
        ("{ ld64a32 $a0:3, $m0++, $m1, $m2 ; f32add $a0, $a1, $a1 }", "write $a0"),
        ("{ ldst64pace $a0:1, $a2:3, $m0:1+=, $m2, 0 ; f32v2add $a0:1, $a2:3, $a2:3 }", "write $a0"),
    ],
)
def test_refused(faults: Faults, text: str, message: str) -> None:
    error = faults(text)
    assert message in str(error)
    assert len(error.diagnostics) == 1


@pytest.mark.parametrize(
    "text",
    [
        "{ st64 $a0:1, $m0, 0 ; f32v2add $a0:1, $a2:3, $a2:3 }",
        "{ ld64 $a8:9, $m0, 0 ; f32v2add $azeros, $a2:3, $a2:3 }",
        "{ ldst64pace $a0:1, $a2:3, $m0:1+=, $m2, 0 ; f32v2add $a2:3, $a0:1, $a0:1 }",
        "{ brnzdec $m0, 0x4c100 ; f32add $a0, $a1, $a1 }",
        "{ atom $m0, $a0 ; f32add $a0, $a0, $a0 }",
    ],
)
def test_allowed(words: Words, text: str) -> None:
    both = words(text)
    assert len(both) == 2 and all(word >> 31 for word in both)


def test_a_faulty_half_is_reported_alone(faults: Faults) -> None:
    error = faults("{ addd $m0, $m0, 1 ; f32ad $a0, $a1, $a2 }\nadd $m0, $m0, 1")
    assert [item.column for item in error.diagnostics] == [3, 22]
