"""The command line starts fast because nothing heavy is imported before it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tilewright
from tilewright.cli.compile import CHIP_TILES
from tilewright.cli.options import EngineName
from tilewright.cli.sim import LAST_TILE
from tilewright.ipu21.machine.topology import TILES
from tilewright.ipu21.simulator.choice import REFERENCE, TRANSLATED
from tilewright.ipu21.simulator.device import PHYSICAL_IDS

pytestmark = pytest.mark.unit

HEAVY = ("numpy", "numba", "capnp", "zstandard", "sklearn", "scipy", "safetensors", "llvmlite", "tokenizers")


def modules_after(statement: str) -> set[str]:
    script = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n")[-2].split())


def test_the_probe_sees_imports() -> None:
    assert "numpy" in modules_after("import tilewright.graph")


def test_help_imports_nothing_heavy() -> None:
    loaded = modules_after(
        "from tilewright.cli.main import main\nsys.argv = ['tilewright', '--help']\n"
        "try: main()\nexcept SystemExit: pass"
    )
    assert "tilewright.cli.demo" in loaded
    assert not loaded & set(HEAVY)


def test_copies_of_facts_agree_with_them() -> None:
    assert set(EngineName) == {REFERENCE, TRANSLATED}
    assert LAST_TILE == PHYSICAL_IDS - 1


def test_the_package_is_lazy() -> None:
    assert not modules_after("import tilewright; tilewright.__version__") & set(HEAVY)
    for heavy, name in (("numba", "trace"), ("sklearn", "ops"), ("capnp", "compile")):
        assert heavy not in modules_after(f"import tilewright; tilewright.{name}")


def test_public_names() -> None:
    for name in ("trace", "TensorType", "ops", "compile", "model", "Graph", "Session", "open_device"):
        assert getattr(tilewright, name) is not None and name in dir(tilewright)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tilewright.nothing


def test_the_repeated_constant_is_the_machines() -> None:
    assert CHIP_TILES == TILES


def test_the_package_runs_as_a_module() -> None:
    words = [sys.executable, "-m", "tilewright", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"tilewright {tilewright.__version__}\n"
