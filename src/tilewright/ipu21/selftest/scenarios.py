"""Trials of one thing each: a reduction, a permutation, relays, ways to and from the host."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

import numpy as np

from ..machine.memory import REGION1_BASE
from ..machine.topology import TILES, to_physical
from .trial import Area, Call, Compute, Exchange, Message, Step, Trial

BASE = REGION1_BASE
KIB_WORDS = 256


def _physical(tiles: int) -> list[int]:
    return [int(to_physical(tile)) for tile in range(tiles)]


def reduction(seed: int, tiles: int) -> Trial:
    """The sum over all tiles of one 8-byte value per tile: gathered on one tile, added in halves."""
    order = _physical(tiles)
    root = order[seed % tiles]
    width = 1 << (tiles - 1).bit_length()
    gathered = BASE + 0x10000
    others = [tile for tile in order if tile != root]
    messages = tuple(
        Message(tile, BASE, 2, ((root, gathered + 8 * (index + 1)),)) for index, tile in enumerate(others)
    )
    calls = [Call(root, "copy_u64", {"destination": gathered, "source": BASE, "words": 1})]
    while width > 1:
        width //= 2
        arguments = {"c": gathered, "a": gathered, "b": gathered + 8 * width, "words": width}
        calls.append(Call(root, "add_f16", arguments))
    areas = (
        Area("value", BASE, 2, tuple(sorted(order)), given="host", taken=False),
        Area("gathered", gathered, 2 << (tiles - 1).bit_length(), (root,)),
    )
    steps: list[Step] = [Exchange(messages), Compute(tuple(calls))]
    # Sums change their area in place, so what lies beyond the gathered values must be zero again each time.
    used, end = 8 * tiles, 8 << (tiles - 1).bit_length()
    if used < end:
        clear = {"destination": gathered + used, "words": (end - used) // 8, "low": 0, "high": 0}
        steps.insert(0, Compute((Call(root, "fill_u64", clear),)))
    return Trial("reduction", areas, tuple(steps))


def permutation(seed: int, tiles: int) -> Trial:
    """Tile i sends 65 words to tile (a*i + b) mod n; those that would send to themselves keep them."""
    random = np.random.default_rng([seed, 2])
    factors = [factor for factor in range(1, max(tiles, 2)) if gcd(factor, tiles) == 1]
    factor, shift = int(random.choice(factors)), int(random.integers(tiles))
    words, target = 65, BASE + 0x10000
    messages = []
    for tile in range(tiles):
        to = (factor * tile + shift) % tiles
        if to != tile:
            receivers = ((int(to_physical(to)), target),)
            messages.append(Message(int(to_physical(tile)), BASE, words, receivers))
    order = tuple(sorted(_physical(tiles)))
    areas = (
        Area("from", BASE, words + 1, order, given="host", taken=False),
        Area("to", target, words + 1, order),
    )
    return Trial("permutation", areas, (Exchange(tuple(messages)),) if messages else (), "word")


def relay(seed: int, tiles: int) -> Trial:
    """Words handed on from tile to tile, one phase per hop, in several chains at once."""
    random = np.random.default_rng([seed, 3])
    chains, hops, words = max(1, min(4, tiles // 2)), min(8, tiles - 1), 127
    order = random.permutation(_physical(tiles)).tolist()
    size = len(order) // chains
    steps: list[Step] = []
    for hop in range(hops):
        messages = []
        for chain in range(chains):
            members = order[chain * size : (chain + 1) * size]
            if hop + 1 < len(members):
                here, there = BASE + 0x8000 * (hop % 8), BASE + 0x8000 * ((hop + 1) % 8)
                messages.append(Message(members[hop], here, words, ((members[hop + 1], there),)))
        if messages:
            steps.append(Exchange(tuple(messages)))
    everybody = tuple(sorted(order))
    areas = [Area("hop 0", BASE, words + 1, everybody, given="host", taken=False)]
    areas += [Area(f"hop {hop}", BASE + 0x8000 * hop, words + 1, everybody) for hop in range(1, 8)]
    return Trial("relay", tuple(areas), tuple(steps), "word")


def through(seed: int, tiles: int) -> Trial:
    """Host to tiles, tiles to their neighbours, an addition there, results to the host."""
    del seed
    order = _physical(tiles)
    words, received, result = 512, BASE + 0x10000, BASE + 0x20000
    messages = tuple(
        Message(tile, BASE, words, ((neighbour, received),))
        for tile, neighbour in zip(order, [*order[1:], order[0]], strict=True)
    )
    calls = tuple(
        Call(tile, "add_f16", {"c": result, "a": BASE, "b": received, "words": words // 2}) for tile in order
    )
    everybody = tuple(sorted(order))
    areas = (
        Area("given", BASE, words, everybody, given="host", taken=False),
        Area("received", received, words, everybody, taken=False),
        Area("sum", result, words, everybody),
    )
    return Trial("through", areas, (Exchange(messages), Compute(calls)))


def remote(seed: int, tiles: int) -> Trial:
    """8 KiB from the host to one tile, from there to another, and from that one back to the host."""
    random = np.random.default_rng([seed, 4])
    here, there = (int(to_physical(int(tile))) for tile in random.choice(TILES, 2, replace=False))
    del tiles
    words = 8 * KIB_WORDS
    areas = (
        Area("sent", BASE, words, (here,), given="host", taken=False),
        Area("back", BASE + 0x8000, words, (there,)),
    )
    message = Message(here, BASE, words, ((there, BASE + 0x8000),))
    return Trial("remote", areas, (Exchange((message,)),), "word")


def large(seed: int, tiles: int) -> Trial:
    """64 KiB to tile address 0x60000 and back: in memory that could hold code, 16 batches each way."""
    del tiles
    tile = int(to_physical(int(np.random.default_rng([seed, 5]).integers(TILES))))
    return Trial("large", (Area("kept", 0x60000, 64 * KIB_WORDS, (tile,), given="host"),), values="word")


def weights(seed: int, tiles: int) -> Trial:
    """100 KiB of weights on each of up to 16 tiles, read back twice; all other tiles sit 25 batches out."""
    del seed
    held = tuple(sorted(_physical(min(tiles, 16))))
    area = Area("held", BASE, 100 * KIB_WORDS, held, given="weight")
    return Trial("weights", (area,), values="word")


SCENARIOS: dict[str, Callable[[int, int], Trial]] = {
    make.__name__: make for make in (reduction, permutation, relay, through, remote, large, weights)
}
"""By name: what makes the trial from a seed and a number of tiles."""
