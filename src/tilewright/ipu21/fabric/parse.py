"""Reading rows: the inverse of composing, from words alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import ScheduleError
from ..isa.decode import InvalidInstruction, decode
from .items import FORMAT, MUX, MUXPAIR, POINTER, SEND, row_items

Item = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class ParsedRow:
    """A row as timed items (ROW_ITEM, sorted by event).

    `end` is the event at which it ends; `synchronised` tells whether its first word was its own barrier.
    """

    items: NDArray[np.void]
    end: int
    synchronised: bool


class _Reader:
    """State of one walk over a row: the event clock and the message being sent."""

    def __init__(self) -> None:
        self.now = 0
        self.items: list[Item] = []
        self.open = -1
        """Index of the SEND item that further words extend, if they follow at once; -1 for none."""
        self.stop = -1
        """Event after the last word sent."""
        self.next_address = 0
        self.control = 0

    def write(self, event: int, kind: int, value: int) -> None:
        self.items.append((event, kind, 0, 0, value))

    def send(self, count: int, address: int, control: int, *, extends: bool) -> None:
        """Words at the next `count` events; a direction of 0 sends nothing."""
        if control & 3:
            if extends and self.open >= 0 and self.stop == self.now:
                event, kind, _, words, value = self.items[self.open]
                self.items[self.open] = (event, kind, control, words + count, value)
            else:
                self.open = len(self.items)
                self.items.append((self.now, SEND, control, count, address))
            self.stop = self.now + count
            self.next_address = address + count * (8 if control & 4 else 4)
            self.control = control
        self.now += count


def _delay(reader: _Reader, operands: tuple[int, ...]) -> None:
    reader.now += operands[0] + 1


def _delaypic(reader: _Reader, operands: tuple[int, ...]) -> None:
    count, select, value = operands
    reader.now += count + 1
    reader.write(reader.now, FORMAT if select else POINTER, value if select else value << 2)


def _delayxpic(reader: _Reader, operands: tuple[int, ...]) -> None:
    count, select, value = operands
    reader.now += count + 1
    reader.write(reader.now, MUXPAIR if select else MUX, value)


def _send(reader: _Reader, operands: tuple[int, ...]) -> None:
    count, item, control = operands
    reader.send(count + 1, item << (3 if control & 4 else 2), control, extends=False)


def _sendoff(reader: _Reader, operands: tuple[int, ...]) -> None:
    count, delta, control = operands
    address = reader.next_address + delta * (8 if control & 4 else 4)
    extends = delta == 0 and control == reader.control
    reader.send(count + 1, address, control, extends=extends)


def _sendpic(reader: _Reader, operands: tuple[int, ...]) -> None:
    count, select, value = operands
    kind = (MUX, MUXPAIR, POINTER, FORMAT)[select]
    reader.write(reader.now + 1, kind, value << 2 if kind == POINTER else value)
    reader.send(count + 1, reader.next_address, reader.control, extends=True)


def _sendpicp(reader: _Reader, operands: tuple[int, ...]) -> None:
    count, item, control, pointer_select, mux_select, mux, pointer = operands
    reader.write(reader.now + 1, MUXPAIR if mux_select else MUX, mux)
    reader.write(
        reader.now + 1, FORMAT if pointer_select else POINTER, pointer if pointer_select else pointer << 2
    )
    address = item << (3 if control & 4 else 2)
    extends = address == reader.next_address and control == reader.control
    reader.send(count + 1, address, control, extends=extends)


_MEANING: dict[str, Callable[[_Reader, tuple[int, ...]], None]] = {
    "delay": _delay,
    "delaypic": _delaypic,
    "delayxpic": _delayxpic,
    "send": _send,
    "sendoff": _sendoff,
    "sendpic": _sendpic,
    "sendpicp": _sendpicp,
}


def parse_row(words: NDArray[np.uint32], *, tile: int | None = None) -> ParsedRow:
    """Timed items of a row's words.

    A leading `sync 3` costs no event: event 0 follows it. Words of one message in several instructions become
    one SEND item.

    Raises:
        ScheduleError: a word that does not belong in a row, a `sendpicp` at an odd word, no final `br $m10`.
    """
    place = "" if tile is None else f"tile {tile}, "
    reader = _Reader()
    synchronised = False
    at = 0
    listed = [int(word) for word in words]
    while at < len(listed):
        where = f"{place}word {at}, event {reader.now}"
        try:
            instruction = decode(listed[at], listed[at + 1] if at + 1 < len(listed) else 0)
        except InvalidInstruction as error:
            raise ScheduleError(f"{listed[at]:#010x} is no instruction", where=where) from error
        mnemonic = instruction.form.mnemonic
        if mnemonic == "br" and instruction.operands == (10,) and at == len(listed) - 1:
            return ParsedRow(row_items(reader.items), reader.now, synchronised)
        if mnemonic == "sync" and instruction.operands == (3,) and at == 0:
            synchronised = True
            at += 1
            continue
        meaning = _MEANING.get(mnemonic)
        if meaning is None:
            raise ScheduleError(f"{mnemonic} does not belong in a row", where=where)
        if instruction.form.words == 2 and (at % 2 or at + 1 == len(listed)):
            raise ScheduleError(f"{mnemonic} must begin at an even word of its row", where=where)
        meaning(reader, instruction.operands)
        at += instruction.form.words
    raise ScheduleError("the row does not end with br $m10", where=f"{place}event {reader.now}")
