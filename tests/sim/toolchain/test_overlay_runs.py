"""Code whose flag numbers an overlay changes still means the same in the simulator."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.ipu21.isa.enums import ENUMS
from tilewright.ipu21.overlay import Overlay

pytestmark = pytest.mark.sim

SOURCE = """
.globl f
.worker
f:  setzi $a0, 0x3c00
    setzi $a2, 0x4000
    uput $FP_CLR, $a0
    setzi $a6, 0x3c00
.rept 5
    f16v4hihov4amp $a4:5, $a0:1, $a2:3, {0}
    f16v2add $a2, $a2, $a6
    f16v4hihov4amp $a4:5, $a0:1, $a2:3, {1}
    f16v2add $a2, $a2, $a6
    f16v4hihov4amp $a4:5, $a0:1, $a2:3, {0}
    f16v2add $a2, $a2, $a6
.endr
    exitz $mzero
"""


def run(folder: Path, source: str, *options: str) -> dict[str, object]:
    path = folder / "k.S"
    path.write_text(source)
    script = "from tilewright.cli.main import main; main()"
    command = [sys.executable, "-c", script, "sim", str(path), "--worker", "--entry", "f", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report: dict[str, object] = json.loads(done.stdout)
    return report


def test_numbers_of_an_overlay_mean_what_their_names_say(tmp_path: Path) -> None:
    names = list(ENUMS["TAMP_F16V4"])
    numbers = dict(zip(names, [41, 7, 0, 19, 33, 2, 60], strict=True))
    overlay = tmp_path / "o.json"
    Overlay(constants={"TAMP_F16V4": numbers}).save(overlay)
    source = SOURCE.format("TAMP_F16V4_E4_P0", "TAMP_F16V4_E4_P1")
    plain = run(tmp_path, source)
    mapped = run(tmp_path, source, "--isa-overlay", str(overlay))
    assert plain["registers"] == mapped["registers"]
    literal = run(tmp_path, SOURCE.format(41, 7), "--isa-overlay", str(overlay))
    assert literal["registers"] == plain["registers"]
    assert (
        run(tmp_path, SOURCE.format(41, 41), "--isa-overlay", str(overlay))["registers"] != plain["registers"]
    )
