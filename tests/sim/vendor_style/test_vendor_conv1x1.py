"""1x1 convolutions through the matrix unit in three precisions, weights loaded entry by entry."""

from __future__ import annotations

import numpy as np
import pytest
from vendor_programs import bench

pytestmark = pytest.mark.sim

PADDING = 18
"""Rows behind a stream that its worker may read."""


@pytest.mark.parametrize("rows", [1, 5, 6, 7, 23, 48])
@pytest.mark.parametrize(
    ("kernel", "outputs", "kind"),
    [("conv1x1_half_half", 16, np.float16), ("conv1x1_half_float", 8, np.float32)],
)
def test_half(kernel: str, outputs: int, kind: type[np.floating], rows: int) -> None:
    rng = np.random.default_rng(rows)
    x = rng.integers(-4, 5, (rows + PADDING, 16)).astype(np.float16)
    weights = rng.integers(-4, 5, (outputs, 16)).astype(np.float16)
    partials = rng.integers(-9, 10, (rows + PADDING, outputs)).astype(kind)
    tile = bench("conv1x1_half")
    tile.put("x", x, at=0x60000)
    tile.put("weights", weights, at=0x80000)
    tile.put("partials", partials, at=0x90000)
    tile.put("out", np.full((rows + PADDING, outputs), 77, kind), at=0xA0000)
    result = tile.call(kernel, {"m2": "out", "m3": "x", "m4": "weights", "m5": "partials", "m6": rows})
    expected = partials[:rows].astype(np.float64) + x[:rows].astype(np.float64) @ weights.T
    np.testing.assert_array_equal(result.array("out")[:rows], expected.astype(kind))
    assert (result.array("out")[rows:] == 77).all()


@pytest.mark.parametrize(
    ("kernel", "outputs", "kind", "ulps"),
    [("conv1x1_half_half", 16, np.float16, 0.51), ("conv1x1_half_float", 8, np.float32, 64)],
)
def test_half_with_rounding(kernel: str, outputs: int, kind: type[np.floating], ulps: float) -> None:
    """Real numbers: half results are rounded once, at the end; single sums after every instruction."""
    rng = np.random.default_rng(1)
    rows = 30
    x = rng.normal(0, 1, (rows + PADDING, 16)).astype(np.float16)
    weights = rng.normal(0, 1, (outputs, 16)).astype(np.float16)
    partials = rng.normal(0, 1, (rows + PADDING, outputs)).astype(kind)
    tile = bench("conv1x1_half")
    tile.put("x", x, at=0x60000)
    tile.put("weights", weights, at=0x80000)
    tile.put("partials", partials, at=0x90000)
    tile.put("out", np.zeros((rows, outputs), kind), at=0xA0000)
    result = tile.call(kernel, {"m2": "out", "m3": "x", "m4": "weights", "m5": "partials", "m6": rows})
    exact = partials[:rows].astype(np.float64) + x[:rows].astype(np.float64) @ weights.T.astype(np.float64)
    step = np.spacing(np.abs(exact).astype(kind)).astype(np.float64)
    assert np.all(np.abs(result.array("out").astype(np.float64) - exact) <= ulps * step + 1e-6)


@pytest.mark.parametrize("rows", [1, 6, 11])
@pytest.mark.parametrize(("kernel", "outputs"), [("conv1x1_float_8", 8), ("conv1x1_float_16", 16)])
def test_float(kernel: str, outputs: int, rows: int) -> None:
    rng = np.random.default_rng(rows)
    x = rng.integers(-9, 10, (rows, 8)).astype(np.float32)
    weights = rng.integers(-9, 10, (outputs, 8)).astype(np.float32)
    partials = rng.integers(-99, 100, (rows, outputs)).astype(np.float32)
    tile = bench("conv1x1_float")
    tile.put("x", x)
    tile.put("weights", weights, region=1)
    tile.put("partials", partials)
    tile.reserve("out", "f32", (rows, outputs))
    tile.put("state", np.zeros(4, np.uint32), region=0)
    result = tile.call(
        kernel, {"m2": "out", "m3": "x", "m4": "weights", "m5": "partials", "m6": rows, "m7": "state"}
    )
    np.testing.assert_array_equal(result.array("out"), partials + x @ weights.T)
