"""Published rows that ran on hardware, composed and parsed to the word."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ipu21.fabric.items import FORMAT, MUX, MUXPAIR, POINTER, SEND, row_items
from tilewright.ipu21.fabric.parse import parse_row
from tilewright.ipu21.fabric.rows import compose_row

pytestmark = pytest.mark.unit

NEUTRAL = 0x640
SYNC = 0x41800003

GOLDEN = {
    "unicast 0 -> 1286, sender": (
        "41800003 40a00086 78400001 43a00000",
        [(135, SEND, 1, 3, 0)],
        138,
    ),
    "unicast 0 -> 1286, receiver": (
        "41800003 641c0000 64008640 61800000 40a00007 43a00000",
        [(113, MUX, 0, 0, 0), (116, MUX, 0, 0, NEUTRAL), (165, POINTER, 0, 0, 0)],
        173,
    ),
    "unicast 32 -> 0, 4148 words, sender": (
        "41800003 40a0006c 7fe00001 766fc001 43a00000",
        [(109, SEND, 1, 4148, 0)],
        4257,
    ),
    "unicast 32 -> 0, 4148 words, receiver": (
        "41800003 641c0400 61980000 67ffc640 40a00038 43a00000",
        [(113, MUX, 0, 0, 0x400), (165, POINTER, 0, 0, 0), (4261, MUX, 0, 0, NEUTRAL)],
        4318,
    ),
    "unicast 1286 -> 1471, 65 words, sender": (
        "41800003 40a0007d 7fe00002 70000002 43a00000",
        [(126, SEND, 2, 65, 0)],
        191,
    ),
    "multicast 0 -> {274, 1286}, sender": (
        "41800003 40a00016 78400003 43a00000",
        [(23, SEND, 3, 3, 0)],
        26,
    ),
    "multicast 0 -> {274, 1286}, receiver 274": (
        "41800003 64000000 64008640 61814000 40a00007 43a00000",
        [(1, MUX, 0, 0, 0), (4, MUX, 0, 0, NEUTRAL), (53, POINTER, 0, 0, 0x50000)],
        61,
    ),
    "four messages of 52 words into logical 0": (
        "64000082 40a00032 f6600000 03014048 f6600000 03095000 f6600000 04016000 f7200000 19017000 43a00000",
        [
            (1, MUX, 0, 0, 130),
            (53, MUX, 0, 0, 192),
            (53, POINTER, 0, 0, 0x14048 << 2),
            (105, MUX, 0, 0, 194),
            (105, POINTER, 0, 0, 0x15000 << 2),
            (157, MUX, 0, 0, 256),
            (157, POINTER, 0, 0, 0x16000 << 2),
            (209, MUX, 0, 0, NEUTRAL),
            (209, POINTER, 0, 0, 0x17000 << 2),
        ],
        266,
    ),
    "full duplex on logical 100": (
        "7b6a0241 70f00640 71f95000 43a00000",
        [(0, SEND, 1, 52, 0x14048 << 2), (29, MUX, 0, 0, NEUTRAL), (37, POINTER, 0, 0, 0x15000 << 2)],
        52,
    ),
    "paired 0 -> {2, 3}, sender": (
        "41800003 40a0001e 7fe50005 43a00000",
        [(31, SEND, 5, 64, 0x50000)],
        95,
    ),
    "paired 0 -> {2, 3}, early member": (
        "41800003 64002000 61a40001 60098000 64022640 61a40000 40a00006 43a00000",
        [
            (1, MUXPAIR, 0, 0, 0),
            (54, FORMAT, 0, 0, 1),
            (56, POINTER, 0, 0, 0x60000),
            (65, MUXPAIR, 0, 0, NEUTRAL),
            (118, FORMAT, 0, 0, 0),
        ],
        125,
    ),
    "paired 0 -> {2, 3}, other member": (
        "41800003 61ac0001 60098000 61ec0000 40a00006 43a00000",
        [(54, FORMAT, 0, 0, 1), (56, POINTER, 0, 0, 0x60000), (118, FORMAT, 0, 0, 0)],
        125,
    ),
}


def words_of(text: str) -> np.ndarray:
    return np.array([int(word, 16) for word in text.split()], dtype=np.uint32)


@pytest.mark.parametrize("name", GOLDEN)
def test_parses_to_the_published_events(name: str) -> None:
    text, items, end = GOLDEN[name]
    row = parse_row(words_of(text))
    assert row.items.tolist() == row_items(items).tolist()
    assert row.end == end
    assert row.synchronised == text.startswith("41800003")


@pytest.mark.parametrize("name", GOLDEN)
def test_composes_to_the_published_words(name: str) -> None:
    text, items, end = GOLDEN[name]
    expected = words_of(text).tolist()
    assert compose_row(row_items(items), end).tolist() == (expected[1:] if expected[0] == SYNC else expected)


def test_both_writes_inside_a_message() -> None:
    """Logical 24 (row 12) sends 76 words: neutral and the next pointer coincide since 52 + 24 = 76."""
    items = row_items(
        [(0, SEND, 1, 76, 0x14000 << 2), (34, MUX, 0, 0, NEUTRAL), (34, POINTER, 0, 0, 0x15000 << 2)]
    )
    words = compose_row(items, 76).tolist()
    at = words.index(0xF54A0109)
    assert at % 2 == 0
    assert words[at + 1] == 0x19015000
