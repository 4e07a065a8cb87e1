"""Directives, macros and expressions mean what the GNU assembler's and LLVM's do, where these are installed.

Both assemble for another machine, so only data is compared. LLVM's is the family of the vendor's assembler;
where the two disagree, only the one named is asked.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tilewright.ipu21.toolchain import assemble

pytestmark = pytest.mark.external

GNU = ["as", "--64"]
LLVM = ["llvm-mc", "-triple=x86_64-linux-gnu", "-filetype=obj"]
BOTH = (GNU, LLVM)

CASES: list[tuple[str, tuple[list[str], ...]]] = [
    ('.ifeqs "a b","a b"\n.byte 1\n.else\n.byte 2\n.endif\n.ifnes "a","b"\n.byte 3\n.endif', BOTH),
    (".ifc foo bar , foo bar\n.byte 1\n.endif\n.ifnc a,b\n.byte 2\n.endif", BOTH),
    (".set A, 1\n.IFDEF A\n.BYTE 1\n.ENDIF\n.Ifndef B\n.byte 2\n.endif", BOTH),
    (".rept 2\n.byte 1\n.endr\n.rep 2\n.byte 2\n.endr", BOTH),
    (".irpc c,123\n.byte 0x\\c\\c\n.endr", BOTH),
    (".irp x,\n.byte 7\\x\n.endr\n.irp y,1,,2,,\n.byte 3\\y\n.endr", (LLVM,)),
    (".irp a,1,2\n.irp b,3,4\n.byte \\a,\\b\n.endr\n.endr", BOTH),
    (".macro m a=1+2, b=(3 * 4)\n.byte \\a, \\b\n.endm\nm\nm b=9\nm 7,8", BOTH),
    (".macro m a, rest:vararg\n.byte \\a\n.ifnb \\rest\nm \\rest\n.endif\n.endm\nm 1,2,3", BOTH),
    (".macro m a:req b=2\n.byte \\a,\\b\n.endm\nm 1\nm 5 6", BOTH),
    (".macro m n\n.byte \\@, \\n\n.endm\nm 5\nm 6", BOTH),
    (".macro m a b c\n.byte \\a,\\b,\\c\n.endm\nm 1 2 3\nm 4, 5 6\nm 1, -2, (3 + 4)", BOTH),
    ('.macro m s\n.asciz "\\s"\n.endm\nm hello\nm "a b, c"', BOTH),
    (".macro m n\n\\n\\():\n\\n\\()_x: .byte \\n\\()_x - \\n\n.endm\nm foo\nm bar", BOTH),
    (".macro s from=0, to=5\n.byte \\from\n.if \\to-\\from\ns (\\from+1),\\to\n.endif\n.endm\ns 0,5", BOTH),
    (".macro m a\n.if \\a\n.exitm\n.endif\n.byte 1\n.endm\nm 1\nm 0", BOTH),
    (".macro o a\n.macro i_\\a b\n.byte \\a,\\b\n.endm\n.endm\no 5\ni_5 6", BOTH),
    (".macro o\n.byte 1\n.endm\no\n.purgem o\n.macro o\n.byte 9\n.endm\no", BOTH),
    (".byte 'a', 'b', '\\n', ' ', 'z'", BOTH),
    (".byte 'a\n.byte 'b, 'c", (GNU,)),
    ('.ascii "a\\"b\\\\c\\tn\\101\\x42"\n.asciz "c","d"', BOTH),
    (".float 1.0, -2.5, 1e-3, 1., 3.25e+2, -0.0, 1, -7\n.single 0.1\n.double 1e10, 0.1, -3", BOTH),
    (".float 0f1.5, 0f-2.5e1, .5\n.double 0d1.25\n.hfloat 1.5, -0.333, 65504", (GNU,)),
    (".float inf, -infinity, 0x1.8p3\n.double 0x1p-3", (LLVM,)),
    (".octa 0x0102030405060708090a0b0c0d0e0f10, 5", BOTH),
    (".sleb128 -1, 64, -65, 2\n.uleb128 300, 1, 127, 128", BOTH),
    ("a: .byte 1,2,3,4\nb:\n.uleb128 b-a\n.short (b-a)/2, (b-a)>>1", BOTH),
    (".byte 1\n.org 16\n.byte 2\n.org . + 3, 0x55\n.byte 3", BOTH),
    (".byte 1\n. = . + 12\n.byte 2", BOTH),
    (".byte N\n.short N*2\n.equ N, 5", BOTH),
    (".set i,0\n.rept 3\n.byte i\n.set i,i+1\n.endr\ni = 9\n.byte i", BOTH),
    ("1: .byte 1\n2: .byte 2f-1b\n2: .byte 2b-1b, . - 1b", BOTH),
    ("a: b: c: .byte c-a; d: .byte d-a", BOTH),
    (".byte 1\n.align 4, 0xff\n.byte 2\n.balign 8,,2\n.p2align 2,,1\n.byte 3\n.p2align 3, 7\n.byte 4", BOTH),
    (".byte 1,2\n.balignw 8,0x1234\n.byte 3, 4, 5, 6\n.p2alignl 3,0x01020304", (GNU,)),
    (".fill 3,2,0x1122\n.skip 4,0xff\n.zero 4\n.space 4,1\n.fill 2", BOTH),
    (".2byte 1\n.4byte 2\n.8byte 3\n.int 7\n.quad -1\n.value 5", BOTH),
    (".dc.b 1,2\n.dc.w 3\n.dc.l 4, -1\n.dc 5\n.dcb.b 3,7\n.dcb.w 2,0x1234\n.dcb.l 2,9\n.dcb 1,2", BOTH),
    (".ds.b 3\n.byte 1\n.ds.w 2\n.byte 1\n.ds.l 1\n.byte 1\n.ds.d 1\n.byte 1\n.ds 1\n.byte 1", BOTH),
    (".ds.x 1\n.byte 1\n.ds.p 1\n.byte 1\n.ds.s 2\n.byte 1", (LLVM,)),
    (".dc.s 1.5, -2\n.dc.d 0.25\n.dcb.s 2,1.5\n.dcb.d 1,-0.25", BOTH),
    ('.string16 "ab"\n.string32 "c"\n.string64 "d"', (GNU,)),
    (".subsection 2\n.byte 2\n.subsection 1\n.byte 1\n.previous\n.byte 3\n.subsection 0\n.byte 0", BOTH),
    (".data 2\n.byte 9\n.text\nnop\n.data\n.byte 1\n.previous\nnop\n.data 1\n.byte 4", BOTH),
    (".byte 1\n.subsection 1\n.balign 4\n.byte 2\nb:\n.subsection 0\n.byte 3, 5\na: .byte b-a", BOTH),
    (".subsection 1\n.byte 1,2,3\n.balign 8\n.byte 4\n.subsection 0\n.byte 7\n.subsection 3\n.byte 5", BOTH),
    (".pushsection .data, 1\n.byte 1\n.popsection\n.byte 2\n.subsection 5\n.byte 3", BOTH),
    (".uleb128 e-b\nb: .byte 1\n.zero 200\ne:\n.sleb128 b-e, f-b\n.uleb128 f-b\n.zero 300\nf:", BOTH),
    ("a: .uleb128 c-a\n.zero 126\nb: .uleb128 c-b, c-a\nc: .balign 4\n.uleb128 d-c\nd: .byte 1", BOTH),
    (".byte 1\n.end\n.byte 2", (GNU,)),
    (".long 10U, 10L, 0x10UL, 1ULL, 0b101, 017", (LLVM,)),
    (".byte 1 # one\n.byte 2 /* two\n lines */\n.byte 3;.byte 4", BOTH),
    (".altmacro\n.macro m a\nLOCAL l1, l2\nl1: .byte a\nl2: .byte l2-l1\n.endm\nm 3\nm 4", (GNU,)),
    (".altmacro\n.macro m s, t\n.asciz \"&s;t\"\n.endm\nm <a,b>, c\nm <4!>5!!>, x\nm <a<b>c>", (GNU,)),
    (".altmacro\n.macro m a,b\n.byte a,b\n.ascii \"a\"\n.endm\nm %(1+2*3), %4*5", (GNU,)),
    (".altmacro\n.macro m n\nn&_x: n&: .byte n&_x - n\n.endm\nm foo", (GNU,)),
    (".altmacro\n.macro s from=0,to=3\n.byte from\n.if to-from\ns %from+1,to\n.endif\n.endm\ns", (GNU,)),
    (".altmacro\n.macro m a\n.byte \\a, a\n.irp x,1,2\n.byte x + a\n.endr\n.endm\nm 3", (GNU,)),
    (".altmacro\n.macro m a, b=<2, 3>\n.byte a, b\n.endm\nm 1\nm 6, <4, 5>\nm %7+1", (GNU,)),
    (".altmacro\n.macro m a\n.noaltmacro\n.byte a\n.endm\n.set a, 9\nm 1\n.byte a", (GNU,)),
]  # fmt: skip


def assembled_by(command: list[str], text: str, folder: Path) -> bytes:
    source, made, bytes_ = folder / "a.s", folder / "a.o", folder / "a.bin"
    source.write_text(f".data\n{text}\n")
    subprocess.run([*command, str(source), "-o", str(made)], check=True, capture_output=True, timeout=60)
    copy = ["objcopy", "-O", "binary", "-j", ".data", str(made), str(bytes_)]
    subprocess.run(copy, check=True, capture_output=True, timeout=60)
    return bytes_.read_bytes()


def ours(text: str) -> bytes:
    return bytes(assemble(f".data\n{text}\n").section(".data").data)


def needed(command: list[str]) -> None:
    if shutil.which(command[0]) is None or shutil.which("objcopy") is None:
        pytest.skip(f"{command[0]} or objcopy is not installed")


@pytest.mark.parametrize(
    ("text", "command"), [(text, command) for text, commands in CASES for command in commands]
)
def test_directives(text: str, command: list[str], tmp_path: Path) -> None:
    needed(command)
    assert ours(text) == assembled_by(command, text, tmp_path)


@pytest.mark.parametrize("command", BOTH)
def test_expressions(command: list[str], tmp_path: Path) -> None:
    """Operator order above all: no parentheses but a few, results cut to 32 bits by both sides."""
    needed(command)
    draw = random.Random(20)
    operators = [
        "+",
        "-",
        "*",
        "/",
        "%",
        "&",
        "|",
        "^",
        "<<",
        ">>",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "&&",
        "||",
    ]

    def expression(depth: int) -> str:
        if depth == 0:
            return str(draw.randrange(1, 5))
        left, right = expression(depth - 1), expression(draw.randrange(depth))
        text = f"{left} {draw.choice(operators)} {right}"
        return f"({text})" if draw.random() < 0.3 else text

    texts = [expression(draw.randrange(1, 4)) for _ in range(600)]
    good = [text for text in texts if _harmless(text)]
    assert len(good) > 150
    lines = "\n".join(f".quad {text}" for text in good)
    assert ours(lines) == assembled_by(command, lines, tmp_path)


def _harmless(text: str) -> bool:
    """Whether every assembler takes an expression in the same way."""
    from tilewright.ipu21.toolchain import AssemblyFaults

    if any(word in text for word in ("/", "%", ">>", "<<")):
        # What stands on either side may be negative or zero, which each treats in its own way.
        return False
    try:
        ours(f".quad {text}")
    except AssemblyFaults:
        return False
    return True


def test_arguments_of_macros_are_split_as_by_llvm(tmp_path: Path) -> None:
    """Blanks and operators decide what is one argument; blanks inside one mean nothing."""
    needed(LLVM)
    draw = random.Random(3)
    words = ["1", "x", "$m0", "$a0:1", ",", " ", " ", "+", "-", "*", "(", ")", "&", "|", "<", "!=", "!", "~"]
    words += ["%", "[", "]", "@", ":", "0x1f"]
    names = "abcdefghijkl"
    shown = "".join(f"<\\{name}>" for name in names)
    calls = ["".join(draw.choice(words) for _ in range(draw.randrange(1, 10))) for _ in range(400)]
    # LLVM wants every parenthesis closed, and takes a colon for a label's.
    calls = [f"{call}{')' * _open(call)}" for call in calls if not call.strip().startswith(":")]
    lines = "".join(f"m {call}\n" for call in calls)
    text = f'.macro m {" ".join(names)}\n.ascii "{shown};"\n.endm\n{lines}'
    mine, theirs = (
        part.decode().replace(" ", "") for part in (ours(text), assembled_by(LLVM, text, tmp_path))
    )
    assert mine.split(";") == theirs.split(";")


def _open(text: str) -> int:
    depth = 0
    for character in text:
        depth = max(0, depth + {"(": 1, ")": -1}.get(character, 0))
    return depth
