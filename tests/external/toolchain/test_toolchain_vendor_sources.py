"""A checkout of the vendor's published vertex sources assembles unchanged, whoever preprocesses it.

Set TILEWRIGHT_POPLIBS to the folder of a checkout of graphcore/poplibs; without it nothing is tested.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tilewright.ipu21.toolchain import AssemblyFaults, ObjectFile, assemble, link
from tilewright.ipu21.toolchain.preprocess import preprocess_with

pytestmark = pytest.mark.external

ROOT = Path(os.environ.get("TILEWRIGHT_POPLIBS", "/nowhere"))
SOURCES = sorted(path for path in ROOT.glob("lib/**/*.S") if not path.name.endswith(".h.S"))
GCC_SPELLS_OTHERWISE = {
    "ConvPartial1x4SLIC_half_float_8_and_half_half_16.S",
    "MultiUpdateOp.S",
    "NonLinearityGrad1DSwish.S",
    "NonLinearityGrad2DSwish.S",
}
"""gcc puts blanks between pasted tokens where clang, which the vendor uses, does not."""

needs_checkout = pytest.mark.skipif(not SOURCES, reason="TILEWRIGHT_POPLIBS names no checkout")


@pytest.fixture(scope="module")
def folders() -> list[Path]:
    return [*sorted({path.parent for path in SOURCES}), *ROOT.glob("lib/*"), ROOT / "include", ROOT / "lib"]


@needs_checkout
def test_every_source_assembles(folders: list[Path]) -> None:
    faults, stacks = [], 0
    for path in SOURCES:
        try:
            item = assemble(path.read_text(), filename=str(path), include_dirs=folders)
        except AssemblyFaults as error:
            faults.append(str(error.diagnostics[0]))
            continue
        again = ObjectFile.from_bytes(item.to_bytes())
        assert [section.data for section in again.sections] == [section.data for section in item.sections]
        names = {symbol.name for symbol in item.symbols if not symbol.defined}
        stacks += len(link([item], externals=dict.fromkeys(names, 0x4C014)).stack_sizes)
    assert not faults, "\n".join(faults)
    assert len(SOURCES) >= 100 and stacks > 100


@needs_checkout
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc to compare with")
def test_gcc_gives_the_same_objects(folders: list[Path], tmp_path: Path) -> None:
    for path in SOURCES[::2]:
        if path.name in GCC_SPELLS_OTHERWISE:
            continue
        done = preprocess_with("gcc -E", path, include_dirs=folders, headers=tmp_path)
        theirs = assemble(path.read_text(), filename=str(path), preprocessed=done, include_dirs=folders)
        mine = assemble(path.read_text(), filename=str(path), include_dirs=folders)
        assert theirs.to_bytes() == mine.to_bytes(), path.name
