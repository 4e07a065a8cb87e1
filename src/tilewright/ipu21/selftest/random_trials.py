"""Random programs: multicasts of awkward sizes, sparse compute on what arrived, then a second matching."""

from __future__ import annotations

import numpy as np

from ..fabric.transfers import element_masks
from ..machine.memory import REGION1_BASE
from ..machine.topology import MAX_MESSAGE_WORDS, TILES, to_physical
from .trial import Area, Call, Compute, Exchange, Message, Room, Trial

SIZES = (1, 15, 16, 17, 52, 64, 65, 127, 512, 1024, MAX_MESSAGE_WORDS, MAX_MESSAGE_WORDS + 1)
"""Words of a message: around the limits of sends, of messages, and of the 52 events from mux to store."""
FAN_OUT = 6
SOURCE_WORDS = 4224
RECEIVED_WORDS = 24 * 1024
CROWDED_WORDS = 6 * 1024
COMPUTED_WORDS = 2048
GUARD_WORDS = 32
"""Words behind what is used of an area that must stay as they were."""
CROWD = 64
"""With more tiles than this, there is one message to two tiles instead of two to one."""


def random_trial(seed: int, tiles: int) -> Trial:
    """A program on `tiles` random tiles, at least 2; the same for the same arguments."""
    random = np.random.default_rng([seed, 0])
    chosen = [int(to_physical(int(tile))) for tile in random.choice(TILES, tiles, replace=False)]
    addresses = _addresses(random)
    # The host takes as much from every tile as from the fullest, so among many tiles none may hold too much.
    room = RECEIVED_WORDS if tiles <= CROWD else CROWDED_WORDS
    received, second = Room(addresses[1], room), Room(addresses[3], room)
    messages = _multicasts(random, chosen, addresses[0], received)
    computed = Room(addresses[2], COMPUTED_WORDS)
    calls = _sparse_calls(random, chosen, addresses[0], received, computed)
    matching = _matching(random, chosen, received, computed, second)
    order = tuple(sorted(chosen))
    steps = (Exchange(messages), Compute(calls), Exchange(matching))
    return Trial(
        f"random {seed}",
        (
            Area("source", addresses[0], SOURCE_WORDS, order, given="host", taken=False),
            Area("received", addresses[1], _even(received.high(order) + GUARD_WORDS), order),
            Area("computed", addresses[2], _even(computed.high(order) + GUARD_WORDS), order),
            Area("second", addresses[3], _even(second.high(order) + GUARD_WORDS), order),
        ),
        tuple(step for step in steps if not isinstance(step, Exchange) or step.messages),
    )


def _even(words: int) -> int:
    return words + words % 2


def _addresses(random: np.random.Generator) -> list[int]:
    """Of the four areas: in random order from the start of region 1, with random gaps of 8-byte words."""
    sizes = [SOURCE_WORDS, RECEIVED_WORDS, COMPUTED_WORDS, RECEIVED_WORDS]
    addresses, at = [0] * len(sizes), REGION1_BASE
    for index in random.permutation(len(sizes)).tolist():
        at += 8 * int(random.integers(0, 4096))
        addresses[index] = at
        at += 4 * (sizes[index] + GUARD_WORDS)
    return addresses


def _multicasts(
    random: np.random.Generator, tiles: list[int], source: int, received: Room
) -> tuple[Message, ...]:
    messages = []
    count = 2 * len(tiles) if len(tiles) <= CROWD else len(tiles) // 2
    for _ in range(count):
        sender, words = int(random.choice(tiles)), int(random.choice(SIZES))
        address = source + 4 * int(random.integers(0, SOURCE_WORDS - words + 1))
        fan_out = min(int(random.integers(1, FAN_OUT + 1)), len(tiles) - 1)
        picked = random.choice(tiles, fan_out + 1, replace=False).tolist()
        receivers = [tile for tile in picked if tile != sender][:fan_out]
        places = [(tile, at) for tile in receivers if (at := received.take(tile, words)) is not None]
        if len(places) >= 2 and len(places) < FAN_OUT and random.random() < 0.2:
            places += _own(sender, address, words, received)
        if places:
            messages.append(Message(sender, address, words, tuple(places)))
    return tuple(messages)


def _own(sender: int, address: int, words: int, received: Room) -> list[tuple[int, int]]:
    """The sender itself as a receiver, if it then reads and writes different memory elements."""
    at = received.take(sender, words)
    if at is None:
        return []
    read, written = (element_masks(np.array([a]), np.array([words]))[0] for a in (address, at))
    return [] if read & written else [(sender, at)]


def _sparse_calls(
    random: np.random.Generator, tiles: list[int], source: int, received: Room, computed: Room
) -> tuple[Call, ...]:
    """About one call on every second tile, on 8-byte words of what it holds."""
    calls = []
    for tile in random.choice(tiles, max(1, len(tiles) // 2), replace=True).tolist():
        words = int(random.integers(1, 300))
        output = computed.take(tile, 2 * words, even=True)
        if output is None:
            continue
        held = received.used.get(tile, 0)
        inputs = [source + 8 * int(random.integers(0, SOURCE_WORDS // 2 - words + 1)) for _ in range(2)]
        first = -(-received.area_address // 8) * 8
        if held // 2 > words:
            inputs[0] = first + 8 * int(random.integers(0, held // 2 - words))
        kind = random.choice(["add_f16", "copy_u64", "fill_u64"], p=[0.7, 0.2, 0.1])
        if kind == "add_f16":
            arguments = {"c": output, "a": inputs[0], "b": inputs[1], "words": words}
        elif kind == "copy_u64":
            arguments = {"destination": output, "source": inputs[0], "words": words}
        else:
            low, high = random.integers(0, 1 << 20, 2).tolist()
            arguments = {"destination": output, "words": words, "low": low, "high": high}
        calls.append(Call(tile, str(kind), arguments))
    return tuple(calls)


def _matching(
    random: np.random.Generator, tiles: list[int], received: Room, computed: Room, second: Room
) -> tuple[Message, ...]:
    """Every tile sends at most one message and receives at most one, of what it received or computed."""
    messages = []
    partners = random.permutation(tiles).tolist()
    for sender, receiver in zip(partners, [*partners[1:], partners[0]], strict=True):
        room = computed if computed.used.get(sender) and random.random() < 0.7 else received
        fitting = [size for size in SIZES if size <= room.used.get(sender, 0)]
        if not fitting:
            continue
        words = int(random.choice(fitting))
        address = room.area_address + 4 * int(random.integers(0, room.used[sender] - words + 1))
        at = second.take(receiver, words)
        if at is not None:
            messages.append(Message(sender, address, words, ((receiver, at),)))
    return tuple(messages)
