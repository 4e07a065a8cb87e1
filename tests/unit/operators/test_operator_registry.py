"""Operators are found by name, and each brings everything an operator must have."""

from __future__ import annotations

import inspect
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import ops
from tilewright.errors import GraphError, UnsupportedError
from tilewright.operators import operator, operator_names
from tilewright.tensor_type import TensorType

pytestmark = pytest.mark.unit

CASES: dict[str, tuple[tuple[tuple[int, ...], ...], dict[str, Any]]] = {
    "matmul": (((2, 5, 3), (3, 7)), {}),
    "add": (((4, 1, 3), (5, 1)), {}),
    "gelu": (((3, 5),), {"approximate": "none"}),
    "layer_norm": (((2, 3, 5), (5,), (5,)), {"epsilon": 1e-3}),
    "softmax": (((2, 3, 5),), {}),
    "l2_normalize": (((2, 3, 5),), {}),
    "attention": (((2, 3, 8), (2, 5, 8), (2, 5, 12), (2, 5)), {"heads": 4, "scale": 0.5}),
    "reshape": (((2, 3, 10),), {"shape": (4, -1, 5)}),
    "transpose": (((2, 3, 5),), {"permutation": (2, 0, -2)}),
    "slice": (((2, 7, 5),), {"axis": 1, "start": 2, "stop": -1}),
    "concat": (((2, 3, 5), (2, 1, 5), (2, 4, 5)), {"axis": -2}),
}
"""Operand shapes and attributes per operator, no two independent numbers equal. A new one must add a case."""


def test_every_operator_has_a_case() -> None:
    assert set(operator_names()) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_parts_agree(name: str) -> None:
    """Shape rule, reference and tolerance of one operator describe the same thing."""
    found = operator(name)
    shapes, given = CASES[name]
    generator = np.random.default_rng(3)
    arrays = [generator.standard_normal(shape).astype(np.float32) for shape in shapes]
    types = [TensorType(shape) for shape in shapes]
    attributes, type_ = found.settle(found.resolve(given), *types)
    assert found.settle(attributes, *types) == (attributes, type_), "settling twice changes nothing"
    assert list(attributes) == [parameter.name for parameter in found.parameters]
    result = found.reference(attributes, *arrays)
    assert found.name == name and len(found.operand_names(len(arrays))) == len(arrays)
    assert result.dtype == np.float32 and type_.shape == result.shape
    assert not any(np.shares_memory(result, array) for array in arrays)
    tolerance = found.tolerance(attributes, *arrays)
    assert tolerance.reason
    assert tolerance.violation(result.astype(np.float16), result) is None
    assert tolerance.violation(result + np.float32(0.3), result) is not None
    assert np.all(np.isfinite(np.asarray(tolerance.absolute)))


@pytest.mark.parametrize("name", CASES)
def test_the_function_in_ops_is_the_operator(name: str) -> None:
    function: Any = getattr(ops, name)
    found = operator(name)
    shapes, given = CASES[name]
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    attributes, _ = found.settle(found.resolve(given), *(TensorType(shape) for shape in shapes))
    np.testing.assert_array_equal(function(*arrays, **given), found.reference(attributes, *arrays))
    assert function.__doc__ and name in dir(ops)


@pytest.mark.parametrize("name", CASES)
def test_every_parameter_is_one_of_the_function(name: str) -> None:
    """The function in ops and the operator agree on names and defaults."""
    parameters = inspect.signature(getattr(ops, name)).parameters
    keywords = {p.name: p.default for p in parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY}
    assert list(keywords) == [parameter.name for parameter in operator(name).parameters]
    for parameter in operator(name).parameters:
        default = inspect.Parameter.empty if parameter.required else parameter.default
        assert keywords[parameter.name] == default
        assert parameter.default is not True, "the text form shows flags only when they are set"


def test_the_documentation_lists_operators_operands_and_parameters() -> None:
    text = (Path(__file__).parents[3] / "docs" / "graph-text.md").read_text()
    section = text[text.index("## Operators") : text.index("## Loops")]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert {row[0].strip("`") for row in rows} == set(operator_names())
    for name, operands, parameters, _ in rows:
        found = operator(name.strip("`"))
        assert tuple(re.findall(r"`(\w+)`", operands)) == found.operands
        for parameter in found.parameters:
            assert f"`{parameter.name}`" in parameters
            number = type(parameter.default) in (int, float) and not parameter.required
            assert not number or f"`{parameter.name}` = {parameter.default}" in parameters


def test_unknown_names_are_answered_with_what_there_is() -> None:
    with pytest.raises(UnsupportedError, match=r"unknown operator 'matmull' \(did you mean matmul\?\)"):
        operator("matmull")
    with pytest.raises(UnsupportedError, match="there are add, attention, concat, gelu"):
        operator("tolerance")
    with pytest.raises(AttributeError, match="no operator 'conv'"):
        _ = ops.conv


def test_parameters_are_checked_by_name() -> None:
    gelu = operator("gelu")
    assert gelu.resolve({}) == {"approximate": "tanh"}
    with pytest.raises(GraphError, match=r"gelu has no parameter 'aproximate' \(it takes approximate\)"):
        gelu.resolve({"aproximate": "tanh"})
    with pytest.raises(GraphError, match="matmul has no parameter 'transpose'"):
        operator("matmul").resolve({"transpose": True})
    with pytest.raises(GraphError, match=r"'sigmoid' means nothing \(use 'tanh', 'none'\)"):
        gelu.resolve({"approximate": "sigmoid"})
    with pytest.raises(GraphError, match="should be a string"):
        gelu.resolve({"approximate": True})


BAD_VALUES: list[tuple[str, dict[str, Any], str]] = [
    ("layer_norm", {"epsilon": math.nan}, "layer_norm: epsilon=nan is not a finite number"),
    ("layer_norm", {"epsilon": math.inf}, "epsilon=inf is not a finite number"),
    ("layer_norm", {"epsilon": 0.0}, "epsilon=0.0 should be at least 1e-18"),
    ("layer_norm", {"epsilon": "small"}, "should be a number"),
    ("layer_norm", {"epsilon": True}, "should be a number"),
    ("layer_norm", {"epsilon": np.ones(3)}, "should be a number"),
    ("attention", {}, "attention needs a value for heads"),
    ("attention", {"heads": 0}, "heads=0 should be at least 1"),
    ("attention", {"heads": 2.0}, "should be a whole number"),
    ("attention", {"heads": 2**70}, "is beyond 2\\^62"),
    ("attention", {"heads": 2, "scale": -1.0}, "scale=-1.0 should be at least 0"),
    ("attention", {"heads": 2, "scale": 10**400}, "is not a finite number"),
    ("attention", {"heads": 2, "causal": 1}, "should be true or false"),
    ("reshape", {"shape": (2, 3.0)}, "should be a tuple of whole numbers"),
    ("reshape", {"shape": (True,)}, "should be a tuple of whole numbers"),
    ("reshape", {"shape": "23"}, "should be a tuple of whole numbers"),
    ("reshape", {}, "reshape needs a value for shape"),
]


@pytest.mark.parametrize(("name", "attributes", "message"), BAD_VALUES)
def test_bad_values_are_named(name: str, attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        operator(name).resolve(attributes)


def test_numbers_of_numpy_and_whole_numbers_are_taken() -> None:
    resolved = operator("attention").resolve({"heads": np.int64(2), "scale": 1, "causal": np.bool_(True)})
    assert resolved == {"heads": 2, "scale": 1.0, "causal": True}
    assert [type(value) for value in resolved.values()] == [int, float, bool]
    shape = operator("reshape").resolve({"shape": [np.int32(2), 3]})["shape"]
    assert shape == (2, 3) and isinstance(shape, tuple) and type(shape[0]) is int


COUNTS: list[tuple[str, int, str]] = [
    ("matmul", 1, r"matmul takes 2 operands \(a, b\), got 1"),
    ("gelu", 2, r"gelu takes 1 operand \(x\), got 2"),
    ("attention", 2, r"attention takes operands \(q, k, v, mask=None\), got 2"),
    ("attention", 5, r"got 5"),
    ("concat", 0, r"concat takes operands \(part, \.\.\.\), got 0"),
]


@pytest.mark.parametrize(("name", "count", "message"), COUNTS)
def test_the_number_of_operands_is_checked(name: str, count: int, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        operator(name).operand_names(count)


def test_only_the_operator_asked_for_is_imported() -> None:
    script = (
        "import sys; from tilewright.operators import operator; operator('gelu');"
        "print([n for n in sorted(sys.modules) if n.startswith('tilewright.operators.')])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert "tilewright.operators.gelu" in printed
    assert "tilewright.operators.matmul" not in printed
