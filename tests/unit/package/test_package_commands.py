"""The commands `run`, `inspect` and `devices`, in process, with a device that keeps the protocol."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from package_sample import make_package
from typer.testing import CliRunner

from tilewright import runtime
from tilewright.cli import package as commands
from tilewright.errors import BindingError, ObjectError, PackageError, TilewrightError, UsageError
from tilewright.ipu21.kernels import source_of
from tilewright.ipu21.toolchain import assemble, link
from tilewright.package import save_package, write_package
from tilewright.package.records import LINE, CodeLines

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))
from fake_device import FakeDevice

pytestmark = pytest.mark.unit

app = typer.Typer()
commands.register(app)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    save_package(make_package(), tmp_path / "p.ipuexe")
    np.save(tmp_path / "x.npy", np.arange(80, dtype=np.float32).reshape(4, 20))
    np.save(tmp_path / "k.npy", np.int32(3))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runtime, "open_device", lambda name, **options: FakeDevice(name))
    return tmp_path


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80"})
    if result.exception is not None:
        raise result.exception
    return result.stdout


INPUTS = ("--input", "x=x.npy", "--input", "k=k.npy")


def test_inspect_shows_the_source_of_a_kernel(folder: Path) -> None:
    package = make_package()
    package.lines = CodeLines(["add_f16.S"], np.array([(0x4C014, 0, 5), (0x4C018, 0, 7)], LINE))
    save_package(package, folder / "s.ipuexe")
    lines = invoke("inspect", "s.ipuexe", "--source", "add_f16").splitlines()
    assert len(lines) == len(source_of("add_f16").splitlines())
    assert lines[4].split()[:2] == ["5", "0x4c014"] and lines[6].split()[:2] == ["7", "0x4c018"]
    assert lines[5].endswith(source_of("add_f16").splitlines()[5].rstrip())
    few = json.loads(invoke("inspect", "s.ipuexe", "--source", "add_f16.S:7", "--json"))
    assert few["source"] == lines[:17]
    for wanted, text in (("add_f16:0", "no line"), ("gemm", "no code"), ("add_f16:x", "no line")):
        with pytest.raises(UsageError, match=text):
            invoke("inspect", "s.ipuexe", "--source", wanted)
    with pytest.raises(UsageError, match="this version has no kernel"):
        invoke("inspect", "p.ipuexe", "--source", "gemm")
    (folder / "k.o").write_bytes(assemble("nop").to_bytes())
    (folder / "k.gp").write_bytes(b"x")
    for file, kind in (("k.o", "an ELF file"), ("k.gp", "an archive of codelets")):
        with pytest.raises(UsageError, match=f"--source needs a package, this is {kind}"):
            invoke("inspect", file, "--source", "gemm")
    with pytest.raises(UsageError, match="two different views"):
        invoke("inspect", "s.ipuexe", "--source", "add_f16", "--tile", "0")


def test_run_writes_outputs(folder: Path) -> None:
    text = invoke("run", "p.ipuexe", *INPUTS, "--output", "y=y.npy")
    x = np.load("x.npy")
    np.testing.assert_array_equal(np.load("y.npy"), x[:, :16] + 3 + np.arange(320, dtype=np.float32).sum())
    assert "630 (0.42 us at 1.5 GHz)" in text and "float32[4, 16]" in text


def test_run_as_json(folder: Path) -> None:
    report = json.loads(invoke("run", "p.ipuexe", *INPUTS, "--json"))
    assert report["cycles"] == 630 and report["weight_bytes"] == 1024
    assert report["outputs"] == [{"name": "y", "dtype": "float32", "shape": [4, 16], "file": None}]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["--input", "x=x.npy"], BindingError, "input 'k' is missing"),
        ([*INPUTS, "--output", "z=z.npy"], BindingError, "no output 'z' .the package gives y"),
        ([*INPUTS, "--output", "y=none/y.npy"], UsageError, "no such folder"),
        (["--input", "x=k.npy", "--input", "k=k.npy"], BindingError, r"shape \[\] given, \[4, 20\] expected"),
        ([*INPUTS, "--input", "x=k.npy"], UsageError, "names 'x' twice"),
        (["--input", "x"], UsageError, "'x' is not NAME=FILE.npy"),
        (["--input", "x=missing.npy", "--input", "k=k.npy"], UsageError, "missing.npy: cannot read"),
        (["--input", "x=p.ipuexe", "--input", "k=k.npy"], UsageError, "p.ipuexe: not a .npy file"),
        (["--input", "x=evil.npy", "--input", "k=k.npy"], UsageError, "evil.npy: not a .npy file of plain"),
        (["--input", "x=many.npz", "--input", "k=k.npy"], UsageError, "an archive of arrays"),
        (["--input", "x=short.npy", "--input", "k=k.npy"], UsageError, "short.npy: not a .npy file"),
    ],
)
def test_run_refuses(folder: Path, arguments: list[str], error: type[TilewrightError], message: str) -> None:
    np.save("evil.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez("many.npz", x=np.zeros(3))
    Path("short.npy").write_bytes(Path("x.npy").read_bytes()[:-4])
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(error, match=message):
        invoke("run", "p.ipuexe", *arguments)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_failed_run_writes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str, **options: object) -> FakeDevice:
        device = FakeDevice(name)
        device.fail_at = 11
        return device

    monkeypatch.setattr(runtime, "open_device", broken)
    with pytest.raises(TilewrightError, match="caught fire"):
        invoke("run", "p.ipuexe", *INPUTS, "--output", "y=y.npy")
    assert not Path("y.npy").exists()


def test_inspect_package(folder: Path) -> None:
    text = invoke("inspect", "p.ipuexe")
    assert max(map(len, text.splitlines())) <= 80
    for part in ("float32[4, 20]", "float16 a16", "initialize", "gemm", "1,470", "0x12345678", "1,024"):
        assert part in text
    summary = json.loads(invoke("inspect", "p.ipuexe", "--json"))
    assert summary["digest"] in text
    assert summary["inputs"][0]["bytes"] == 160 and summary["inputs"][0]["padded_bytes"] == 256
    assert summary["images"][0]["code"] == 24 and summary["images"][1]["tiles"] == 1470
    assert summary["provisional"] == [{"address": 0x4C01C, "word": 0x12345678}]


def test_inspect_tile(folder: Path) -> None:
    text = invoke("inspect", "p.ipuexe", "--tile", "5")
    assert max(map(len, text.splitlines())) <= 80
    for part in ("0x4c010", "r-x", "2..3", "4 x 16"):
        assert part in text
    tile = json.loads(invoke("inspect", "p.ipuexe", "--tile", "5", "--json"))
    assert [part["binding"] for part in tile["slices"]] == ["x", "y"]
    assert [mark["name"] for mark in tile["marks"]] == ["inputs", "gemm", "outputs"]
    assert json.loads(invoke("inspect", "p.ipuexe", "--tile", "1", "--json"))["marks"] == []
    with pytest.raises(UsageError, match="there is no tile 1472"):
        invoke("inspect", "p.ipuexe", "--tile", "1472")


def test_inspect_long_lists_are_cut(folder: Path) -> None:
    package = make_package()
    name = "a.very.long.parameter.name." * 6
    for image in range(40):
        package.images.append(package.images[1])
        package.tiles[100 + image].image = 2 + image
    package.weights[0].name = name
    Path("long.ipuexe").write_bytes(write_package(package))
    text = invoke("inspect", "long.ipuexe")
    assert "... and 18 more" in text
    assert max(map(len, text.splitlines())) <= 80


def test_inspect_other_files(folder: Path) -> None:
    Path("text").write_text("hello, this is text")
    with pytest.raises(PackageError, match=r"text: not a package.*packages, ELF files.* can be shown"):
        invoke("inspect", "text")
    with pytest.raises(UsageError, match="missing: cannot read"):
        invoke("inspect", "missing")
    Path("elf").write_bytes(b"\x7fELF" + bytes(60))
    with pytest.raises(ObjectError, match="elf"):
        invoke("inspect", "elf")
    with pytest.raises(UsageError, match="--tile needs a package"):
        invoke("inspect", "elf", "--tile", "0")
    Path("codelets.gp").write_bytes(b"x")
    with pytest.raises(UsageError, match="--tile needs a package, this is an archive of codelets"):
        invoke("inspect", "codelets.gp", "--tile", "0")
    Path("archive").write_bytes(b"!<arch>\n")
    with pytest.raises(UsageError, match="--tile needs a package, this is an archive of objects"):
        invoke("inspect", "archive", "--tile", "0")


def test_inspect_object_and_image(folder: Path) -> None:
    content = assemble('.section .text.f, "ax"\n.globl f\n.type f, @function\nf:\n  br $m10\n')
    Path("f.o").write_bytes(content.to_bytes())
    text = invoke("inspect", "f.o")
    assert "relocatable object" in text and ".text.f" in text
    assert any(symbol["name"] == "f" for symbol in json.loads(invoke("inspect", "f.o", "--json"))["symbols"])
    Path("f.elf").write_bytes(
        link([content], intervals=[(0x5C000, 0x60000)], entry="f", roots=["f"]).to_elf()
    )
    text = invoke("inspect", "f.elf")
    assert "linked image" in text and "0x5c000" in text
    description = json.loads(invoke("inspect", "f.elf", "--json"))
    assert description["entry"] == 0x5C000 and description["segments"][0]["bytes"] >= 4


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "simulated IPU21" in invoke("devices")
    found = json.loads(invoke("devices", "--json"))
    assert found[0]["name"] == "sim" and found[0]["usable"] is True
