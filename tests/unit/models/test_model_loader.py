"""MODEL on the command line: every kind is found, every mistake is one line that names its place."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tilewright.errors import GraphError, MissingDependencyError, TilewrightError, UsageError
from tilewright.graph import print_graph, save_graph
from tilewright.models.loader import load_model

pytestmark = pytest.mark.unit

SOURCE = """\
from typing import Annotated
import numpy as np
import tilewright
from tilewright import TensorType, ops
from weights import scale

W = np.full((3, 2), scale, np.float32)

@tilewright.model(x=TensorType((4, 3)))
def decorated(x):
    return {"y": ops.gelu(x @ W)}

def annotated(x: TensorType((4, 3)), y: Annotated[np.ndarray, TensorType((2,))], factor=2):
    return x @ W + y

def bare(x):
    return x

def raising(x: TensorType((4, 3))):
    return x @ W + [
        1][2]

def misshapen(x: TensorType((4, 3))):
    return x @ W.T

number = 3
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "weights.py").write_text("scale = 0.5\n")
    path = tmp_path / "net.py"
    path.write_text(SOURCE)
    return path


def test_functions_of_a_file(source: Path) -> None:
    graph = load_model(f"{source}:decorated")
    assert graph.name == "decorated"
    assert graph.output_names == ["y"]
    assert graph.constants[0][0].name == "W"
    assert graph.operations[0].location == "net.py:11"
    assert [value.name for value in load_model(f"{source}:annotated").inputs] == ["x", "y"]
    assert str(source.parent) not in sys.path


def test_a_text_form(source: Path, tmp_path: Path) -> None:
    graph = load_model(f"{source}:decorated")
    save_graph(graph, tmp_path / "saved.graph")
    loaded = load_model(str(tmp_path / "saved.graph"))
    assert print_graph(loaded) == print_graph(graph)
    x = np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(loaded.evaluate({"x": x})["y"], graph.evaluate({"x": x})["y"])


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("absent", UsageError, "net.py: there is no function 'absent' (it defines decorated, annotated"),
        ("number", UsageError, "net.py: 'number' is no function"),
        ("bare", GraphError, "net.py: bare does not say what its input 'x' is"),
        ("raising", GraphError, "net.py:20: `return x @ W + [`: IndexError: list index out of range"),
        ("misshapen", GraphError, "net.py:24: `return x @ W.T`: matmul: inner extents 3 and 2 differ"),
    ],
)
def test_mistakes_in_functions(source: Path, name: str, kind: type[TilewrightError], message: str) -> None:
    with pytest.raises(kind) as caught:
        load_model(f"{source}:{name}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no function 'f' (it defines no function)"),
        ("def f(:\n", "bad.py:1: "),
        ("x = 1\nraise RuntimeError('no luck')\n", "bad.py:2: RuntimeError: no luck"),
        ("import sys\nsys.exit(3)\n", "bad.py:2: SystemExit: 3"),
        ("import not_there_at_all\n", "bad.py:1: ModuleNotFoundError"),
        ("f = '\x00'", "bad.py"),
    ],
)
def test_mistakes_in_files(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(TilewrightError) as caught:
        load_model(f"{tmp_path / 'bad.py'}:f")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("digit", "unknown model 'digit' (did you mean digits?)"),
        ("nothing", "unknown model 'nothing' (there is digits, minilm)"),
        ("absent.py:f", "absent.py: cannot read: No such file"),
        ("absent.py", "absent.py: which function of the file? (write absent.py:function)"),
        ("absent.graph", "absent.graph: cannot read"),
        ("model.onnx", "'model.onnx' names no model"),
        ("a:b", "'a:b' names no model"),
        ("digits:batch=8", "digits has no setting 'batch' (it has none)"),
        ("minilm:length=8", "minilm has no setting 'length' (it has batch, tokens)"),
        ("minilm:batch", "minilm:batch: 'batch' is no setting (write NAME=NUMBER, several with commas)"),
        ("minilm:batch=-1", "'batch=-1' is no setting"),
        ("minilm:batch=8,", "'' is no setting"),
        ("", "unknown model ''"),
    ],
)
def test_names_that_name_nothing(model: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_model(model)
    assert message in str(caught.value)


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingDependencyError, match=r"tilewright\[demo\]"):
        load_model("digits")
