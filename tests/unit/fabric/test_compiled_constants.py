"""Constants copied into compiled files equal their originals."""

from __future__ import annotations

import pytest

from tilewright.ipu21.fabric import items, placement, sequence
from tilewright.ipu21.machine import topology

pytestmark = pytest.mark.unit


def test_copies_equal_their_originals() -> None:
    assert topology.RECEIVE_GUARD == placement._GUARD
    assert topology.MUX_TO_POINTER_BASE == placement._POINTER
    assert topology.MUX_NEUTRAL == sequence._NEUTRAL
    kinds = (sequence._MUX, sequence._POINTER, sequence._FORMAT, sequence._MUXPAIR, sequence._CONTINUE)
    assert kinds == (items.MUX, items.POINTER, items.FORMAT, items.MUXPAIR, items.CONTINUE)
