"""What packages of the compiler say of themselves: true of what runs, and shown by the commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from profiled_digits import IMAGES, TILES, package
from typer.testing import CliRunner

from tilewright.cli.main import app
from tilewright.package import save_package, write_package
from tilewright.package.program_info import ProgramInfo
from tilewright.profiling.memory_map import MemoryMap

pytestmark = pytest.mark.sim


def program() -> ProgramInfo:
    debug = package().debug
    assert debug is not None and debug.program is not None
    return debug.program


def test_no_two_buffers_of_a_tile_share_bytes_while_both_live() -> None:
    for group in program().classes:
        rows = group.buffers
        begin, end = rows["address"].astype(int), (rows["address"] + rows["size"] + rows["tail"]).astype(int)
        for one in range(len(rows)):
            together = (rows["first"] <= rows["last"][one]) & (rows["first"][one] <= rows["last"])
            shared = (begin < end[one]) & (begin[one] < end) & together
            assert np.flatnonzero(shared).tolist() == [one]
    found = MemoryMap(package())
    assert all(not found.overlaps(usage) for usage in found.fullest())


def test_values_lie_inside_the_buffers_they_are_said_to_be_in() -> None:
    known = program()
    class_of = {int(tile): group for group in known.classes for tile in group.tiles}
    for value in known.values:
        for row in value.binding.slices:
            placed = class_of[int(row["tile"])].buffers
            (home,) = placed[placed["buffer"] == value.buffer]
            assert home["address"] <= row["address"]
            assert int(row["address"]) + int(row["size"]) <= int(home["address"]) + int(home["size"])
            assert home["first"] <= value.step <= home["last"]


def test_steps_name_their_operations_and_predictions_add_up() -> None:
    known = program()
    names = {operation.name for operation in known.operations}
    kinds = [step.kind for step in package().profile.steps]
    assert len(known.steps) == len(kinds)
    for step, kind in zip(known.steps, kinds, strict=True):
        assert (step.operation in names) == (kind != "host")
        assert bool(step.kernel) == (kind != "host")
    assert sorted(tile for group in known.classes for tile in group.tiles.tolist()) == sorted(
        {int(row["tile"]) for value in known.values for row in value.binding.slices}
    )
    assert sum(len(group.tiles) for group in known.classes) == TILES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reports")
    save_package(package(), path / "p.ipuexe")
    np.save(path / "x.npy", np.random.default_rng(6).random((IMAGES, 64), np.float32))
    return path


def tilewright(*arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result.output


def test_memory_is_printed_written_and_drawn(folder: Path) -> None:
    text = tilewright("memory", folder / "p.ipuexe")
    assert "Tightest tiles" in text and "fragmented" in text and "OVERLAPS" not in text
    shown = json.loads(tilewright("memory", folder / "p.ipuexe", "--json"))
    assert shown["tiles"] == TILES
    tile = json.loads(tilewright("memory", folder / "p.ipuexe", "--tile", 0, "--json"))
    assert {"w0", "x"} <= {span["name"] for span in tile["spans"]}
    tilewright("memory", folder / "p.ipuexe", "--html", "-o", folder / "m.html", "--quiet")
    assert (folder / "m.html").read_bytes().startswith(b"<!doctype html>")
    tilewright("memory", folder / "p.ipuexe", "--tile", 0, "-o", folder / "m.txt", "--quiet")
    assert "w0" in (folder / "m.txt").read_text()
    assert "-o" in tilewright("memory", folder / "p.ipuexe", "--html", status=2)
    assert "no tile 1472" in tilewright("memory", folder / "p.ipuexe", "--tile", 1472, status=2)
    assert "no such folder" in tilewright(
        "memory", folder / "p.ipuexe", "-o", folder / "no" / "m.txt", status=2
    )


def test_a_package_does_not_differ_from_itself(folder: Path) -> None:
    assert "byte for byte" in tilewright("diff", folder / "p.ipuexe", folder / "p.ipuexe")
    shown = json.loads(tilewright("diff", folder / "p.ipuexe", folder / "p.ipuexe", "--json"))
    assert shown["same"] and shown["changes"] == 0


def test_an_operation_is_explained_with_cycles_of_a_run(folder: Path) -> None:
    tilewright(
        "run", folder / "p.ipuexe", "--input", f"x={folder / 'x.npy'}", "--profile", folder / "p.twprof",
        "--quiet",
    )  # fmt: skip
    shown = json.loads(
        tilewright("explain", folder / "p.ipuexe", "matmul_0", "--profile", folder / "p.twprof", "--json")
    )
    assert shown["simulated_cycles"] > 0 and shown["predicted_cycles"] > 0
    multiply = next(step for step in shown["steps"] if step["kernel"].startswith("gemm"))
    assert multiply["simulated_cycles"] == pytest.approx(multiply["predicted_cycles"], rel=0.3)
    assert shown["part_of"] == program().doing("matmul_0").removeprefix("matmul_0")
    assert "Plan" in tilewright("explain", folder / "p.ipuexe", "matmul_0")
    assert "there are" in tilewright("explain", folder / "p.ipuexe", "matmul_9", status=2)


@pytest.mark.parametrize("granularity", ["graph", "region"])
def test_every_granularity_has_the_same_device_cycles(folder: Path, granularity: str) -> None:
    path = folder / f"{granularity}.twprof"
    tilewright(
        "run", folder / "p.ipuexe", "--input", f"x={folder / 'x.npy'}", "--profile", path,
        "--granularity", granularity, "--repeat", 2, "--quiet",
    )  # fmt: skip
    shown = json.loads(tilewright("inspect", path, "--json"))
    assert len(shown["runs"]) == 2 and shown["runs"][0] == shown["runs"][1]
    query = json.loads(tilewright("profile", "query", path, "--group-by", "tile", "--limit", 0, "--json"))
    assert sum(group["critical_cycles"] for group in query["groups"]) == sum(shown["runs"])


def test_damaged_packages_are_refused_by_every_report(folder: Path) -> None:
    data = write_package(package())
    for length in (7, len(data) // 2, len(data) - 8):
        (folder / "cut.ipuexe").write_bytes(data[:length])
        for command in (
            ("memory", folder / "cut.ipuexe"),
            ("explain", folder / "cut.ipuexe", "matmul_0"),
            ("diff", folder / "p.ipuexe", folder / "cut.ipuexe"),
            ("debug", folder / "cut.ipuexe"),
            ("run", folder / "cut.ipuexe", "--check-operators"),
        ):
            assert "cut.ipuexe" in tilewright(*command, status=2)
