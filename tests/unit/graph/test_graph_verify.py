"""verify() finds each broken rule of a graph built by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tilewright.errors import BindingError, GraphError, TilewrightError
from tilewright.graph import Graph, Operation, Region, Value
from tilewright.tensor_type import TensorType

pytestmark = pytest.mark.unit

T = TensorType((2, 2))


def graph() -> Graph:
    x, w = Value(0, T, "x"), Value(1, T, "w")
    product, result = Value(2, T, "matmul_0"), Value(3, T, "gelu_0")
    return Graph(
        "g",
        Region(
            [x],
            [
                Operation("matmul", (x, w), (product,), {"transpose_b": False}, "m.py:3"),
                Operation("gelu", (product,), (result,), {"approximate": "tanh"}, "m.py:4"),
            ],
            [result],
        ),
        [(w, np.eye(2, dtype=np.float32))],
        ["y"],
    )


def test_a_good_graph_passes() -> None:
    graph().verify()


def change_operation(index: int, **changes: Any) -> Callable[[Graph], None]:
    def apply(g: Graph) -> None:
        g.operations[index] = replace(g.operations[index], **changes)

    return apply


def rename_input(g: Graph) -> None:
    g.body.arguments[0] = replace(g.inputs[0], name="no name")


def swap_operations(g: Graph) -> None:
    g.operations.reverse()


def wrong_result(g: Graph) -> None:
    old = g.operations[1]
    value = replace(old.result, type=TensorType((3, 3)))
    g.operations[1] = replace(old, results=(value,))
    g.body.results[0] = value


BROKEN: list[tuple[Callable[[Graph], None], str]] = [
    (rename_input, "input name 'no name' is not legal"),
    (swap_operations, "m.py:4: gelu uses 'matmul_0' before it is defined"),
    (wrong_result, r"m.py:4: gelu gives float32\[2, 2\], but 'gelu_0' is float32\[3, 3\]"),
    (change_operation(1, attributes={}), "m.py:4: gelu: attributes are not complete"),
    (change_operation(0, name="conv"), "m.py:3: unknown operator 'conv'"),
    (change_operation(0, results=()), "matmul has 0 results"),
    (change_operation(0, results=(Value(9, T, "z"),)), "'z' has id 9 where 2 is next"),
    (change_operation(0, results=(Value(2, T, "x"),)), "two values are called 'x'"),
    (lambda g: g.output_names.append("z"), "1 outputs have 2 names"),
    (lambda g: g.output_names.clear(), "1 outputs have 0 names"),
    (lambda g: g.body.results.append(Value(7, T, "q")) or g.output_names.append("q"), "no operation"),
    (
        lambda g: g.body.results.append(g.operations[0].result) or g.output_names.append("y"),
        "two outputs are called 'y'",
    ),
    (lambda g: g.output_names.__setitem__(0, "x"), "output 'x' is called like an input"),
    (
        lambda g: g.constants.__setitem__(0, (g.constants[0][0], np.eye(2))),
        r"declared float32\[2, 2\] but its data is float64",
    ),
]


@pytest.mark.parametrize(("damage", "message"), BROKEN)
def test_each_rule(damage: Callable[[Graph], None], message: str) -> None:
    broken = graph()
    damage(broken)
    with pytest.raises(TilewrightError, match=message):
        broken.verify()


def test_an_unused_input_is_refused() -> None:
    broken = graph()
    unused = Value(1, T, "u")
    broken.body.arguments.append(unused)
    with pytest.raises(GraphError):
        broken.verify()


def test_evaluation_checks_its_inputs() -> None:
    good = graph()
    x = np.ones((2, 2), np.float32)
    with pytest.raises(BindingError, match="input 'x' is missing"):
        good.evaluate({})
    with pytest.raises(BindingError, match="no input 'z'"):
        good.evaluate({"x": x, "z": x})
    with pytest.raises(BindingError, match=r"shape \(2, 3\)"):
        good.evaluate({"x": np.ones((2, 3))})


def loop_graph() -> Graph:
    x, w = Value(0, T, "x"), Value(1, TensorType((3, 2, 2)), "w")
    y, slice_, product = Value(2, T, "y"), Value(3, T, "w_i"), Value(4, T, "matmul_0")
    result, final = Value(5, T, "repeat_0"), Value(6, T, "gelu_0")
    region = Region(
        [y, slice_],
        [Operation("matmul", (y, slice_), (product,), {"transpose_b": False}, "m.py:5")],
        [product],
    )
    return Graph(
        "g",
        Region(
            [x],
            [
                Operation("repeat", (x, w), (result,), {"count": 3}, "m.py:3", (region,)),
                Operation("gelu", (result,), (final,), {"approximate": "tanh"}, "m.py:6"),
            ],
            [final],
        ),
        [(w, np.ones((3, 2, 2), np.float32))],
        ["z"],
    )


def test_a_good_loop_passes() -> None:
    loop_graph().verify()


def change_region(**changes: Any) -> Callable[[Graph], None]:
    def apply(g: Graph) -> None:
        region = replace(g.operations[0].regions[0], **changes)
        g.operations[0] = replace(g.operations[0], regions=(region,))

    return apply


def use_inner_value_outside(g: Graph) -> None:
    product = g.operations[0].regions[0].operations[0].result
    g.operations[1] = replace(g.operations[1], operands=(product,))


def grow_the_result(g: Graph) -> None:
    value = Value(5, TensorType((2, 3)), "repeat_0")
    g.operations[0] = replace(g.operations[0], results=(value,))


BROKEN_LOOPS: list[tuple[Callable[[Graph], None], str]] = [
    (change_operation(0, regions=()), "m.py:3: repeat has 0 regions"),
    (change_operation(1, regions=(Region(),)), "m.py:6: gelu is no loop but has a region"),
    (change_operation(0, attributes={}), "m.py:3: repeat needs a value for count"),
    (change_operation(0, attributes={"count": 3.0}), "should be a whole number"),
    (change_operation(0, attributes={"count": 2}), r"its leading extent should be 2"),
    (change_operation(0, operands=()), "a carried value has no initial value"),
    (change_operation(0, results=()), "nothing is carried"),
    (change_region(arguments=[]), r"arguments are none, they should be float32\[2, 2\], float32\[2, 2\]"),
    (change_region(results=[]), "1 values are carried, the body gives 0"),
    (change_region(operations=[]), "'matmul_0', not computed by the body"),
    (use_inner_value_outside, "m.py:6: gelu uses 'matmul_0' before it is defined or outside its loop"),
    (grow_the_result, r"repeat gives float32\[2, 2\], its results are float32\[2, 3\]"),
]


@pytest.mark.parametrize(("damage", "message"), BROKEN_LOOPS)
def test_each_rule_of_loops(damage: Callable[[Graph], None], message: str) -> None:
    broken = loop_graph()
    damage(broken)
    with pytest.raises(TilewrightError, match=message):
        broken.verify()
