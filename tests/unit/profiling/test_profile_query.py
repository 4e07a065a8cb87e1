"""Sums and the critical path: known numbers, and sums that add up whatever is asked."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profile_sample import large_profile, looped_profile, sample_profile

from tilewright.errors import UsageError
from tilewright.profiling import KEYS, KINDS, SORTS, Profile, query
from tilewright.profiling.critical import critical_path
from tilewright.profiling.records import BUSY

pytestmark = pytest.mark.unit


def test_the_path_follows_the_last_tile_to_be_ready() -> None:
    path = critical_path(sample_profile(1))
    found = [
        (int(p["tile"]), KINDS[p["kind"]], int(p["step"]), int(p["begin"]) - 1000, int(p["end"]) - 1000)
        for p in path
    ]
    # Tile 70 counts from 13 on; until 16 the last tile is still with the host.
    assert found[:4] == [
        (5, "host", 0, 13, 16),
        (5, "control", 1, 16, 40),
        (70, "synchronisation", 1, 40, 100),
        (70, "exchange.idle", 1, 100, 105),
    ]
    assert found[-1] == (70, "control", 3, 210, 230)
    assert all(before[4] == after[3] for before, after in itertools.pairwise(found))


def test_known_sums() -> None:
    groups = {group.name: group for group in query(sample_profile(2), "step").groups}
    multiply = groups["2 mm.multiply"]
    assert (multiply.critical, multiply.phase) == (2 * 78, 2 * 78)
    assert multiply.work == 2 * (48 + 38 + 78) and multiply.busy == multiply.work
    assert multiply.workers == 2 * 6 * (30 + 20 + 65)
    assert (multiply.tiles, multiply.instances) == (3, 2)
    assert multiply.utilisation == pytest.approx((48 + 38 + 78) / (3 * 78))
    receive = groups["1 mm.receive"]
    assert receive.critical == 2 * (132 - 16)
    assert receive.phase == 2 * 122, "tile 0 is longest in it, from 10 to 132"
    assert receive.busy < receive.work


@pytest.mark.parametrize("key", KEYS)
def test_groups_add_up_to_the_profile(key: str) -> None:
    profile = sample_profile(3)
    result = query(profile, key)
    supervisors = np.concatenate([run.intervals[run.intervals["context"] == 0] for run in profile.runs])
    total = int((supervisors["end"] - supervisors["begin"]).sum())
    assert sum(group.critical for group in result.groups) == profile.cycles == 3 * 217
    assert sum(group.work for group in result.groups) == result.total.work == total
    assert sum(group.busy for group in result.groups) == result.total.busy
    assert sum(group.workers for group in result.groups) == result.total.workers == 3 * 6 * 115
    assert result.total.share == 1.0
    if key in ("step", "kernel", "operation", "phase"):
        assert sum(group.phase for group in result.groups) == result.total.phase


def slow_query(profile: Profile, key: str) -> dict[object, tuple[int, int, int]]:
    """Phase, work and busy cycles by a loop over intervals."""
    longest: dict[tuple[object, ...], int] = defaultdict(int)
    work: dict[object, int] = defaultdict(int)
    busy: dict[object, int] = defaultdict(int)
    for number, run in enumerate(profile.runs):
        per_tile: dict[tuple[object, ...], int] = defaultdict(int)
        for row in run.intervals[run.intervals["context"] == 0]:
            length = int(row["end"] - row["begin"])
            step = profile.steps[row["step"]]
            group = {
                "kind": KINDS[row["kind"]],
                "kernel": step.kernel or f"({step.kind})",
                "operation": step.operation or f"({step.kind})",
                "tile": f"tile {row['tile']}",
                "step": f"{row['step']} {step.name}",
            }[key]
            work[group] += length
            busy[group] += length if BUSY[row["kind"]] else 0
            if KINDS[row["kind"]] != "idle":
                per_tile[group, int(row["step"]), int(row["instance"]), int(row["tile"])] += length
        for (group, step_number, instance, _), length in per_tile.items():
            place = (group, number, step_number, instance)
            longest[place] = max(longest[place], length)
    phase: dict[object, int] = defaultdict(int)
    for place, length in longest.items():
        phase[place[0]] += length
    return {group: (phase[group], work[group], busy[group]) for group in work}


@pytest.mark.parametrize("key", ["kind", "kernel", "operation", "tile", "step"])
def test_sums_equal_a_plain_loop(key: str) -> None:
    profile = sample_profile(2)
    found = {group.name: (group.phase, group.work, group.busy) for group in query(profile, key).groups}
    assert found == slow_query(profile, key)


def test_conditions() -> None:
    profile = sample_profile(2)
    everything = query(profile, "kind").total.work
    exchange = query(profile, "kind", where=["kind=exchange"])
    assert {group.name for group in exchange.groups} == {
        "exchange.idle",
        "exchange.send",
        "exchange.receive",
        "exchange.both",
    }
    others = query(profile, "kind", where=["kind!=exchange"])
    assert exchange.total.work + others.total.work == everything
    assert query(profile, "tile", where=["tile=0,5-60"]).found == 2
    assert query(profile, "step", where=["step=mm.*", "kind=compute"]).found == 1
    assert query(profile, "step", where=["step=2"]).groups[0].name == "2 mm.multiply"
    assert query(profile, "run", where=["run=1", "kernel=gelu_f16"]).total.work == 60
    assert query(profile, "kernel", where=["operation=(host)"]).found == 1
    assert query(profile, "step", where=["instance=1"]).groups == []


@given(st.sampled_from(KEYS), st.sampled_from(SORTS), st.integers(0, 5))
def test_sorting_and_limits(key: str, sort: str, limit: int) -> None:
    result = query(sample_profile(2), key, sort=sort, limit=limit)
    everything = query(sample_profile(2), key, sort=sort)
    assert result.groups == everything.groups[: limit or None] and result.found == everything.found
    values = [getattr(group, sort) for group in everything.groups]
    assert values == sorted(values, reverse=sort not in ("name", "first"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"group_by": "colour"}, "cannot group by 'colour'"),
        ({"sort": "colour"}, "cannot sort by 'colour'"),
        ({"where": ["kind"]}, "not KEY=VALUE"),
        ({"where": ["colour=red"]}, "no key 'colour'"),
        ({"where": ["tile=x"]}, "no list of numbers"),
        ({"where": ["tile=" + "9" * 400]}, "no list of numbers"),
        ({"where": ["kernel=gemv"]}, "matches 'gemv'"),
    ],
)
def test_what_cannot_be_asked(arguments: dict[str, object], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        query(sample_profile(1), **arguments)  # type: ignore[arg-type]


def test_a_chip_full_of_tiles_adds_up() -> None:
    profile = large_profile(4)
    for key in ("operation", "phase", "tile"):
        result = query(profile, key)
        assert sum(group.critical for group in result.groups) == profile.cycles
        assert sum(group.work for group in result.groups) == result.total.work


def test_metadata_group_and_choose_like_any_other_key() -> None:
    profile = sample_profile(2)
    groups = {group.name: group for group in query(profile, "expression").groups}
    operations = {group.name: group for group in query(profile, "operation").groups}
    assert set(groups) == {"matmul(%x, %w)", "(missing)"}
    assert groups["matmul(%x, %w)"].critical == operations["mm"].critical
    assert sum(group.critical for group in groups.values()) == profile.cycles
    chosen = query(profile, "step", where=["expression=matmul*"])
    assert {group.name for group in chosen.groups} == {"1 mm.receive", "2 mm.multiply"}
    rest = query(profile, "step", where=["expression=(missing)"])
    assert rest.total.critical + chosen.total.critical == profile.cycles
    with pytest.raises(UsageError, match=r"known: .*expression"):
        query(profile, "colour")
    with pytest.raises(UsageError, match=r"known: .*expression"):
        query(profile, "step", where=["colour=red"])


def test_share_of_what_the_matrix_units_could_do() -> None:
    groups = {group.name: group for group in query(sample_profile(2), "step").groups}
    multiply = groups["2 mm.multiply"]
    # Three tiles, 78 cycles each time, 64 multiply-adds per cycle: 14,976 at most.
    assert multiply.multiply_adds == 2 * 4992 and multiply.peak == pytest.approx(1 / 3)
    assert groups["3 gelu.gelu"].multiply_adds == 0 and groups["3 gelu.gelu"].peak == 0
    assert query(sample_profile(2), "tile").total.multiply_adds == 0
    assert query(sample_profile(2), "kind").total.multiply_adds == 2 * 4992


def test_every_repetition_of_a_loop_is_counted() -> None:
    profile = looped_profile(12)
    phases = query(profile, "phase", sort="first")
    assert phases.found >= 3 * 12
    assert sum(group.critical for group in phases.groups) == profile.cycles == 300 * 11 + 217
    assert sum(name.name.startswith("2 mm.multiply") for name in phases.groups) == 12
    steps = {group.name: group for group in query(profile, "step").groups}
    assert steps["2 mm.multiply"].phase == 12 * 78 and steps["2 mm.multiply"].instances == 12
    assert steps["2 mm.multiply"].peak == pytest.approx(1 / 3)
    third = query(profile, "step", where=["instance=2"])
    assert {group.instances for group in third.groups if group.phase} == {1}
