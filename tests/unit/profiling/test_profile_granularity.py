"""Coarser profiles keep the device cycles and every tile's time; products are read from the graph's text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profile_sample import looped_profile, sample_profile

from tilewright.profiling import Granularity, Profile, query, read_profile, write_profile
from tilewright.profiling.granularity import coarse_steps, coarsen
from tilewright.profiling.products import multiply_adds

pytestmark = pytest.mark.unit


def coarse(profile: Profile, granularity: Granularity) -> Profile:
    steps = coarse_steps(profile.steps, granularity)[0]
    runs = [coarsen(run, profile.steps, granularity) for run in profile.runs]
    fields = (profile.digest, profile.package, profile.compiler, profile.device, profile.clock_hz)
    return Profile(*fields, granularity is Granularity.step, steps, runs)


@pytest.mark.parametrize("granularity", list(Granularity))
@pytest.mark.parametrize("times", [1, 5])
def test_cycles_and_tiles_stay(granularity: Granularity, times: int) -> None:
    whole = looped_profile(times)
    profile = read_profile(write_profile(coarse(whole, granularity)))
    assert profile.cycles == whole.cycles
    assert profile.tiles.tolist() == whole.tiles.tolist()
    result = query(profile, "tile")
    assert sum(group.critical for group in result.groups) == whole.cycles
    plain = {group.name: group.work for group in query(whole, "tile").groups}
    gaps = 70 + 6 if granularity in (Granularity.region, Granularity.graph) else 0
    for group in result.groups:
        # Between two rounds of the sample tiles have a pause that only coarse intervals span.
        assert plain[group.name] <= group.work <= plain[group.name] + (times - 1) * 2 * gaps


def test_what_each_keeps() -> None:
    whole = sample_profile(1)
    counts = {g: len(coarse(whole, g).runs[0].intervals) for g in Granularity}
    assert counts[Granularity.step] > counts[Granularity.phase] > counts[Granularity.region]
    # Three tiles: input, mm, gelu, output; then input, program, output.
    assert counts[Granularity.region] == 3 * 4 and counts[Granularity.graph] == 3 * 3
    regions = coarse(whole, Granularity.region)
    assert [step.name for step in regions.steps] == ["input", "mm", "gelu", "output"]
    exact = {group.name: group.phase for group in query(whole, "operation").groups}
    assert {g.name: g.phase for g in query(regions, "operation").groups}["mm"] == 210 - 13
    assert exact["gelu"] == 20
    rounds = coarse(looped_profile(4), Granularity.region).runs[0].intervals
    mine = rounds[(rounds["tile"] == 0) & (rounds["step"] == 1)]
    assert mine["instance"].tolist() == [0, 1, 2, 3]


def test_products_of_matrix_operators() -> None:
    graph = """
      input %x : float32[2, 8, 16]
      constant %w : float32[16, 32]
      %a = matmul(%x, %w) : float32[2, 8, 32]  @ "m.py:1"
      %g = gelu(%a, approximate="tanh") : float32[2, 8, 32]
      %b, %c = repeat(%a, %g, count=6) : float32[2, 8, 32], float32[2, 8, 32] {
        carried %d : float32[2, 8, 32]
        iterated %v : float32[32, 4]
        %e = matmul(%d, %v, transpose_b=false) : float32[2, 8, 4]
        next %e
      }
      %s = attention(%b, %c, %c, heads=4, scale=0.0) : float32[2, 8, 32]
    """
    assert multiply_adds(graph) == {
        "a": 2 * 8 * 32 * 16,
        "e": 2 * 8 * 4 * 32,
        "s": 2 * 8 * 8 * (32 + 32),
    }


@given(st.text(max_size=200))
def test_no_text_is_too_strange(text: str) -> None:
    assert all(count > 0 for count in multiply_adds(text).values())


def test_huge_extents_are_no_numbers_of_products() -> None:
    assert multiply_adds("%x : float32[9, 9]\n%a = matmul(%x, %x) : float32[" + "9" * 300 + "]") == {}
    assert np.array_equal(list(multiply_adds("  %a = matmul(%q, %r) : float32[4]")), [])
