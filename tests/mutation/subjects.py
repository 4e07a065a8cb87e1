"""Which source files hold guards, of what kinds, and which tests concern them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from mutation.conditions import condition_edits
from mutation.contracts import contract_edits
from mutation.instructions import instruction_edits
from mutation.mutant import SOURCE, Edit, File, Mutant, Scope

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent


@dataclass(frozen=True)
class Subject:
    """Source files whose guards the same tests hold.

    Attributes:
        files: patterns of paths below `src/tilewright/ipu21`.
        tests: patterns of test files below `tests`; those first that are likely to fail.
        every_branch, limits, masks: see `conditions.condition_edits`.
        assembly: the files hold contracts and assembly.
        likely: (text, test file): of what concerns the text, the tests of this file that are named after the
            source file or the kernels in it run first.
        not_tests: patterns of test files that only compare with what came out before.
    """

    files: tuple[str, ...]
    tests: tuple[str, ...]
    every_branch: bool = False
    limits: bool = False
    masks: bool = False
    assembly: bool = False
    likely: tuple[tuple[str, str], ...] = ()
    not_tests: tuple[str, ...] = field(default=("*golden*", "*timing_page*"))

    def paths(self) -> list[str]:
        root = SOURCE / "tilewright/ipu21"
        found = [path for pattern in self.files for path in sorted(root.glob(pattern))]
        return list(dict.fromkeys(path.relative_to(SOURCE).as_posix() for path in found))

    def test_files(self) -> list[str]:
        """Test files below `tests`, in the order in which they are to run."""
        found = [path for pattern in self.tests for path in sorted(TESTS.glob(pattern))]
        names = dict.fromkeys(path.relative_to(TESTS).as_posix() for path in found)
        return [name for name in names if not any(fnmatch(name, pattern) for pattern in self.not_tests)]

    def likely_for(self, mutant: Mutant) -> str | None:
        """What to run first, if it is known: a test file and what names of its tests contain."""
        symbols = _SYMBOL.findall((SOURCE / mutant.path).read_text())
        named = " or ".join(sorted({Path(mutant.path).stem.partition("_")[0], *symbols}))
        return next((f"{test} -k {named}" for text, test in self.likely if text in mutant.what), None)

    def mutants(self) -> list[Mutant]:
        return [mutant for path in self.paths() for mutant in self.mutants_of(File(path))]

    def mutants_of(self, file: File) -> list[Mutant]:
        """Mutants of one file, in its order."""
        return file.mutants(self._edits(file))

    def _edits(self, file: File) -> Iterator[tuple[Scope, Edit]]:
        yield from condition_edits(file, every_branch=self.every_branch, limits=self.limits, masks=self.masks)
        if self.assembly:
            yield from contract_edits(file)
            yield from instruction_edits(file)


CONTRACTS = "sim/kernels/test_contracts.py"
_SYMBOL = re.compile(r'"(\w+_[fu](?:16|32|64))"')
"""Entry points of kernels, as source files name them."""

SUBJECTS = {
    "kernels": Subject(
        ("kernels/*.py",),
        ("sim/kernels/test_*.py", "unit/plan/test_apart.py"),
        assembly=True,
        likely=tuple((text, CONTRACTS) for text in ("Operand(", "Scalar(", "elements:")),
    ),
    "place": Subject(
        ("place/*.py",),
        ("unit/place/test_*.py", "unit/plan/test_*.py", "unit/compiler/test_out_of_memory.py"),
        every_branch=True,
        limits=True,
        masks=True,
    ),
    "plan": Subject(
        ("plan/*.py", "lower/*.py"),
        (
            "unit/plan/test_*.py",
            "unit/compiler/test_[!o]*.py",
            "sim/test_corner_graphs.py",
            "sim/test_*_products.py",
            "sim/test_precision.py",
        ),
        limits=True,
        masks=True,
    ),
    "verify": Subject(
        ("fabric/verify.py", "fabric/deliveries.py", "fabric/parse.py"),
        (
            "unit/fabric/test_verify.py",
            "sim/exchange/test_*.py",
            "unit/fabric/test_*.py",
            "sim/fabric/test_*.py",
        ),
        limits=True,
        masks=True,
    ),
}
"""By name. Kernels first: what they refuse nothing else can."""


def equivalents() -> dict[str, str]:
    """Mutants that change nothing a test could see: name -> why."""
    with (HERE / "equivalent.toml").open("rb") as stream:
        return dict(tomllib.load(stream))
