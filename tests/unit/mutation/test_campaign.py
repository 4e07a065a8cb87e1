"""The campaign finds guards of every kind, and a mutant that a test must notice is noticed."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from mutation.campaign import main
from mutation.mutant import SOURCE, File, Mutant
from mutation.overlay import Dependents, replace_module
from mutation.selection import Selection, Watched, selected
from mutation.subjects import SUBJECTS, Subject, equivalents
from mutation.touched import Tracer
from mutation.trials import HARMLESS, Trials

pytestmark = pytest.mark.unit

CHECKS = b"""
def fits(a, b):
    if a.bytes > 4 or b is None:
        raise ValueError
    return max(a.bytes + b.tail, 8), [item for item in a if 0 <= item < 9]

def bool_of(a) -> bool:
    return a.one and a.other

place(Request("a", interleaved=True, last=7))
"""
KERNEL = b"""
LINES = ["brz $m1, .Lend", bundle(f"min $m2, {count}, $m4", "uput $FP_CLR, $a0"), "add $m1, $m1, 1"]
CONTRACT = Contract(
    (Operand("out", "a16", "out"), Operand("x", "a16", "in", alignment=16), Operand("y", "", "unused")),
    (Scalar("rows", "rows", 0, 99),),
    apart=(("out", "x"), ("out", "y")),
)
"""

TRACED = """def sign(x):
    if x > 0:
        return 1
    return -1
"""


def found(text: bytes, subject: Subject) -> dict[str, str]:
    """What each mutant takes away, and the line it leaves."""
    result = {}
    for mutant in subject.mutants_of(File("a.py", text)):
        edited = text[: mutant.begin] + mutant.new.encode() + text[mutant.end :]
        ast.parse(edited)
        result[mutant.what] = edited.decode().splitlines()[mutant.line - 1].strip()
    return result


def test_checks_and_limits_are_found() -> None:
    edits = found(CHECKS, Subject((), (), limits=True))
    assert edits["never `a.bytes > 4 or b is None`"] == "if False:"
    assert edits["no b is None in `a.bytes > 4 or b is None`"] == "if ((a.bytes > 4)):"
    assert edits["no 8 in `max(a.bytes + b.tail, 8)`"].startswith("return (a.bytes + b.tail), [")
    assert edits["no tail in `a.bytes + b.tail`"].startswith("return max(a.bytes, 8), [")
    assert edits["unfiltered `0 <= item < 9`"].endswith("for item in a if True]")
    assert edits["no upper end in `0 <= item < 9`"].endswith("if (0 <= item)]")
    assert edits["no a.one in `a.one and a.other`"] == "return ((a.other))"
    assert edits["no interleaved `True`"] == 'place(Request("a", interleaved=False, last=7))'
    assert edits["no last `7`"] == 'place(Request("a", interleaved=True, last=0))'


def test_contracts_and_guarding_instructions_are_found() -> None:
    edits = found(KERNEL, Subject((), (), assembly=True))
    assert edits['no instruction `"brz $m1, .Lend"`'].startswith('LINES = ["nop", ')
    assert 'bundle(f"mov $m2, {count}", "uput' in edits['no instruction `f"min $m2, {count}, $m4"`']
    assert '"fnop")' in edits['no instruction `"uput $FP_CLR, $a0"`']
    assert not any("add $m1" in what for what in edits)
    operand = 'Operand("x", "a16", "in", alignment=16)'
    assert operand.replace("16)", "1)") in edits[f"no alignment in `{operand}`"]
    assert "alignment=1)" in edits['no alignment in `Operand("out", "a16", "out")`']
    assert not any("unused" in what for what in edits)
    scalar = 'Scalar("rows", "rows", 0, 99)'
    assert edits[f"no maximum in `{scalar}`"] == '(Scalar("rows", "rows", 0, 1 << 60),),'
    assert edits['may share elements: `("out", "y")`'] == 'apart=(("out", "x"), ),'


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_subject_has_mutants_with_names_of_their_own(name: str) -> None:
    mutants = SUBJECTS[name].mutants()
    assert len(mutants) > 50 and SUBJECTS[name].test_files()
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    for mutant in mutants[::25]:
        ast.parse(mutant.source())


def test_equivalent_mutants_exist_and_have_reasons() -> None:
    names = {mutant.name for subject in SUBJECTS.values() for mutant in subject.mutants()}
    for name, reason in equivalents().items():
        assert name in names
        assert len(reason.split()) >= 5, name


def test_tests_that_execute_the_line_come_first() -> None:
    mutant = Mutant("a.py", 5, "f", "never `x`", 0, 0, "", (4, 8))
    touched = {
        "t.py::far": Watched(1.0, {}),
        "t.py::file": Watched(1.0, {"a.py": [20]}),
        "t.py::function": Watched(1.0, {"a.py": [4, 20]}),
        "s.py::line": Watched(9.0, {"a.py": [4, 5]}),
        "s.py::line too": Watched(2.0, {"a.py": [5]}),
        "s.py::beside": Watched(0.5, {}),
    }
    near = ["s.py::line too", "s.py::line", "s.py::beside", "t.py::function"]
    assert selected(mutant, touched, seconds=99) == Selection(near, 12.5, 0)
    assert selected(mutant, touched, likely="far", seconds=99).tests == ["far", *near]
    assert selected(mutant, touched, seconds=11.5) == Selection(near[:3], 11.5, 1)
    assert selected(mutant, touched, seconds=1) == Selection(near[:1], 2.0, 3)
    # Outside of functions, or where all of a function is compiled: first those that name the module.
    for elsewhere in (
        Mutant("a.py", 1, "", "never `x`", 0, 0, ""),
        Mutant("a.py", 31, "", "", 0, 0, "", (30, 32)),
    ):
        assert selected(elsewhere, touched, seconds=99).tests == [
            "t.py::file",
            "t.py::function",
            "s.py::line too",
            "s.py::line",
            "s.py::beside",
            "t.py::far",
        ]
    named = {"unit/place/test_no_room.py::one": Watched(9.0, {}), **touched}
    compiled = Mutant("tilewright/ipu21/place/placer.py", 31, "", "", 0, 0, "", (30, 32))
    assert selected(compiled, named, seconds=99).tests[0] == "unit/place/test_no_room.py::one"


def test_what_tests_execute_is_seen_test_by_test(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TRACED)
    module: dict[str, Any] = {}
    exec(compile(TRACED, str(tmp_path / "a.py"), "exec"), module)
    tracer = Tracer(tmp_path, ["a.py"])
    with tracer.running():
        module["sign"](1)
        with tracer.part("one"):
            module["sign"](1)
            with tracer.part("shared"):
                module["sign"](0)
        with tracer.part("two"):
            module["sign"](-1)
    assert tracer.lines("one") == {"a.py": {1, 2, 3}}
    assert tracer.lines("shared") == {"a.py": {1, 2, 4}}
    assert tracer.lines("two") == {"a.py": {1, 2, 4}}
    assert tracer.lines("three") == {}


def test_a_mutant_is_killed_and_the_source_as_it_is_passes() -> None:
    import tilewright.ipu21.place.placer  # noqa: F401  # what is not loaded has no dependents

    test = "unit/place/test_no_room.py"
    trials = Trials(Dependents("tilewright"), seconds=60)
    assert trials.run(None, [test]).verdict == HARMLESS
    place = SUBJECTS["place"].mutants()
    (mutant,) = (
        item
        for item in place
        if item.name.endswith(
            "request.py:NoRoomError._peak: no not interleaved in `r.interleaved or not interleaved`"
        )
    )
    before = (SOURCE / mutant.path).read_bytes()
    outcome = trials.run(mutant, [test])
    assert outcome.verdict == "killed" and "test_no_room.py::" in outcome.by
    name = outcome.by.removeprefix("tests/")
    seen = trials.run(None, [name], watch=[mutant.path]).touched or {}
    assert list(seen) == [name] and mutant.line in seen[name][1][mutant.path]
    assert (SOURCE / mutant.path).read_bytes() == before


def test_modules_that_are_loaded_already_use_the_mutant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "painted"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "paint.py").write_text("COLOUR = 'red'\n")
    # Loaded anew before what it uses, being first in the alphabet.
    (package / "door.py").write_text("from . import paint\n\ndef colour():\n    return paint.COLOUR\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    try:
        assert importlib.import_module("painted.door").colour() == "red"
        dependents = Dependents("painted").of("painted.paint")
        assert dependents == ["painted.door", "painted.paint"]
        (tmp_path / "other").mkdir()
        replace_module("painted.paint", "COLOUR = 'blue'\n", tmp_path / "other", dependents)
        assert importlib.import_module("painted.door").colour() == "blue"
        assert importlib.import_module("painted").paint.COLOUR == "blue"
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "painted"]:
            del sys.modules[name]


def test_an_undone_mutant_is_the_file_as_it_is() -> None:
    mutant = SUBJECTS["place"].mutants()[0]
    before = (SOURCE / mutant.path).read_text()
    assert mutant.undone().source() == before != mutant.source()
    assert mutant.undone().module == mutant.module


def test_what_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernel"]) == 2
    assert main(["--only", "no such guard", "--list"]) == 2
    assert capsys.readouterr().err.count("error: ") == 2
    assert main(["place", "--only", "request.py:NoRoomError._peak", "--list"]) == 0
    assert "unfiltered `r.interleaved or not interleaved`" in capsys.readouterr().out
