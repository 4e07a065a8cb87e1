"""Addresses in rows: found where the parser finds them, moved as bases move them."""

from __future__ import annotations

import numpy as np
import pytest
from exchange_phases import random_phase

from tilewright.ipu21.fabric.addresses import (
    NONE,
    POINTER,
    SEND,
    WIDE_SEND,
    address_kinds,
    addresses,
    relocated,
    skeleton,
    with_addresses,
)
from tilewright.ipu21.fabric.items import POINTER as POINTER_ITEM
from tilewright.ipu21.fabric.items import SEND as SEND_ITEM
from tilewright.ipu21.fabric.parse import parse_row
from tilewright.ipu21.fabric.schedule import schedule
from tilewright.ipu21.isa import build

pytestmark = pytest.mark.unit


def row(*words: int | tuple[int, int]) -> np.ndarray:
    flat = [word for item in words for word in (item if isinstance(item, tuple) else (item,))]
    return np.array([*flat, build.br(10)], np.uint32)


def kinds_of(words: np.ndarray) -> np.ndarray:
    return address_kinds(words, np.arange(len(words)))


def test_each_kind_of_word() -> None:
    words = row(
        build.sendpicp(3, 0x20000, 1, 0, 0, 0x33, 0x15000),
        build.sendpicp(3, 0x20000, 5, 1, 0, 0x33, 1),
        build.sendpicp(3, 0x20000, 0, 0, 0, 0x33, 0x15000),
        build.send(9, 0x20000, 2),
        build.send(9, 0x10000, 6),
        build.sendoff(9, 5, 2),
        build.sendpic(9, 0, 0x33),
        build.sendpic(9, 2, 0x15000),
        build.sendpic(9, 3, 1),
        build.delaypic(9, 0, 0x15000),
        build.delaypic(9, 1, 1),
        build.delayxpic(9, 0, 0x33),
        build.delay(9),
    )
    expected = [SEND, POINTER, WIDE_SEND, NONE, NONE, POINTER, SEND, WIDE_SEND]
    expected += [NONE, NONE, POINTER, NONE, POINTER, NONE, NONE, NONE, NONE]
    kinds = kinds_of(words)
    assert kinds.tolist() == expected
    assert set(addresses(words, kinds)[kinds != NONE].tolist()) == {0x80000, 0x100000, 0x54000}
    assert not addresses(skeleton(words, kinds), kinds).any()


def test_a_payload_that_looks_like_an_instruction_holds_a_pointer() -> None:
    # The payload's mux bits are those of a send.
    words = row(build.sendpicp(0, 0x20000, 1, 0, 0, 0x1E00 & 0x1FFF, 0x15001))
    assert kinds_of(words).tolist() == [SEND, POINTER, NONE]


@pytest.mark.parametrize("seed", range(6))
def test_a_relocated_row_means_the_same_with_other_addresses(seed: int) -> None:
    transfers, destinations = random_phase(seed, tiles=12, transfers=60, fan_out=4, sizes=(1, 3, 16, 64, 130))
    outgoing, incoming = 8 * (seed + 1), 4 * seed
    for tile, words in schedule(transfers, destinations).rows.items():
        moved = relocated(words, outgoing, incoming)
        assert moved is not None and len(moved) == len(words)
        before, after = parse_row(words, tile=tile), parse_row(moved, tile=tile)
        expected = before.items.copy()
        expected["value"][expected["kind"] == SEND_ITEM] += outgoing
        expected["value"][expected["kind"] == POINTER_ITEM] += incoming
        assert np.array_equal(after.items, expected) and after.end == before.end


def test_addresses_that_a_field_cannot_hold_are_refused() -> None:
    wide = row(build.send(0, 0x10000, 5))
    assert relocated(wide, 4, 0) is None and relocated(wide, 8, 0) is not None
    assert relocated(wide, -0x90000, 0) is None
    narrow = row(build.delaypic(0, 0, (1 << 18) - 1))
    assert relocated(narrow, 0, 4) is None
    kinds = kinds_of(narrow)
    assert with_addresses(narrow, kinds, np.array([2, 0])) is None
