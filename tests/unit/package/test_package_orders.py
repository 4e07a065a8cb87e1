"""Element orders and the conversion between arrays and host bytes, against literal transcriptions."""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import BindingError
from tilewright.package.orders import ORDERS, element_index, pack_slices, unpack_slices
from tilewright.package.records import SLICE, Binding

pytestmark = pytest.mark.unit


def position(order: str, r: int, c: int, padded_rows: int, padded_columns: int) -> int:
    """One element at a time, counting what lies before it."""
    if order == "row-major":
        return r * padded_columns + c
    if order == "a16":
        panel, within = divmod(c, 16)
        return panel * (padded_rows * 16) + r * 16 + within
    if order == "b16":
        panel_n, n = divmod(c, 16)
        panel_k, k = divmod(r, 16)
        panels_before = panel_n * (padded_rows // 16) + panel_k
        return panels_before * (16 * 16) + n * 16 + k
    if order == "b8":
        panel_n, n = divmod(c, 16)
        panel_k, k = divmod(r, 8)
        return (panel_n * (padded_rows // 8) + panel_k) * (16 * 8) + n * 8 + k
    if order == "a16t":
        block, within = divmod(r, 16)
        return block * (padded_columns * 16) + c * 16 + within
    assert order == "row16"
    return c


@st.composite
def shards(draw: st.DrawFn) -> tuple[str, int, int, int, int]:
    order = draw(st.sampled_from(sorted(ORDERS)))
    rule = ORDERS[order]
    padded_rows = 1 if rule.single_row else draw(st.integers(1, 4)) * rule.row_multiple
    padded_columns = draw(st.integers(1, 4)) * rule.column_multiple
    rows = draw(st.integers(1, padded_rows))
    columns = draw(st.integers(1, padded_columns))
    return order, rows, columns, padded_rows, padded_columns


@given(shards())
def test_index_is_the_literal_formula(shard: tuple[str, int, int, int, int]) -> None:
    order, rows, columns, padded_rows, padded_columns = shard
    index = element_index(order, rows, columns, padded_rows, padded_columns)
    expected = [
        [position(order, r, c, padded_rows, padded_columns) for c in range(columns)] for r in range(rows)
    ]
    assert index.tolist() == expected
    assert index.dtype == np.int64


@given(shards())
def test_full_shard_is_a_bijection(shard: tuple[str, int, int, int, int]) -> None:
    order, _, _, padded_rows, padded_columns = shard
    index = element_index(order, padded_rows, padded_columns, padded_rows, padded_columns)
    assert sorted(index.ravel().tolist()) == list(range(padded_rows * padded_columns))


def test_published_panel_corners() -> None:
    """Positions worked out by hand from the documented panels."""
    a16 = element_index("a16", 3, 32, 3, 32)
    assert a16[2, 15] == 2 * 16 + 15 and a16[0, 16] == 3 * 16
    b16 = element_index("b16", 32, 32, 32, 32)
    assert b16[0, 1] == 16 and b16[1, 0] == 1 and b16[16, 0] == 256 and b16[0, 16] == 512


@st.composite
def bindings(draw: st.DrawFn) -> Binding:
    """A view cut into a grid of shards of mixed sizes, each padded as its order wants."""
    order = draw(st.sampled_from(sorted(ORDERS)))
    rule = ORDERS[order]
    rows = 1 if rule.single_row else draw(st.integers(1, 40))
    columns = draw(st.integers(1, 40))
    row_cuts = sorted({0, rows, *draw(st.lists(st.integers(0, rows), max_size=3))})
    column_cuts = sorted({0, columns, *draw(st.lists(st.integers(0, columns), max_size=3))})
    host, device = draw(
        st.sampled_from(
            [("float32", "float16"), ("float32", "float32"), ("int32", "int32"), ("uint8", "uint8")]
        )
    )
    itemsize = np.dtype(device).itemsize
    offset = 0
    slices = []
    for top, bottom in pairwise(row_cuts):
        for left, right in pairwise(column_cuts):
            deep = -(-(bottom - top) // rule.row_multiple) * rule.row_multiple
            wide = -(-(right - left) // rule.column_multiple) * rule.column_multiple
            size = -(-deep * wide * itemsize // 8) * 8
            part = (top, bottom - top, deep, left, right - left, wide)
            slices.append((len(slices), 0x60000, offset, size, *part))
            offset += size
    return Binding("t", host, device, (rows, columns), order, (rows, columns), np.array(slices, SLICE))


def slow_pack(binding: Binding, array: np.ndarray) -> bytes:
    device = np.dtype(binding.device_dtype)
    out = bytearray(binding.nbytes)
    matrix = array.astype(device).reshape(binding.view)
    for part in binding.slices.tolist():
        _, _, offset, _, row, rows, padded_rows, column, columns, padded_columns = part
        for r in range(rows):
            for c in range(columns):
                place = offset + position(binding.order, r, c, padded_rows, padded_columns) * device.itemsize
                out[place : place + device.itemsize] = matrix[row + r, column + c].tobytes()
    return bytes(out)


@given(bindings(), st.integers(0, 2**32 - 1))
def test_pack_is_the_slow_pack_and_unpack_inverts_it(binding: Binding, seed: int) -> None:
    array = np.random.default_rng(seed).integers(0, 100, binding.shape).astype(binding.host_dtype)
    data = pack_slices(binding, array)
    assert data == slow_pack(binding, array)
    back = unpack_slices(binding, data)
    assert back.dtype == binding.host_dtype and back.shape == binding.shape
    np.testing.assert_array_equal(back, array)


@given(bindings())
def test_padding_is_zero(binding: Binding) -> None:
    ones = np.ones(binding.shape, binding.host_dtype)
    data = np.frombuffer(pack_slices(binding, ones), np.dtype(binding.device_dtype))
    assert np.count_nonzero(data) == ones.size


def row_binding(columns: int, host: str = "float32", device: str = "float16") -> Binding:
    size = -(-columns * np.dtype(device).itemsize // 8) * 8
    part = (0, 0x60000, 0, size, 0, 1, 1, 0, columns, columns)
    return Binding("v", host, device, (columns,), "row-major", (1, columns), np.array([part], SLICE))


def test_float16_ties_go_to_even() -> None:
    values = np.array([1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-11 + 2**-20, 2.0**-25, 3 * 2.0**-25], np.float32)
    data = pack_slices(row_binding(5), values)
    assert np.frombuffer(data, np.uint16)[:5].tolist() == [0x3C00, 0x3C02, 0x3C01, 0x0000, 0x0002]


@given(st.lists(st.floats(-65519, 65519, width=32), min_size=1, max_size=32))
def test_float16_rounding_is_that_of_python(values: list[float]) -> None:
    """Python's own half-precision packing, which is C code of its own, is the judge."""
    expected = b"".join(struct.pack("<e", value) for value in values)
    data = pack_slices(row_binding(len(values)), np.array(values, np.float32))
    assert data[: len(expected)] == expected


def test_overflow_is_refused_by_name() -> None:
    values = np.array([0, 65519.996, -65520.0, 1e9], np.float32)
    with pytest.raises(BindingError, match=r"binding 'v'.*-65520.*index \[2\].*float16.*65504.*2 elements"):
        pack_slices(row_binding(4), values)


def test_infinity_and_nan_pass() -> None:
    values = np.array([np.inf, -np.inf, np.nan, 65504], np.float32)
    back = unpack_slices(row_binding(4), pack_slices(row_binding(4), values))
    np.testing.assert_array_equal(back, values)


def test_copies_get_the_same_bytes() -> None:
    part = (0x60000, 0, 16, 0, 1, 1, 0, 4, 4)
    two = np.array([(0, *part), (1, *part)], SLICE)
    binding = Binding("v", "float32", "float32", (4,), "row-major", (1, 4), two)
    assert pack_slices(binding, np.arange(4, dtype=np.float32)) == np.arange(4, dtype=np.float32).tobytes()


def test_wrong_arrays_are_refused() -> None:
    with pytest.raises(BindingError, match=r"float32\[4\] expected, float64\[4\] given"):
        pack_slices(row_binding(4), np.zeros(4))
    with pytest.raises(BindingError, match=r"float32\[4\] expected, float32\[5\] given"):
        pack_slices(row_binding(4), np.zeros(5, np.float32))
    with pytest.raises(BindingError, match="7 bytes given, 8 expected"):
        unpack_slices(row_binding(4), bytes(7))
    with pytest.raises(BindingError, match="unknown element order 'c16'"):
        element_index("c16", 1, 16, 1, 16)


def test_uncovered_elements_are_refused() -> None:
    binding = row_binding(4)
    binding.slices["columns"] = 3
    with pytest.raises(BindingError, match=r"element \(0, 3\)"):
        unpack_slices(binding, bytes(8))
