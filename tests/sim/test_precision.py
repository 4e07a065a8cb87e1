"""The precision policies: float32 throughout, and float16 with stochastic rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright as tw
from tilewright import TensorType, ops
from tilewright.errors import UnsupportedError, UsageError
from tilewright.package.records import Package

pytestmark = pytest.mark.sim

Floats = NDArray[np.float32]


def arrays(*shapes: tuple[int, ...]) -> list[Floats]:
    random = np.random.default_rng(0)
    return [(random.normal(size=shape) * shape[-2:][0] ** -0.5).astype(np.float32) for shape in shapes]


def run(package: Package, inputs: dict[str, Floats], times: int = 1, check: bool = False) -> list[Floats]:
    with tw.open_device("sim", check=check) as device, tw.Session(device, package) as session:
        return [session.run(inputs)["output"] for _ in range(times)]


def network(first: Floats, second: Floats) -> tw.Graph:
    bias = np.linspace(-1, 1, first.shape[1], dtype=np.float32)

    def model(x: Any) -> Any:
        return ops.gelu(x @ first + bias) @ second + bias[: second.shape[1]]

    return tw.trace(model, x=TensorType((40, first.shape[0])))


@pytest.mark.parametrize("tiles", [1, 8, 60])
def test_float32_is_as_good_as_numpy(tiles: int) -> None:
    first, second, x = arrays((64, 96), (96, 50), (40, 64))
    graph = network(first, second)
    (got,) = run(tw.compile(graph, tiles=tiles, precision="float32"), {"x": x}, check=True)
    assert np.abs(got - graph.evaluate({"x": x})["output"]).max() < 4e-6


def test_float32_loops_and_products_of_inputs() -> None:
    weights, a, b = arrays((3, 48, 48), (30, 48), (48, 70))
    graph = tw.trace(
        lambda a, b: ops.repeat(lambda x, w: x @ w + x, 3, a, weights) @ b,
        a=TensorType(a.shape),
        b=TensorType(b.shape),
    )
    (got,) = run(tw.compile(graph, tiles=24, precision="float32"), {"a": a, "b": b}, check=True)
    expected = graph.evaluate({"a": a, "b": b})["output"]
    assert np.abs(got - expected).max() < 1e-5 * np.abs(expected).max()


def test_what_float32_cannot_do_is_named() -> None:
    graph = tw.trace(lambda x: ops.softmax(x), x=TensorType((4, 4)))
    with pytest.raises(UnsupportedError, match=r"softmax.*float32"):
        tw.compile(graph, tiles=2, precision="float32")


def test_stochastic_rounding_is_unbiased_where_nearest_is_not() -> None:
    first, x = arrays((64, 96), (40, 64))
    x = x.astype(np.float16).astype(np.float32)
    first = first.astype(np.float16).astype(np.float32)
    graph = tw.trace(lambda x: x @ first, x=TensorType(x.shape))
    exact = x.astype(np.float64) @ first.astype(np.float64)
    (nearest,) = run(tw.compile(graph, tiles=8), {"x": x})
    results = np.stack(run(tw.compile(graph, tiles=8, stochastic_rounding=True), {"x": x}, times=64))
    assert len({result.tobytes() for result in results}) == 64
    spread = results.std(axis=0).max()
    assert 0 < spread < 4 * np.abs(nearest - exact).max()
    # Errors of the mean shrink as 1 / sqrt(64); those of nearest rounding stay what they are.
    assert np.abs(results.mean(axis=0) - exact).mean() < 0.35 * np.abs(nearest - exact).mean()
    # Seeds are set at start-up, so another session repeats the first one's draws.
    again = run(tw.compile(graph, tiles=8, stochastic_rounding=True), {"x": x}, times=2)
    assert [result.tobytes() for result in again] == [result.tobytes() for result in results[:2]]


def test_policies_are_checked() -> None:
    (first,) = arrays((16, 16))
    graph = tw.trace(lambda x: x @ first, x=TensorType((4, 16)))
    with pytest.raises(UsageError, match="float8"):
        tw.compile(graph, precision="float8")
    with pytest.raises(UsageError, match="stochastic"):
        tw.compile(graph, precision="float32", stochastic_rounding=True)
