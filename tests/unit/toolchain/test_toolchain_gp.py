"""`.gp` archives, packed by pycapnp's own packer."""

from __future__ import annotations

import json
from pathlib import Path

import capnp
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tilewright.cli import package
from tilewright.errors import ObjectError
from tilewright.ipu21.toolchain import assemble
from tilewright.ipu21.toolchain.capnp_message import unpack
from tilewright.ipu21.toolchain.gp import extract_object, is_gp, read_gp

pytestmark = pytest.mark.unit

SCHEMA = """@0xbf5147cbbecf40c1;
struct Archive { targets @0 :List(Target); }
struct Target { name @0 :Text; architecture @1 :Text; description @2 :Note; objects @3 :List(Data); }
struct Note { text @0 :Text; numbers @1 :List(UInt64); }
"""
ELF = assemble(".globl f\nf: nop\nbr $lr\n").to_bytes()


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> object:
    path = tmp_path_factory.mktemp("gp") / "archive.capnp"
    path.write_text(SCHEMA)
    return capnp.load(str(path))


def archive(schema: object, *targets: tuple[str, str, bytes], padding: int = 0) -> bytes:
    message = schema.Archive.new_message()  # type: ignore[attr-defined]
    entries = message.init("targets", len(targets))
    for entry, (name, architecture, elf) in zip(entries, targets, strict=True):
        entry.name, entry.architecture = name, architecture
        entry.description = {"text": "codelets", "numbers": list(range(padding))}
        entry.objects = [elf]
    return bytes(message.to_bytes_packed())


def flagged(flags: int) -> bytes:
    data = bytearray(ELF)
    data[36] = flags
    return bytes(data)


def test_the_best_target_is_taken(schema: object) -> None:
    data = archive(
        schema, ("ipu1", "ipu1", flagged(1)), ("ipu2:cpp", "ipu2", flagged(2)), ("ipu21:cpp", "ipu21", ELF),
        padding=3000,
    )  # fmt: skip
    assert is_gp(data) and not is_gp(ELF) and not is_gp(b"") and not is_gp(b"nop\n  nop\n")
    targets = read_gp(data)
    assert [target.architecture for target in targets] == ["ipu1", "ipu2", "ipu21"]
    assert targets[2].elf == ELF
    item = extract_object(data, name="k.gp")
    assert item.architecture == "ipu21" and item.name == "k.gp(ipu21:cpp)"
    assert item.section(".text").data.hex() == "0000e0190000a043"
    assert extract_object(data, target="ipu2").architecture == "ipu2"
    with pytest.raises(ObjectError, match="no target ipu3"):
        extract_object(data, target="ipu3")
    with pytest.raises(ObjectError, match=r"runs on ipu21.*ipu1"):
        extract_object(archive(schema, ("ipu1", "ipu1", flagged(1))))


def test_big_archives_spread_over_segments(schema: object) -> None:
    # Many additions make pycapnp open further segments, which are reached by far pointers.
    data = archive(schema, *[(f"t{index}", "ipu2", ELF) for index in range(40)], padding=500)
    segments = int.from_bytes(unpack(data, name="x")[:4], "little") + 1
    assert segments > 1 and len(read_gp(data)) == 40


def test_what_is_no_archive(schema: object) -> None:
    data = archive(schema, ("ipu2", "ipu2", ELF))
    with pytest.raises(ObjectError, match="no ELF"):
        read_gp(archive(schema, ("ipu2", "ipu2", b"MZ")))
    with pytest.raises(ObjectError, match="no target"):
        read_gp(archive(schema))
    for size in range(0, len(data), 7):
        with pytest.raises(ObjectError):
            read_gp(data[:size])
    # Each of these two bytes stands for 256 zero words: a small file must not become a large one.
    with pytest.raises(ObjectError, match="over 33554432 words"):
        unpack(b"\0\xff" * 200_000, name="bomb")


@given(st.data())
def test_damaged_archives_are_refused_or_read(schema: object, data: st.DataObject) -> None:
    content = bytearray(archive(schema, ("ipu2", "ipu2", ELF), ("ipu21", "ipu21", ELF), padding=20))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        targets = read_gp(bytes(content))
    except ObjectError:
        return
    assert sum(len(target.elf) for target in targets) < 100_000


@given(st.binary(max_size=300))
def test_any_bytes_unpack_or_are_refused(data: bytes) -> None:
    try:
        unpacked = unpack(data, name="x", words=4096)
    except ObjectError:
        return
    assert len(unpacked) % 8 == 0


def test_inspect(schema: object, tmp_path: Path) -> None:
    app = typer.Typer()
    package.register(app)
    path = tmp_path / "k.gp"
    path.write_bytes(archive(schema, ("ipu1", "ipu1", flagged(1)), ("ipu21:cpp", "ipu21", ELF)))
    result = CliRunner().invoke(app, ["inspect", str(path), "--json"])
    report = json.loads(result.stdout)
    assert [item["usable"] for item in report["targets"]] == [False, True]
    assert report["targets"][1]["object"]["symbols"][-1]["name"] == "f"
    assert "ipu21:cpp" in CliRunner().invoke(app, ["inspect", str(path)]).stdout
