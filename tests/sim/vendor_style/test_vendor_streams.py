"""Convolution along rows, block transpose, reductions, softmax, argmax and casts."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from vendor_programs import bench

pytestmark = pytest.mark.sim

TAPS = 4


@pytest.mark.parametrize("rows", [1, 6, 13])
@pytest.mark.parametrize(
    ("kernel", "outputs", "kind"),
    [
        ("slic_half_half", 2, np.float16),
        ("slic_half_float", 2, np.float32),
        ("slic_half_half4", 4, np.float16),
    ],
)
def test_slim_convolution(kernel: str, outputs: int, kind: type[np.floating], rows: int) -> None:
    rng = np.random.default_rng(rows)
    pixels = 11
    count = pixels - TAPS + 1
    x = rng.integers(-4, 5, (rows, pixels, 4)).astype(np.float16)
    weights = rng.integers(-4, 5, (TAPS, 4, 4)).astype(np.float16)  # tap, output, input
    partials = rng.integers(-9, 10, (rows, count, outputs)).astype(kind)
    tile = bench("slic")
    # One pixel and five partials more than there are: the pipe is emptied by running it on.
    tile.put("x", np.concatenate([x.reshape(-1), np.zeros(4, np.float16)]), region=0)
    tile.put("weights", weights, region=0)
    tile.put("partials", np.concatenate([partials.reshape(-1), np.zeros(5 * outputs, kind)]))
    tile.reserve("out", np.dtype(kind), (rows, count, outputs))
    item = np.dtype(kind).itemsize * outputs
    state = tile.vertex_state(
        "out", "x", "partials", 8 * pixels, item * count, item * count, ("u16", count), ("u16", rows)
    )
    result = tile.call(kernel, {"m2": state, "m4": "weights"})
    wide = x.astype(np.float64)
    expected = partials.astype(np.float64)
    for tap in range(TAPS):
        expected += wide[:, tap : tap + count] @ weights[tap, :outputs].T.astype(np.float64)
    np.testing.assert_array_equal(result.array("out"), expected.astype(kind))


@pytest.mark.parametrize("blocks", [1, 2, 5, 6, 7, 40])
def test_transpose(blocks: int) -> None:
    x = np.random.default_rng(blocks).integers(0, 65536, (blocks, 4, 4)).astype(np.uint16)
    tile = bench("transpose")
    tile.put("x", x)
    tile.reserve("out", "u16", x.shape)
    result = tile.run_vertex("transpose4x4", tile.vertex_state("x", "out", blocks), workers=6)
    np.testing.assert_array_equal(result.array("out"), x.transpose(0, 2, 1))


@pytest.mark.parametrize("rows", [1, 6, 7, 50, 201])
def test_reduction(rows: int) -> None:
    x = np.random.default_rng(rows).normal(0, 1, (rows, 8)).astype(np.float16)
    tile = bench("reduce")
    tile.put("x", x)
    tile.reserve("out", "f32", 8)
    tile.reserve("scratch", "f32", (6, 8))
    result = tile.call("reduce_add", {"m2": "out", "m3": "x", "m4": "scratch", "m5": rows})
    np.testing.assert_allclose(result.array("out"), x.astype(np.float64).sum(axis=0), rtol=1e-5, atol=1e-5)


def test_norms() -> None:
    x = np.random.default_rng(1).integers(-20, 20, (33, 4)).astype(np.float32)
    tile = bench("reduce")
    tile.put("x", x, region=1)
    for kernel, expected in (("sum_of_squares", x * x), ("sum_of_sizes", abs(x))):
        out = tile.reserve(f"out_{kernel}", "f32", 4)
        tile.run_vertex(kernel, tile.vertex_state("x", len(x), out), workers=1)
        np.testing.assert_array_equal(tile.array(out), expected.sum(axis=0))


@pytest.mark.parametrize(("rows", "columns"), [(1, 2), (6, 10), (13, 64)])
def test_softmax(rows: int, columns: int) -> None:
    x = np.random.default_rng(rows).normal(0, 5, (rows, columns)).astype(np.float32)
    tile = bench("rows")
    tile.put("x", x)
    one = int(np.float32(1).view(np.uint32))
    result = tile.run_vertex("softmax", tile.vertex_state("x", columns, rows, one), workers=6)
    power = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(result.array("x"), power / power.sum(axis=1, keepdims=True), rtol=4e-6)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (7, 2), (20, 33)])
def test_argmax(rows: int, columns: int) -> None:
    x = np.random.default_rng(columns).integers(-9, 9, (rows, columns)).astype(np.float32)
    tile = bench("rows")
    tile.put("x", x)
    tile.reserve("out", "u32", rows)
    result = tile.run_vertex("argmax", tile.vertex_state("x", columns, rows, "out"), workers=6)
    np.testing.assert_array_equal(result.array("out"), x.argmax(axis=1))


@pytest.mark.parametrize("scale", [0, 3, -5])
@pytest.mark.parametrize(
    ("format_bit", "kind"), [(1, ml_dtypes.float8_e4m3fnuz), (0, ml_dtypes.float8_e5m2fnuz)]
)
def test_cast_chain(format_bit: int, kind: type, scale: int) -> None:
    """Float to half to quarter and back: what NumPy and ml_dtypes make of the same chain."""
    groups = 9
    x = np.random.default_rng(scale + 9).normal(0, 8, 8 * groups).astype(np.float32)
    tile = bench("casts")
    metadata = format_bit << 7 | (scale & 63)
    tile.put("x", x)
    for name, dtype in (("half", "f16"), ("quarter", "f8"), ("half_again", "f16"), ("back", "f32")):
        tile.reserve(name, dtype, len(x))
    for kernel, source, target in (
        ("float_to_half", "x", "half"),
        ("half_to_quarter", "half", "quarter"),
        ("quarter_to_half", "quarter", "half_again"),
        ("half_to_float", "half_again", "back"),
    ):
        tile.run_vertex(
            kernel, tile.vertex_state(source, target, ("u16", groups), ("u8", metadata)), workers=1
        )
    half = x.astype(np.float16)
    np.testing.assert_array_equal(tile.array("half"), half)
    largest = float(ml_dtypes.finfo(kind).max)
    quarter = np.clip(half.astype(np.float64) * 2.0**-scale, -largest, largest).astype(kind)
    np.testing.assert_array_equal(tile.array("quarter"), quarter.view(np.uint8))
    expected = (quarter.astype(np.float64) * 2.0**scale).astype(np.float32)
    np.testing.assert_array_equal(tile.array("back"), expected)


def test_truncating_cast() -> None:
    x = np.array([0.5, -0.5, 1.99, -1.99, 1e9, -1e9, 3, -7.0001], np.float32)
    tile = bench("casts")
    tile.put("x", x)
    tile.reserve("out", "i32", 8)
    tile.run_vertex("float_to_int", tile.vertex_state("x", "out", ("u16", 1), ("u8", 0)), workers=1)
    np.testing.assert_array_equal(tile.array("out"), np.trunc(x).astype(np.int32))
