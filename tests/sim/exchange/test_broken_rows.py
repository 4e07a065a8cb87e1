"""Rows with one thing wrong: the verifier and the simulated chip both notice, and name tile and event."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.errors import SimulationError, TilewrightError
from tilewright.ipu21.fabric.items import MUX, POINTER, SEND
from tilewright.ipu21.fabric.parse import parse_row
from tilewright.ipu21.fabric.rows import compose_row
from tilewright.ipu21.fabric.schedule import schedule
from tilewright.ipu21.fabric.verify import verify
from tilewright.ipu21.machine.topology import MUX_NEUTRAL
from tilewright.ipu21.selftest import run, trial_package
from tilewright.ipu21.selftest.trial import Area, Exchange, Message, Trial

pytestmark = pytest.mark.sim

SENDER, RECEIVER, OTHER = 0, 53, 130
WORDS = 20
FROM, TO = 0x80000, 0x90000
CODE_ELEMENT = 0x5FF00
"""In the memory element that rows are fetched from."""

PHASE = Exchange(
    (
        Message(SENDER, FROM, WORDS, ((RECEIVER, TO),)),
        Message(OTHER, FROM, WORDS, ((SENDER, TO),)),
    )
)
TRIAL = Trial(
    "pair",
    (
        Area("x", FROM, WORDS, (SENDER, RECEIVER, OTHER), given="host", taken=False),
        Area("y", TO, WORDS + 12, (SENDER, RECEIVER)),
    ),
    (PHASE,),
    values="word",
)

Rows = dict[int, NDArray[np.uint32]]
Change = Callable[[NDArray[np.void]], NDArray[np.void]]


def changed(rows: Rows, tile: int, change: Change) -> Rows:
    """The rows with the items of one tile changed, written out again; the row gets longer if it must."""
    parsed = parse_row(rows[tile], tile=tile)
    items = change(parsed.items.copy())
    stop = items["event"] + np.where(items["kind"] == SEND, items["words"], 0)
    return {**rows, tile: compose_row(items, max(parsed.end, int(stop.max())), tile=tile)}


def shift(kind: int, by: int, value: int | None = None) -> Change:
    def move(items: NDArray[np.void]) -> NDArray[np.void]:
        chosen = (items["kind"] == kind) & (True if value is None else items["value"] == value)
        assert chosen.sum() == 1
        items["event"][chosen] += by
        return items

    return move


def without_neutral(items: NDArray[np.void]) -> NDArray[np.void]:
    return items[~((items["kind"] == MUX) & (items["value"] == MUX_NEUTRAL))]


def other_value(kind: int, old: int, new: int) -> Change:
    def replace(items: NDArray[np.void]) -> NDArray[np.void]:
        items["value"][(items["kind"] == kind) & (items["value"] == old)] = new
        return items

    return replace


BROKEN: dict[str, tuple[int, Change]] = {
    "send early": (SENDER, shift(SEND, -1)),
    "send late": (SENDER, shift(SEND, 1)),
    "listens late": (RECEIVER, shift(MUX, 2, SENDER)),
    "stops early": (RECEIVER, shift(MUX, -1, MUX_NEUTRAL)),
    "stores late": (RECEIVER, shift(POINTER, 1)),
    "swapped source": (RECEIVER, other_value(MUX, SENDER, OTHER)),
    "wrong element": (SENDER, other_value(SEND, FROM, CODE_ELEMENT)),
    "wrong place": (RECEIVER, other_value(POINTER, TO, 0xE7FF0)),
    "no neutral": (RECEIVER, without_neutral),
}


@pytest.fixture(scope="module")
def sound() -> Rows:
    return schedule(*PHASE.arrays()).rows


def device_says(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> TilewrightError | None:
    """Runs the trial with these rows."""

    class Fixed:
        def __init__(self) -> None:
            self.rows = rows

    monkeypatch.setattr(trial_package, "schedule", lambda *_: Fixed())
    try:
        with run.strict_device() as device:
            run.run_trial(TRIAL, 0, device, runs=1)
    except TilewrightError as error:
        return error
    return None


def test_sound_rows_pass_both(sound: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    assert verify(sound, {}, *PHASE.arrays()) == []
    assert device_says(sound, monkeypatch) is None


@pytest.mark.parametrize("name", BROKEN)
def test_broken_rows_are_noticed_by_both(name: str, sound: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    tile, change = BROKEN[name]
    rows = changed(sound, tile, change)
    conflicts = verify(rows, dict.fromkeys(rows, 0x5C000), *PHASE.arrays())
    assert conflicts and all(c.tile in rows and c.event >= 0 for c in conflicts)
    error = device_says(rows, monkeypatch)
    assert error is not None
    assert isinstance(error, SimulationError) and error.tile in rows
    assert error.event is not None or error.cycle is not None
