"""Every encodable form executes; the only exceptions are those that are the instruction's purpose."""

from __future__ import annotations

import numpy as np
import pytest
from tile_programs import DATA, DATA1

from tilewright.ipu21.isa import csrs
from tilewright.ipu21.isa.encode import encode
from tilewright.ipu21.isa.forms import FORMS, Form, Operand
from tilewright.ipu21.simulator.instruction_tables import instruction_tables
from tilewright.ipu21.simulator.stops import ExceptionKind, Stop, StopKind
from tilewright.ipu21.simulator.tile import Tile

pytestmark = pytest.mark.sim

ENTRY, WORKER, AFTER = 0x4C018, 0x4C058, 0x4C060
PAIR = (2, 3)
"""Registers that hold a packed triple of addresses in three elements."""
POINTER = 1
"""Holds an address that every access accepts."""
SMALL = 5
"""Holds a small offset, stride or delta."""


def main_register(form: Form, operand: Operand) -> int:
    if operand.kind == "mpair":
        return PAIR[0]
    name = operand.name
    if "Dst" in name and "Src" not in name:
        return 6
    if "Addr" in name or "Base" in name or form.mnemonic.startswith(("run", "br", "call")):
        return POINTER
    return SMALL


def choose(form: Form, operand: Operand) -> int:
    """An operand every instruction of its kind accepts."""
    if operand.kind.startswith("m"):
        return main_register(form, operand)
    if operand.is_register:
        destination = "Dst" in operand.name
        number = 0 if destination else 4
        if form.mnemonic == "ld2x64pace" and operand is form.operands[1]:
            number = 2
        return number
    if operand.kind == "word_address":
        return AFTER if form.mode != "supervisor" else ENTRY + 8
    if operand.names == "upper_csr":
        return csrs.TAS & 0xFF
    if form.mnemonic == "get" or form.mnemonic == "put":
        return csrs.DBG_DATA
    if form.mnemonic == "sync":
        return 2
    return operand.minimum if operand.minimum >= 0 else 0


def run_form(form: Form) -> Stop:
    """The form alone in a supervisor or a worker, on registers and memory that suit it."""
    tile = Tile(5)
    words = list(encode(form, *(choose(form, operand) for operand in form.operands)))
    back = encode("br $mSrc0", 15)
    leave = encode("exitz $mSrc0", 15)
    launch = [
        *encode("setzi $mDst0, zimm20", 0, WORKER),
        *encode("runall $mEntry0, $mVBase0, zimm16", 0, 15, 0),
        *encode("sync zimm4", 2),
        *back,
    ]
    in_worker = form.mode != "supervisor"
    code = launch if in_worker else [*words, *back, *back]
    body = [*words, *([*leave] * 4)] if in_worker else leave
    tile.write(ENTRY, np.array(code, dtype=np.uint32).tobytes())
    tile.write(WORKER, np.array(body, dtype=np.uint32).tobytes())
    for address in (DATA, DATA1, DATA1 + 0x8000):
        tile.load(address, bytes(256), 256)
    addresses = (DATA, DATA1 + 16, DATA1 + 0x8000)
    tile.m[:, PAIR[0]] = addresses[0] | (addresses[2] & 0x7FF) << 21
    tile.m[:, PAIR[1]] = addresses[1] | (addresses[2] >> 11) << 21
    tile.m[:, POINTER] = ENTRY + 8 if form.mnemonic == "br" and not in_worker else DATA1
    if form.mnemonic.startswith("run"):
        tile.m[0, POINTER] = WORKER
    if form.mnemonic in ("br", "call") and in_worker:
        tile.m[1:, POINTER] = AFTER
    tile.set_csr(csrs.CCCSLOAD, DATA1)
    tile.pc = ENTRY
    return tile.run(budget=1000)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.text.replace(" ", "_"))
def test_every_form_executes(form: Form) -> None:
    stop = run_form(form)
    if form.mnemonic == "trap":
        assert stop.exception is ExceptionKind.BREAKPOINT0, stop
    else:
        assert stop.kind is StopKind.ENDED, stop


def test_every_form_has_a_meaning() -> None:
    assert len(FORMS) == 368 and all(instruction_tables().simulated)
