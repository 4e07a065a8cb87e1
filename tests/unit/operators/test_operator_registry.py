"""Operators are found by name, and each brings everything an operator must have."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tilewright import ops
from tilewright.errors import GraphError, UnsupportedError
from tilewright.operators import operator, operator_names
from tilewright.tensor_type import TensorType

pytestmark = pytest.mark.unit

CASES: dict[str, tuple[tuple[int, ...], ...]] = {
    "matmul": ((2, 5, 3), (3, 7)),
    "add": ((4, 1, 3), (5, 1)),
    "gelu": ((3, 5),),
}
"""Operand shapes per operator, no two independent extents equal. A new operator must add its own."""


def test_every_operator_has_a_case() -> None:
    assert set(operator_names()) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_parts_agree(name: str) -> None:
    """Shape rule, reference and tolerance of one operator describe the same thing."""
    found = operator(name)
    generator = np.random.default_rng(3)
    arrays = [generator.standard_normal(shape).astype(np.float32) for shape in CASES[name]]
    attributes = found.resolve({})
    result = found.reference(attributes, *arrays)
    assert found.name == name and len(found.operands) == len(arrays)
    assert result.dtype == np.float32
    assert found.infer(attributes, *(TensorType(array.shape) for array in arrays)).shape == result.shape
    tolerance = found.tolerance(attributes, *arrays)
    assert tolerance.reason
    assert tolerance.violation(result.astype(np.float16), result) is None
    assert tolerance.violation(result + np.float32(10), result) is not None


@pytest.mark.parametrize("name", CASES)
def test_the_function_in_ops_is_the_operator(name: str) -> None:
    function: Any = getattr(ops, name)
    arrays = [np.ones(shape) for shape in CASES[name]]
    np.testing.assert_array_equal(
        function(*arrays), operator(name).reference({}, *(a.astype(np.float32) for a in arrays))
    )
    assert function.__doc__ and name in dir(ops)


def test_unknown_names_are_answered_with_what_there_is() -> None:
    with pytest.raises(UnsupportedError, match=r"unknown operator 'matmull' \(did you mean matmul\?\)"):
        operator("matmull")
    with pytest.raises(UnsupportedError, match="there are add, gelu, matmul"):
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
    with pytest.raises(UnsupportedError, match=r"gelu: approximate='none' is not supported \(use 'tanh'\)"):
        gelu.resolve({"approximate": "none"})
    with pytest.raises(GraphError, match="should be a string"):
        gelu.resolve({"approximate": True})


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
