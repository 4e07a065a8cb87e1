"""A tolerance lets nothing pass that it should not: neither a large error, nor a NaN, nor a swap."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.operators.tolerance import Tolerance

pytestmark = pytest.mark.unit

EXPECTED = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def test_the_bound_is_the_bound() -> None:
    tolerance = Tolerance(0.25, "test")
    assert tolerance.violation(EXPECTED + np.float32(0.24), EXPECTED) is None
    outside = EXPECTED.copy()
    outside[1, 2] += 0.5
    message = tolerance.violation(outside, EXPECTED)
    assert message is not None and "1 of 12" in message and "(1, 2)" in message and "test" in message


def test_a_bound_per_element() -> None:
    bound = np.zeros((3, 4))
    bound[0, 0] = 1
    moved = EXPECTED.copy()
    moved[0, 0] += 0.5
    assert Tolerance(bound, "").violation(moved, EXPECTED) is None
    moved[0, 1] += 1e-3
    assert Tolerance(bound, "").violation(moved, EXPECTED) is not None


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_special_values_must_meet_themselves(value: float) -> None:
    tolerance = Tolerance(1e30, "")
    special = EXPECTED.copy()
    special[2, 1] = value
    assert tolerance.violation(special, special.copy()) is None
    assert tolerance.violation(special, EXPECTED) is not None
    assert tolerance.violation(EXPECTED, special) is not None
    assert tolerance.violation(-special, special) is None or not np.isnan(value)


def test_shapes_must_agree() -> None:
    assert Tolerance(1e30, "").violation(EXPECTED.T, EXPECTED) is not None
    assert Tolerance(0, "").violation(np.zeros((0, 3)), np.zeros((0, 3))) is None


def test_swapped_rows_are_seen() -> None:
    assert Tolerance(0.25, "").violation(EXPECTED[::-1], EXPECTED) is not None
