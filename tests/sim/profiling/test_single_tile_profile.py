"""The profile of one function on one tile has its cycles and its workers' time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tilewright.cli.main import app

pytestmark = pytest.mark.sim

SOURCE = """
    .globl f
    .type f, @function
f:
    setzi $m2, work
    runall $m2, $m15, 0
    sync 2
    br $m10
work:
    setzi $m1, 19
loop:
    brnzdec $m1, loop
    exitz $m15
"""


def test_a_function_with_workers(tmp_path: Path) -> None:
    (tmp_path / "f.S").write_text(SOURCE)
    options = ["--entry", "f", "--profile", str(tmp_path / "f.twprof"), "--json", "--quiet"]
    done = CliRunner().invoke(app, ["sim", str(tmp_path / "f.S"), *options])
    assert done.exit_code == 0, done.output
    cycles = json.loads(done.stdout)["cycles"]
    query = ["profile", "query", str(tmp_path / "f.twprof"), "--group-by", "kind", "--json"]
    shown = json.loads(CliRunner().invoke(app, query).stdout)
    assert shown["device_cycles"] == cycles == sum(group["critical_cycles"] for group in shown["groups"])
    compute = next(group for group in shown["groups"] if group["name"] == "compute")
    # Each worker issues 1 + 20 + 1 instructions, one every six cycles; the last turn counts as one cycle.
    assert shown["total"]["worker_cycles"] == 6 * (21 * 6 + 1)
    assert 21 * 6 <= compute["work_cycles"] <= cycles
