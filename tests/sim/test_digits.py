"""The digits network, from training to the simulated chip and back: the right classes, on any tile count."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tilewright.cli.digits_demo import DigitsResult, run_digits

pytestmark = pytest.mark.sim

TILE_COUNTS = (16, 64, 1472)


@cache
def result(tiles: int) -> DigitsResult:
    return run_digits(tiles)


@pytest.mark.parametrize("tiles", TILE_COUNTS)
def test_the_chip_is_as_good_as_the_reference(tiles: int) -> None:
    found = result(tiles)
    assert len(found.labels) == 360
    assert found.accuracy >= 0.96
    assert abs(found.accuracy - found.reference_accuracy) <= 0.006
    assert found.agreement >= 0.99
    assert found.cycles > 0
    assert 0 < found.tile_bytes_max < found.tile_bytes == 624 * 1024


def test_the_tile_count_does_not_change_the_classes() -> None:
    first, *others = (result(tiles).chip for tiles in TILE_COUNTS)
    for other in others:
        np.testing.assert_array_equal(other, first)
