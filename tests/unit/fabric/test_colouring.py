"""Edge colouring: proper, with as many colours as the largest degree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.ipu21.fabric.colouring import colour

pytestmark = pytest.mark.unit


@given(
    seed=st.integers(0, 1 << 30), left=st.integers(1, 30), right=st.integers(1, 30), edges=st.integers(1, 300)
)
@settings(max_examples=200)
def test_proper_with_the_least_colours(seed: int, left: int, right: int, edges: int) -> None:
    random = np.random.default_rng(seed)
    source, tile = random.integers(0, left, edges), random.integers(0, right, edges)
    degree = int(max(np.bincount(source).max(), np.bincount(tile).max()))
    colours = np.full(edges, -1, dtype=np.int64)
    colour(source, tile, random.permutation(edges), degree, colours)
    assert colours.min() >= 0
    assert colours.max() < degree
    for end in (source, tile):
        assert len(np.unique(end * degree + colours)) == edges
