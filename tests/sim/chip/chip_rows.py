"""A second, naive reading of exchange rows: words to item logs, and item logs to stored words, one at a time.

Written from the public field layout of the exchange instructions and from the route formula alone, so that it
can judge the fabric of the simulator; it uses nothing of it but the record types' field names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

ITEM = np.dtype(
    [("kind", "u1"), ("clock", "i8"), ("count", "u4"), ("value", "u4"), ("control", "u1"), ("pc", "u4")]
)
SEND, MUX, POINTER, FORMAT, MUX_PAIR = range(5)
NEUTRAL = 0x640


def items(*rows: tuple[int, int, int, int, int, int]) -> NDArray[np.void]:
    return np.array(list(rows), ITEM)


def read_row(
    words: Sequence[int], *, release: int = 0, pc: int = 0x5C000, incoming: int = 0, outgoing: int = 0
) -> tuple[NDArray[np.void], int]:
    """The items of a row whose first word issues at `release`, and the cycle of its `br`.

    A leading `sync 3` (41800003) is skipped: it is not part of the event clock.
    """
    log: list[tuple[int, int, int, int, int, int]] = []
    now, cursor, control = release, 0, 0
    index = 1 if words[0] == 0x41800003 else 0

    def control_write(at: int, mux: bool, selector: int, value: int) -> None:
        if mux:
            log.append((MUX_PAIR if selector else MUX, at, 0, value, 0, pc))
        elif selector:
            log.append((FORMAT, at, 0, value, 0, pc))
        else:
            log.append((POINTER, at, 0, (value << 2) + incoming, 0, pc))

    def send(count: int) -> None:
        nonlocal cursor
        if control & 3:
            log.append((SEND, now, count, cursor + outgoing, control, pc))
        cursor += count * (8 if control & 4 else 4)

    while True:
        word = words[index]
        pc += 4
        index += 1
        if word == 0x43A00000:
            return np.array(log, ITEM), now
        if word & 0xFFF80000 == 0x40A00000:
            now += (word & 0x7FFFF) + 1
        elif word & 0xFC000000 == 0x60000000:
            now += ((word >> 19) & 0x7F) + 1
            control_write(now, False, (word >> 18) & 1, word & 0x3FFFF)
        elif word & 0xFC000000 == 0x64000000:
            now += ((word >> 14) & 0xFFF) + 1
            control_write(now, True, (word >> 13) & 1, word & 0x1FFF)
        elif word & 0xF8000000 == 0x78000000:
            control = word & 7
            cursor = ((word >> 3) & 0x3FFFF) << (3 if control & 4 else 2)
            count = ((word >> 21) & 0x3F) + 1
            send(count)
            now += count
        elif word & 0xF8100000 == 0x70000000:
            control = word & 7
            cursor += ((word >> 3) & 0x7FF) << (3 if control & 4 else 2)
            count = (((word >> 21) & 0x3F) | ((word >> 14) & 0x3F) << 6) + 1
            send(count)
            now += count
        elif word & 0xF8100000 == 0x70100000:
            count = ((word >> 21) & 0x3F) + 1
            send(count)
            selector = (word >> 18) & 3
            control_write(now + 1, selector < 2, selector & 1, word & (0x1FFF if selector < 2 else 0x3FFFF))
            now += count
        elif word & 0xF0000000 == 0xF0000000:
            payload = words[index]
            index += 1
            pc += 4
            control = word & 7
            cursor = ((word >> 3) & 0x3FFFF) << (3 if control & 4 else 2)
            count = ((word >> 21) & 0x3F) + 1
            send(count)
            control_write(now + 1, True, payload >> 31, (payload >> 18) & 0x1FFF)
            control_write(now + 1, False, (word >> 27) & 1, payload & 0x3FFFF)
            now += count
        else:
            raise AssertionError(f"{word:#010x} is no word of a row")


def route(source: int, destination: int) -> tuple[int, int]:
    """(T, direction) from the published closed form, on plain integers."""

    def place(tile: int) -> tuple[int, int, int, int, int]:
        row, column = tile >> 6, tile >> 2 & 15
        return row, column // 8, column if column < 8 else 15 - column, tile & 1, tile >> 1 & 1

    rs, hs, ps, bs, _ = place(source)
    rd, hd, pd, bd, lane = place(destination)
    offset = (1, 2)[lane] if hd ^ bd == 0 else (5, 4)[lane]
    distance = 6 * (pd - ps - (hs ^ bs)) + offset
    base = -14 if hs == 1 and hd == 0 else -30
    time = (3 if hd else 5) * (ps - pd) + 2 * (rs - rd) + abs(distance) + base
    return time, 1 if distance >= 1 else 2


def stored_words(
    logs: Mapping[int, NDArray[np.void]],
    release: int,
    mux: Mapping[int, int] | None = None,
    pointers: Mapping[int, int] | None = None,
) -> list[tuple[int, int, int, int, int]]:
    """Every stored 32-bit word as (read cycle, source, read address, store cycle, destination, address).

    The definition, one word at a time, for ordinary sends; sorted by store cycle.
    """
    changes: dict[int, list[tuple[int, int]]] = {}
    writes: dict[int, list[tuple[int, int]]] = {}
    sends: dict[int, list[tuple[int, int, int]]] = {}
    for tile, log in logs.items():
        changes[tile] = [(release - 10**6, (mux or {}).get(tile, NEUTRAL))]
        writes[tile] = [(release - 10**6, (pointers or {}).get(tile, 0))]
        for item in log:
            at, value = int(item["clock"]), int(item["value"])
            if item["kind"] == MUX:
                changes[tile].append((at, value))
            elif item["kind"] == POINTER:
                writes[tile].append((at, value))
            elif item["kind"] == SEND:
                for k in range(int(item["count"])):
                    sends.setdefault(tile, []).append((at + k, value + 4 * k, int(item["control"])))
    heard = []
    for source, words in sends.items():
        for destination, history in changes.items():
            time, way = route(source, destination)
            for at, address, control in words:
                if not control & way:
                    continue
                selected = [value for when, value in history if when <= at + time + 1][-1]
                if selected == source:
                    stored = at + time + 1 + 52 + 2 * (destination >> 6)
                    heard.append((stored, destination, at, source, address))
    heard.sort()
    result = []
    cursor: dict[int, int] = {}
    latest: dict[int, int] = {}
    for stored, destination, at, source, address in heard:
        index, value = [(n, v) for n, (when, v) in enumerate(writes[destination]) if when <= stored][-1]
        if latest.get(destination) != index:
            latest[destination], cursor[destination] = index, value
        result.append((at, source, address, stored, destination, cursor[destination]))
        cursor[destination] += 4
    return result
