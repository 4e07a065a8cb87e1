"""The fixture that chooses the engine does choose."""

from __future__ import annotations

import pytest
from lane_sweeps import ALL_HALVES, sweep, words_of_halves

from tilewright.ipu21.simulator.translate.tiles import translator

pytestmark = pytest.mark.external


def test_sweeps_run_natively_on_the_translated_engine(engine_name: str) -> None:
    # The halves hold infinities and NaNs: at the first of them fast code gives way to plain code.
    sweep("f16v4add {d}, {x}, {x}", words_of_halves(ALL_HALVES, 4), results=2)
    before = translator().statistics().issues
    sweep("f16v4add {d}, {x}, {x}", words_of_halves(ALL_HALVES, 4), results=2)
    issued = translator().statistics().issues - before
    assert issued > 4 * len(ALL_HALVES) // 4 if engine_name == "translated" else issued == 0
