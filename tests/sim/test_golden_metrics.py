"""Simulated cycles and bytes of the demo are exactly those on record.

They are deterministic. A change that moves them is made on purpose: `make golden` measures anew, and the
commit says why.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilewright.cli.digits_demo import run_digits

pytestmark = pytest.mark.sim

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "metrics.json").read_text())


@pytest.mark.parametrize("row", GOLDEN["digits"], ids=lambda row: f"{row['tiles']} tiles")
def test_digits(row: dict[str, int]) -> None:
    result = run_digits(row["tiles"])
    measured = {"tiles": result.tiles, "cycles": result.cycles, "tile_bytes_max": result.tile_bytes_max}
    assert measured == row
