"""Archives of `ar`: what is in them, and what a link takes of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tilewright.cli.main import app
from tilewright.errors import LinkError, ObjectError
from tilewright.ipu21.toolchain import LinkedImage, ObjectFile, assemble, link
from tilewright.ipu21.toolchain.archives import MAGIC, is_archive, read_archive
from tilewright.tile import TileProgram

pytestmark = pytest.mark.unit

START = ".globl start\nstart: call $m10, one\nbri start\n"
ONE = ".globl one\n.weak maybe\none: setzi $m0, maybe\nbri two\n"
TWO = ".globl two\n.globl maybe\ntwo: br $m10\nmaybe: nop\n"
OTHER = ".globl other, two\nother: nop\ntwo: trap 0\n"


def entry(name: str, data: bytes) -> bytes:
    """A member as the System V form has it."""
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n".encode()
    return header + data + b"\n" * (len(data) % 2)


def made(text: str) -> bytes:
    return assemble(text).to_bytes()


def sample() -> bytes:
    return (
        MAGIC
        + entry("/", b"index")
        + b"".join(
            entry(f"{name}/", made(text))
            for name, text in (("one.o", ONE), ("two.o", TWO), ("other.o", OTHER))
        )
    )


def test_members_are_taken_as_they_are_needed() -> None:
    objects = read_archive(sample(), name="lib.a")
    assert [item.name for item in objects] == ["lib.a(one.o)", "lib.a(two.o)", "lib.a(other.o)"]
    image = link([assemble(START)], libraries=[objects])
    assert set(image.symbols) == {"start", "one", "two", "maybe"}
    # A definition of the program comes first, and what it is not asked for stays out.
    own = assemble(".globl two\ntwo: nop\n")
    assert "maybe" not in link([assemble(START), own], libraries=[objects]).symbols
    assert set(link([], roots=["other"], libraries=[objects]).symbols) == {"other", "two"}
    first, _, last = objects
    both = link([assemble(START)], libraries=[[first, last], objects]).symbols
    assert "other" in both and "maybe" not in both


def test_archives_alone_need_a_root() -> None:
    with pytest.raises(LinkError, match="archives alone"):
        link([], libraries=[read_archive(sample())])


def test_a_program_from_an_archive(tmp_path: Path) -> None:
    (tmp_path / "lib.a").write_bytes(sample())
    (tmp_path / "start.S").write_text(START)
    program = TileProgram.from_files([tmp_path / "start.S", tmp_path / "lib.a"])
    assert "one" in program.symbols and "other" not in program.symbols
    assert "other" in TileProgram.from_files([tmp_path / "lib.a"], roots=["other"]).symbols


def test_the_command_line_takes_and_shows_archives(tmp_path: Path) -> None:
    (tmp_path / "lib.a").write_bytes(sample())
    (tmp_path / "start.S").write_text(START)
    library, source, image = (str(tmp_path / name) for name in ("lib.a", "start.S", "start.elf"))
    runner = CliRunner()
    assert runner.invoke(app, ["link", source, library, "-o", image, "--entry", "start"]).exit_code == 0
    assert "maybe" in LinkedImage.from_elf(Path(image).read_bytes()).symbols
    shown = json.loads(runner.invoke(app, ["inspect", library, "--json"]).stdout)
    assert [item["defines"] for item in shown["members"]] == [["one"], ["two", "maybe"], ["other", "two"]]
    assert "two.o" in runner.invoke(app, ["inspect", library]).stdout
    text = runner.invoke(app, ["disasm", library]).stdout
    assert [line for line in text.splitlines() if line.startswith("# ")] == [
        f"# {library}({name})" for name in ("one.o", "two.o", "other.o")
    ]
    (first, _, _) = read_archive(sample())
    part = text.split("\n# ")[0]
    assert assemble(part).section(".text").data == first.section(".text").data


@pytest.mark.skipif(shutil.which("ar") is None, reason="no ar to make one")
def test_an_archive_that_ar_made(tmp_path: Path) -> None:
    names = ["one.o", "a_name_of_more_than_sixteen_characters.o"]
    for name, text in zip(names, (ONE, TWO), strict=True):
        (tmp_path / name).write_bytes(made(text))
    subprocess.run(["ar", "rcs", "lib.a", *names], cwd=tmp_path, check=True, timeout=60)
    data = (tmp_path / "lib.a").read_bytes()
    assert is_archive(data)
    objects = read_archive(data, name="lib.a")
    assert [item.name for item in objects] == [f"lib.a({name})" for name in names]
    assert [item.section(".text").data for item in objects] == [
        ObjectFile.from_bytes(made(text)).section(".text").data for text in (ONE, TWO)
    ]
    subprocess.run(["ar", "rcsT", "thin.a", *names], cwd=tmp_path, check=True, timeout=60)
    with pytest.raises(ObjectError, match="thin archive"):
        read_archive((tmp_path / "thin.a").read_bytes())


def test_long_names_inside_members() -> None:
    name = b"a_name_of_more_than_sixteen_characters.o\0\0"
    (item,) = read_archive(MAGIC + entry(f"#1/{len(name)}", name + made(ONE)), name="lib.a")
    assert item.name == f"lib.a({name.decode().rstrip(chr(0))})"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (entry("a.o", b"text"), "no object"),
        (entry("a.o", link([assemble("nop")]).to_elf()), "linked already"),
        (entry("a.o", made(ONE))[:-20], "cut off"),
        (entry("a.o", made(ONE))[:50], "no member header"),
        (entry("a.o", made(ONE)).replace(b"`\n", b"  "), "no member header"),
        (b"a.o/".ljust(48) + b"many".ljust(10) + b"`\n", "no number"),
        (entry("/x", made(ONE)), "no number"),
    ],
)
def test_damage_is_named(data: bytes, message: str) -> None:
    with pytest.raises(ObjectError, match=message):
        read_archive(MAGIC + data)


@given(st.binary(max_size=200), st.integers(0, 400))
def test_no_bytes_are_trusted(noise: bytes, place: int) -> None:
    data = sample()
    place = min(place, len(data))
    try:
        read_archive(data[:place] + noise + data[place + len(noise) :])
    except ObjectError as error:
        assert str(error)
