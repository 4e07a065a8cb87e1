"""A trial: a program to try a device with. Areas of tile memory, exchange phases, kernel calls.

It comes from no graph and no plan, and its meaning is plain: areas hold words, a phase copies words between
them, a call applies a kernel's reference to them (see `trial_memory`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fabric.transfers import DESTINATION, TRANSFER


class Message(NamedTuple):
    """`words` words from `source` at byte address `address` to (tile, byte address) receivers."""

    source: int
    address: int
    words: int
    receivers: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Exchange:
    """One phase; all messages read what was there when it began."""

    messages: tuple[Message, ...]

    def arrays(self) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """TRANSFER and DESTINATION records."""
        transfers: list[tuple[int, int, int, int, int]] = []
        destinations: list[tuple[int, int]] = []
        first = 0
        for message in self.messages:
            count = len(message.receivers)
            transfers.append((message.source, message.address, message.words, first, count))
            destinations += message.receivers
            first += count
        return np.array(transfers, TRANSFER), np.array(destinations, DESTINATION)


class Call(NamedTuple):
    """A kernel call on one tile; `arguments` are addresses and scalars by the names of its contract."""

    tile: int
    kernel: str
    arguments: dict[str, int]


@dataclass(frozen=True)
class Compute:
    """Kernel calls; those of one tile run in order."""

    calls: tuple[Call, ...]


Step = Exchange | Compute


@dataclass(frozen=True)
class Area:
    """`words` 32-bit words at `address` of each of `tiles`, an even number.

    Attributes:
        given: "host" if the host writes it before every run, "weight" if once before the first, "zero" if it
            starts as zeros.
        taken: true if the host reads it after every run.
    """

    name: str
    address: int
    words: int
    tiles: tuple[int, ...]
    given: str = "zero"
    taken: bool = True

    @property
    def end(self) -> int:
        return self.address + 4 * self.words


@dataclass(frozen=True)
class Trial:
    """What to run, and on which areas.

    Attributes:
        name: for messages.
        areas: apart from each other on every tile.
        values: "half" if areas start with pairs of finite float16 numbers, "word" if with any bits.
    """

    name: str
    areas: tuple[Area, ...]
    steps: tuple[Step, ...] = ()
    values: str = "half"

    @property
    def tiles(self) -> list[int]:
        """Physical tiles that hold an area, rising."""
        return sorted({tile for area in self.areas for tile in area.tiles})

    def initial(self, seed: int, given: Iterable[str] = ("host",)) -> dict[str, NDArray[np.uint32]]:
        """Random contents, [tiles, words], of the areas that are given in one of these ways."""
        random = np.random.default_rng([seed, 1])
        contents = {}
        for area in self.areas:
            shape = (len(area.tiles), area.words)
            if area.given not in given:
                continue
            if self.values == "half":
                halves = random.standard_normal((shape[0], 2 * shape[1])).astype(np.float16)
                contents[area.name] = halves.view(np.uint32)
            else:
                contents[area.name] = random.integers(0, 1 << 32, shape, dtype=np.uint32)
        return contents


@dataclass
class Room:
    """Hands out addresses of one area's words, per tile, one behind the other."""

    area_address: int
    words: int
    used: dict[int, int] = field(default_factory=dict)

    def take(self, tile: int, words: int, *, even: bool = False) -> int | None:
        """Byte address of free words on a tile, or None."""
        begin = self.used.get(tile, 0)
        begin += even and begin % 2
        if begin + words > self.words:
            return None
        self.used[tile] = begin + words
        return self.area_address + 4 * begin

    def high(self, tiles: Sequence[int]) -> int:
        """Words taken on the fullest of some tiles."""
        return max((self.used.get(tile, 0) for tile in tiles), default=0)
