"""Constants as matrices of the device: a row that stands in all rows."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ipu21.emit.weights import weight_matrix
from tilewright.ipu21.plan.groups import Groups
from tilewright.ipu21.plan.steps import WeightUse

pytestmark = pytest.mark.unit


def test_a_row_stands_in_all_rows_of_its_iteration() -> None:
    bias = np.arange(6, dtype=np.float32).reshape(2, 1, 3)
    row = WeightUse(("b",), (4, 3), repeated=True, iterations=2)
    expected = [[0, 1, 2]] * 4 + [[3, 4, 5]] * 4
    assert weight_matrix(row, {"b": bias}).tolist() == expected


def test_repeated_rows_beside_zeros_are_padded_and_turned() -> None:
    one, other = np.array([1, 2], np.float32), np.array([7, 8, 9], np.float32)
    groups = (None, None, Groups(1, 3, 4))
    use = WeightUse(
        ("one", "", "other"), (2, 7), repeated=True, column_groups=groups, widths=(2, 2, 3), turned=True
    )
    found = weight_matrix(use, {"one": one, "other": other})
    assert found.tolist() == [[value] * 2 for value in (1, 2, 0, 0, 7, 8, 9, 0)]
