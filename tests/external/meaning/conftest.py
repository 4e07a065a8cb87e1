"""The oracles judge both engines: the compiled one, and the translation to native code."""

from __future__ import annotations

import pytest

from tilewright.ipu21.simulator.stops import Stop
from tilewright.ipu21.simulator.tile import Tile
from tilewright.ipu21.simulator.translate.tiles import run_translated


def _translated(tile: Tile, *, budget: int | None = None) -> Stop:
    return run_translated([tile], budget=budget)[0]


@pytest.fixture(autouse=True, params=["compiled", "translated"])
def engine_name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine in use."""
    if request.param == "translated":
        monkeypatch.setattr(Tile, "run", _translated)
    return str(request.param)
