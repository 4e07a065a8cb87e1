"""What the simulator records inside steps agrees with its barriers, its intervals and its clocks."""

from __future__ import annotations

import numpy as np
import pytest
from profiled_digits import IMAGES, package, recorded_runs

from tilewright.ipu21.machine.timing import BARRIER_INTERNAL
from tilewright.ipu21.simulator import activity as simulator
from tilewright.ipu21.simulator.choice import REFERENCE
from tilewright.ipu21.simulator.device import SimulatedDevice
from tilewright.runtime import Session
from tilewright.runtime import device as runtime

pytestmark = pytest.mark.sim


def test_the_runtime_names_the_simulators_records() -> None:
    assert runtime.ACTIVITY == simulator.ACTIVITY
    waits = ["BARRIER_WAIT", "HOST_WAIT", "WORDS_WAIT", "ABSENT"]
    names = [*waits, "ROW", "SENDING", "RECEIVING", "WORKER", "BARRIER", "STEP"]
    assert [getattr(runtime, name) for name in names] == [getattr(simulator, name) for name in names]


def test_recording_changes_no_cycle_and_no_result() -> None:
    plain, recorded = recorded_runs(activity=False), recorded_runs(activity=True)
    assert plain.records[0].activity is None
    for before, after in zip(plain.records, recorded.records, strict=True):
        assert before.cycles == after.cycles
        assert np.array_equal(before.intervals, after.intervals)
    assert np.array_equal(plain.logits, recorded.logits) and len(plain.logits) == IMAGES


def test_waits_end_when_their_barrier_releases_and_rows_begin_there() -> None:
    rows = recorded_runs(activity=True).records[0].activity
    assert rows is not None
    barriers = rows[(rows["kind"] == runtime.BARRIER) & (rows["detail"] == 3)]
    assert len(barriers) and (barriers["end"] - barriers["begin"] == BARRIER_INTERNAL).all()
    waits = rows[rows["kind"] == runtime.BARRIER_WAIT]
    assert np.isin(waits["end"], barriers["end"]).all()
    for barrier in barriers:
        mine = waits[waits["end"] == barrier["end"]]
        assert mine["begin"].max() == barrier["begin"]
        assert mine["tile"][mine["begin"] == barrier["begin"]].min() == barrier["tile"]
    row = rows[rows["kind"] == runtime.ROW]
    assert np.isin(row["begin"], barriers["end"]).all() and (row["end"] > row["begin"]).all()


def test_words_move_inside_rows_and_as_many_arrive_as_leave_or_more() -> None:
    rows = recorded_runs(activity=True).records[0].activity
    assert rows is not None
    row = rows[rows["kind"] == runtime.ROW]
    for kind in (runtime.SENDING, runtime.RECEIVING):
        moved = rows[rows["kind"] == kind]
        assert len(moved)
        for tile in np.unique(moved["tile"]):
            mine, window = moved[moved["tile"] == tile], row[row["tile"] == tile]
            index = np.searchsorted(window["begin"], mine["begin"], "right") - 1
            assert (index >= 0).all() and (mine["end"] <= window["end"][index]).all()
            assert (mine["begin"][1:] > mine["end"][:-1]).all(), "rows that touch are joined"


def test_workers_run_inside_compute_steps_one_at_a_time() -> None:
    rows = recorded_runs(activity=True).records[0].activity
    assert rows is not None
    workers = rows[rows["kind"] == runtime.WORKER]
    assert set(np.unique(workers["detail"])) == set(range(1, 7))
    for tile in np.unique(workers["tile"])[:4]:
        for context in range(1, 7):
            mine = workers[(workers["tile"] == tile) & (workers["detail"] == context)]
            assert (mine["begin"][1:] >= mine["end"][:-1]).all() and (mine["end"] > mine["begin"]).all()


def test_the_second_run_begins_in_the_step_that_the_first_ended_in() -> None:
    first, second = recorded_runs(activity=True).records[:2]
    assert second.activity is not None
    steps = second.activity[second.activity["kind"] == runtime.STEP]
    assert len(steps) and (steps["detail"] == 1).all(), "the host step 'input'"
    assert steps["begin"].min() >= first.intervals["begin"].max()


def test_both_engines_record_the_same() -> None:
    expected = recorded_runs(activity=True).records[0].activity
    x = np.random.default_rng(6).random((IMAGES, 64), np.float32)
    with SimulatedDevice(engines=REFERENCE) as sim, Session(sim, package(), activity=True) as session:
        session.run({"x": x})
        assert session.last_run is not None and session.last_run.activity is not None
        assert np.array_equal(session.last_run.activity, expected)
