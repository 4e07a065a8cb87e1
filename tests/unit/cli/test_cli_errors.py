"""Every mistake on the command line: one line on standard error, the right exit status, nothing written."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tilewright.cli.console import settings
from tilewright.cli.main import app
from tilewright.graph import Graph, trace
from tilewright.tensor_type import TensorType

pytestmark = pytest.mark.unit

runner = CliRunner()


def run(*arguments: str) -> Any:
    return runner.invoke(app, list(arguments), prog_name="tilewright")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "error: no such command 'nope'"),
        (["complie"], "Did you mean 'compile'?"),
        (["--nope"], "error: no such option: --nope"),
        (["compile", "--zzz"], "error: no such option: --zzz (see 'tilewright compile --help')"),
        (["compile"], "error: missing argument 'MODEL'"),
        (["compile", "digits"], "error: missing option '--output'"),
        (["compile", "nothing", "-o", "out.ipuexe"], "error: unknown model 'nothing'"),
        (["compile", "absent.py:f", "-o", "out.ipuexe"], "error: absent.py: cannot read: No such file"),
        (["compile", "empty.graph", "-o", "out.ipuexe"], "error: empty.graph: the file is empty"),
        (["compile", "empty.py:f", "-o", "out.ipuexe"], "error: empty.py: there is no function 'f'"),
        (["compile", "bad.graph", "-o", "out.ipuexe"], "error: bad.graph:1:1: expected 'tilewright'"),
        (["compile", "wrong.py:f", "-o", "out.ipuexe"], "wrong.py:4: `return x @ np.ones((5, 5))`: matmul"),
        (["compile", "digits", "-o", "absent/out.ipuexe"], "error: absent: the folder does not exist"),
        (["compile", "digits", "-o", "."], "error: .: is a folder, not a file"),
        (["compile", "digits", "-o", "out.ipuexe", "--tiles", "0"], "error: invalid value for '--tiles'"),
        (["compile", "digits", "-o", "out.ipuexe", "--tiles", "1473"], "error: invalid value for '--tiles'"),
        (["compile", "digits", "-o", "out.ipuexe", "--tiles", "x"], "error: invalid value for '--tiles'"),
        (["demo"], "error: missing command (see 'tilewright demo --help')"),
        (["demo", "letters"], "error: no such command 'letters'"),
        (["demo", "digits", "--tiles", "-3"], "error: invalid value for '--tiles'"),
        (["--log-level", "loud", "devices"], "error: invalid value for '--log-level'"),
        (["run", "absent.ipuexe"], "error: absent.ipuexe: cannot read: No such file"),
        (["inspect", "absent"], "error: absent: cannot read: No such file"),
        (["inspect", "empty.graph"], "error: empty.graph"),
    ],
)
def test_mistakes(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.graph").touch()
    (tmp_path / "empty.py").touch()
    (tmp_path / "bad.graph").write_text("nonsense\n")
    (tmp_path / "wrong.py").write_text(
        "import numpy as np\nfrom tilewright import TensorType\n"
        "def f(x: TensorType((2, 3))):\n    return x @ np.ones((5, 5))\n"
    )
    before = sorted(path.name for path in tmp_path.iterdir())
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("error: ")
    assert result.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == before


def test_structured_errors() -> None:
    result = run("inspect", "absent", "--log-json")
    assert result.exit_code == 2
    record = json.loads(result.stderr)
    assert record["level"] == "error" and record["message"].startswith("absent: cannot read")
    assert {"time", "logger"} <= set(record)


def test_debug_shows_where() -> None:
    result = run("inspect", "absent", "--debug")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr and "error: absent: cannot read" in result.stderr


@pytest.mark.parametrize(
    ("raised", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (ZeroDivisionError("by\nzero"), 1, "error: a defect of Tilewright: ZeroDivisionError: by zero; "),
        (MemoryError(), 2, "error: this machine has not enough memory"),
    ],
)
def test_what_arises_inside(
    raised: BaseException, status: int, line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(model: str) -> None:
        raise raised

    monkeypatch.setattr("tilewright.models.loader.load_model", fail)
    output = tmp_path / "out.ipuexe"
    result = run("compile", "digits", "-o", str(output))
    assert result.exit_code == status
    assert result.stderr.startswith(line) and result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    command = "from tilewright.cli.main import main; main()"
    arguments = ("compile", "digits", "-o", str(tmp_path / "out.ipuexe"), "--log-level", "info", "--log-json")
    with subprocess.Popen([sys.executable, "-c", command, *arguments], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert json.loads(process.stderr.readline())["stage"] == "read the model"
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert json.loads(rest)["message"] == "interrupted"
    assert list(tmp_path.iterdir()) == []


def test_global_options_stand_anywhere() -> None:
    for arguments in (["--quiet", "devices"], ["devices", "--quiet"], ["devices", "--quiet", "--json"]):
        assert run(*arguments).exit_code == 0
        assert settings.quiet
    assert run("devices").exit_code == 0
    assert not settings.quiet
    assert run("devices", "--log-level", "debug", "--log-json").exit_code == 0
    assert run("devices", "--log-level=loud").exit_code == 2
    assert run("compile", "--", "--debug").exit_code == 2
    assert not settings.debug


def test_version_and_help() -> None:
    assert run("--version").stdout == "tilewright 0.1.0\n"
    bare = run()
    assert bare.exit_code == 0 and bare.stdout == run("--help").stdout
    for command in ("demo", "compile", "run", "inspect", "devices", "asm", "disasm", "link"):
        assert command in bare.stdout
        shown = run(command, "--help")
        assert shown.exit_code == 0 and "Example: tilewright" in shown.stdout
        assert all(len(line) <= 80 for line in shown.stdout.splitlines())


def test_an_interrupt_lost_in_a_callback_still_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    w = np.ones((16, 16), np.float32)
    graph = trace(lambda x: x @ w, x=TensorType((4, 16)))

    def swallowed(model: str) -> Graph:
        # What Python does with an exception in a destructor or in a callback from native code.
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return graph

    monkeypatch.setattr("tilewright.models.loader.load_model", swallowed)
    result = run("compile", "digits", "-o", str(tmp_path / "out.ipuexe"))
    assert result.exit_code == 130
    assert result.stderr == "interrupted\n"
    assert list(tmp_path.iterdir()) == []
