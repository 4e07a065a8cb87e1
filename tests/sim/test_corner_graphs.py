"""Graphs that random ones seldom are: each is one thing that a plan has to take care of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright as tw
from support.judging import judge_whole
from tilewright.errors import UnsupportedError
from tilewright.ipu21.plan import attention, attention_choice
from tilewright.ipu21.plan.attention_grid import Grid
from tilewright.ipu21.plan.attention_work import Problem, Sources
from tilewright.ipu21.plan.head_line import judge_line, line_of
from tilewright.ipu21.plan.price import Price
from tilewright.ipu21.plan.turns import Turns

pytestmark = pytest.mark.sim

Array = NDArray[np.float32]
GENERATOR = np.random.default_rng(11)


def normal(*shape: int) -> Array:
    return GENERATOR.standard_normal(shape).astype(np.float16).astype(np.float32)


def check(network: Callable[..., Any], tiles: int, **shapes: tuple[int, ...]) -> None:
    """Two runs of one session give the same, which is what the references give up to noise."""
    graph = tw.trace(network, **{name: tw.TensorType(shape) for name, shape in shapes.items()})
    inputs = {name: normal(*shape) for name, shape in shapes.items()}
    package = tw.compile(graph, tiles=tiles, check=True)
    with tw.open_device("sim", check=True) as device, tw.Session(device, package) as session:
        first, second = session.run(inputs), session.run(inputs)
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])
    judge_whole(graph, inputs, first, splits=tiles)


@pytest.mark.parametrize("tiles", [1, 4, 13])
def test_attention_whose_batch_axes_broadcast(tiles: int) -> None:
    def network(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return {"y": tw.ops.attention(q, k, v, mask, heads=2)}

    check(network, tiles, q=(2, 3, 5, 8), k=(3, 7, 8), v=(2, 1, 7, 6), mask=(2, 1, 7))


@pytest.mark.parametrize("causal", [False, True])
def test_attention_in_groups_of_an_odd_number_of_tiles(causal: bool) -> None:
    """Tiles without partner store half of the queries, and copy them when the others' have come."""

    def network(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return {"y": tw.ops.attention(q, k, v, mask, heads=2, causal=causal)}

    check(network, 10, q=(144, 48), k=(144, 48), v=(144, 48), mask=(144,))


@pytest.mark.parametrize("shares_keys", [False, True])
@pytest.mark.parametrize(
    ("heads", "columns", "key_parts", "across"),
    [(3, 24, 4, 2), (1, 40, 6, 3), (2, 64, 8, 4), (2, 32, 2, 2)],
)
def test_attention_whose_result_is_cut_by_columns_too(
    heads: int, columns: int, key_parts: int, across: int, shares_keys: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of heads that end with padding only the last column part does."""

    def choose(problem: Problem, sources: Sources, tiles: int, price: Price) -> Any:
        grid = Grid(problem, heads, 2, key_parts, Turns(2, 2), shares_keys, across=across)
        judged = attention_choice.judge(grid, sources)
        assert grid.tiles == tiles and grid.describe().endswith(f"merged in {across} parts of the columns")
        return (judged,)

    monkeypatch.setattr(attention, "choose", choose)
    width, keys = heads * columns, 16 * key_parts + 5
    matrix = (normal(width, width) * width**-0.5).astype(np.float16).astype(np.float32)

    def network(q: Any, k: Any, mask: Any) -> Any:
        y = tw.ops.attention(q, k, k @ matrix, mask, heads=heads)
        return {"y": y @ matrix + q}

    check(network, 4 * heads * key_parts, q=(2, 21, width), k=(2, keys, width), mask=(2, keys))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("tiles", "heads", "columns"), [(5, 3, 24), (14, 3, 16), (22, 5, 8)])
def test_attention_with_heads_in_a_line(
    tiles: int, heads: int, columns: int, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiles with parts of one, two or three heads; keys that end within 16, a mask for each sequence."""

    def choose(problem: Any, sources: Any, count: int, price: Any) -> Any:
        line = line_of(problem, count)
        assert line is not None
        return (judge_line(line, sources),)

    monkeypatch.setattr(attention, "choose", choose)
    width = heads * columns
    matrix = (normal(width, width) * width**-0.5).astype(np.float16).astype(np.float32)

    def network(x: Any, mask: Any) -> Any:
        y = tw.ops.attention(x @ matrix, x, x @ matrix, mask, heads=heads, causal=causal)
        return {"y": y @ matrix + x}

    check(network, tiles, x=(2, 37, width), mask=(2, 37))


@pytest.mark.parametrize(
    ("heads", "tiles", "queries", "keys"),
    [(2, 13, 256, 256), (6, 4, 160, 144), (5, 4, 100, 150), (2, 3, 200, 197)],
)
@pytest.mark.parametrize("computed", [False, True])
def test_exponentials_summed_by_the_product(
    heads: int, tiles: int, queries: int, keys: int, computed: bool
) -> None:
    """Of heads of 24 columns; one or several on a tile, not equally many, and keys that end within 16."""
    width = 24 * heads
    matrix = (normal(width, width) * width**-0.5).astype(np.float16).astype(np.float32)

    def network(q: Any, k: Any, v: Any) -> Any:
        y = tw.ops.attention(q, k, v @ matrix if computed else v, heads=heads)
        # Padding that is not zero again would be seen by what comes next.
        return {"y": tw.ops.gelu(y @ matrix)}

    check(network, tiles, q=(queries, width), k=(keys, width), v=(keys, width))


def test_masks_of_every_shape() -> None:
    def network(x: Any, one: Any) -> Any:
        y = tw.ops.attention(x, x, x, normal(3, 1, 4), heads=1)
        y = tw.ops.attention(y, x, x, one, heads=3)
        return {"y": tw.ops.attention(y, x, x, normal(1, 1, 4), heads=1, causal=True)}

    check(network, 6, x=(3, 2, 4, 6), one=(1, 1, 1))


@pytest.mark.parametrize("transposed", [False, True])
def test_more_products_than_tiles(transposed: bool) -> None:
    def network(a: Any, b: Any) -> Any:
        return {"y": tw.ops.matmul(a, b, transpose_b=transposed)}

    check(network, 5, a=(4, 3, 7, 18), b=(3, 9, 18) if transposed else (3, 18, 9))


def test_carried_values_change_places() -> None:
    step = normal(6, 20)

    def body(a: Any, b: Any) -> Any:
        return b + step, a + step

    def network(x: Any, y: Any) -> Any:
        a, b = tw.ops.repeat(body, 3, (x, y))
        return {"a": a, "b": b}

    check(network, 4, x=(6, 20), y=(6, 20))


def test_a_carried_value_is_needed_after_the_next_one_is_made() -> None:
    step = normal(20)

    def body(a: Any, b: Any) -> Any:
        following = tw.ops.gelu(a + b)
        return following, a + step

    def network(x: Any, y: Any) -> Any:
        a, b = tw.ops.repeat(body, 3, (x, y))
        return {"a": a, "b": b}

    check(network, 4, x=(6, 20), y=(6, 20))


def test_a_loop_captures_what_is_used_after_it_too() -> None:
    w = normal(20, 20) / 5

    def network(x: Any) -> Any:
        turned = tw.ops.transpose(x, permutation=[1, 0])
        hidden = tw.ops.gelu(x @ w)

        def body(a: Any) -> Any:
            return tw.ops.layer_norm(a + hidden, normal(20), normal(20)) + tw.ops.transpose(
                tw.ops.gelu(turned), permutation=[1, 0]
            )

        return {"a": tw.ops.repeat(body, 2, x), "turned": turned + normal(6), "hidden": hidden + x}

    check(network, 5, x=(6, 20))


def test_a_loop_in_a_loop_and_one_over_a_computed_value() -> None:
    stacks = {"w": normal(2, 3, 8, 8) / 3, "b": normal(2, 3, 8)}

    def layer(y: Any, w: Any, b: Any) -> Any:
        return y @ w + b

    def block(y: Any, w: Any, b: Any) -> Any:
        return tw.ops.l2_normalize(tw.ops.repeat(layer, 3, y, {"w": w, "b": b}))

    def network(x: Any, parts: Any) -> Any:
        y = tw.ops.repeat(block, 2, x, stacks)
        return {"y": tw.ops.repeat(lambda y, part: tw.ops.gelu(y) + part, 3, y, {"part": parts + parts})}

    check(network, 3, x=(5, 8), parts=(3, 5, 8))


def test_values_that_are_outputs_under_several_shapes_stay_whole() -> None:
    w = normal(12, 32) / 4

    def network(x: Any) -> Any:
        y = x @ w
        flat = tw.ops.reshape(y, shape=[2, 3, 32])
        half = tw.ops.slice(y, axis=1, start=16, stop=32)
        return {
            "input": tw.ops.reshape(x, shape=[2, 3, 12]),
            "some": tw.ops.slice(x, axis=1, start=0, stop=5),
            "flat": flat,
            "half": half,
            "after": tw.ops.gelu(tw.ops.gelu(flat)),
            "other": tw.ops.softmax(half),
        }

    check(network, 4, x=(6, 12))


def test_one_constant_in_many_roles() -> None:
    c = normal(2, 16, 16) / 4

    def body(y: Any, w: Any) -> Any:
        return tw.ops.layer_norm(tw.ops.matmul(y @ w, w, transpose_b=True) + w, c[0, 0], c[0, 1]) + y

    def network(x: Any) -> Any:
        y = tw.ops.repeat(body, 2, x, {"w": c})
        y = tw.ops.concat(y + c, c, axis=1)
        return {
            "y": tw.ops.attention(y, c, c, heads=2),
            "z": x @ tw.ops.gelu(tw.ops.transpose(c[0], permutation=[1, 0])),
        }

    check(network, 7, x=(16, 16))


def test_weights_of_joined_products_walk_alike_or_not_at_all() -> None:
    fixed, bias = normal(16, 16) / 4, normal(16)
    stacks = {"w": normal(3, 16, 16) / 4, "b": normal(3, 16), "g": normal(3, 16)}

    def body(y: Any, w: Any, b: Any, g: Any) -> Any:
        parts = (y @ w + b) + (y @ fixed + b) + (y @ (fixed + fixed) + bias)
        return tw.ops.layer_norm(parts, g, bias)

    check(lambda x: {"y": tw.ops.repeat(body, 3, x, stacks)}, 9, x=(5, 16))


@pytest.mark.parametrize("tiles", [1, 7, 30])
def test_a_layer_norm_whose_scale_and_offset_are_computed(tiles: int) -> None:
    fixed = normal(40)

    def network(x: Any, g: Any, b: Any) -> Any:
        scaled = tw.ops.layer_norm(x, g, b)
        halves = tw.ops.layer_norm(tw.ops.gelu(scaled), tw.ops.gelu(g), fixed)
        return {"y": tw.ops.layer_norm(halves, fixed, b + fixed), "z": g + b}

    check(network, tiles, x=(6, 40), g=(40,), b=(40,))


def test_a_layer_norm_in_a_loop_that_scales_by_what_the_loop_carries() -> None:
    stacks = {"v": normal(3, 16)}

    def body(y: Any, g: Any, v: Any) -> Any:
        return tw.ops.layer_norm(y, g, v), tw.ops.gelu(g) + v

    def network(x: Any, g: Any) -> Any:
        y, _ = tw.ops.repeat(body, 3, (x, g), stacks)
        return {"y": y}

    check(network, 9, x=(5, 16), g=(16,))


def test_a_result_may_be_called_like_a_constant() -> None:
    w = normal(16, 16)
    check(lambda x: {"w": x @ w, "b": tw.ops.gelu(x)}, 3, x=(4, 16))


def test_refused_by_name_before_any_work() -> None:
    graph = tw.trace(lambda x: {"y": tw.ops.softmax(x), "z": tw.ops.gelu(x)}, x=tw.TensorType((3, 4)))
    with pytest.raises(UnsupportedError, match=r"1 thing.*\n.*softmax.*no plan for this operator in float32"):
        tw.compile(graph, tiles=4, precision="float32")


def test_what_memory_held_before_does_not_reach_a_product() -> None:
    """Rows that only fill up a block hold what was there: here infinities; times zero they are no numbers."""
    w, narrow = normal(16, 16) / 4, normal(128, 16)

    def network(z: Any, x: Any) -> Any:
        gone = z @ narrow
        hidden = x @ w
        other = tw.ops.gelu(hidden)
        by_rows = tw.ops.matmul(hidden, hidden, transpose_b=True)
        return {
            "gone": gone,
            "a": tw.ops.attention(hidden, hidden, other, heads=1),
            "p": tw.ops.matmul(by_rows, other),
        }

    graph = tw.trace(network, z=tw.TensorType((440, 128)), x=tw.TensorType((7, 16)))
    inputs = {"z": np.full((440, 128), np.inf, np.float32), "x": normal(7, 16)}
    package = tw.compile(graph, tiles=1)
    with tw.open_device("sim", check=True) as device, tw.Session(device, package) as session:
        found = session.run(inputs)
    assert not np.isfinite(found["gone"]).any()
    expected = graph.evaluate({"z": np.zeros((440, 128), np.float32), "x": inputs["x"]})
    for name in ("a", "p"):
        np.testing.assert_allclose(found[name], expected[name], atol=0.02 * np.abs(expected[name]).max())


def test_too_many_turns_are_refused_by_name() -> None:
    graph = tw.trace(lambda x: {"y": tw.ops.matmul(x, x, transpose_b=True)}, x=tw.TensorType((2000, 4, 4)))
    with pytest.raises(UnsupportedError, match=r"matmul -> .* 2,000 products .* on 1 tiles"):
        tw.compile(graph, tiles=1)
