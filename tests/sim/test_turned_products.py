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
