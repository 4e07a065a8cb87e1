"""A row instruction by instruction: when each begins, what it is, what it does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fabric.items import FORMAT, MUX, MUXPAIR, POINTER, SEND
from ..fabric.parse import parse_row
from ..isa.decode import decode
from ..isa.text import format_instruction
from ..machine.topology import EAST, MUX_HOST_BASE, MUX_NEUTRAL, WEST

WAYS = {0: "nowhere", EAST: "east", WEST: "west", EAST | WEST: "both ways"}
FORMATS = ("32-bit words", "64-bit items from the east", "64-bit items from the west")


class RowLine(NamedTuple):
    """One instruction of a row.

    Attributes:
        address: of its first word. words: one or two.
        event: at which it begins. events: how long it takes; 0 for the return.
        text: the instruction. effects: what happens, each with its event where it is not the first.
    """

    address: int
    words: tuple[int, ...]
    event: int
    events: int
    text: str
    effects: tuple[str, ...]


def list_row(words: NDArray[np.uint32], address: int, *, tile: int | None = None) -> list[RowLine]:
    """The lines of a row at a byte address. Raises ScheduleError for words that are no row."""
    items = parse_row(words, tile=tile).items.tolist()
    sends = [item for item in items if item[1] == SEND]
    writes = [item for item in items if item[1] != SEND]
    lines: list[RowLine] = []
    listed, now, at = words.tolist(), 0, 0
    while at < len(listed):
        instruction = decode(listed[at], listed[at + 1] if at + 1 < len(listed) else 0)
        form = instruction.form
        # Every instruction of a row but barrier and return says first how many more events it takes.
        events = instruction.operands[0] + 1 if form.mnemonic not in ("sync", "br") else 0
        effects = [
            _sent(item, now, now + events) for item in sends if item[0] < now + events and now < _stop(item)
        ]
        effects += [_written(item) for item in writes if now < item[0] <= now + events]
        if form.mnemonic == "br":
            effects = ["end of the row"]
        elif form.mnemonic == "sync":
            effects = ["barrier; event 0 follows"]
        text = format_instruction(instruction, mode="supervisor")
        own = tuple(listed[at : at + form.words])
        lines.append(RowLine(address + 4 * at, own, now, events, text, tuple(effects)))
        now, at = now + events, at + form.words
    return lines


def _stop(item: tuple[int, int, int, int, int]) -> int:
    return item[0] + item[3]


def _sent(item: tuple[int, int, int, int, int], begin: int, end: int) -> str:
    event, _, control, count, address = item
    low, high = max(event, begin), min(event + count, end)
    size, unit = (8, "64-bit item") if control & 4 else (4, "word")
    place = address + size * (low - event)
    plural = "s" if high - low != 1 else ""
    return f"send {high - low} {unit}{plural} from {place:#x} {WAYS[control & 3]}"


def _written(item: tuple[int, int, int, int, int]) -> str:
    event, kind, _, _, value = item
    if kind == POINTER:
        what = f"store from {value:#x} on"
    elif kind == FORMAT:
        what = f"receive {FORMATS[value] if value < len(FORMATS) else f'format {value}'}"
    else:
        assert kind in (MUX, MUXPAIR)
        what = ("pair: " if kind == MUXPAIR else "") + _heard(value)
    return f"{event}: {what}"


def _heard(mux: int) -> str:
    if mux == MUX_NEUTRAL:
        return "listen to nobody"
    return f"listen to host input {mux - MUX_HOST_BASE}" if mux >= MUX_HOST_BASE else f"listen to tile {mux}"
