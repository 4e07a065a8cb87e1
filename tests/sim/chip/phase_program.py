"""Programs with one exchange phase, and rows for it from the closed formulas."""

from __future__ import annotations

from chip_rows import route
from worked_example import COMPLETION, Program, build, listing, words_to_bytes

from tilewright.package.records import Package

ROW = 0x5C000
SOURCE_DATA, TARGET_DATA = 0x60000, 0x68000

START = listing("""
4c010 19e00000
4c014 41800003 ; sync 3
4c018 41800002
4c01c 19000640
4c020 430080a0 ; INCOMING_MUX
4c024 43f080a7 ; OUTGOING_BASE
4c028 43f080a4 ; INCOMING_BASE
""")
END = listing("""
4c060 19000001
4c064 19158000
4c068 4f10f000 ; completion word
4c06c 44f0f301
4c070 43000000 ; end
""")


def active(*, incoming: int = 0, outgoing: int = 0, row_has_sync: bool = False) -> Program:
    """A tile with a row at ROW: bases, INCOMING_DCOUNT, `sync 3` (unless the row begins with it), the row."""
    return {
        **START,
        **END,
        **dict.fromkeys(range(0x4C02C, 0x4C060, 4), 0x19E00000),
        0x4C02C: 0x19800000 | incoming,
        0x4C030: 0x438080A4,
        0x4C034: 0x19800000 | outgoing,
        0x4C038: 0x438080A7,
        0x4C03C: 0x19800001,
        0x4C040: 0x438080A6,  # INCOMING_DCOUNT
        0x4C044: 0x19E00000 if row_has_sync else 0x41800003,
        0x4C048: 0x18A00000 | ROW >> 2,  # call the row
    }


ACTIVE = active()
BYSTANDER = {**START, **END, **dict.fromkeys(range(0x4C034, 0x4C060, 4), 0x19E00000), 0x4C02C: 0x40C00000}
BYSTANDER |= {0x4C030: 0x41800001}


def row(*words: int) -> bytes:
    return words_to_bytes([*words, 0x43A00000])


def wait_until(event: int) -> int:
    return 0x40A00000 | event - 1


def sender_row(event: int, count: int, way: int) -> bytes:
    return row(wait_until(event), 0x78000000 | count - 1 << 21 | SOURCE_DATA // 4 << 3 | way)


def receiver_row(source: int, destination: int, event: int, count: int) -> bytes:
    """Mux at X, pointer at P, neutral at X + count or, if the pointer needs that event, one later."""
    x = event + route(source, destination)[0] + 1
    p = x + 52 + 2 * (destination >> 6)
    neutral = x + count + (x + count == p)
    words = [0x64000000 | x - 1 << 14 | source]
    now = x
    for at, pointer in sorted(((neutral, False), (p, True))):
        wait = at - now - 1
        words.append(0x60000000 | wait << 19 | TARGET_DATA // 4 if pointer else 0x64000640 | wait << 14)
        now = at
    return row(*words, wait_until(p + count + 5 - now))


def assemble(
    rows: dict[tuple[int, ...], bytes],
    data: dict[int, bytes],
    *,
    others: Program | None = None,
    programs: dict[int, Program] | None = None,
) -> Package:
    """Active tiles by groups that share an image; all other tiles sit the phase out.

    `data` is the source data, and `programs` the program if not ACTIVE, of a group's first member.
    """
    images: dict[int, tuple[Program, dict[int, bytes | int]]] = {}
    for tiles, words in rows.items():
        content: dict[int, bytes | int] = {ROW: words, TARGET_DATA: 0x8000, COMPLETION: 4}
        if tiles[0] in data:
            content[SOURCE_DATA] = data[tiles[0]]
        images[tiles[0]] = ((programs or {}).get(tiles[0], ACTIVE), content)
    package = build(images, (others or BYSTANDER, {COMPLETION: 4}))
    image = {entry.physical_tile: entry.image for entry in package.tiles}
    for entry in package.tiles:
        for tiles in rows:
            if entry.physical_tile in tiles:
                entry.image = image[tiles[0]]
    return package
