"""Sections, symbols and data."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tilewright.ipu21.toolchain import AssemblyFaults, ObjectSymbol, Relocation, assemble, link
from tilewright.ipu21.toolchain import relocations as r

pytestmark = pytest.mark.unit

Words = Callable[[str], list[int]]
Faults = Callable[[str], AssemblyFaults]


def data(source: str) -> bytes:
    return assemble(f".data\n{source}").section(".data").data


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".byte 1, -1, 255, 'a'", "01ffff61"),
        (".short 1, 0xffff", "0100ffff"),
        (".half -2; .hword 3", "feff0300"),
        (".long 1, -1", "01000000ffffffff"),
        (".word 0x12345678; .int 1", "7856341201000000"),
        (".quad 0x0102030405060708", "0807060504030201"),
        (".space 3; .byte 1", "00000001"),
        (".zero 2; .skip 1, 7", "000007"),
        (".fill 2, 2, 5", "05000500"),
        ('.ascii "ab"; .asciz "c"', "616263" + "00"),
        (r'.string "\n\x41\101\\"', "0a41415c00"),
        (".float 1.5, -2", "0000c03f000000c0"),
        (".double 1.0", "000000000000f03f"),
        (".byte 1; .align 4; .byte 2", "0100000002"),
        (".byte 1; .p2align 1, 9; .byte 2", "010902"),
        (".byte 1; .balign 8, 0, 3; .byte 2", "0102"),
        (".uleb128 2080", "a010"),
        ('.ascii "a;b # c // d /* e */ { }"', "613b62202320632f2f2064".replace("2f2f", "202f2f")
         + "202f2a2065202a2f207b207d"),
    ],
)  # fmt: skip
def test_data(text: str, expected: str) -> None:
    assert data(text).hex() == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".byte 256", "256 (0x100) does not fit in 1 byte"),
        (".byte -129", "does not fit in 1 byte"),
        (".short 65536", "does not fit in 2 bytes"),
        (".long 0x100000000", "does not fit in 4 bytes"),
        (".byte 1,", "expected a value"),
        (".byte ,", "expected an expression"),
        (".org 4; .long 1; .org 4", "4 bytes back"),
        (".byte 1; .text; .org a; .data; a: .byte 1", "current section"),
        (".comm x, 4, 3", "not a power of two"),
        ("x: .comm x, 4", "already defined"),
        (".comm x, 4; x:", "already defined"),
        (".comm .Lx, 4", "private to this file"),
        ("x: .weakref x, y", "already defined"),
        (".subsection -1", "not in 0..8192"),
        (".reloc 0, R_COLOSSUS_23, y", "did you mean R_COLOSSUS_"),
        (".reloc 0, R_COLOSSUS_32, y", "outside its section"),
        (".long 0; .reloc 0, R_COLOSSUS_32, 5", "needs a symbol"),
        (".uleb128 b-a; a: .byte 1; b = a - 1", "not in 0.."),
        (".nops 6", "whole number"),
        (".octa x", "no number"),
        (".float 1.0, two", "no number of this size"),
        (".half 70000.0", "no number of this size"),
        ('.incbin "nowhere.bin"', "no file nowhere.bin"),
        (".fail 3", "was reached"),
        (".sleb128 a; a:", "only after linking"),
        (".byte 1 2", "expected `,`"),
        (".align 3", "not a power of two"),
        (".align 131072", "not in 0..65536"),
        (".align sym", "number known here"),
        (".space -1", "not in 0.."),
        (".space 0x7fffffff", "not in 0.."),
        (".space 0x1000000; .byte 1", "grows beyond"),
        ('.ascii "abc', "no closing quote"),
        (r'.ascii "\q"', "unknown escape"),
        (r'.ascii "\777"', "over one byte"),
        (".ascii 5", "expected a string"),
        (".long sym@16", "fills 2 bytes, this has 4"),
        (".lung 5", "did you mean .long"),
        ('.error "stop here"', "stop here"),
        ('.include "x"', "there is no file x"),
        (".bss\n.byte 1", "holds no bytes"),
    ],
)
def test_data_faults(faults: Faults, text: str, message: str) -> None:
    assert message in str(faults(f".data\n{text}"))


def test_data_relocations() -> None:
    item = assemble(
        ".data\n.long ext, ext+8\n.short ext@relative@16@s2, ext@16@s3, ext@16@s4, ext@16@s5\n.long ext@21\n"
        ".byte ext; .byte 0; .short ext; .quad ext; .long ext@18@s2, ext@19@s2, (ext+4)@20\n"
    )
    found = [(entry.offset, entry.type, entry.addend) for entry in item.section(".data").relocations]
    assert found == [
        (0, r.R32, 0),
        (4, r.R32, 8),
        (8, r.RELATIVE_16_S2, 0),
        (10, r.R16_S3, 0),
        (12, r.R16_S4, 0),
        (14, r.R16_S5, 0),
        (16, r.R21, 0),
        (20, r.R8, 0),
        (22, r.R16, 0),
        (24, r.R64, 0),
        (32, r.R18_S2, 0),
        (36, r.R19_S2, 0),
        (40, r.R20, 4),
    ]
    assert item.symbols == [ObjectSymbol("ext", binding="global")]
    assert item.section(".data").data == bytes(44)


def test_code_relocations() -> None:
    item = assemble(
        "bri ext\nsetzi $m0, ext\nadd $m0, $m0, ext\nrun $m0, $m1, ext\nbri .Lhere\n"
        ".Lhere: call $m10, 1f\n1: nop\nrunall $m0, $m1, ext\nsetzi $a0, ext+4"
    )
    found = [(entry.offset, entry.type, entry.addend) for entry in item.section(".text").relocations]
    assert found == [
        (0, r.R19_S2, 0),
        (4, r.R20, 0),
        (8, r.R16, 0),
        (12, r.RUN, 0),
        (16, r.R19_S2, 20),
        (20, r.R19_S2, 24),
        (28, r.RUN, 0),
        (32, r.R20, 4),
    ]
    # Private labels are reached through the section's symbol.
    assert [item.symbols[entry.symbol].type for entry in item.section(".text").relocations[4:6]] == [
        "section"
    ] * 2
    # add takes the zero-extended form: an address is never negative.
    assert item.section(".text").data[8:12] == (0x20000000).to_bytes(4, "little")


def test_bundled_relocations() -> None:
    """Published: in a bundle at 8, call and setzi relocate at 8 and 12 with types 8 and 3."""
    item = assemble("nop\nnop\n{ call $m0, f ; setzi $a0, g }")
    entries = item.section(".text").relocations
    assert [(entry.offset, entry.type) for entry in entries] == [(8, r.R19_S2), (12, r.R20)]


def test_symbols_and_their_order() -> None:
    item = assemble(
        ".globl g, w\n.weak w\n.type g, @function\n.hidden h\n.globl h\n"
        "l: nop\ng: nop\n.size g, .-g\nw: nop\nh: nop\n.set n, 5\n.globl n\n.set private, 6\nbri u\n"
        ".globl unused\n"
    )
    assert [(s.name, s.binding, s.value, s.size, s.type, s.absolute, s.hidden) for s in item.symbols] == [
        ("l", "local", 0, 0, "notype", False, False),
        ("g", "global", 4, 4, "function", False, False),
        ("w", "weak", 8, 0, "notype", False, False),
        ("h", "global", 12, 0, "notype", False, True),
        ("n", "global", 5, 0, "notype", True, False),
        ("u", "global", 0, 0, "notype", False, False),
        ("unused", "global", 0, 0, "notype", False, False),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: nop\na: nop", "a is already defined on line 1"),
        ("a: nop\n.set a, 5", "is a label"),
        (".set a, 5\na: nop", "already defined"),
        (".globl .La", "private to this file"),
        ("bri .Lnowhere", ".Lnowhere is not defined"),
        ("bri 1f", "label 1: does not follow"),
        ("bri 1b", "no label 1:"),
        (".globl a\n.local a", "declared global before"),
        (".equiv a, 1\n.equiv a, 2", "already defined"),
        (".type a, @thing", "unknown symbol type"),
        (".popsection", "without `.pushsection`"),
        (".previous", "no previous section"),
        ('.section x,"axG",@progbits,g,single', "expected `comdat`"),
        ('.section x,"az"', "unknown section flag"),
        ('.section x,"a",@strange', "unknown section type"),
        ('.section x,"a"\n.section x,"aw"', "described differently"),
        (".section", "expected a section name"),
        (".globl 5", "expected a name"),
        ("5", "no instruction"),
        ("%", "unexpected '%'"),
        (".size a, b\na: nop", "the size must be a number"),
    ],
)
def test_symbol_and_section_faults(faults: Faults, text: str, message: str) -> None:
    assert message in str(faults(text))


def test_numeric_labels_mean_the_nearest(words: Words) -> None:
    item = assemble("1: nop\n1: bri 1b\nbri 1f\n1: nop")
    assert [entry.addend for entry in item.section(".text").relocations] == [4, 12]


def test_sections() -> None:
    item = assemble(
        '.section .text.f,"ax",@progbits\nnop\n.pushsection .rodata.k,"a"\n.byte 1\n.popsection\nnop\n'
        '.data\n.byte 2\n.previous\nnop\n.bss\n.align 8\n.space 12\n.section ".note.x-y"\n.byte 3\n'
    )
    found = [(s.name, s.flags, s.nobits, s.size, s.alignment) for s in item.sections]
    assert found == [
        (".text.f", "ax", False, 12, 4),
        (".rodata.k", "a", False, 1, 1),
        (".data", "aw", False, 1, 1),
        (".bss", "aw", True, 12, 8),
        (".note.x-y", "", False, 1, 1),
    ]


def test_code_padding_is_nops(words: Words) -> None:
    assert words("nop\n.align 16\nnop") == [0x19E00000] * 5
    assert assemble(".byte 1\n.align 8").section(".text").data == bytes([1, 0, 0, 0]) + bytes.fromhex(
        "0000e019"
    )


def test_compiler_bookkeeping_is_skipped(words: Words) -> None:
    assert words('.file "a.c"\n.cfi_startproc\nnop\n.cfi_endproc\n.ident "x"\n.addrsig') == [0x19E00000]


def test_bookkeeping_of_listings_is_skipped(words: Words) -> None:
    assert words('.title "a"\n.version "1"\n.protected f\n.func f\nf: nop\n.endfunc\n.end\nrubbish') == [
        0x19E00000
    ]


def test_sections_of_one_name_kept_apart() -> None:
    item = assemble(
        '.section .text,"ax",@progbits,unique,1\nnop\n.section .text,"ax",@progbits,unique,2\nnop\nnop\n'
        '.section .text,"ax",@progbits,unique,1\nnop\nnop\n.section .g,"aG",@progbits,sig,comdat\n.byte 1\n'
        '.section .h,"a?",@progbits\n.byte 2\n.section .i,"awR",@init_array\n.byte 3\n'
    )
    assert [(s.name, s.size) for s in item.sections] == [
        (".text", 12), (".text", 8), (".g", 1), (".h", 1), (".i", 1)
    ]  # fmt: skip
    (group,) = item.groups
    assert [item.sections[member].name for member in group.members] == [".g", ".h"]


def test_reserved_symbols() -> None:
    item = assemble(".lcomm a, 6\n.local b\n.comm b, 20, 32\n.data\n.long a, b\n")
    assert (item.section(".bss").size, item.section(".bss").alignment) == (52, 32)
    found = {symbol.name: (symbol.value, symbol.size, symbol.type) for symbol in item.symbols if symbol.name}
    assert found == {"a": (0, 6, "object"), "b": (32, 20, "object")}


def test_types_under_their_elf_names() -> None:
    item = assemble('f: nop\n.type f, STT_FUNC\n.type g, "object"\ng: nop\n.type h, %notype\nh: nop\n')
    assert [symbol.type for symbol in item.symbols if symbol.name] == ["function", "object", "notype"]


def test_files_as_bytes(tmp_path: Path) -> None:
    (tmp_path / "b.bin").write_bytes(bytes(range(10)))
    source = '.data\n.incbin "b.bin"\n.incbin "b.bin", 8\n.incbin "b.bin", , 2\n.incbin "b.bin",3,1\n'
    item = assemble(source, filename=str(tmp_path / "k.S"))
    assert item.section(".data").data == bytes([*range(10), 8, 9, 0, 1, 3])


def test_warnings_reach_the_image(words: Words) -> None:
    item = assemble('#warning one\n.warning "two"\n.fail 600\nnop\n', filename="k.S")
    assert item.warnings == ("k.S:1: one", "k.S:2: two", "k.S:3: `.fail 600` was reached")
    assert link([item]).warnings == item.warnings
    assert words(".nops 8\n") == [0x19E00000] * 2


def test_numbers_with_a_point_have_the_format_of_their_size() -> None:
    assert data(".half 1.5, -2.0, 1.5h\n.long 1.5\n.quad -0.1") == struct.pack(
        "<3efd", 1.5, -2, 1.5, 1.5, -0.1
    )
    assert data(".float16 0.1, 1e-3, -inf") == struct.pack("<3e", 0.1, 1e-3, float("-inf"))


def test_defines() -> None:
    assert assemble(".data\n.byte ROWS", defines={"ROWS": 9}).section(".data").data == b"\x09"
    item = assemble(".ifdef ROWS\n.data\n.byte 1\n.endif", defines={"ROWS": 9})
    assert item.section(".data").data == b"\x01"


def test_relocation_record_is_plain() -> None:
    item = assemble("g: bri f\n")
    assert item.section(".text").relocations == [Relocation(0, r.R19_S2, 1, 0)]
