"""The bridge to the vendor's compiler, with a script in its place."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tilewright.cli import popc as popc_cli
from tilewright.cli import toolchain
from tilewright.errors import MissingDependencyError, UsageError
from tilewright.ipu21.toolchain.inputs import object_of
from tilewright.ipu21.toolchain.popc import Popc, cache_folder

pytestmark = pytest.mark.unit

SCRIPT = """#!{python}
# Stands for popc: "preprocesses" lines that include a file, and makes an object of one function.
import re, sys
from pathlib import Path
arguments = sys.argv[1:]
Path({log!r}).open("a").write(" ".join(arguments) + "\\n")
if arguments == ["--version"]:
    print("fake popc {version}")
    sys.exit(0)
source = Path(next(item for item in arguments if item.endswith(".cpp")))
output = Path(arguments[arguments.index("-o") + 1])
text = re.sub(r'#include "(.*)"', lambda m: (source.parent / m[1]).read_text(), source.read_text())
if "error" in text:
    sys.exit("k.cpp:1: this is an error")
if "-E" in arguments:
    output.write_text(text)
    sys.exit(0)
from tilewright.ipu21.toolchain import assemble
output.write_bytes(assemble(".globl f\\nf: setzi $m0, " + text.strip() + "\\nbr $lr\\n").to_bytes())
"""


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "popc"
    write(path)
    (tmp_path / "k.cpp").write_text('#include "value.h"\n')
    (tmp_path / "value.h").write_text("7")
    return path


def write(path: Path, version: str = "3.3") -> None:
    path.write_text(SCRIPT.format(python=sys.executable, log=str(path.parent / "log"), version=version))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def calls(path: Path) -> list[str]:
    lines = (path.parent / "log").read_text().splitlines()
    return [line for line in lines if "-E" not in line and line != "--version"]


def test_results_are_kept_by_content(compiler: Path) -> None:
    source, header = compiler.parent / "k.cpp", compiler.parent / "value.h"

    def build(*flags: str) -> tuple[bool, str]:
        done = Popc(str(compiler)).compile(source, flags=flags, cache=cache_folder())
        return done.cached, done.object("k").section(".text").data[:4].hex()

    assert build() == (False, "07000019")
    assert build() == (True, "07000019")
    assert build("-O3") == (False, "07000019")
    header.write_text("9")  # only an included file changes
    assert build() == (False, "09000019")
    write(compiler, "3.4")  # another compiler
    assert build() == (False, "09000019") and build() == (True, "09000019")
    assert len(calls(compiler)) == 4
    assert all("--target=ipu21 -O" in call for call in calls(compiler))
    for kept in cache_folder().glob("*/archive.gp"):
        kept.write_bytes(b"damaged")
    assert build() == (False, "09000019")


def test_metadata_says_how_it_was_made(compiler: Path) -> None:
    source = compiler.parent / "k.cpp"
    done = Popc(str(compiler)).compile(source, flags=["-DX=1"], cache=cache_folder())
    assert (
        done.metadata["flags"] == ["-O2", "-DX=1"] and done.metadata["compiler"]["version"] == "fake popc 3.3"
    )
    again = Popc(str(compiler)).compile(source, flags=["-DX=1"], cache=cache_folder())
    assert again.cached and again.metadata == done.metadata and len(done.key) == 64


def test_faults(compiler: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = compiler.parent / "k.cpp"
    (compiler.parent / "value.h").write_text("error")
    with pytest.raises(UsageError, match="this is an error"):
        Popc(str(compiler)).compile(source)
    with pytest.raises(UsageError, match="cannot read"):
        Popc(str(compiler)).compile(compiler.parent / "nowhere.cpp")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingDependencyError, match=r"popc is needed .* not installed") as caught:
        Popc()
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="tilewright popc"):
        object_of(b"int main;", Path("k.cpp"))


def test_command(compiler: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer()
    popc_cli.register(app)
    toolchain.register(app)
    folder = compiler.parent
    monkeypatch.setenv("TILEWRIGHT_POPC", str(compiler))
    arguments = ["popc", str(folder / "k.cpp"), "-o", str(folder / "k.o"), "--json", "-O1", "-Wall"]
    report = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert report["cached"] is False and report["metadata"]["flags"] == ["-O1", "-Wall"]
    assert object_of((folder / "k.o").read_bytes(), folder / "k.o").symbol("f")
    assert json.loads(CliRunner().invoke(app, arguments).stdout)["cached"] is True
