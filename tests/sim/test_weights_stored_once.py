"""Products whose weights are stored once and multicast: forced where the planner would weigh them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import TensorType, ops
from tilewright.ipu21.plan import matmul
from tilewright.ipu21.plan.grids import Grid
from tilewright.package.records import Package

pytestmark = pytest.mark.sim


def with_grid(monkeypatch: pytest.MonkeyPatch, grid: Grid) -> None:
    monkeypatch.setattr(matmul.Candidates, "ranking", lambda *_: [(grid, 0.0, 0)])
    matmul.choose.cache_clear()


def run(package: Package, inputs: dict[str, Any]) -> Any:
    with tw.open_device("sim", check=True) as device, tw.Session(device, package) as session:
        session.run(inputs)
        # What was multicast in the first run must not matter in the second.
        return session.run(inputs)["output"]


def kernels(package: Package) -> set[str]:
    assert package.debug is not None
    return {step.kernel for step in package.debug.program.steps}


GRIDS = [
    # Of 3 x 3 and 3 x 2 panels each of three tiles has three and two; four tiles; no partial sums.
    Grid((3,), 2, 2, streamed=True),
    Grid((4,), 1, 2, streamed=True),
    Grid((20,), 1, 1, streamed=True),
    Grid((5,), 3, 1, streamed=True),
]


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("constant", [False, True])
def test_each_tile_keeps_its_panels_and_hears_the_others(
    monkeypatch: pytest.MonkeyPatch, grid: Grid, constant: bool
) -> None:
    random = np.random.default_rng(3)
    x = random.normal(size=(50, 90)).astype(np.float32)
    w = (random.normal(size=(90, 70)) * 90**-0.5).astype(np.float32)
    b = random.normal(size=70).astype(np.float32)
    with_grid(monkeypatch, grid)
    if constant:
        graph, inputs = tw.trace(lambda x: x @ w + b, x=TensorType(x.shape)), {"x": x}
    else:
        graph = tw.trace(lambda x, w: x @ w + b, x=TensorType(x.shape), w=TensorType(w.shape))
        inputs = {"x": x, "w": w}
    package = tw.compile(graph, tiles=24)
    assert ("gemm_listed_row_f16" if grid.k == 1 else "gemm_listed_f16") in kernels(package)
    np.testing.assert_allclose(run(package, inputs), x @ w + b, atol=0.02)
    matmul.choose.cache_clear()


@pytest.mark.parametrize("extent", [16, 32, 33])
def test_there_may_be_fewer_panels_than_tiles(monkeypatch: pytest.MonkeyPatch, extent: int) -> None:
    """A tile without panels of its own has no buffer for them; then all panels are brought to one place."""
    random = np.random.default_rng(6)
    x = random.normal(size=(50, extent)).astype(np.float32)
    w = (random.normal(size=(extent, 16)) * extent**-0.5).astype(np.float32)
    with_grid(monkeypatch, Grid((3,), 1, 1, streamed=True))
    graph = tw.trace(lambda x, w: x @ w, x=TensorType(x.shape), w=TensorType(w.shape))
    package = tw.compile(graph, tiles=3)
    assert any("listed" in kernel for kernel in kernels(package)) == (extent > 32)
    np.testing.assert_allclose(run(package, {"x": x, "w": w}), x @ w, atol=0.02)
    matmul.choose.cache_clear()


def test_every_iteration_has_weights_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    x = random.normal(size=(40, 80)).astype(np.float32)
    w = (random.normal(size=(3, 80, 80)) * 80**-0.5).astype(np.float32)
    with_grid(monkeypatch, Grid((3,), 2, 2, streamed=True))
    graph = tw.trace(lambda x: ops.repeat(lambda x, w: ops.gelu(x @ w), 3, x, (w,)), x=TensorType(x.shape))
    package = tw.compile(graph, tiles=12)
    assert not any("listed" in kernel for kernel in kernels(package))
    np.testing.assert_allclose(run(package, {"x": x}), graph.evaluate({"x": x})["output"], atol=0.02)
    matmul.choose.cache_clear()


@pytest.mark.parametrize("precision", ["float16", "float32"])
def test_chunks_of_what_each_tile_has_are_brought_to_all(
    monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    random = np.random.default_rng(5)
    # The last sixteen inner elements are eight, and of float32 weights a whole record is padding.
    x = random.normal(size=(40, 216)).astype(np.float32)
    w = (random.normal(size=(216, 70)) * 216**-0.5).astype(np.float32)
    with_grid(monkeypatch, Grid((3,), 2, 2, streamed=True, chunks=3))
    graph = tw.trace(lambda x, w: x @ w, x=TensorType(x.shape), w=TensorType(w.shape))
    package = tw.compile(graph, tiles=12, precision=precision)
    assert not any("listed" in kernel for kernel in kernels(package))
    np.testing.assert_allclose(run(package, {"x": x, "w": w}), x @ w, atol=0.02)
    matmul.choose.cache_clear()
