"""Profiles of a real network on the simulated chip add up to the simulator's own cycles, to the cycle."""

from __future__ import annotations

import numpy as np
import pytest
from profiled_digits import IMAGES, package, recorded_runs

from tilewright.profiling import KEYS, Profile, ProfileBuilder, query, read_profile, write_profile
from tilewright.profiling.critical import critical_path
from tilewright.runtime.device import SUPERVISOR

pytestmark = pytest.mark.sim


@pytest.fixture(scope="module")
def profile() -> Profile:
    recorded = recorded_runs(activity=True)
    builder = ProfileBuilder(recorded.package, name="digits", device="sim")
    for record in recorded.records:
        builder.add(record)
    return read_profile(write_profile(builder.profile()))


def test_cycles_are_the_simulators(profile: Profile) -> None:
    records = recorded_runs(activity=True).records
    assert [run.cycles for run in profile.runs] == [record.cycles for record in records]
    for key in KEYS:
        result = query(profile, key)
        assert sum(group.critical for group in result.groups) == sum(record.cycles or 0 for record in records)


def test_the_parts_of_a_step_fill_it_exactly(profile: Profile) -> None:
    """Every mark interval of the simulator is the union of the profile's intervals of that tile and step."""
    for run, record in zip(profile.runs, recorded_runs(activity=True).records, strict=True):
        mine = run.intervals[run.intervals["context"] == SUPERVISOR]
        for tile in np.unique(mine["tile"]).tolist():
            pieces = mine[mine["tile"] == tile]
            assert (pieces["begin"][1:] == pieces["end"][:-1]).all(), "no gap, no overlap"
            marks = record.intervals[record.intervals["tile"] == tile]
            for mark in marks:
                inside = pieces[(pieces["begin"] >= mark["begin"]) & (pieces["end"] <= mark["end"])]
                assert int((inside["end"] - inside["begin"]).sum()) == int(mark["end"] - mark["begin"])
                assert (inside["step"] == mark["step"]).all()


def test_equal_runs_have_equal_profiles(profile: Profile) -> None:
    first, second = profile.runs
    mine = [run.intervals[run.intervals["kind"] != 10] for run in (first, second)]
    assert np.array_equal(mine[0]["kind"], mine[1]["kind"])
    assert len(set((mine[1]["begin"] - mine[0]["begin"]).tolist())) == 1, "the same, later"


def test_the_path_is_whole_and_moves_at_barriers(profile: Profile) -> None:
    path = critical_path(profile)
    for number, run in enumerate(profile.runs):
        mine = path[path["run"] == number]
        assert (mine["begin"][1:] == mine["end"][:-1]).all()
        assert int((mine["end"] - mine["begin"]).sum()) == run.cycles
        turns = mine[1:][mine["tile"][1:] != mine["tile"][:-1]]
        assert set(turns["begin"].tolist()) <= set(run.barriers["last"].tolist())


def test_steps_know_their_operation_and_kernel(profile: Profile) -> None:
    debug = package().debug
    assert debug is not None and debug.program is not None
    doing = debug.program.doing("matmul_0")
    multiply = next(step for step in profile.steps if step.operation == doing and "gemm" in step.kernel)
    assert multiply.name.startswith(f"{doing}.") and multiply.kind == "compute"
    assert multiply.multiply_adds == IMAGES * 64 * 128
    assert doing != "matmul_0" or dict(multiply.metadata)["expression"].startswith("matmul(%x, ")
    symbols = {symbol.name for symbol in package().symbols}
    assert all(step.kernel in symbols for step in profile.steps if step.kind == "compute")
    assert {step.kernel for step in profile.steps if step.kind == "exchange"} == {"exchange"}
    assert all(step.kernel != step.kind for step in profile.steps if step.kind in ("compute", "copy"))


def test_compute_is_what_the_workers_ran(profile: Profile) -> None:
    kinds = {group.name: group for group in query(profile, "kind").groups}
    compute = kinds["compute"]
    assert 0.5 < compute.worker_utilisation <= 1
    assert compute.workers <= 6 * compute.work
    assert {"exchange.send", "exchange.receive", "synchronisation", "control"} <= set(kinds)


def test_without_activity_steps_are_whole() -> None:
    recorded = recorded_runs(activity=False)
    builder = ProfileBuilder(recorded.package, name="digits", device="sim")
    builder.add(recorded.records[0])
    plain = builder.profile()
    assert not plain.exact and len(read_profile(write_profile(plain)).runs) == 1
    result = query(plain, "kind")
    assert {group.name for group in result.groups} <= {"compute", "copy", "exchange", "host"}
    assert sum(group.critical for group in result.groups) == recorded.records[0].cycles
