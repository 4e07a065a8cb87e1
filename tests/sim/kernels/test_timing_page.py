"""docs/timing.md and the benchmark say what the simulator counts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.sim

ROOT = Path(__file__).parents[3]


def printed(*options: str) -> str:
    command = [sys.executable, "benchmarks/kernels.py", *options]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_timing_page_is_current() -> None:
    page = (ROOT / "docs" / "timing.md").read_text()
    assert page == printed("--timing"), "run: python benchmarks/kernels.py --timing > docs/timing.md"


def test_benchmark_rows_keep_their_goals() -> None:
    rows = json.loads(printed("--json"))["rows"]
    assert len({row["name"] for row in rows}) == len(rows)
    for row in rows:
        assert set(row) == {"name", "value", "unit", "goal", "better"}
        if row["goal"] is not None:
            kept = row["value"] <= row["goal"] if row["better"] == "lower" else row["value"] >= row["goal"]
            assert kept, row
