"""Preparing a computer: afterwards a compile and a run have nothing left to build."""

from __future__ import annotations

import pytest

from tilewright.ipu21.simulator.compile import engine, is_kept
from tilewright.native.loops import missing
from tilewright.prepare import prepare

pytestmark = pytest.mark.sim


def test_engine_and_loops_are_kept_afterwards() -> None:
    prepare()
    assert is_kept()
    assert missing() == []
    assert engine().run_tiles is not None
