"""`tilewright cache` and what the commands that compile do with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tilewright as tw
from tilewright.cli.main import app
from tilewright.graph import save_graph

pytestmark = pytest.mark.unit


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)), prog_name="tilewright")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder, new and empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tilewright"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    bias = np.ones(16, np.float32)
    path = tmp_path / "model.graph"
    save_graph(tw.trace(lambda x: {"y": x + bias}, x=tw.TensorType((4, 16))), path)
    return path


def test_the_second_compile_writes_the_same_file(kept: Path, model: Path, tmp_path: Path) -> None:
    outputs = [tmp_path / f"{number}.ipuexe" for number in range(3)]
    facts = [
        json.loads(run("compile", model, "-o", output, "--tiles", "2", "--json", *more).stdout)
        for output, more in zip(outputs, ([], [], ["--no-cache"]), strict=True)
    ]
    assert [fact["cached"] for fact in facts] == [False, True, False]
    assert len({output.read_bytes() for output in outputs}) == 1
    assert len({fact["digest"] for fact in facts}) == 1
    assert [fact["package_bytes"] for fact in facts] == [outputs[0].stat().st_size] * 3
    again = run("compile", model, "-o", outputs[0], "--tiles", "2")
    assert "found in the cache in" in again.stderr
    assert len(list((kept / "packages").iterdir())) == 1


def test_without_a_cache_nothing_is_written(kept: Path, model: Path, tmp_path: Path) -> None:
    assert run("compile", model, "-o", tmp_path / "o.ipuexe", "--tiles", "2", "--no-cache").exit_code == 0
    assert not (kept / "packages").exists()


def fill(kept: Path) -> None:
    for name, size in (("packages", 2000), ("engine/x", 300), ("translations", 50)):
        (kept / name).mkdir(parents=True)
        (kept / name / "file").write_bytes(bytes(size))


def test_show(kept: Path) -> None:
    empty = json.loads(run("cache", "--json").stdout)
    assert empty["folder"] == str(kept)
    assert set(empty["areas"]) == {"packages", "loops", "engine", "translations", "popc"}
    assert empty["areas"]["packages"] == {"files": 0, "bytes": 0}
    fill(kept)
    assert json.loads(run("cache", "--json").stdout)["areas"]["engine"] == {"files": 1, "bytes": 300}
    text = run("cache").stdout
    assert str(kept) in text and "1 file " in text and "2.0 KiB" in text


def test_clear(kept: Path) -> None:
    fill(kept)
    done = run("cache", "clear")
    assert done.exit_code == 0 and done.stderr == "removed 2.0 KiB\n"
    assert not (kept / "packages").exists() and (kept / "engine").exists()
    assert run("cache", "clear", "--all").stderr == "removed 350 B\n"
    assert not (kept / "engine").exists() and not (kept / "translations").exists()
    assert run("cache", "clear").stderr == "removed 0 B\n"


def test_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    done = run("cache")
    assert done.exit_code == 2 and "there is no home directory" in done.stderr
