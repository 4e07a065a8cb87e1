"""Products of computed operands, their inner extent cut over tiles where that pays."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import TensorType, ops

pytestmark = pytest.mark.sim


@pytest.mark.parametrize(
    ("batch", "m", "k", "n", "tiles"),
    [(1, 1, 256, 48, 60), (2, 3, 130, 40, 64), (1, 20, 200, 33, 90), (3, 1, 96, 16, 24)],
)
@pytest.mark.parametrize("by_columns", [False, True])
def test_inner_blocks(batch: int, m: int, k: int, n: int, tiles: int, by_columns: bool) -> None:
    random = np.random.default_rng(k)
    inputs = {
        "x": random.normal(size=(batch, m, k)).astype(np.float32),
        "y": (random.normal(size=(batch, n, k) if by_columns else (batch, k, n)) * k**-0.5).astype(
            np.float32
        ),
    }
    graph = tw.trace(
        lambda x, y: ops.matmul(x, y, transpose_b=by_columns),
        **{name: TensorType(value.shape) for name, value in inputs.items()},
    )
    package = tw.compile(graph, tiles=tiles, check=True)
    names = [step.name for step in package.profile.steps]
    assert any(name.endswith(".partials") for name in names), (
        "few outputs, many tiles: the inner extent is cut"
    )
    with tw.open_device("sim", check=True) as device, tw.Session(device, package) as session:
        found = session.run(inputs)["output"]
    assert np.abs(found - graph.evaluate(inputs)["output"]).max() < 0.01
