"""Steps divided by activity: a known case, and every cycle against a plain reading of the rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profile_sample import STEPS, sample_run

from tilewright.errors import ProfileError
from tilewright.profiling.divide import divide
from tilewright.profiling.layers import Layer, moments, union
from tilewright.profiling.records import KINDS
from tilewright.runtime import INTERVAL
from tilewright.runtime import device as d

pytestmark = pytest.mark.unit


def supervisor(tile: int) -> list[tuple[str, int, int, int]]:
    rows = sample_run(0).intervals
    mine = rows[(rows["tile"] == tile) & (rows["context"] == 0)]
    return [(KINDS[row["kind"]], int(row["step"]), int(row["begin"]), int(row["end"])) for row in mine]


def test_known_division() -> None:
    assert supervisor(70) == [
        ("host", 0, 0, 13),
        ("control", 1, 13, 20),
        ("synchronisation", 1, 20, 100),
        ("exchange.idle", 1, 100, 105),
        ("exchange.send", 1, 105, 110),
        ("exchange.both", 1, 110, 120),
        ("exchange.receive", 1, 120, 125),
        ("exchange.idle", 1, 125, 130),
        ("control", 1, 130, 132),
        ("control", 2, 132, 140),
        ("compute", 2, 140, 205),
        ("control", 2, 205, 210),
        ("control", 3, 210, 230),
        ("host", 4, 230, 240),
    ]


def test_workers_keep_their_own_intervals() -> None:
    rows = sample_run(0).intervals
    mine = rows[(rows["tile"] == 5) & (rows["context"] > 0)]
    assert mine["context"].tolist() == [1, 2, 3, 4, 5, 6]
    assert set(zip(mine["begin"].tolist(), mine["end"].tolist(), mine["step"].tolist(), strict=True)) == {
        (140, 160, 2)
    }


def test_steps_stay_whole_without_activity() -> None:
    intervals = np.array([(3, 0, 1, 5, 9), (3, 0, 2, 9, 30), (3, 1, 2, 9, 11)], INTERVAL)
    rows, barriers = divide(intervals, None, [step.kind for step in STEPS])
    assert [KINDS[kind] for kind in rows["kind"]] == ["exchange", "compute"]
    assert len(barriers) == 0


def test_repeated_steps_are_instances() -> None:
    """A loop over two steps: each of its rounds is an instance of its own, on each tile."""
    times = list(range(0, 60, 10))
    marks = [
        (tile, 0, 2 + turn % 2, begin, begin + 10) for tile in (4, 9) for turn, begin in enumerate(times)
    ]
    rows, _ = divide(np.array(marks, INTERVAL), None, [step.kind for step in STEPS])
    assert rows["instance"].tolist() == [0, 0, 1, 1, 2, 2] * 2


def test_the_step_that_went_on_reaches_the_first_mark() -> None:
    intervals = np.array([(3, 0, 2, 50, 90)], INTERVAL)
    activity = np.array([(d.STEP, 3, 0, 20, 20)], d.ACTIVITY)
    rows, _ = divide(intervals, activity, [step.kind for step in STEPS])
    assert [(KINDS[r["kind"]], int(r["begin"]), int(r["end"])) for r in rows] == [
        ("host", 20, 50),
        ("control", 50, 90),
    ]


def test_what_makes_no_sense_is_refused() -> None:
    kinds = [step.kind for step in STEPS]
    with pytest.raises(ProfileError, match="step 9 of only 5"):
        divide(np.array([(3, 0, 9, 50, 90)], INTERVAL), None, kinds)
    with pytest.raises(ProfileError, match="longer than"):
        divide(np.array([(3, 0, 1, 0, 1), (3, 0, 2, 1 << 50, 1 << 51)], INTERVAL), None, kinds)
    rows, barriers = divide(np.zeros(0, INTERVAL), np.zeros(0, d.ACTIVITY), kinds)
    assert len(rows) == len(barriers) == 0


SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=6)


@given(SPANS)
def test_union_covers_exactly_the_cycles_of_its_parts(spans: list[tuple[int, int]]) -> None:
    begin = np.array([begin for begin, _ in spans], np.int64)
    end = begin + np.array([length for _, length in spans], np.int64)
    layer = union(begin, end)
    covered = {cycle for begin, length in spans for cycle in range(begin, begin + length)}
    at = np.arange(60, dtype=np.int64)
    assert set(np.flatnonzero(layer.covers(at)).tolist()) == covered
    assert (layer.begin[1:] > layer.end[:-1]).all()
    assert isinstance(layer, Layer)


def test_moments_keep_tiles_apart() -> None:
    keys = moments(np.array([1, 2], np.uint16), np.array([(1 << 48) - 1, 0], np.int64))
    assert keys[0] < keys[1]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 12)), min_size=1, max_size=5),
    st.dictionaries(
        st.sampled_from([d.ROW, d.SENDING, d.RECEIVING, d.WORKER, d.BARRIER_WAIT, d.WORDS_WAIT, d.ABSENT]),
        SPANS,
        max_size=5,
    ),
)
def test_every_cycle_has_the_kind_that_the_rules_give(
    steps: list[tuple[int, int]], layers: dict[int, list[tuple[int, int]]]
) -> None:
    """Two tiles, of which only one has activity, against a reading of the rules for one cycle at a time."""
    marks, begin = [], 3
    for step, length in steps:
        marks += [(tile, 0, step, begin, begin + length) for tile in (7, 8)]
        begin += length
    activity = [
        (kind, 7, 1, low, low + length) for kind, spans in layers.items() for low, length in spans if length
    ]
    kinds = [step.kind for step in STEPS]
    rows, _ = divide(np.array(marks, INTERVAL), np.array(activity, d.ACTIVITY), kinds)
    for tile in (7, 8):
        mine = rows[(rows["tile"] == tile) & (rows["context"] == 0)]
        assert int((mine["end"] - mine["begin"]).sum()) == begin - 3
        for row in mine:
            for cycle in range(row["begin"], row["end"]):
                now = {kind for kind, at, _, low, high in activity if at == tile and low <= cycle < high}
                assert KINDS[row["kind"]] == expected(kinds[row["step"]], now)


def expected(step: str, now: set[int]) -> str:
    if step == "host":
        return "host"
    if d.ROW in now:
        moving = (d.SENDING in now, d.RECEIVING in now)
        return "exchange." + {(0, 0): "idle", (1, 0): "send", (0, 1): "receive", (1, 1): "both"}[moving]
    if d.WORKER in now:
        return step if step in ("compute", "copy") else "control"
    if now & {d.BARRIER_WAIT, d.HOST_WAIT, d.WORDS_WAIT}:
        return "synchronisation"
    return "idle" if d.ABSENT in now else "control"
