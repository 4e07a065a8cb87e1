"""The contracts of pyproject.toml on who may import whom are kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter with the settings in `folder`."""
    tool = Path(sys.executable).with_name("lint-imports")
    return subprocess.run([tool, "--no-cache"], cwd=folder, capture_output=True, text=True)


def test_all_contracts_are_kept() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "0 broken" in done.stdout


def test_a_broken_contract_would_be_seen(tmp_path: Path) -> None:
    """The command line does import the compiler; a contract against it must fail."""
    (tmp_path / "pyproject.toml").write_text(
        '[tool.importlinter]\nroot_package = "tilewright"\n'
        '[[tool.importlinter.contracts]]\nname = "false"\ntype = "forbidden"\n'
        'source_modules = ["tilewright.cli"]\nforbidden_modules = ["tilewright.compiler"]\n'
    )
    done = lint(tmp_path)
    assert done.returncode != 0 and "1 broken" in done.stdout
