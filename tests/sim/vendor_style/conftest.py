"""Every test of this folder runs on both engines: compiled with all checks on, and translated without."""

from __future__ import annotations

import pytest
import vendor_programs

from tilewright.ipu21.simulator.stops import Stop
from tilewright.ipu21.simulator.tile import Tile
from tilewright.ipu21.simulator.translate.tiles import run_translated
from tilewright.tile import Checks


def _translated(tile: Tile, *, budget: int | None = None) -> Stop:
    return run_translated([tile], budget=budget)[0]


@pytest.fixture(autouse=True, params=["compiled", "translated"])
def engine_name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine in use."""
    if request.param == "translated":
        # Checks that look at accesses leave the work to the compiled engine.
        monkeypatch.setattr(vendor_programs, "ALL", Checks())
        monkeypatch.setattr(Tile, "run", _translated)
    return str(request.param)
