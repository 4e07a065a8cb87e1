"""Published rows that ran on hardware, read instruction by instruction; and random ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ipu21.exchange.listing import RowLine, list_row
from tilewright.ipu21.fabric.parse import parse_row
from tilewright.ipu21.fabric.schedule import schedule
from tilewright.ipu21.selftest.random_trials import random_trial
from tilewright.ipu21.selftest.trial import Exchange

pytestmark = pytest.mark.unit

BASE = 0x5C000


def lines(text: str) -> list[RowLine]:
    return list_row(np.array([int(word, 16) for word in text.split()], np.uint32), BASE)


def test_published_sender_of_three_words() -> None:
    barrier, wait, send, end = lines("41800003 40a00086 78400001 43a00000")
    assert barrier.effects == ("barrier; event 0 follows",)
    assert (wait.event, wait.events, wait.effects) == (0, 135, ())
    assert (send.event, send.events, send.address) == (135, 3, BASE + 8)
    assert send.effects == ("send 3 words from 0x0 east",)
    assert (end.event, end.events, end.effects) == (138, 0, ("end of the row",))


def test_published_receiver_of_three_words() -> None:
    row = lines("41800003 641c0000 64008640 61800000 40a00007 43a00000")
    assert [line.effects for line in row[1:4]] == [
        ("113: listen to tile 0",),
        ("116: listen to nobody",),
        ("165: store from 0x0 on",),
    ]
    assert row[-1].event == 173


def test_published_row_of_four_messages_that_abut() -> None:
    row = lines(
        "64000082 40a00032 f6600000 03014048 f6600000 03095000 f6600000 04016000 f7200000 19017000 43a00000"
    )
    assert [line.words[0] for line in row if len(line.words) == 2] == [0xF6600000] * 3 + [0xF7200000]
    written = [effect for line in row for effect in line.effects if ":" in effect]
    assert [int(effect.split(":")[0]) for effect in written] == [1, 53, 53, 105, 105, 157, 157, 209, 209]
    assert written[1:3] == ["53: listen to tile 192", "53: store from 0x50120 on"]
    assert written[-2] == "209: listen to nobody"
    assert row[-1].event == 266


def test_published_send_that_goes_on_while_the_mux_closes() -> None:
    row = lines("7b6a0241 70f00640 71f95000 43a00000")
    assert [line.effects for line in row[:3]] == [
        ("send 28 words from 0x50120 east",),
        ("send 8 words from 0x50190 east", "29: listen to nobody"),
        ("send 16 words from 0x501b0 east", "37: store from 0x54000 on"),
    ]


def test_published_paired_receiver() -> None:
    row = lines("41800003 64002000 61a40001 60098000 64022640 61a40000 40a00006 43a00000")
    texts = [effect.split(": ", 1)[1] for line in row[1:-2] for effect in line.effects]
    assert texts == [
        "pair: listen to tile 0",
        "receive 64-bit items from the east",
        "store from 0x60000 on",
        "pair: listen to nobody",
        "receive 32-bit words",
    ]


@given(seed=st.integers(0, 40))
def test_lines_cover_the_row_and_tell_of_every_item_once(seed: int) -> None:
    step = random_trial(seed, 5).steps[0]
    assert isinstance(step, Exchange)
    for tile, words in schedule(*step.arrays()).rows.items():
        listed = list_row(words, BASE, tile=tile)
        parsed = parse_row(words, tile=tile)
        assert [word for line in listed for word in line.words] == words.tolist()
        assert [line.event + line.events for line in listed[:-1]] == [line.event for line in listed[1:]]
        assert listed[-1].event == parsed.end
        sent = sum(
            int(effect.split()[1]) for line in listed for effect in line.effects if effect.startswith("send")
        )
        writes = sum(": " in effect for line in listed for effect in line.effects)
        assert sent == parsed.items["words"][parsed.items["kind"] == 0].sum()
        assert writes == (parsed.items["kind"] != 0).sum()
