"""TensorType accepts every legal shape and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import ShapeError
from tilewright.tensor_type import TensorType

pytestmark = pytest.mark.unit


@given(st.lists(st.integers(1, 30), max_size=8))
def test_size_is_numpys(shape: list[int]) -> None:
    type_ = TensorType(shape)
    assert (type_.shape, type_.rank) == (tuple(shape), len(shape))
    assert type_.elements == int(np.prod(shape, dtype=object))
    assert type_.nbytes == 4 * type_.elements


def test_numpy_integers_and_dtypes_are_taken() -> None:
    type_ = TensorType((np.int64(3), np.uint8(4)), np.float16)  # type: ignore[arg-type]  # a user would
    assert type_ == TensorType((3, 4), "float16")
    assert all(type(extent) is int for extent in type_.shape)
    assert str(type_) == "float16[3, 4]"


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ((0, 3), "axis 0 is 0"),
        ((3, -1), "axis 1 is -1"),
        ((2.0,), "not a whole number"),
        ((True,), "not a whole number"),
        (("3",), "not a whole number"),
        ((1,) * 9, "at most 8 axes"),
        ((2**30, 2**30), "more than 2^40"),
    ],
)
def test_bad_shapes_are_refused(shape: tuple[int, ...], reason: str) -> None:
    with pytest.raises(ShapeError, match=reason.replace("^", r"\^")):
        TensorType(shape)


@pytest.mark.parametrize("dtype", ["float64", "int32", "", "float32 "])
def test_unknown_element_types_are_refused(dtype: str) -> None:
    with pytest.raises(ShapeError, match="element type"):
        TensorType((1,), dtype)
