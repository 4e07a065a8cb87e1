"""Learning encodings from an outside assembler: ours, with deliberately permuted encodings."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tilewright.cli import isa
from tilewright.errors import ObjectError, UsageError
from tilewright.ipu21.isa.enums import ENUMS, FLAG_FAMILIES
from tilewright.ipu21.isa.forms import FORMS, Form
from tilewright.ipu21.overlay import FormOverlay, Overlay, read_overlay
from tilewright.ipu21.toolchain import AssemblyFaults, ObjectFile, assemble
from tilewright.ipu21.toolchain.probe import OutsideAssembler, Refused, probe

pytestmark = pytest.mark.unit

COMMAND = f"{sys.executable} -c 'from tilewright.cli.main import main; main()' asm"


def permuted(seed: int) -> Overlay:
    """Opcodes and operand places exchanged among forms of equal shape, flag numbers shuffled."""
    chance = random.Random(seed)
    shapes: dict[object, list[Form]] = {}
    for form in FORMS:
        if form.words == 1:
            key = tuple((operand.kind, operand.pieces) for operand in form.operands)
            shapes.setdefault((key, form.coissue, form.flag_family), []).append(form)
    forms: dict[str, FormOverlay] = {}
    for group in shapes.values():
        fixed = [form.fixed for form in group]
        chance.shuffle(fixed)
        for form, word in zip(group, fixed, strict=True):
            places = [operand.pieces for operand in form.operands]
            single = [
                index for index, operand in enumerate(form.operands) if operand.kind in ("mreg", "areg")
            ]
            moved = [places[index] for index in single]
            chance.shuffle(moved)
            for index, pieces in zip(single, moved, strict=True):
                places[index] = pieces
            if word != form.fixed or places != [operand.pieces for operand in form.operands]:
                forms[form.text] = FormOverlay(word, tuple(places))
    constants = {}
    for family in sorted(FLAG_FAMILIES):
        names = list(ENUMS[family])
        if names:
            numbers = chance.sample(range(64), len(names))
            constants[family] = dict(zip(names, numbers, strict=True))
    return Overlay(forms=forms, constants=constants)


def ours(source: str) -> ObjectFile:
    try:
        return assemble(source)
    except AssemblyFaults as faults:
        raise Refused(str(faults)) from None


def test_our_own_assembler_agrees_with_itself() -> None:
    report = probe(ours)
    assert report.count("same") == len(FORMS) == 368
    assert not report.changed_flags and not report.refused and not report.contradictions
    assert not report.overlay().forms
    assert sum(len(values) for values in report.flags.values()) == sum(len(ENUMS[f]) for f in FLAG_FAMILIES)


def test_permuted_encodings_are_recovered(tmp_path: Path) -> None:
    secret = permuted(5)
    assert len(secret.forms) > 250
    path = tmp_path / "secret.json"
    secret.save(path)
    outside = OutsideAssembler(f"{COMMAND} --isa-overlay {path} {{input}} -o {{output}}")
    report = probe(outside.assemble, batch=400)
    found = report.overlay()
    assert report.count("differs") == len(secret.forms)
    assert found.forms == secret.forms
    assert found.constants == secret.constants and not report.contradictions


def test_an_overlay_is_used_by_tool_chain_and_listing(tmp_path: Path) -> None:
    secret = permuted(6)
    path, source, output = tmp_path / "secret.json", tmp_path / "k.S", tmp_path / "k.o"
    secret.save(path)
    text = "add $m3, $m4, $m5\nf16v4hihov4amp $a0:1, $a2:3, $a4:5, TAMP_F16V4_E4_P1\n"
    source.write_text(text)
    plain = assemble(text).section(".text").data
    subprocess.run(
        f"{COMMAND} --isa-overlay {path} {source} -o {output}", shell=True, check=True, capture_output=True
    )
    data = ObjectFile.from_bytes(output.read_bytes()).section(".text").data
    assert data != plain and len(data) == len(plain)
    flag = int.from_bytes(data[4:8], "little") & 63
    assert flag == secret.constants["TAMP_F16V4"]["TAMP_F16V4_E4_P1"]
    command = f"{COMMAND[:-4]} disasm --isa-overlay {path} {output}"
    listing = subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout
    assert "add $m3, $m4, $m5" in listing and "TAMP_F16V4_E4_P1" in listing


def test_what_an_assembler_does_not_take_is_told() -> None:
    def partial(source: str) -> ObjectFile:
        if "f16v4sihoamp" in source or "TSLIC_F16V4_1x4_W1" in source or "sans" in source:
            raise Refused("not on this machine")
        item = ours(source)
        section = item.section(".text.probe")
        data = bytearray(section.data)
        for symbol in item.symbols:
            word = int.from_bytes(data[symbol.value : symbol.value + 4], "little")
            if word >> 24 & 0x7F == 0x44 and word & 0xF0:
                data[symbol.value + 3] |= 0x80 if word & 0xF000 else 0  # depends on two operands at once
        section.data = bytes(data)
        return item

    report = probe(partial)
    verdicts = {item.form.text: item for item in report.findings}
    assert verdicts["sans zimm19"].verdict == "refused" and "this machine" in verdicts["sans zimm19"].text
    assert report.count("refused") == 1 + sum(form.mnemonic == "f16v4sihoamp" for form in FORMS)
    assert report.refused == {"TSLIC_F16V4_1x4_W1": "not on this machine"}
    assert verdicts["add $mDst0, $mSrc0, $mSrc1"].verdict in ("unexplained", "differs")
    assert report.overlay().refused["sans zimm19"] == "not on this machine"


def test_commands_that_cannot_work(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="empty"):
        OutsideAssembler(" ")
    with pytest.raises(UsageError, match=r"no \{output\}"):
        OutsideAssembler("as {input}")
    with pytest.raises(UsageError, match="cannot run"):
        OutsideAssembler("/nowhere/popc").assemble("nop")
    with pytest.raises(Refused, match="exit status 1"):
        OutsideAssembler("false").assemble("nop")
    script = tmp_path / "bad.sh"
    script.write_text("#!/bin/sh\necho garbage > $2\n")
    with pytest.raises(Refused, match="cannot be read"):
        OutsideAssembler(f"sh {script}").assemble("nop")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "no instruction set overlay"),
        ({"version": 2}, "version 2"),
        ({"forms": {"add": {"fixed": "0x1", "operands": [[[30, 4, 0]]]}}}, "malformed"),
        ({"forms": {"add": {"fixed": "x", "operands": []}}}, "malformed"),
        ({"constants": {"TAMP_F32": {"TAMP_F32_E4_P0": 300}}}, "malformed"),
        ({"constants": 3}, "malformed"),
    ],
)
def test_malformed_overlays(change: dict[str, object], message: str) -> None:
    value = json.loads(permuted(1).to_json()) | change
    with pytest.raises(ObjectError, match=message):
        read_overlay(json.dumps(value).encode())
    with pytest.raises(ObjectError, match="no JSON"):
        read_overlay(b"{")


def test_overlays_round_trip_and_come_first(tmp_path: Path) -> None:
    from tilewright.ipu21.overlay import use_overlay_file

    overlay = permuted(2)
    assert read_overlay(overlay.to_json().encode()) == overlay
    overlay.save(tmp_path / "o.json")
    with pytest.raises(UsageError, match="in use already"):
        use_overlay_file(tmp_path / "o.json")
    for wrong in (
        Overlay(forms={"nothing": FormOverlay(0, ())}),
        Overlay(constants={"TAMP_F32": {"TAMP_NEW": 1}}),
    ):
        from tilewright.ipu21.isa.table import original_table

        with pytest.raises(ObjectError, match="the table has no"):
            wrong.apply(original_table())


def test_command(tmp_path: Path) -> None:
    secret = permuted(7)
    path, found = tmp_path / "secret.json", tmp_path / "found.json"
    secret.save(path)
    app = typer.Typer()
    isa.register(app)
    outside = f"{COMMAND} --isa-overlay {path} {{input}} -o {{output}}"
    arguments = ["isa", "probe", "--assembler", outside, "--only", "xor", "--only", "f32sisoamp"]
    result = CliRunner().invoke(app, [*arguments, "-o", str(found), "--json"])
    report = json.loads(result.stdout)
    names = [form.text for form in FORMS if form.mnemonic in ("xor", "f32sisoamp")]
    assert report["forms"]["same"] + report["forms"]["differs"] == len(names)
    overlay = read_overlay(found.read_bytes())
    assert overlay.forms == {name: secret.forms[name] for name in names if name in secret.forms}
    assert overlay.constants == {"TAMP_F32": secret.constants["TAMP_F32"]}
    result = CliRunner().invoke(app, ["isa", "probe", "--assembler", "false"])
    assert isinstance(result.exception, UsageError) and "cannot assemble a nop" in str(result.exception)
