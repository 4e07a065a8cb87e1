"""Macros, repetitions and conditions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.ipu21.toolchain import AssemblyFaults, assemble

pytestmark = pytest.mark.unit

Faults = Callable[[str], AssemblyFaults]


def data(source: str) -> list[int]:
    return list(assemble(f".data\n{source}").section(".data").data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".macro M a b\n.byte \\a, \\b\n.endm\nM 1, 2", [1, 2]),
        (".macro M a, b\n.byte \\a, \\b\n.endm\nM 1 2", [1, 2]),
        (".macro M a b=7\n.byte \\a, \\b\n.endm\nM 1\nM 1, 2", [1, 7, 1, 2]),
        (".macro M a=3, b=7\n.byte \\a, \\b\n.endm\nM\nM , 2\nM b=9", [3, 7, 3, 2, 3, 9]),
        (".macro M a:req\n.byte \\a\n.endm\nM 4", [4]),
        (".macro M a rest:vararg\n.byte \\rest\n.endm\nM 1, 2, 3", [2, 3]),
        (".macro M a\n.byte \\a\n.endm\nM 1 + 2\nM (3 + 4)\nM -1+3", [3, 7, 2]),
        (".macro M\n.L\\@: .byte \\@, .-.L\\@\n.endm\nM\nM", [0, 1, 1, 1]),
        (".macro M t\n.set x\\t\\()_y, 5\n.byte x\\t\\()_y\n.endm\nM 1", [5]),
        (".macro M a; .byte \\a; .endm; M 6", [6]),
        (".macro IN a\n.byte \\a\n.endm\n.macro OUT a\nIN \\a\nIN \\a+1\n.endm\nOUT 5", [5, 6]),
        (".macro MAKE name v\n.macro \\name w\n.byte \\v, \\w\n.endm\n.endm\nMAKE M 1\nM 2", [1, 2]),
        (".macro M n\n.byte \\n\n.if \\n\nM (\\n-1)\n.endif\n.endm\nM 3", [3, 2, 1, 0]),
        (".macro M n\n.byte 1\n.if \\n\n.exitm\n.endif\n.byte 2\n.endm\nM 0\nM 1", [1, 2, 1]),
        (".macro M\n.byte 1\n.endm\n.purgem M\n.macro M\n.byte 2\n.endm\nM", [2]),
        ('.macro M s\n.ascii "\\s"\n.endm\nM "a,b c"', list(b"a,b c")),
        (".rept 3\n.byte 1\n.endr", [1, 1, 1]),
        (".rept 2\n.rept 2\n.byte 5\n.endr\n.endr", [5] * 4),
        (".set i, 0\n.rept 3\n.byte i\n.set i, i+1\n.endr", [0, 1, 2]),
        (".irp x, 1, 2, 4\n.byte \\x\n.endr", [1, 2, 4]),
        (".irp x 1 2\n.irp y 3 4\n.byte \\x*10+\\y\n.endr\n.endr", [13, 14, 23, 24]),
        (".irpc c, 123\n.byte \\c\n.endr", [1, 2, 3]),
        (".macro M a b\n.irp x, \\a, \\b\n.byte \\x\n.endr\n.endm\nM 1 2", [1, 2]),
        (".rept 0\n.byte 1\n.endr", []),
        (".if 1\n.byte 1\n.else\n.byte 2\n.endif", [1]),
        (".if 0\n.byte 1\n.else\n.byte 2\n.endif", [2]),
        (".if 0\n.byte 1\n.elseif 1\n.byte 2\n.elseif 1\n.byte 3\n.else\n.byte 4\n.endif", [2]),
        (".if 0\n.if 1\n.byte 1\n.else\n.byte 2\n.endif\n.else\n.byte 3\n.endif", [3]),
        (".if 1\n.if 0\n.byte 1\n.else\n.byte 2\n.endif\n.endif", [2]),
        (".ifdef x\n.byte 1\n.endif\n.set x, 1\n.ifdef x\n.byte 2\n.endif\n.ifndef x\n.byte 3\n.endif", [2]),
        (".ifc a, a\n.byte 1\n.endif\n.ifnc a,b\n.byte 2\n.endif\n.ifc, a, b\n.byte 3\n.endif", [1, 2]),
        ('.ifc "x y", "x y"\n.byte 1\n.endif', [1]),
        (".macro M a\n.ifb \\a\n.byte 1\n.else\n.byte 2\n.endif\n.endm\nM\nM 5", [1, 2]),
        (".ifeq 0\n.byte 1\n.endif\n.ifgt 1\n.byte 2\n.endif\n.iflt 1\n.byte 3\n.endif", [1, 2]),
        ("a: .byte 1, 2, 3\n.if (. - a) & 7\n.byte 9\n.endif", [1, 2, 3, 9]),
        (".macro M\n.byte \\+\n.endm\n.macro N\n.endm\nM\nN\nM\n.rept 2\n.byte \\+\n.endr", [0, 1, 0, 1]),
        (".altmacro\n.macro M a\nLOCAL l, m\nl: .byte a\nm: .byte m-l\n.endm\nM 3\nM 4", [3, 1, 4, 1]),
        (".altmacro\n.macro M s\n.ascii \"s&s\"\n.endm\nM <a, !<b!!>\nM 'c d'", list(b"a, <b!a, <b!c dc d")),
        (".altmacro\n.macro M a b\n.byte a, b\n.endm\nM %1+2*3 b=%(4)\nM b=<5,6> a=7", [7, 4, 7, 5, 6]),
        (
            ".altmacro\n.macro M r\n.set x&r, 5\n.byte x&r&, \\r\n.endm\nM 1\n.noaltmacro\n.byte 1&3",
            [5, 1, 1],
        ),
        (".altmacro\n.irp x, 1, <2, 3>\n.byte x\n.endr", [1, 2, 3]),
        # Nothing inside a branch that is off may matter, faults included.
        (".if 0\nnonsense here\n.byte 999\nlabel: .error\n.macro X\n.if\n.endm\n.endif\nlabel: .byte 1", [1]),
    ],
)
def test_expansion(text: str, expected: list[int]) -> None:
    assert data(text) == expected if expected else not any(s.name == ".data" for s in assemble(text).sections)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".macro M a\n.endm\nM 1, 2", "takes 1 argument"),
        (".altmacro\n.macro M a\n.endm\nM <1", "no closing >"),
        (".altmacro\n.macro M a\n.endm\nM %x", "only after linking"),
        (".altmacro on", "unexpected `on`"),
        (".macro M a:req\n.endm\nM", "needs an argument for a"),
        (".macro M a a\n.endm", "given twice"),
        (".macro M\n.endm\n.macro M\n.endm", "already defined"),
        (".macro M\nnop", "`.macro` is never closed"),
        (".macro", "never closed"),
        (".rept 2\nnop", "`.rept` is never closed"),
        (".rept x\n.endr", "number known here"),
        (".rept 100000000\nnop\n.endr", "not in 0.."),
        (".rept 2000000\nnop\nnop\n.endr", "too many"),
        (".endm", "without `.macro`"),
        (".endr", "without `.rept"),
        (".exitm", "outside a macro"),
        (".purgem M", "no macro M"),
        (".macro M\nM\n.endm\nM", "nested over 100 deep"),
        (".macro M a:vararg b\n.endm", "nothing can follow"),
        (".macro M 5\n.endm", "expected a parameter name"),
        (".if 1", "never closed"),
        (".else", "`.else` without `.if`"),
        (".endif", "`.endif` without `.if`"),
        (".if 1\n.else\n.else\n.endif", "after `.else`"),
        (".if sym\n.endif", "depends on an address"),
        (".if\n.endif", "expected an expression"),
        (".macro M\n.if 1\n.endm\nM", "never closed"),
    ],
)
def test_faults(faults: Faults, text: str, message: str) -> None:
    assert message in str(faults(text))


def test_faults_inside_expansions_name_the_calls(faults: Faults) -> None:
    error = faults(".macro IN a\n  add $m0, \\a, 1\n.endm\n.macro OUT\nnop\nIN $q\n.endm\nnop\nOUT\n")
    (diagnostic,) = error.diagnostics
    assert (diagnostic.line, diagnostic.source) == (2, "add $m0, $q, 1")
    assert diagnostic.source[diagnostic.column - 1 :].startswith("$q")
    assert diagnostic.notes == (
        "in macro IN, expanded at kernel.S:6",
        "in macro OUT, expanded at kernel.S:9",
    )


def test_a_fault_of_many_rounds_does_not_take_long(faults: Faults) -> None:
    error = faults(".rept 1000000\nnosuch $m0\n.endr\nlater $m0")
    assert error.more and [item.line for item in error.diagnostics] == [2]
    assert "these are the first 1" in str(error)


def test_one_fault_in_a_repetition_is_told_once(faults: Faults) -> None:
    assert len(faults(".rept 40\naddd $m0\n.endr").diagnostics) == 1
