"""The text form says all of a graph: reading what was written gives it back, mistakes are placed exactly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_faults import check_damaged, check_mistake

from tilewright import ops
from tilewright.errors import GraphError, UsageError
from tilewright.graph import Graph, load_graph, parse_graph, print_graph, save_graph, trace
from tilewright.tensor_type import TensorType

pytestmark = pytest.mark.unit

TEXT = """\
tilewright graph 1
graph small {
  input %x : float32[2, 3]
  constant %w : float32[3, 4]
  %matmul_0 = matmul(%x, %w) : float32[2, 4]  @ "model.py:7"
  %gelu_0 = gelu(%matmul_0, approximate="tanh") : float32[2, 4]
  output y = %gelu_0
}
"""
DATA = {"w": np.arange(12, dtype=np.float32).reshape(3, 4)}


def test_the_text_is_the_graph() -> None:
    graph = parse_graph(TEXT, DATA)
    assert print_graph(graph) == TEXT == str(graph)
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(graph.evaluate({"x": x})["y"], ops.gelu(x @ DATA["w"]))


def test_blank_lines_comments_and_defaults() -> None:
    loose = TEXT.replace(', approximate="tanh"', "").replace("\n", "  # remark\n\n\t")
    assert print_graph(parse_graph(loose, DATA)) == TEXT


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    steps = draw(st.lists(st.sampled_from(["matmul", "add", "gelu", "self"]), min_size=1, max_size=12))
    seed = draw(st.integers(0, 2**32 - 1))
    generator = np.random.default_rng(seed)

    def network(x: Any) -> Any:
        x = x + 0.25
        for step in steps:
            width = x.shape[-1]
            if step == "matmul":
                x = x @ generator.standard_normal((width, int(generator.integers(1, 5))))
            elif step == "add":
                x = x + generator.standard_normal(width)
            elif step == "gelu":
                x = ops.gelu(x)
            else:
                x = x + x
        return x

    return trace(network, x=TensorType((rows, columns)))


@given(graphs())
def test_any_graph_comes_back(graph: Graph) -> None:
    text = print_graph(graph)
    again = parse_graph(text, {value.name: array for value, array in graph.constants})
    assert print_graph(again) == text
    x = np.ones(graph.inputs[0].type.shape, np.float32)
    np.testing.assert_array_equal(again.evaluate({"x": x})["output"], graph.evaluate({"x": x})["output"])


@given(
    st.integers(0, len(TEXT) - 1), st.sampled_from(['"', "(", "%", "]", "x", "\n", "9", "=", "@", "é", ""])
)
def test_damaged_text_is_placed_or_still_means_something(position: int, character: str) -> None:
    check_damaged(TEXT[:position] + character + TEXT[position + 1 :], DATA)


MISTAKES: list[tuple[str, str, str]] = [
    ("tilewright graph 1", "tilewright graph 2", "f:1:18: version 2 of the text form is not known"),
    ("tilewright graph 1", "tensor graph 1", "f:1:1: expected 'tilewright', found 'tensor'"),
    ("float32[2, 3]", "float64[2, 3]", "f:3:14: element type 'float64'"),
    ("float32[2, 3]", "float32[2, 0]", "f:3:14: extent of axis 1 is 0"),
    ("float32[2, 3]", "float32[2 3]", "f:3:24: expected ']', found '3'"),
    ("float32[2, 3]", "float32[2, 3.5]", "f:3:25: expected an extent"),
    ("float32[2, 3]", f"float32[{'9' * 30}]", "f:3:22: expected an extent"),
    ("matmul(%x, %w)", "matmull(%x, %w)", "f:5:15: unknown operator 'matmull' (did you mean matmul?)"),
    ("matmul(%x, %w)", "matmul(%x, %v)", "f:5:26: %v is not defined above"),
    ("matmul(%x, %w)", "matmul(%x)", "f:5:15: matmul takes 2 operands (a, b), got 1"),
    ("matmul(%x, %w)", "matmul(%w, %x)", "f:5:15: matmul: inner extents 4 and 2 differ"),
    ("matmul(%x, %w)", "matmul(%x, %w", "f:5:29: expected ',', found ':'"),
    (
        "float32[2, 4]  @",
        "float32[2, 5]  @",
        "f:5:32: matmul gives float32[2, 4], the text says float32[2, 5]",
    ),
    ('"model.py:7"', '"model.py:7', "f:5:49: unexpected character"),
    ('="tanh"', '="sigmoid"', "f:6:13: gelu: approximate='sigmoid' means nothing"),
    ('"tanh"', "[1, 2", "f:6:46: expected ',', found ')'"),
    ('"tanh"', "[1, 2.5]", "f:6:45: expected a whole number, found '2.5'"),
    ('"tanh"', "[-1, +2]", "f:6:13: gelu: approximate=(-1, 2) should be a string"),
    ("gelu(%matmul_0,", "concat(%matmul_0, %matmul_0,", "f:6:13: concat has no parameter 'approximate'"),
    ('gelu(%matmul_0, approximate="tanh")', "slice(%matmul_0, axis=2)", "f:6:13: slice: there is no axis 2"),
    ('="tanh"', "=1", "f:6:13: gelu: approximate=1 should be a string"),
    ('approximate="tanh"', "axis=1", "f:6:13: gelu has no parameter 'axis'"),
    ('approximate="tanh"', 'approximate="tanh", approximate="tanh"', "is given twice"),
    ("%gelu_0 = gelu", "%matmul_0 = gelu", "f:6:3: %matmul_0 is defined twice"),
    ("output y = %gelu_0", "", "f:2:1: the graph has no output"),
    ("output y = %gelu_0", "output y = %x", "f:2:1: output 'y' is 'x', which no operation"),
    ("output y = %gelu_0", "output y = %gelu_0\n  input %z : float32[1]", "f:8:3: inputs come first"),
    ("}\n", "", "f:8:1: expected input, constant, output or %value, found the end of the file"),
    ("}\n", "}\nmore", "f:9:1: expected the end of the file, found 'more'"),
    ("constant %w", "constant %v", "f:4:12: no data for constant 'v'"),
]


@pytest.mark.parametrize(("before", "after", "message"), MISTAKES)
def test_mistakes_have_a_line_and_a_column(before: str, after: str, message: str) -> None:
    check_mistake(TEXT, DATA, before, after, message)


def write(folder: Path, text: str, tensors: Mapping[str, Any] | bytes) -> Path:
    from safetensors.numpy import save

    (folder / "small.graph").write_text(text)
    data = tensors if isinstance(tensors, bytes) else save(dict(tensors))
    (folder / "small.safetensors").write_bytes(data)
    return folder / "small.graph"


def test_files_come_back_and_are_the_same_twice(tmp_path: Path) -> None:
    graph = parse_graph(TEXT, DATA)
    for name in ("one.graph", "two.graph"):
        save_graph(graph, tmp_path / name)
    loaded = load_graph(tmp_path / "one.graph")
    assert print_graph(loaded) == TEXT
    np.testing.assert_array_equal(loaded.constants[0][1], DATA["w"])
    for suffix in (".graph", ".safetensors"):
        assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({}, "no tensor 'w'"),
        ({"w": np.zeros((4, 3), np.float32)}, r"holds float32\[4, 3\]"),
        ({"w": np.zeros((3, 4), np.float16)}, r"holds float16\[3, 4\]"),
        ({**DATA, "v": np.zeros(1, np.float32)}, "'v' is no constant"),
        (b"", "not a safetensors file"),
        (b"\xff" * 64, "not a safetensors file"),
    ],
)
def test_wrong_data_is_refused(tmp_path: Path, tensors: Any, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        load_graph(write(tmp_path, TEXT, tensors))


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read: No such file"):
        load_graph(tmp_path / "absent.graph")
    with pytest.raises(UsageError, match=r"ends in \.graph"):
        load_graph(tmp_path / "absent.txt")
    (tmp_path / "empty.graph").write_text("  \n")
    with pytest.raises(GraphError, match="the file is empty"):
        load_graph(tmp_path / "empty.graph")
    (tmp_path / "binary.graph").write_bytes(b"\xff\xfe")
    with pytest.raises(GraphError, match="not UTF-8 text at byte 0"):
        load_graph(tmp_path / "binary.graph")
    (tmp_path / "alone.graph").write_text(TEXT)
    with pytest.raises(UsageError, match=r"alone\.safetensors: cannot read"):
        load_graph(tmp_path / "alone.graph")
