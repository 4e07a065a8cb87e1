"""Operators that only move elements: NumPy's own functions are the judge, axes count as NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import ops
from tilewright.errors import GraphError, ShapeError
from tilewright.operators import operator
from tilewright.tensor_type import TensorType

pytestmark = pytest.mark.unit

shapes = st.lists(st.integers(1, 4), max_size=4).map(tuple)


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


@given(shapes, st.data())
def test_transpose_is_numpys(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbered(shape)
    order = data.draw(st.permutations(range(len(shape))))
    permutation = [data.draw(st.sampled_from([axis, axis - len(shape)])) for axis in order]
    np.testing.assert_array_equal(ops.transpose(x, permutation=permutation), np.transpose(x, order))
    np.testing.assert_array_equal(ops.transpose(x), x.T)


@given(shapes, st.data())
def test_reshape_is_numpys(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbered(shape)
    rest, target = x.size, []
    for prime in [p for p in (2, 2, 2, 2, 3, 3, 3, 3) if data.draw(st.booleans())]:
        if rest % prime == 0:
            target.append(prime)
            rest //= prime
    target.append(data.draw(st.sampled_from([rest, -1])))
    np.testing.assert_array_equal(ops.reshape(x, shape=target), x.reshape(target))


@given(shapes.filter(bool), st.data())
def test_slice_is_numpys(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbered(shape)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    start = data.draw(st.integers(-shape[axis], shape[axis] - 1))
    stop = data.draw(st.integers(-shape[axis], shape[axis]))
    index: list[Any] = [slice(None)] * len(shape)
    index[axis] = slice(start, stop if stop else None)
    expected = x[tuple(index)]
    if expected.size == 0:
        with pytest.raises(ShapeError, match="is no range of axis"):
            ops.slice(x, axis=axis, start=start, stop=stop)
    else:
        np.testing.assert_array_equal(ops.slice(x, axis=axis, start=start, stop=stop), expected)


@given(shapes.filter(bool), st.data())
def test_concat_is_numpys(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    extents = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    parts = []
    for number, extent in enumerate(extents):
        own = list(shape)
        own[axis] = extent
        parts.append(numbered(tuple(own)) + 1000 * number)
    np.testing.assert_array_equal(ops.concat(*parts, axis=axis), np.concatenate(parts, axis=axis))


REFUSED: list[tuple[str, dict[str, Any], list[tuple[int, ...]], str]] = [
    (
        "reshape",
        {"shape": (4, 2)},
        [(2, 3)],
        r"reshape: 6 elements cannot have the shape \[4, 2\]: x = float32",
    ),
    ("reshape", {"shape": (-1, 4)}, [(2, 3)], "6 elements cannot have"),
    ("reshape", {"shape": (-1, -1)}, [(2, 3)], "6 elements cannot have"),
    ("reshape", {"shape": (0, -1)}, [(2, 3)], "extent that is not at least 1 or -1"),
    ("reshape", {"shape": (-2, 3)}, [(2, 3)], "extent that is not at least 1 or -1"),
    ("reshape", {"shape": (1,) * 9}, [(1,)], r"reshape: a tensor has at most 8 axes.*: x = float32\[1\]"),
    ("transpose", {"permutation": (0,)}, [(2, 3)], r"transpose: \[0\] is no order of 2 axes: x = "),
    ("transpose", {"permutation": (0, -2)}, [(2, 3)], r"\[0, -2\] is no order"),
    ("transpose", {"permutation": (0, 2)}, [(2, 3)], "there is no axis 2"),
    ("slice", {"axis": 2, "stop": 1}, [(2, 3)], "there is no axis 2"),
    ("slice", {"axis": -3, "stop": 1}, [(2, 3)], "there is no axis -3"),
    ("slice", {"axis": 1, "stop": 4}, [(2, 3)], "slice: 0:4 is no range of axis 1 of extent 3: x = "),
    ("slice", {"axis": -1, "start": -4}, [(2, 3)], "-4:0 is no range of axis 1"),
    ("slice", {"axis": 0, "start": 0, "stop": 0}, [()], "there is no axis 0"),
    ("concat", {"axis": 0}, [(2, 3), (2, 4)], r"extents 3 and 4 of axis 1 differ: part0 = .*, part1 = "),
    ("concat", {"axis": 1}, [(2, 3), (2, 4), (3, 3)], "extents 2 and 3 of axis 0 differ"),
    ("concat", {"axis": 0}, [(2, 3), (2,)], "part1 has another number of axes"),
    ("concat", {"axis": 2}, [(2, 3), (2, 3)], "there is no axis 2"),
    ("concat", {"axis": 0}, [()], "there is no axis 0"),
]


@pytest.mark.parametrize(("name", "attributes", "operands", "message"), REFUSED)
def test_refusals_say_why_and_name_every_operand(
    name: str, attributes: dict[str, Any], operands: list[tuple[int, ...]], message: str
) -> None:
    rule = operator(name)
    with pytest.raises(GraphError, match=message):
        rule.infer(rule.resolve(attributes), *map(TensorType, operands))


def test_moved_float16_numbers_must_arrive_unchanged() -> None:
    x = np.random.default_rng(8).standard_normal((4, 6)).astype(np.float16).astype(np.float32)
    rule = operator("transpose")
    attributes = {"permutation": (1, 0)}
    tolerance = rule.tolerance(attributes, x)
    moved = rule.reference(attributes, x)
    assert tolerance.violation(moved, moved) is None
    assert tolerance.violation(np.nextafter(moved, np.float32(9)), moved) is not None
    x += np.float32(1e-5)
    assert rule.tolerance(attributes, x).violation(x.T.astype(np.float16), x.T) is None
    huge = np.full((1, 1), 1e6, np.float32)
    assert rule.tolerance(attributes, huge).violation(np.full((1, 1), np.inf), huge) is not None
