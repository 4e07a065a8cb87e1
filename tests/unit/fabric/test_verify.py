"""Broken rows are caught, with the tile and the event."""

from __future__ import annotations

import numpy as np
import pytest
from exchange_phases import SOURCE_BASE, Phase, PhaseBuilder
from numpy.typing import NDArray

from tilewright.errors import ScheduleError
from tilewright.ipu21.fabric.execute import execute
from tilewright.ipu21.fabric.items import MUX, POINTER, SEND, row_items
from tilewright.ipu21.fabric.parse import parse_row
from tilewright.ipu21.fabric.rows import compose_row
from tilewright.ipu21.fabric.schedule import schedule
from tilewright.ipu21.fabric.trace import Send, TileTrace
from tilewright.ipu21.fabric.verify import Conflict, verify
from tilewright.ipu21.fabric.verify import _controls as send_conflicts
from tilewright.ipu21.machine import topology

pytestmark = pytest.mark.unit

Rows = dict[int, NDArray[np.uint32]]
Item = tuple[int, int, int, int, int]
ROW = 0x50000
S, D = SOURCE_BASE, 0x60000


@pytest.fixture
def phase() -> Phase:
    """Two senders to tile 53, one after the other; tile 53 sends too."""
    builder = PhaseBuilder()
    builder.add(0, S, 100, [53])
    builder.add(66, S, 100, [53])
    builder.add(53, S, 60, [9])
    return builder.build()


def judged(rows: Rows, phase: Phase | None = None, addresses: dict[int, int] | None = None) -> list[Conflict]:
    where = addresses or dict.fromkeys(rows, ROW)
    return verify(rows, where, *(phase or ()))


def changed(row: NDArray[np.uint32], change: object, end: int | None = None) -> NDArray[np.uint32]:
    """A row recomposed from its items after `change(list of items)`."""
    parsed = parse_row(row)
    items: list[Item] = change(parsed.items.tolist())  # type: ignore[operator]
    return compose_row(row_items(items), parsed.end + 10 if end is None else end)


def shift(kind: int, by: int) -> object:
    return lambda items: [(e + by if k == kind and e > 1 else e, k, c, w, v) for e, k, c, w, v in items]


def kinds(conflicts: list[Conflict], tile: int) -> set[str]:
    return {conflict.kind for conflict in conflicts if conflict.tile == tile}


@pytest.mark.parametrize("by", [-1, 1])
def test_send_one_event_off(phase: Phase, by: int) -> None:
    rows = dict(schedule(*phase).rows)
    start = parse_row(rows[0]).items["event"][0]
    rows[0] = changed(rows[0], shift(SEND, by))
    found = judged(rows, phase)
    cut = [conflict for conflict in found if conflict.kind == "cut"]
    assert cut
    assert cut[0].tile == 53
    assert f"100 words that left tile 0 at {start + by}" in str(cut[0])
    assert f"tile 53, event {cut[0].event}" in str(cut[0])
    assert "delivery" in kinds(found, 53)


@pytest.mark.parametrize("by", [-1, 1])
def test_mux_one_event_off(phase: Phase, by: int) -> None:
    rows = dict(schedule(*phase).rows)
    rows[53] = changed(rows[53], shift(MUX, by))
    assert "cut" in kinds(judged(rows), 53)


@pytest.mark.parametrize("by", [-1, 1])
def test_pointer_one_event_off(phase: Phase, by: int) -> None:
    rows = dict(schedule(*phase).rows)
    rows[9] = changed(rows[9], shift(POINTER, by))
    found = judged(rows, phase)
    # Early is legal while nothing else arrives; late, the first word has no pointer.
    assert kinds(found, 9) == (set() if by < 0 else {"pointer", "delivery"})


def test_swapped_source(phase: Phase) -> None:
    rows = dict(schedule(*phase).rows)
    swap = {0: 66, 66: 0}
    rows[53] = changed(
        rows[53],
        lambda items: [(e, k, c, w, swap.get(v, v) if k == MUX else v) for e, k, c, w, v in items],
    )
    found = judged(rows, phase)
    assert {"cut", "silent"} & kinds(found, 53)
    assert "delivery" in kinds(found, 53)


def test_source_without_a_row(phase: Phase) -> None:
    rows = dict(schedule(*phase).rows)
    del rows[0]
    found = judged(rows, phase)
    assert "source" in kinds(found, 53)
    assert any("100 words asked for from tile 0" in str(conflict) for conflict in found)


def test_missing_neutral(phase: Phase) -> None:
    rows = dict(schedule(*phase).rows)
    rows[53] = changed(
        rows[53], lambda items: [item for item in items if (item[1], item[4]) != (MUX, topology.MUX_NEUTRAL)]
    )
    found = [conflict for conflict in judged(rows) if conflict.kind == "neutral"]
    assert [conflict.tile for conflict in found] == [53]
    assert "never set to neutral" in str(found[0])


def test_row_in_the_element_of_a_message(phase: Phase) -> None:
    rows = schedule(*phase).rows
    found = judged(rows, None, {53: D - 64, 0: ROW})
    assert kinds(found, 53) == {"fetch"}
    assert found[0].element == 24
    assert "row at 0x5ffc0" in str(found[0])
    # The look-ahead counts: the row alone would end before the element.
    assert D - 64 + 4 * len(rows[53]) <= D + 64


def test_look_ahead_alone_is_enough(phase: Phase) -> None:
    rows = schedule(*phase).rows
    size = 4 * len(rows[9])
    near = verify(rows, {9: (D - size - 56) & ~7})
    far = verify(rows, {9: (D - size - 64) & ~7})
    assert {conflict.kind for conflict in near} == {"fetch"}
    assert far == []


@pytest.mark.parametrize(("address", "what"), [(ROW + 4, "alignment to 8"), (0x90000, "executable")])
def test_row_where_no_row_can_be(phase: Phase, address: int, what: str) -> None:
    rows = schedule(*phase).rows
    found = verify(rows, {0: address})
    assert [conflict.kind for conflict in found] == ["row"]
    assert what in str(found[0])


def test_row_that_ends_early(phase: Phase) -> None:
    rows = dict(schedule(*phase).rows)
    end = parse_row(rows[9]).end
    rows[9] = compose_row(parse_row(rows[9]).items, end - 1)
    found = judged(rows, phase)
    assert [(conflict.kind, conflict.tile, conflict.event) for conflict in found] == [("guard", 9, end - 1)]


def test_send_and_receive_in_one_element(phase: Phase) -> None:
    rows = dict(schedule(*phase).rows)
    rows[53] = changed(
        rows[53], lambda items: [(e, k, c, w, D + 0x1000 if k == SEND else v) for e, k, c, w, v in items]
    )
    found = [conflict for conflict in judged(rows) if conflict.kind == "element"]
    assert found
    assert found[0].tile == 53
    assert found[0].element == 24
    assert "send of 60 words from 0x61000" in str(found[0])


def test_control_at_the_start_of_a_send() -> None:
    # A delaypic ends where the send begins: possible in words, not allowed.
    words = [0x60000000 | 3 << 19 | 0x18000, 0x78000000 | 9 << 21 | 0x20000 << 3 | 1, 0x43A00000]
    found = judged({0: np.array(words, np.uint32)})
    assert [(conflict.kind, conflict.event) for conflict in found] == [("control", 4)]


def test_addresses_outside_memory(phase: Phase) -> None:
    rows = dict(schedule(*phase).rows)
    rows[0] = changed(rows[0], lambda items: [(*item[:4], 0xE7F00) for item in items])
    rows[9] = changed(
        rows[9], lambda items: [(e, k, c, w, 0x40000 if k == POINTER else v) for e, k, c, w, v in items]
    )
    found = judged(rows)
    assert "address" in kinds(found, 0)
    assert "address" in kinds(found, 9)


@pytest.mark.parametrize(
    ("sends", "found"),
    [
        ([Send(10, 5, S, 1), Send(15, 5, S, 1)], []),
        ([Send(10, 5, S, 1), Send(14, 5, S, 1)], [("control", 14)]),
        ([Send(10, 5, S + 2, 1)], [("address", 10)]),
        ([Send(10, 5, S + 4, 1)], []),
        ([Send(10, 5, S + 4, 5)], [("address", 10)]),
    ],
)
def test_sends_that_overlap_and_items_that_are_not_aligned(
    sends: list[Send], found: list[tuple[str, int]]
) -> None:
    conflicts = send_conflicts(7, TileTrace(100, sends))
    assert [(conflict.kind, conflict.event) for conflict in conflicts] == found


def test_word_that_is_no_instruction(phase: Phase) -> None:
    rows = dict(schedule(*phase).rows)
    rows[0] = rows[0].copy()
    rows[0][0] = 0x0FFFFFFF
    assert "row" in kinds(judged(rows), 0)


def test_unasked_delivery(phase: Phase) -> None:
    rows = schedule(*phase).rows
    found = judged(rows, (phase[0][:2], phase[1]))
    assert [(conflict.kind, conflict.tile) for conflict in found] == [("delivery", 9)]
    assert "60 words arriving" in str(found[0])


def test_early_exit_of_a_multicast_delivers_a_prefix() -> None:
    """64 words to two tiles, of which one leaves after 10: exactly 10 arrive, and the verifier names it."""
    builder = PhaseBuilder()
    builder.add(0, S, 64, [9, 53])
    rows = dict(schedule(*builder.build()).rows)
    opened = int(parse_row(rows[9]).items["event"][0])
    rows[9] = changed(
        rows[9],
        lambda items: [(opened + 10 if v == 0x640 else e, k, c, w, v) for e, k, c, w, v in items],
    )
    memories = {tile: np.full(624 * 1024, tile, dtype=np.uint8) for tile in (0, 9, 53)}
    execute(rows, memories)
    target = D - 0x4C000
    assert (memories[9][target : target + 40] == 0).all()
    assert (memories[9][target + 40 :] == 9).all()
    assert (memories[53][target : target + 256] == 0).all()
    assert kinds(judged(rows), 9) == {"cut"}


def test_execution_refuses_a_word_without_a_pointer(phase: Phase) -> None:
    rows = dict(schedule(*phase).rows)
    rows[9] = changed(rows[9], lambda items: [item for item in items if item[1] != POINTER])
    with pytest.raises(ScheduleError, match=r"tile 9, event .*before any pointer"):
        execute(rows, {tile: np.zeros(624 * 1024, dtype=np.uint8) for tile in rows})
