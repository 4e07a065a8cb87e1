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


@given(shapes, shapes, st.booleans())
def test_matmul_is_numpys_on_matrices(
    left: tuple[int, ...], right: tuple[int, ...], transposed: bool
) -> None:
    matmul = operator("matmul")
    attributes = matmul.resolve({"transpose_b": transposed})
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal(left), generator.standard_normal(right)
    try:
        if len(left) < 2 or len(right) < 2:
            raise ValueError("NumPy takes vectors, this does not")
        expected = np.matmul(a, np.swapaxes(b, -1, -2) if transposed else b)
    except ValueError:
        with pytest.raises(ShapeError, match=r"^matmul: .*: a = float32\[.*\], b = float32\["):
            matmul.infer(attributes, TensorType(left), TensorType(right))
        return
    assert matmul.infer(attributes, TensorType(left), TensorType(right)).shape == expected.shape
    np.testing.assert_allclose(ops.matmul(a, b, transpose_b=transposed), expected, rtol=1e-4, atol=1e-5)


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
