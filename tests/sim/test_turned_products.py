"""Products whose weights stream past stationary activations: forced where the planner would weigh them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tilewright as tw
from tilewright import TensorType, ops
from tilewright.ipu21.plan import matmul
from tilewright.ipu21.plan.grids import Grid
from tilewright.ipu21.plan.price import Price

pytestmark = pytest.mark.sim


@pytest.fixture(autouse=True)
def only_turned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    original = matmul.Candidates.ranking

    def ranking(self: matmul.Candidates, price: Price, count: int) -> list[tuple[Grid, float, int]]:
        every = original(self, price, len(self.cycles))
        return [item for item in every if item[0].turned][:count]

    monkeypatch.setattr(matmul.Candidates, "ranking", ranking)
    matmul.choose.cache_clear()
    yield
    matmul.choose.cache_clear()


@pytest.mark.parametrize("shape", [(32, 64, 96), (20, 40, 50), (7, 33, 70), (64, 100, 36)])
@pytest.mark.parametrize("tiles", [1, 5, 24, 90])
def test_right_with_bias_activation_and_residual(shape: tuple[int, int, int], tiles: int) -> None:
    m, k, n = shape
    random = np.random.default_rng(m)
    w, v = (random.normal(size=s) * s[0] ** -0.5 for s in ((k, n), (n, k)))
    b, c = random.normal(size=n), random.normal(size=k)
    graph = tw.trace(lambda x: ops.gelu(x @ w + b, approximate="none") @ v + c + x, x=TensorType((m, k)))
    x = random.normal(size=(m, k)).astype(np.float32)
    package = tw.compile(graph, tiles=tiles)
    assert sum(step.name.endswith(".turn") for step in package.profile.steps) == 2
    with tw.open_device("sim", check=True) as device, tw.Session(device, package) as session:
        got = session.run({"x": x})["output"]
    assert np.abs(got - graph.evaluate({"x": x})["output"]).max() < 0.012


def test_inside_a_loop_with_joined_products() -> None:
    random = np.random.default_rng(3)
    w, v = ((random.normal(size=(3, 48, 48)) * 48**-0.5).astype(np.float32) for _ in range(2))
    graph = tw.trace(
        lambda x: ops.repeat(lambda x, w, v: ops.gelu(x @ w) + ops.gelu(x @ v), 3, x, (w, v)),
        x=TensorType((24, 48)),
    )
    x = random.normal(size=(24, 48)).astype(np.float32)
    package = tw.compile(graph, tiles=20)
    with tw.open_device("sim", check=True) as device, tw.Session(device, package) as session:
        got = session.run({"x": x})["output"]
    expected = graph.evaluate({"x": x})["output"]
    assert np.abs(got - expected).max() < 0.01 * max(1, np.abs(expected).max())


def _with_grid(monkeypatch: pytest.MonkeyPatch, grid: Grid) -> None:
    monkeypatch.setattr(matmul.Candidates, "ranking", lambda *_: [(grid, 0.0, 0)])
    matmul.choose.cache_clear()


BIASED = {
    "": lambda x, w, b: x @ w + b,
    "tanh": lambda x, w, b: ops.gelu(x @ w + b),
    "none": lambda x, w, b: ops.gelu(x @ w + b, approximate="none"),
}


@pytest.mark.parametrize("approximate", BIASED)
@pytest.mark.parametrize(
    ("grid", "finished_first"),
    [
        (Grid((2,), 3, 4, across=2, turned=True), True),
        (Grid((2,), 1, 4, across=1, turned=True), True),
        (Grid((4,), 3, 2, across=2, turned=True), True),
        # Two panels for each root, and nobody to add up.
        (Grid((2,), 3, 4, across=4, turned=True), False),
        (Grid((2,), 3, 1, turned=True), False),
    ],
)
def test_one_panel_is_finished_before_it_is_turned(
    monkeypatch: pytest.MonkeyPatch, grid: Grid, finished_first: bool, approximate: str
) -> None:
    _with_grid(monkeypatch, grid)
    random = np.random.default_rng(1)
    w = (random.normal(size=(2, 64, 64)) * 64**-0.5).astype(np.float32)
    b = random.normal(size=(2, 64)).astype(np.float32)
    layer = BIASED[approximate]
    graph = tw.trace(lambda x: ops.repeat(layer, 2, x, (w, b)), x=TensorType((62, 64)))
    x = random.normal(size=(62, 64)).astype(np.float32)
    package = tw.compile(graph, tiles=grid.tiles)
    assert any(step.name.endswith(".finish") for step in package.profile.steps) != finished_first
    with tw.open_device("sim", check=True) as device, tw.Session(device, package) as session:
        got = session.run({"x": x})["output"]
    assert np.abs(got - graph.evaluate({"x": x})["output"]).max() < 0.012


def test_joined_products_have_the_biases_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_grid(monkeypatch, Grid((2,), 2, 2, across=1, turned=True))
    random = np.random.default_rng(2)
    w, v, u = ((random.normal(size=(48, n)) * 48**-0.5).astype(np.float32) for n in (24, 40, 32))
    b, c = random.normal(size=24), random.normal(size=32)
    graph = tw.trace(lambda x: (x @ w + b, x @ v, x @ u + c), x=TensorType((64, 48)))
    x = random.normal(size=(64, 48)).astype(np.float32)
    package = tw.compile(graph, tiles=8)
    assert sum(step.name.endswith(".turn") for step in package.profile.steps) == 1
    with tw.open_device("sim", check=True) as device, tw.Session(device, package) as session:
        got = session.run({"x": x})
    for name, expected in graph.evaluate({"x": x}).items():
        assert np.abs(got[name] - expected).max() < 0.012
