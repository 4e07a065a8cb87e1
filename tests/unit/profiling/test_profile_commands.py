"""`tilewright profile`, `inspect` of a profile, and `--profile`, in process."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from profile_sample import HOSTILE, hostile_profile, sample_profile
from typer.testing import CliRunner

from tilewright import runtime
from tilewright.cli.main import app
from tilewright.package import save_package
from tilewright.profiling import load_profile, query, save_profile

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))
sys.path.insert(0, str(Path(__file__).parents[1] / "package"))
from fake_device import FakeDevice
from package_sample import make_package

pytestmark = pytest.mark.unit


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    save_profile(sample_profile(2), tmp_path / "p.twprof")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80"})
    assert result.exit_code == status, result.output
    return result.output if status else result.stdout


def test_query_as_text(folder: Path) -> None:
    text = invoke("profile", "query", "p.twprof", "--group-by", "step", "--limit", "2")
    lines = [line.split() for line in text.splitlines()]
    assert ["1", "mm.receive", "232", "53.5%", "244", "714", "25.1%"] in lines
    assert any(line[:3] == ["total", "434", "100.0%"] for line in lines)
    assert "434 device cycles" in text and "3 more groups are in the total" in text
    assert max(map(len, text.splitlines())) <= 80


def test_query_as_json(folder: Path) -> None:
    answer = json.loads(
        invoke("profile", "query", "p.twprof", "--group-by", "kind", "--where", "tile=70", "--json")
    )
    result = query(sample_profile(2), "kind", where=["tile=70"])
    assert answer["device_cycles"] == 434 and answer["found"] == result.found
    assert [group["name"] for group in answer["groups"]] == [group.name for group in result.groups]
    assert answer["total"]["work_cycles"] == result.total.work
    assert sum(group["critical_cycles"] for group in answer["groups"]) == answer["total"]["critical_cycles"]


def test_inspect_shows_a_profile(folder: Path) -> None:
    text = invoke("inspect", "p.twprof")
    assert "434 cycles" in text and "mm.multiply" in text and "synchronisation" in text
    (folder / "renamed.bin").write_bytes((folder / "p.twprof").read_bytes())
    summary = json.loads(invoke("inspect", "renamed.bin", "--json"))
    assert summary["format"] == "profile" and summary["runs"] == [217, 217] and summary["tiles"] == 3
    assert summary["worker_intervals"] == 36
    assert "this is a profile" in invoke("inspect", "p.twprof", "--tile", "0", status=2)


def test_page_and_trace_are_written(folder: Path) -> None:
    invoke("profile", "html", "p.twprof", "-o", "p.html")
    assert Path("p.html").read_text().startswith("<!doctype html>")
    invoke("profile", "perfetto", "p.twprof", "-o", "p.perfetto-trace", "--tiles", "0,70")
    assert Path("p.perfetto-trace").stat().st_size > 1000


def test_hostile_names_are_printed_as_they_are(folder: Path) -> None:
    save_profile(hostile_profile(), folder / "h.twprof")
    answer = json.loads(invoke("profile", "query", "h.twprof", "--group-by", "kernel", "--json"))
    assert {group["name"] for group in answer["groups"]} == set(HOSTILE)
    assert "[bold]" not in invoke("profile", "query", "h.twprof")
    invoke("inspect", "h.twprof")


@pytest.mark.parametrize("damage", ["empty", "garbage", "truncated", "package"])
@pytest.mark.parametrize(
    "command",
    [
        ("inspect", "{}"),
        ("profile", "query", "{}"),
        ("profile", "html", "{}", "-o", "out.html"),
        ("profile", "perfetto", "{}", "-o", "out.trace"),
    ],
)
def test_damaged_files_are_refused_in_one_line(folder: Path, damage: str, command: tuple[str, ...]) -> None:
    data = (folder / "p.twprof").read_bytes()
    save_package(make_package(), folder / "x.ipuexe")
    content = {
        "empty": b"",
        "garbage": bytes(range(256)) * 8,
        "truncated": data[: len(data) // 2],
        "package": (folder / "x.ipuexe").read_bytes(),
    }
    (folder / "bad.twprof").write_bytes(content[damage])
    text = invoke(*(part.format("bad.twprof") for part in command), status=2)
    assert text.startswith("error: bad.twprof: ") and text.count("\n") == 1
    assert not (folder / "out.html").exists() and not (folder / "out.trace").exists()


def test_a_missing_folder_is_noticed_before_the_run(folder: Path) -> None:
    save_package(make_package(), folder / "x.ipuexe")
    np.save("x.npy", np.zeros((4, 20), np.float32))
    np.save("k.npy", np.int32(0))
    inputs = ("--input", "x=x.npy", "--input", "k=k.npy")
    text = invoke("run", "x.ipuexe", *inputs, "--profile", "no/where.twprof", status=2)
    assert "no such folder" in text
    assert "no such folder" in invoke("demo", "digits", "--profile", "no/where.twprof", status=2)


def test_run_writes_a_profile_of_every_repetition(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "open_device", lambda name, **options: FakeDevice(name))
    save_package(make_package(), folder / "x.ipuexe")
    np.save("x.npy", np.zeros((4, 20), np.float32))
    np.save("k.npy", np.int32(0))
    inputs = ("--input", "x=x.npy", "--input", "k=k.npy")
    report = json.loads(
        invoke("run", "x.ipuexe", *inputs, "--profile", "r.twprof", "--repeat", "3", "--json")
    )
    profile = load_profile("r.twprof")
    assert report["runs"] == 3 and report["cycles"] == 3 * 630
    assert [run.cycles for run in profile.runs] == [630] * 3 and not profile.exact
    assert profile.package == "x.ipuexe"
