"""The built-in C preprocessor, judged by a C compiler's where there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.errors import UsageError
from tilewright.ipu21.isa.enums import PROVISIONAL
from tilewright.ipu21.toolchain import AssemblyFaults, assemble
from tilewright.ipu21.toolchain.preprocess import builtin_headers, preprocess, preprocess_with

pytestmark = pytest.mark.unit

GCC = shutil.which("gcc")


def lines(source: str, **options: object) -> list[str]:
    text = preprocess(source, **options).text  # type: ignore[arg-type]
    return [" ".join(line.split()) for line in text.split("\n") if line.strip()]


def text_words(source: str) -> list[int]:
    data = assemble(source).section(".text").data
    return [int.from_bytes(data[index : index + 4], "little") for index in range(0, len(data), 4)]


def test_registers_become_macros() -> None:
    source = "#define tmp m3\n#define ADD(a, b) add $a, $b, STEP ; nop\n#define STEP (1 << 2)\nADD(tmp, m1)\n"
    assert lines(source.replace("$a, $b", "$##a, $##b")) == ["add $m3, $m1, (1 << 2) ; nop"]
    assert text_words("#define tmp m3\nadd $tmp, $tmp, 1\n") == [0x22330001]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("defined(A) && !defined B", True),
        ("A == 5 ? 0 : 1", False),
        ("(A << 2) + 1 == 21 && A % 3 == 2", True),
        ("-1 >> 1 == -1", True),
        ("UNKNOWN", False),
        ("F(2) > 3", True),
        ("'A' == 65 || 1 / 0", True),
        ("0x10u - 020 == 0", True),
    ],
)
def test_conditions(condition: str, expected: bool) -> None:
    source = f"#define A 5\n#define F(x) (x * 2)\n#if {condition}\nyes\n#else\nno\n#endif\n"
    assert lines(source) == ["yes" if expected else "no"]


VARIABLE = """#define V(a, ...) a | __VA_ARGS__ | __VA_OPT__(x a, y) | a , ## __VA_ARGS__ ;
#define N(a, r...) a, ##r : r
#define I(x) #x
#define J(...) I(__VA_ARGS__)
"""


@pytest.mark.parametrize(
    "text",
    ["V(1)", "V(1, 2, (3, 4))", "V()", "N(1)", "N(1, 2, 3)", "J(a  b)", "V(V(1, 2), N(3))"],
)
@pytest.mark.skipif(GCC is None, reason="no gcc to compare with")
def test_variable_arguments_are_gccs(text: str) -> None:
    command = [str(GCC), "-E", "-P", "-x", "assembler-with-cpp", "-"]
    done = subprocess.run(command, input=f"{VARIABLE}{text}\n", capture_output=True, text=True, check=True)
    assert "".join(preprocess(f"{VARIABLE}{text}\n").text.split()) == "".join(done.stdout.split())


def test_an_option_that_is_never_closed_is_told() -> None:
    with pytest.raises(AssemblyFaults, match="never closed"):
        preprocess("#define V(a, ...) __VA_OPT__(a\nV(1)\n")


def test_macros_that_are_always_there() -> None:
    source = (
        "#define HERE __LINE__\n#define U(x) x##__COUNTER__ __COUNTER__\n\nHERE __FILE__ U(a) __COUNTER__\n"
    )
    assert lines(source, filename="k.S") == ['4 "k.S" a__COUNTER__ 0 1']
    assert text_words(".if __IPU_ARCH_VERSION__ == 21\n.long __LINE__\n.endif\n") == [2]


def test_stated_lines_are_where_faults_are() -> None:
    source = '#line 40 "other.S"\n.long __LINE__\n#define wrong oops\nwrong $m0\n'
    with pytest.raises(AssemblyFaults) as caught:
        assemble(source, filename="k.S")
    (fault,) = caught.value.diagnostics
    assert (fault.filename, fault.line) == ("other.S", 42)
    assert text_words("# 7 is a comment\n#define A 1\n# line up\n.long A, __LINE__\n") == [1, 4]


def test_a_preprocessed_file_knows_its_lines() -> None:
    source = '# 1 "k.S"\n# 1 "<built-in>" 1\n# 8 "deep/f.h" 1\nnop\n# 5 "k.S" 2\n\noops\n'
    with pytest.raises(AssemblyFaults) as caught:
        assemble(source, filename="k.i")
    assert [(item.filename, item.line) for item in caught.value.diagnostics] == [("k.S", 6)]


def test_files_can_be_asked_for(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "one/f.h").write_text("#include_next <f.h>\nfirst\n")
    (tmp_path / "two/f.h").write_text("second\n#warning careful there\n")
    source = """#if __has_include("f.h") && __has_include(<arch/gc_tile_defines.h>) && !__has_include(<g.h>)
#include "f.h"
#endif
#if !defined(__has_include)
no
#elifndef A
yes
#elifdef B
no
#endif
"""
    done = preprocess(source, filename="k.S", include_dirs=[tmp_path / "one", tmp_path / "two"])
    assert done.text.split() == ["second", "first", "yes"]
    assert done.warnings == (f"{tmp_path / 'two/f.h'}:2: careful there",)
    with pytest.raises(AssemblyFaults, match="in parentheses"):
        preprocess("#if __has_include\n#endif\n")


def test_branches_and_undef() -> None:
    guard = "#ifndef a_h\n#define a_h\nonce\n#endif // a_h\n#ifdef a_h\ntwice\n#undef a_h\n#endif\n"
    assert lines(guard + guard) == ["once", "twice", "once", "twice"]
    source = "#ifdef A\n1\n#elif defined(B)\n2\n#else\n3\n#endif\n#undef B\n#ifndef B\n4\n#endif\n"
    assert lines(source, defines={"B": 1}) == ["2", "4"]
    assert lines("#if 0\n#if 1\n#error no\n#else\n#endif\n#include <none>\n#elif 1\nx\n#endif\n") == ["x"]


def test_line_numbers_stay(tmp_path: Path) -> None:
    (tmp_path / "inner.h").write_text("#define LONG \\\n  add $m0, \\\n  $m0, 70000\n\nbad2 here\n")
    main = tmp_path / "main.S"
    main.write_text('nop /* one\n two */\n#include "inner.h"\nLONG\n  addd $m1\n.include "plain.inc"\n')
    (tmp_path / "plain.inc").write_text("nop\nnop $m0\n")
    with pytest.raises(AssemblyFaults) as caught:
        assemble(main.read_text(), filename=str(main))
    places = [(Path(item.filename).name, item.line) for item in caught.value.diagnostics]
    assert places == [("inner.h", 5), ("main.S", 4), ("main.S", 5), ("plain.inc", 2)]
    item = assemble("#define X 1\n\nnop\n#if X\nadd $m0, $m0, X\n#endif\n", filename="f.S")
    assert [(line.offset, line.line) for line in item.section(".text").lines] == [(0, 3), (4, 5), (8, 0)]


def test_faults_are_gathered(tmp_path: Path) -> None:
    source = "#error stop here\n#if\n#endif\n#define 1\n#define F(a) a\nF(1, 2)\n#endif\n"
    source += "#include <nothing.h>\n#if 1\n"
    with pytest.raises(AssemblyFaults) as caught:
        preprocess(source, filename="k.S")
    assert [item.line for item in caught.value.diagnostics] == [1, 2, 6, 7, 8, 9]
    assert "#error stop here" in str(caught.value) and "give its folder with -I" in str(caught.value)


def test_endless_sources_are_stopped(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text('#include "b.h"\n')
    (tmp_path / "b.h").write_text('#include "a.h"\n')
    with pytest.raises(AssemblyFaults, match="over 64 deep"):
        preprocess('#include "a.h"\n', filename=str(tmp_path / "k.S"))
    (tmp_path / "c.h").write_text("#pragma once\nnop\n")
    source = '#include "c.h"\n#include "c.h"\n'
    assert lines(source, filename=str(tmp_path / "k.S")) == ["nop"]
    bomb = "".join(f"#define A{n + 1} A{n} A{n} A{n} A{n}\n" for n in range(30)) + "A30\n"
    with pytest.raises(AssemblyFaults, match="tokens"):
        preprocess("#define A0 x\n" + bomb)


def test_our_headers() -> None:
    source = """
#include <arch/gc_tile_defines.h>
#include "poplar/StackSizeDefs.hpp"
#include "poplar/TileConstants.hpp"
#include "poplibs_support/TileConstants.hpp"
#include "poplar/AvailableVTypes.h"
#if __IPU_ARCH_VERSION__ == 21 && CTXT_WORKERS == 6 && CSR_W_REPEAT_COUNT__VALUE__MASK == 0xffff
    and $m0, $m0, CSR_W_WSR__CTXTID_M1__MASK
    setzi $a0, (CSR_W_FP_CLR__ZAACC__MASK << CSR_W_FP_CLR__ZAACC__SHIFT)
    sync TEXCH_SYNCZONE_LOCAL
#endif
DEF_STACK_USAGE 136, f
.section .text.f, FUNCTION_IS_WORKER
f: exitz $m15
"""
    item = assemble(source)
    assert item.section(".text").data.hex() == "078000420800001a02008041"  # and, setzi 8, sync 2
    assert item.section(".stack_sizes").data == bytes(4) + bytes([0x88, 0x01])
    # A number that is not public must stay a name, so that the assembler keeps it apart.
    assert not any(name in text for text in builtin_headers().values() for name in PROVISIONAL)


def test_a_users_header_comes_first(tmp_path: Path) -> None:
    (tmp_path / "arch").mkdir()
    (tmp_path / "arch/gc_tile_defines.h").write_text("#define CTXT_WORKERS 7\n")
    source = "#include <arch/gc_tile_defines.h>\nCTXT_WORKERS\n"
    assert lines(source, include_dirs=[tmp_path]) == ["7"]
    assert lines(source) == ["0x6"]


@pytest.mark.skipif(GCC is None, reason="no gcc to compare with")
def test_an_outside_preprocessor(tmp_path: Path) -> None:
    path = tmp_path / "k.S"
    path.write_text(
        '#include "poplar/TileConstants.hpp"\n#define R(n) $m##n\n\nadd R(1), R(2), CTXT_WORKERS\naddd\n'
    )
    headers = tmp_path / "headers"
    done = preprocess_with("gcc -E", path, headers=headers)
    with pytest.raises(AssemblyFaults) as caught:
        assemble(path.read_text(), filename=str(path), preprocessed=done)
    assert [item.line for item in caught.value.diagnostics] == [5]
    with pytest.raises(UsageError, match="there is no command"):
        preprocess_with("no-such-preprocessor -E", path)
    path.write_text("#error no\n")
    with pytest.raises(UsageError, match="failed"):
        preprocess_with("gcc -E", path)


_NAMES = st.sampled_from(["A", "B", "C", "F", "G"])
_WORD = st.one_of(_NAMES, st.sampled_from(["x", "y", "1", "0x2f", "$", "(", ")", ",", "+", "."]))
_BODY = st.lists(_WORD, max_size=6).map(" ".join)
_OBJECT = st.builds("#define {} {}\n".format, st.sampled_from(["A", "B", "C"]), _BODY)
_FUNCTION = st.builds("#undef {0}\n#define {0}(x, y) {1}\n".format, st.sampled_from(["F", "G"]), _BODY)
_CALL = st.builds("{}({}, {}) {}\n".format, st.sampled_from(["F", "G"]), _NAMES, _NAMES, _NAMES)
_PASTE = st.builds("#undef G\n#define G(x, y) x##y {}\n".format, _NAMES)


@pytest.mark.skipif(GCC is None, reason="no gcc to compare with")
@settings(max_examples=30)
@given(st.lists(st.one_of(_OBJECT, _FUNCTION, _PASTE, _CALL), min_size=2, max_size=12))
def test_expansion_agrees_with_gcc(parts: list[str]) -> None:
    source = "".join(parts)
    source = source.replace("#define A ", "#undef A\n#define A ").replace(
        "#define B ", "#undef B\n#define B "
    )
    source = source.replace("#define C ", "#undef C\n#define C ")
    command = [str(GCC), "-E", "-P", "-x", "assembler-with-cpp", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    try:
        mine = preprocess(source).text
    except AssemblyFaults:
        assert done.returncode != 0
        return
    if done.returncode == 0:
        assert "".join(mine.split()) == "".join(done.stdout.split())


@given(st.text(alphabet=st.sampled_from("#defineifls ABF(),x\\\n\"'/*0<>&|!?:+.$"), max_size=80))
def test_any_text_is_preprocessed_or_refused(source: str) -> None:
    try:
        done = preprocess(source)
    except AssemblyFaults:
        return
    assert len(done.origins) == done.text.count("\n")
