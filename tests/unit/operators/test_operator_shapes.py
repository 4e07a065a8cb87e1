"""Shape rules and references agree with NumPy on shapes NumPy takes, and refuse those it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import ops
from tilewright.errors import ShapeError
from tilewright.operators import operator
from tilewright.tensor_type import TensorType

pytestmark = pytest.mark.unit

shapes = st.lists(st.integers(1, 3), max_size=4).map(tuple)


@given(shapes, shapes)
def test_add_broadcasts_as_numpy(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    try:
        expected = np.broadcast_shapes(left, right)
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast"):
            operator("add").infer({}, TensorType(left), TensorType(right))
        return
    assert operator("add").infer({}, TensorType(left), TensorType(right)).shape == expected
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal(left), generator.standard_normal(right)
    np.testing.assert_allclose(ops.add(a, b), a + b, rtol=1e-5, atol=1e-6)


@given(shapes, shapes)
def test_matmul_is_numpys_for_a_matrix_on_the_right(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    legal = len(left) >= 2 and len(right) == 2 and left[-1] == right[0]
    if not legal:
        with pytest.raises(ShapeError, match=r"^matmul: .*: a = float32\[.*\], b = float32\["):
            operator("matmul").infer({}, TensorType(left), TensorType(right))
        return
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal(left), generator.standard_normal(right)
    assert operator("matmul").infer({}, TensorType(left), TensorType(right)).shape == (a @ b).shape
    np.testing.assert_allclose(ops.matmul(a, b), a @ b, rtol=1e-4, atol=1e-5)


def test_results_are_float32_whatever_comes_in() -> None:
    assert ops.add(np.ones(2, np.int64), [True, False]).dtype == np.float32
    assert ops.matmul(np.ones((2, 2), np.float16), np.ones((2, 2))).dtype == np.float32
    assert ops.gelu(3).dtype == np.float32


def test_shape_errors_name_the_line() -> None:
    with pytest.raises(ShapeError, match=r"test_operator_shapes\.py:\d+: `ops\.matmul.*`: matmul: a needs"):
        ops.matmul(np.ones(3), np.ones((3, 3)))


def test_half_values_are_refused_by_name() -> None:
    with pytest.raises(ShapeError, match=r"operand b is float16\[2\]"):
        operator("add").infer({}, TensorType((2,)), TensorType((2,), "float16"))
