"""What memory is worth: prices found by trying plans."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import ops
from tilewright.compiler.numerics import Numerics
from tilewright.errors import PlacementError
from tilewright.graph import Graph
from tilewright.ipu21 import fit
from tilewright.ipu21.fit import Fitted
from tilewright.ipu21.kernels import KERNELS, STRAIGHT
from tilewright.ipu21.kernels.gemm_tables import straight_of
from tilewright.ipu21.lower.calls import Call
from tilewright.ipu21.machine.memory import ELEMENT_BYTES
from tilewright.ipu21.plan.price import Price, Prices

pytestmark = pytest.mark.unit


def two_products(rows: int, width: int, count: int) -> Graph:
    """A loop over two square products, whose weights are equally large."""
    random = np.random.default_rng(1)
    first, second = (random.normal(size=(count, width, width)).astype(np.float32) / 16 for _ in range(2))

    def layer(x: Any, first: Any, second: Any) -> Any:
        return ops.gelu(x @ first) @ second

    return tw.trace(lambda x: ops.repeat(layer, count, x, (first, second)), x=tw.TensorType((rows, width)))


def fitted(graph: Graph, working: float) -> Fitted:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fit, "WORKING", working)
        return fit.fit(graph, 16, (ELEMENT_BYTES,), Numerics())


def test_bytes_cost_what_they_are_used_for() -> None:
    price = Price(kept=3.0, working=0.5)
    assert price.of(10, 4) == 3.0 * 4 + 0.5 * 6
    np.testing.assert_array_equal(price.of(np.array([10, 6]), np.array([4, 0])), [15.0, 3.0])
    prices = Prices(price, {"y": Price(1.0, 1.0)})
    assert (prices.of("x"), prices.of("y")) == (price, Price(1.0, 1.0))


def test_what_operations_work_with_in_turn_may_be_large_where_constants_must_not() -> None:
    graph = two_products(1024, 256, 10)
    even, uneven = (fitted(graph, working) for working in (1.0, fit.WORKING))
    assert even.prices.general.working == even.prices.general.kept
    assert uneven.prices.general.working < uneven.prices.general.kept
    assert uneven.cycles < even.cycles


def test_operands_in_slower_memory_cost_what_kernels_take_longer() -> None:
    # Five weights of 98,304 bytes on each tile: more than there is of interleaved memory.
    weights = [np.ones((3, 256, 256), np.float32) for _ in range(5)]

    def layer(x: Any, *weights: Any) -> Any:
        for w in weights:
            x = x @ w
        return x

    graph = tw.trace(lambda x: ops.repeat(layer, 3, x, tuple(weights)), x=tw.TensorType((64, 256)))
    plan = fit.fit(graph, 4, (ELEMENT_BYTES,), Numerics())
    slower = 0
    for call, times in zip(plan.work.work, plan.work.plan.times(), strict=True):
        if not isinstance(call, Call) or KERNELS[call.kernel].way is None:
            continue
        kernel = KERNELS[call.kernel]
        names = [operand.name for operand in kernel.contract.operands]
        real, fastest = [], []
        for tile in np.flatnonzero(call.active):
            scalars = {name: int(values[tile]) for name, values in call.scalars.items()}
            (number,) = [c.index for c in plan.work.classes if tile in c.tiles]
            places = {
                name: (plan.placement.address(number, buffer) if buffer else 0) + int(offsets[tile])
                for name, (buffer, offsets) in zip(names, call.operands, strict=True)
            }
            real.append(int(kernel.cycles(**scalars, **kernel.way({**scalars, **places}))))
            fastest.append(int(kernel.cycles(**scalars)))
        slower += times * (max(real) - max(fastest))
    assert slower > 0
    assert plan.cycles == plan.work.plan.cycles() + slower


def made(prices: Prices, cycles: float) -> Any:
    return SimpleNamespace(prices=prices, cycles=cycles)


def test_single_operations_pay_less_as_far_as_that_fits_and_helps() -> None:
    begin = made(Prices(Price(1.0, 0.5)), 100)
    asked: list[float] = []

    def tried(cycles: dict[float, float]) -> Any:
        def attempt(prices: Prices) -> Any:
            price = prices.of("y")
            assert price.working == price.kept / 2
            assert prices.of("x") == Price(1.0, 0.5)
            asked.append(round(price.kept, 6))
            if asked[-1] not in cycles:
                raise PlacementError("no room")
            return made(prices, cycles[asked[-1]])

        asked.clear()
        return fit._cheaper(attempt, begin, "y")

    first, second = fit.CHEAPER
    best = tried({first: 90, second: 80})
    assert (asked, best.prices.single) == ([first, second], {"y": Price(second, second / 2)})
    best = tried({first: 90, second: 95})
    assert best.prices.single == {"y": Price(first, first / 2)}
    assert tried({first: 100, second: 100}) is begin
    assert tried({}) is begin and asked == [first]


def test_known_prices_are_taken_if_they_still_fit() -> None:
    graph = two_products(64, 32, 2)
    known = Prices(Price(7.0, 1.0))
    assert fit.fit(graph, 4, (ELEMENT_BYTES,), Numerics(), known=known).prices is known
    large = two_products(1024, 256, 10)
    assert fit.fit(large, 16, (ELEMENT_BYTES,), Numerics(), known=Prices()).prices != Prices()


def test_products_get_straight_panels_for_the_rows_of_their_busiest_tile() -> None:
    made = fit.fit(two_products(300, 64, 1), 2, (ELEMENT_BYTES,), Numerics())
    calls = [item for item in made.work.work if isinstance(item, Call) and item.kernel.startswith("gemm")]
    wanted = {straight_of(int(call.scalars["rows"].max())) for call in calls}
    assert wanted and None not in wanted
    assert {name for name in made.runtime.active.symbols if name in STRAIGHT} == wanted


def test_products_of_two_inner_groups_ask_for_no_straight_panel() -> None:
    call = SimpleNamespace(
        kernel="gemm_f16",
        active=np.array([True, True, False]),
        scalars={"inner": np.array([2, 3, 3]), "rows": np.array([60, 50, 70])},
    )
    assert fit._straight(call) == ["gemm_f16_near_9"]
    call.scalars["inner"] = np.array([2, 2, 3])
    assert fit._straight(call) == []
    call.scalars["inner"], call.kernel = np.array([3, 3, 3]), "copy_u64"
    assert fit._straight(call) == []


def test_normalisations_ask_for_code_for_their_rows_and_parts() -> None:
    call = SimpleNamespace(
        kernel="normalise_f16",
        active=np.array([True, True, True, True, False, True]),
        scalars={
            "rows": np.array([3, 2, 3, 4, 1, 2]),
            "panels": np.array([1, 1, 1, 1, 1, 2]),
            "parts": np.array([24, 24, 24, 24, 24, 24]),
        },
    )
    assert fit._straight(call) == ["normalise_f16_of_24_once_2", "normalise_f16_of_24_once_3"]
    call.scalars["parts"] = np.full(6, 33)
    assert fit._straight(call) == []


def test_roots_ask_for_code_for_their_numbers_of_partials() -> None:
    call = SimpleNamespace(
        kernel="root_f16_bias",
        active=np.array([True, True, True, False, True]),
        scalars={
            "remote_count": np.array([3, 2, 3, 4, 16]),
            "rows": np.array([4, 5, 3, 2, 9]),
            "panels": np.array([1, 1, 2, 1, 1]),
        },
    )
    assert fit._straight(call) == [f"root_f16_bias_of_{name}" for name in ("2_twice", "3", "3_twice")]
    call.scalars["panels"] = np.array([2, 1, 1, 1, 1])
    assert fit._straight(call) == [f"root_f16_bias_of_{name}" for name in ("2_twice", "3", "3_once")]
    call.kernel = "root_f16_bias_exact"
    assert fit._straight(call) == [f"root_f16_bias_exact_of_{name}" for name in ("2", "3", "3_once")]
    call.kernel = "attention_merge_own_f16"
    few = "attention_merge_own_f16_few_of_3"
    assert fit._straight(call) == [few, "attention_merge_own_f16_of_2", "attention_merge_own_f16_of_3"]
    call.scalars["rows"] = np.array([1, 0, 2, 2, 9])
    assert fit._straight(call) == [few]
    call.kernel, call.scalars["rows"] = "root_f16_residual", np.array([9, 9, 10, 3, 9])
    assert fit._straight(call) == [
        f"root_f16_residual_of_{name}" for name in ("2_thrice", "2_wide_thrice", "3", "3_wide")
    ]
    call.kernel = "root_f32"
    assert fit._straight(call) == []


def test_roots_get_code_for_their_number_of_partials() -> None:
    made = fit.fit(two_products(16, 512, 1), 16, (ELEMENT_BYTES,), Numerics())
    calls = [item for item in made.work.work if isinstance(item, Call) and item.kernel.startswith("root")]
    wanted = {f"{call.kernel}_of_{call.scalars['remote_count'].max()}" for call in calls}
    assert wanted
    assert {name for name in made.runtime.active.symbols if name in STRAIGHT and "root" in name} == wanted
