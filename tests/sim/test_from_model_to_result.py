"""The ways a user takes: the example, the command line, a notebook. All give what NumPy gives."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import ops
from tilewright.errors import BindingError, UnsupportedError
from tilewright.graph import save_graph
from tilewright.operators import operator

pytestmark = pytest.mark.sim

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "quickstart.py"


def tilewright(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    script = "from tilewright.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    printed = capsys.readouterr().out
    assert "simulated device cycles" in printed and "largest difference" in printed


def test_from_the_command_line(tmp_path: Path) -> None:
    """Two processes write the same package; a third runs it without the model."""
    packages = [tmp_path / name for name in ("one.ipuexe", "two.ipuexe")]
    reports: list[dict[str, Any]] = []
    for package in packages:
        done = tilewright("compile", f"{EXAMPLE}:network", "-o", str(package), "--tiles", "16", "--json")
        reports.append(json.loads(done.stdout))
    assert packages[0].read_bytes() == packages[1].read_bytes()
    assert reports[0]["digest"] == reports[1]["digest"]
    assert reports[0]["package_bytes"] == packages[0].stat().st_size
    x = np.random.default_rng(1).standard_normal((32, 64)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    arguments = ("run", str(packages[0]), "--check", "--input", f"x={tmp_path / 'x.npy'}")
    done = tilewright(*arguments, "--output", f"y={tmp_path / 'y.npy'}", "--json")
    assert json.loads(done.stdout)["cycles"] > 0
    expected = runpy.run_path(str(EXAMPLE))["network"](x)["y"]
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, atol=0.02 * np.max(np.abs(expected)))


def test_a_text_form_compiles_to_the_same_package(tmp_path: Path) -> None:
    graph = tw.trace(runpy.run_path(str(EXAMPLE))["network"], x=tw.TensorType((32, 64)))
    save_graph(graph, tmp_path / "network.graph")
    for model, name in ((f"{EXAMPLE}:network", "a"), (str(tmp_path / "network.graph"), "b")):
        tilewright("compile", model, "-o", str(tmp_path / name), "--tiles", "8")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("shape", [(1, 16, 16), (7, 13, 5), (33, 50, 17)])
def test_a_product_is_within_its_tolerance(shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    generator = np.random.default_rng(inner)
    a = generator.standard_normal((rows, inner)).astype(np.float32)
    b = generator.standard_normal((inner, columns)).astype(np.float32)
    package = tw.compile(tw.trace(lambda a: ops.matmul(a, b), a=tw.TensorType(a.shape)), tiles=4)
    with tw.open_device("sim") as device, tw.Session(device, package) as session:
        first = session.run({"a": a})["output"]
        np.testing.assert_array_equal(session.run({"a": a})["output"], first)
        with pytest.raises(BindingError):
            session.run({"a": a.T if rows != inner else a[:1]})
    tolerance = operator("matmul").tolerance({"transpose_b": False}, a, b, splits=4)
    assert tolerance.violation(first, ops.matmul(a, b)) is None


def test_wrong_input_is_one_line_and_nothing_is_written(tmp_path: Path) -> None:
    package = tmp_path / "network.ipuexe"
    tilewright("compile", f"{EXAMPLE}:network", "-o", str(package), "--tiles", "4", "--quiet")
    np.save(tmp_path / "x.npy", np.zeros((3, 3), np.float32))
    before = sorted(tmp_path.iterdir())
    done = tilewright(
        "run", str(package), "--input", f"x={tmp_path / 'x.npy'}", "--output", "y=y.npy", status=2
    )
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_a_product_of_two_inputs() -> None:
    types = {"a": tw.TensorType((4, 16)), "b": tw.TensorType((16, 8))}
    package = tw.compile(tw.trace(lambda a, b: a @ b, **types), tiles=4)
    generator = np.random.default_rng(0)
    arrays = {name: generator.standard_normal(t.shape).astype(np.float32) for name, t in types.items()}
    with tw.open_device("sim") as device, tw.Session(device, package) as session:
        found = session.run(arrays)["output"]
    tolerance = operator("matmul").tolerance({"transpose_b": False}, arrays["a"], arrays["b"], splits=4)
    assert tolerance.violation(found, arrays["a"] @ arrays["b"]) is None


ONE = np.ones(4, np.float32)


def test_everything_unsupported_is_listed_before_any_work() -> None:
    graph = tw.trace(lambda a: ops.softmax(ops.layer_norm(a, ONE, ONE)), a=tw.TensorType((4, 4)))
    listed = r"layer_norm.*test_from_model_to_result\.py:\d+.*\n.*softmax.*test_from_model_to_result\.py:\d+"
    with pytest.raises(UnsupportedError, match=listed):
        tw.compile(graph, tiles=4, precision="float32")
