"""The commands `asm`, `disasm` and `link`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tilewright.cli import toolchain
from tilewright.errors import AssemblyError, LinkError, ObjectError, UsageError
from tilewright.ipu21.toolchain import LinkedImage, ObjectFile, assemble

pytestmark = pytest.mark.unit

SOURCE = ".globl f\nf: setzi $m0, ROWS\nbr $lr\n.data\n.globl d\nd: .long f\n"


@pytest.fixture
def app() -> typer.Typer:
    result = typer.Typer()
    toolchain.register(result)
    return result


def run(app: typer.Typer, *arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(item) for item in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_from_source_to_image(app: typer.Typer, tmp_path: Path) -> None:
    source, item, image = tmp_path / "f.S", tmp_path / "f.o", tmp_path / "f.elf"
    source.write_text(SOURCE)
    run(app, "asm", source, "-o", item, "-D", "ROWS=0x40")
    assert (
        ObjectFile.from_bytes(item.read_bytes(), name=str(source)).section(".text").data[:4].hex()
        == "40000019"
    )
    text = run(app, "disasm", item)
    assert "setzi $m0, 64" in text
    report = json.loads(run(app, "link", item, "-o", image, "--entry", "f", "--root", "d", "--json"))
    linked = LinkedImage.from_elf(image.read_bytes())
    assert report["entry"] == linked.entry == 0x4C010
    assert report["symbols"] == linked.symbols == {"f": 0x4C010, "d": 0x4C018}
    assert [segment["flags"] for segment in report["segments"]] == ["rx", "rw"]
    assert "br $m10" in run(app, "disasm", image)


def test_regions_and_externals(app: typer.Typer, tmp_path: Path) -> None:
    item, image = tmp_path / "f.o", tmp_path / "f.elf"
    item.write_bytes(assemble("bri g\n.data\n.long 1").to_bytes())
    run(
        app, "link", item, "-o", image, "--region", "0x50000:0x50100", "--data-region", "0x80000:0x80010",
        "--external", "g=0x4d000",
    )  # fmt: skip
    linked = LinkedImage.from_elf(image.read_bytes())
    assert [segment.address for segment in linked.segments] == [0x50000, 0x80000]
    assert linked.segments[0].data.hex() == "00348140"


def test_raw_words(app: typer.Typer, tmp_path: Path) -> None:
    path = tmp_path / "words.bin"
    path.write_bytes(bytes.fromhex("0000e019"))
    assert "nop" in run(app, "disasm", path, "--raw", "--address", "0x4c010")
    with pytest.raises(UsageError, match="--raw"):
        run(app, "disasm", path)


def test_nothing_is_written_on_error(app: typer.Typer, tmp_path: Path) -> None:
    source, output = tmp_path / "bad.S", tmp_path / "bad.o"
    source.write_text("addd $m0\nbri .Lx\n")
    with pytest.raises(AssemblyError, match=r"(?s)bad\.S:1:1: .*bad\.S:2:5: "):
        run(app, "asm", source, "-o", output)
    assert not output.exists()
    item = tmp_path / "u.o"
    item.write_bytes(assemble("bri nowhere").to_bytes())
    with pytest.raises(LinkError, match="nowhere"):
        run(app, "link", item, "-o", output)
    assert not output.exists()
    item.write_bytes(item.read_bytes()[:100])
    with pytest.raises(ObjectError, match=r"u\.o"):
        run(app, "link", item, "-o", output)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-D", "1x=2"], "no name"),
        (["-D", "=two"], "no name"),
    ],
)
def test_bad_options(app: typer.Typer, tmp_path: Path, arguments: list[str], message: str) -> None:
    source = tmp_path / "f.S"
    source.write_text("nop\n")
    with pytest.raises(UsageError, match=message):
        run(app, "asm", source, "-o", tmp_path / "f.o", *arguments)


def test_source_that_is_no_text(app: typer.Typer, tmp_path: Path) -> None:
    source = tmp_path / "f.S"
    source.write_bytes(b"nop\n\xff")
    with pytest.raises(UsageError, match="byte 4 is not UTF-8"):
        run(app, "asm", source, "-o", tmp_path / "f.o")


@pytest.mark.parametrize("command", ["asm", "disasm", "link"])
def test_help_has_an_example(app: typer.Typer, command: str) -> None:
    assert f"Example: tilewright {command}" in run(app, command, "--help")


def test_outputs_never_replace_inputs(app: typer.Typer, tmp_path: Path) -> None:
    source = tmp_path / "k.S"
    source.write_text("f: br $lr\n")
    for command in ("asm", "link"):
        with pytest.raises(UsageError, match=r"k\.S: the output would replace this input"):
            run(app, command, source, "-o", tmp_path / "." / "k.S")
    assert source.read_text() == "f: br $lr\n"


def test_addresses_are_for_raw_code(app: typer.Typer, tmp_path: Path) -> None:
    code = tmp_path / "k.bin"
    code.write_bytes(bytes.fromhex("0000e019"))
    assert "# 4c010: 19e00000" in run(app, "disasm", code, "--raw", "--address", "0x4c010")
    for arguments, message in (
        (["--raw", "--address", "6"], "0x6 is no address of an instruction"),
        (["--raw", "--address=-4"], "no address of an instruction"),
        (["--address", "0"], "--address is for --raw"),
    ):
        with pytest.raises(UsageError, match=message):
            run(app, "disasm", code, *arguments)


def test_open_quotes_in_commands_are_told(app: typer.Typer, tmp_path: Path) -> None:
    source = tmp_path / "k.S"
    source.write_text("f: br $lr\n")
    with pytest.raises(UsageError, match="the preprocessor command has no end: no closing quotation"):
        run(app, "asm", source, "-o", tmp_path / "k.o", "--preprocessor", "gcc 'E")


def test_sources_are_linked_through_an_outside_preprocessor(app: typer.Typer, tmp_path: Path) -> None:
    source = tmp_path / "k.S"
    source.write_text("f: br $lr\n")
    with pytest.raises(UsageError, match="there is no command no-such-cpp"):
        run(app, "link", source, "-o", tmp_path / "k.elf", "--preprocessor", "no-such-cpp -E")
