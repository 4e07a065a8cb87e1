"""A large source that uses what vendors use: includes, macros that make vertices, tables, groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilewright.ipu21.toolchain import ObjectFile, assemble, disassemble
from tilewright.tile import Checks, TileBench, TileProgram
from tilewright.tile.content import vertex_symbol

pytestmark = pytest.mark.sim

HERE = Path(__file__).parent
SOURCE = (HERE / "library.S").read_text()
DEFINES: dict[str, int | str] = {"LIBRARY_VERSION": "1.2-rc"}
OTHER = """#include "library.h.S"
.section .text.start_job, "axG", @progbits, start_job, comdat
.weak start_job
start_job: trap 0
FUNCTION other, supervisor
    bri start_job
END_FUNCTION other
"""


def library(name: str, text: str) -> ObjectFile:
    item = assemble(text, filename=name, include_dirs=[HERE], defines=DEFINES)
    return ObjectFile.from_bytes(item.to_bytes(), name=name)


@pytest.fixture(scope="module")
def program() -> TileProgram:
    return TileProgram.from_objects([library("library.S", SOURCE), library("other.S", OTHER)])


@pytest.fixture
def bench(program: TileProgram, engine_name: str) -> TileBench:
    watching = Checks(poison=True, races=True, code=True, stack=True)
    return TileBench(program, checks=watching if engine_name == "compiled" else Checks())


@pytest.mark.parametrize("count", [0, 2, 10, 12, 46, 600, 5000])
@pytest.mark.parametrize(("kind", "name"), [(np.float16, "half"), (np.float32, "float")])
def test_scale(bench: TileBench, kind: type[np.floating], name: str, count: int) -> None:
    data = np.random.default_rng(count).normal(0, 1, count).astype(kind)
    x = bench.put("x", np.concatenate([data, np.zeros(2, kind)]))  # one word is read ahead
    y = bench.reserve("y", "f16" if name == "half" else "f32", count)
    factor = ("f16", 0.3) if name == "half" else ("f32", 0.3)
    state = bench.vertex_state(y, x, *([factor, ("u16", 0)] if name == "half" else [factor]), ("u16", count))
    bench.run_vertex(vertex_symbol(f"lib::Scale<{name}>"), state, workers=6)
    np.testing.assert_array_equal(bench.array("y"), data * kind(0.3))


def test_a_list_of_jobs(bench: TileBench) -> None:
    words = np.arange(100, 108, dtype=np.uint32)
    halves = np.arange(1, 33, dtype=np.float16)
    bench.put("words", words)
    bench.put("halves", halves)
    bench.reserve("scaled", "f16", 24)
    bench.reserve("pairs", "u16", 12)
    jobs = [0, bench.vertex_state("scaled", "halves", ("f16", -2), ("u16", 0), ("u16", 24)).address]
    orders = [list(range(7, -1, -1)), [0, 2, 4, 6, 1, 3, 5, 7], [i * 3 % 8 for i in range(8)]]
    for number in range(3):
        bench.reserve(f"out{number}", "u32", 8)
        jobs += [2, bench.vertex_state(f"out{number}", "words", 7, number).address]
    jobs += [3, bench.vertex_state("pairs", "halves").address, -1]
    result = bench.call("lib_run", {"m2": bench.put("jobs_", np.array(jobs, np.int64).astype(np.uint32))})
    for number, order in enumerate(orders):
        assert result.array(f"out{number}").tolist() == words[order].tolist()
    np.testing.assert_array_equal(result.array("scaled"), halves[:24] * np.float16(-2))
    # Element 2 w of each worker's pair is at byte 4 w, the other at 4 w + 2.
    assert result.array("pairs").tolist() == halves[:12].view(np.uint16).tolist()
    assert (result.slots > 0).all()


def test_what_the_files_say(program: TileProgram) -> None:
    image = program.image
    about = image.symbols["about"]
    assert image.read(about, 28) == b"lib, version 1.2-rc\0made\0 here\0"[:28]
    assert image.stack_sizes["lib_spread"] == image.stack_sizes["lib_run"] == 8
    assert image.stack_sizes["__runCodelet_lib__Scale___half"] == 0
    line = SOURCE[: SOURCE.index("    setzi   $sEntry, jobs")].count("\n") + 1
    assert program.source_at(image.symbols["start_job"]) == ("library.S", line)
    assert program.source_at(image.symbols["other"]) == ("other.S", 6)


def test_the_listing_assembles_to_the_same_bytes() -> None:
    item = library("library.S", SOURCE)
    again = assemble(disassemble(item))
    loaded = [section for section in item.sections if section.allocated]
    assert [section.data for section in loaded] == [
        section.data for section in again.sections if section.allocated
    ]
