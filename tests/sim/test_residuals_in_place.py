"""A residual that has come through a grid of fewer row blocks: the next product leaves it where it is."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import TensorType, ops
from tilewright.ipu21.compile import plan_for_ipu21
from tilewright.ipu21.plan import matmul
from tilewright.ipu21.plan.grids import Grid
from tilewright.ipu21.plan.price import Price

pytestmark = pytest.mark.sim


# 2 x 4 pieces of 37 rows, and 4 row blocks of 2 of them: 10, 9, 10 and 8 rows, as no cut into 4 has them.
@pytest.mark.parametrize(("second", "received"), [(Grid((4,), 2, 2), False), (Grid((4,), 1, 2), True)])
def test_right_without_moving_it(monkeypatch: pytest.MonkeyPatch, second: Grid, received: bool) -> None:
    def promising(self: matmul.Candidates, price: Price, count: int) -> list[Grid]:
        return [Grid((2,), 2, 4) if self.source is None else second]

    monkeypatch.setattr(matmul.Candidates, "promising", promising)
    matmul.choose.cache_clear()
    random = np.random.default_rng(4)
    w, v = ((random.normal(size=(64, 64)) * 0.125).astype(np.float32) for _ in range(2))

    def model(x: object) -> object:
        a = x @ w  # type: ignore[operator]
        return ops.gelu(a) @ v + a

    graph = tw.trace(model, x=TensorType((37, 64)))
    package = tw.compile(graph, tiles=16)
    buffers = plan_for_ipu21(graph, tiles=16).work.plan.buffers
    matmul.choose.cache_clear()
    x = random.normal(size=(37, 64)).astype(np.float32)
    with tw.open_device("sim", check=True) as device, tw.Session(device, package) as session:
        got = session.run({"x": x})["output"]
    assert np.abs(got - graph.evaluate({"x": x})["output"]).max() < 0.012
    assert any(name.endswith(".residual") for name in buffers) == received
