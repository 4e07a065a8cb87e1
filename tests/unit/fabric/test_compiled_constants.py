"""Constants copied into compiled files equal their originals."""

from __future__ import annotations

import pytest

from tilewright.ipu21.fabric import encoding, greedy, items, messages, placement, sequence, writes
from tilewright.ipu21.machine import topology

pytestmark = pytest.mark.unit


def test_copies_equal_their_originals() -> None:
    assert topology.RECEIVE_GUARD == placement._GUARD
    assert topology.MUX_TO_POINTER_BASE == placement._POINTER
    assert topology.MUX_NEUTRAL == sequence._NEUTRAL
    kinds = (sequence._MUX, sequence._POINTER, sequence._FORMAT, sequence._MUXPAIR, sequence._CONTINUE)
    assert kinds == (items.MUX, items.POINTER, items.FORMAT, items.MUXPAIR, items.CONTINUE)
    kinds = (writes._MUX, writes._POINTER, writes._FORMAT, writes._MUXPAIR, writes._CONTINUE)
    assert kinds == (items.MUX, items.POINTER, items.FORMAT, items.MUXPAIR, items.CONTINUE)
    assert topology.RECEIVE_GUARD == writes._GUARD
    assert topology.MUX_TO_POINTER_BASE == writes._STORE
    assert topology.MUX_NEUTRAL == writes._NEUTRAL
    assert messages._SWITCH == writes._SWITCH
    assert placement.NEVER == greedy._UNKNOWN
    columns = (sequence.KIND, sequence.EVENTS, sequence.ADDRESS, sequence.CONTROL)
    copies = (encoding._OP_KIND, encoding._OP_EVENTS, encoding._OP_ADDRESS, encoding._OP_CONTROL)
    assert columns == copies
    assert (sequence.MUX_WRITE, sequence.POINTER_WRITE) == (encoding._OP_MUX, encoding._OP_POINTER)
    assert (sequence.IDLE, sequence.START) == (encoding._IDLE, encoding._START)
    assert (sequence.MUX_BITS, sequence.POINTER_BITS) == (encoding._MUX_BITS, encoding._POINTER_BITS)
