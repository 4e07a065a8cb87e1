"""`tilewright plan`: what it says is what compile does."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import tilewright as tw
from tilewright.models import build

pytestmark = pytest.mark.sim


def plan(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    script = "from tilewright.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", script, "plan", *arguments], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done


def test_json_names_every_operation_its_stages_and_what_was_weighed() -> None:
    found = json.loads(plan("digits", "--tiles", "24", "--json").stdout)
    assert found["tiles"] == 24 and found["price"] == 0
    assert [item["operation"] for item in found["operations"]] == ["gelu_0", "gelu_1", "add_2"]
    for item in found["operations"]:
        stages = item["predicted_cycles"]
        assert stages["multiply"] > 0 and item["tile_bytes"] > 0
        score = sum(stages.values())
        assert item["weighed"], "nothing else was weighed"
        assert all(other["predicted_cycles"] >= score - len(stages) for other in item["weighed"])
    package = tw.compile(build("digits").graph(), tiles=24)
    assert package.debug is not None and package.debug.program is not None
    emitted = {step.name for step in package.profile.steps if step.kind in ("compute", "exchange")}
    planned = {step["step"] for step in found["steps"]}
    assert emitted <= planned


def test_text_fits_eighty_columns() -> None:
    lines = plan("digits", "--tiles", "24").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any("chosen" in line for line in lines)


def test_a_wrong_model_is_one_line() -> None:
    done = plan("nothing.py:f", status=2)
    assert len(done.stderr.strip().splitlines()) == 1 and not done.stdout
