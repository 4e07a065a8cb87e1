"""The text form of loops: it says everything, and mistakes are placed exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_faults import check_damaged, check_mistake

from tilewright import ops
from tilewright.errors import TilewrightError
from tilewright.graph import load_graph, parse_graph, print_graph, save_graph, trace
from tilewright.tensor_type import TensorType

pytestmark = pytest.mark.unit

TEXT = """\
tilewright graph 1
graph layers {
  input %x : float32[3, 4]
  input %s : float32[4]
  constant %w : float32[2, 4, 4]
  %add_0 = add(%x, %s) : float32[3, 4]
  %repeat_0, %repeat_1 = repeat(%add_0, %s, %w, count=2) : float32[3, 4], float32[4]  @ "m.py:9" {
    carried %y : float32[3, 4]
    carried %t : float32[4]
    iterated %w_1 : float32[4, 4]
    %matmul_0 = matmul(%y, %w_1) : float32[3, 4]
    %add_1 = add(%t, %s) : float32[4]
    %repeat_2 = repeat(%matmul_0, count=3) : float32[3, 4] {
      carried %z : float32[3, 4]
      %add_2 = add(%z, %add_1) : float32[3, 4]
      next %add_2
    }
    next %repeat_2, %add_1
  }
  output y = %repeat_0
  output t = %repeat_1
}
"""
DATA = {"w": np.arange(32, dtype=np.float32).reshape(2, 4, 4) / 10}


def expected(x: Any, s: Any) -> tuple[Any, Any]:
    y, t = x + s, s
    for w in DATA["w"]:
        t = t + s
        y = y @ w + 3 * t
    return y, t


def test_the_text_is_the_graph() -> None:
    graph = parse_graph(TEXT, DATA)
    assert print_graph(graph) == TEXT
    x, s = np.ones((3, 4), np.float32), np.arange(4, dtype=np.float32)
    found = graph.evaluate({"x": x, "s": s})
    y, t = expected(x, s)
    np.testing.assert_allclose(found["y"], y, rtol=1e-5)
    np.testing.assert_allclose(found["t"], t, rtol=1e-6)


def test_tracing_gives_the_same_text() -> None:
    w = DATA["w"]

    def layers(x: Any, s: Any) -> Any:
        def body(y: Any, t: Any, w: Any) -> Any:
            y = y @ w
            t = t + s
            return ops.repeat(lambda z: z + t, 3, y), t

        y, t = ops.repeat(body, 2, (x + s, s), w)
        return {"y": y, "t": t}

    text = print_graph(trace(layers, x=TensorType((3, 4)), s=TensorType((4,))))
    plain = "\n".join(
        line.split("  @ ")[0] + (" {" if "@" in line and line[-1] == "{" else "") for line in text.split("\n")
    )
    want = TEXT.replace('  @ "m.py:9"', "")
    # The names of results are given when an operation is recorded: an inner loop's before the outer one's.
    for old, new in (
        ("%repeat_0, %repeat_1", "%repeat_1, %repeat_2"),
        ("%repeat_2 = repeat(%m", "%repeat_0 = repeat(%m"),
        ("next %repeat_2", "next %repeat_0"),
        ("y = %repeat_0", "y = %repeat_1"),
        ("t = %repeat_1", "t = %repeat_2"),
    ):
        want = want.replace(old, new)
    assert plain == want


def test_files_hold_loops(tmp_path: Path) -> None:
    save_graph(parse_graph(TEXT, DATA), tmp_path / "layers.graph")
    assert print_graph(load_graph(tmp_path / "layers.graph")) == TEXT


@given(
    st.integers(0, len(TEXT) - 1),
    st.sampled_from(['"', "(", "%", "}", "{", ",", "x", "\n", "9", "=", "@", ""]),
)
def test_damaged_text_is_placed_or_still_means_something(position: int, character: str) -> None:
    check_damaged(TEXT[:position] + character + TEXT[position + 1 :], DATA)


@given(
    st.integers(1, TEXT.count("\n") - 1), st.sampled_from(["", "}", "next %add_2", "carried %q : float32[4]"])
)
def test_exchanged_lines_are_placed_or_still_mean_something(line: int, other: str) -> None:
    lines = TEXT.split("\n")
    lines[line] = other
    check_damaged("\n".join(lines), DATA)


MISTAKES: list[tuple[str, str, str]] = [
    ("%w, count=2", "%w", "f:7:26: repeat needs a value for count"),
    (
        "count=2",
        "count=3",
        r"f:7:26: repeat: iterated value 0 is float32[2, 4, 4]; its leading extent should be 3",
    ),
    ("count=2", "count=0", "f:7:26: repeat: count=0 should be at least 1"),
    ("count=2", "times=2", "f:7:26: repeat has no parameter 'times' (it takes count)"),
    ("float32[4]  @", "float32[5]  @", "f:7:60: repeat gives float32[3, 4], float32[4], the text says"),
    (", float32[4]  @", "  @", "f:7:60: 2 values are defined, 1 types are stated"),
    ("(%add_0, %s, %w,", "(%add_0,", "f:7:26: 2 values are carried, 1 have an initial value"),
    ("%repeat_0, %repeat_1", "%repeat_0, %add_0", "f:7:14: %add_0 is defined twice"),
    ("%add_0 = add", "%add_0, %b = add", "f:6:11: add defines one value"),
    ('"m.py:9" {', '"m.py:9"', "f:7:97: expected '{', found the end of the line"),
    ("carried %t", "iterated %t", "f:9:5: expected carried, found 'iterated'"),
    (
        "carried %t : float32[4]",
        "carried %t : float32[5]",
        "f:9:13: 't' is float32[4], the text says float32[5]",
    ),
    ("    iterated %w_1 : float32[4, 4]\n", "", "f:10:5: expected iterated %name, found '%matmul_0'"),
    ("float32[4, 4]\n", "float32[4, 4]\n    iterated %v : float32[1]\n", "f:11:5: the loop has no further"),
    ("add(%t, %s)", "add(%t, %z)", "f:12:22: %z is not defined above"),
    ("output y = %repeat_0", "output y = %repeat_2", "f:20:14: %repeat_2 belongs to a loop above"),
    ("next %repeat_2, %add_1", "next %repeat_2", "f:18:5: repeat: 2 values are carried, the body gives 1"),
    ("next %repeat_2, %add_1", "next %repeat_2, %matmul_0", "f:18:5: repeat: carried value 1 enters"),
    ("next %repeat_2, %add_1", "next %repeat_2, %t", "f:2:1 (m.py:9): repeat: carried value 1 becomes 't'"),
    ("    next %repeat_2, %add_1\n", "", "f:18:3: expected %value or next, found '}'"),
]


@pytest.mark.parametrize(("before", "after", "message"), MISTAKES)
def test_mistakes_have_a_line_and_a_column(before: str, after: str, message: str) -> None:
    check_mistake(TEXT, DATA, before, after, message)


def test_nesting_is_bounded() -> None:
    depth = 40
    lines = ["tilewright graph 1", "graph deep {", "  input %x : float32[2]"]
    for level in range(depth):
        outer = f"a{level - 1}" if level else "x"
        lines.append(f"%r{level} = repeat(%{outer}, count=2) : float32[2] {{")
        lines.append(f"carried %a{level} : float32[2]")
    with pytest.raises(TilewrightError, match="f:36:8: loops nest deeper than 16"):
        parse_graph("\n".join(lines), {}, filename="f")
