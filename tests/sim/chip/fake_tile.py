"""A tile that knows just the instructions of the worked example: a second reading of its words and its clock.

The chip's tests run on it as well as on the engine, so that a fault of one does not hide behind the other.
One issue per cycle in order, results after 6 cycles, taken branches 6, `runall` 10 + one rotation + 18.
"""

from __future__ import annotations

import copy as copies
from collections.abc import Sequence

import numpy as np
from chip_rows import ITEM, MUX, POINTER, SEND
from numpy.typing import NDArray

from tilewright.ipu21.machine.memory import TILE_BASE, TILE_BYTES
from tilewright.ipu21.simulator.stops import Stop, StopKind
from tilewright.ipu21.simulator.together import TileByTile

MARK = np.dtype([("step", "<i8"), ("clock", "<i8")])
INCOMING_MUX, INCOMING_BASE, OUTGOING_BASE, TILE_ID = 0xA0, 0xA4, 0xA7, 3


class FakeTiles:
    """Makes and runs them."""

    def make(self, physical: int) -> FakeTile:
        return FakeTile(physical)

    def run(self, tiles: Sequence[FakeTile], budget: int) -> list[Stop]:
        return [tile.run() for tile in tiles]

    def together(self, tiles: Sequence[FakeTile]) -> TileByTile:
        return TileByTile(tiles, self.run)


class FakeTile:
    active_workers = 0
    doubts = False

    def __init__(self, physical: int) -> None:
        self.memory: NDArray[np.uint8] = np.zeros(TILE_BYTES, np.uint8)
        self.m = [0] * 16
        self.ready = [0] * 16
        self.csrs = {0xA9: 7}
        self.physical, self.shared = physical, False
        self.clock, self.pc = 0, 0
        self.sans = self.sans_clock = 0
        self.log: list[tuple[int, int, int, int, int, int]] = []
        self.window = False
        self.resumed = 0
        self.workers_end = 0
        self.watched: dict[int, int] = {}
        self.marks: list[tuple[int, int]] = []

    def load(self, address: int, data: bytes, memory_size: int) -> None:
        self.memory[address - TILE_BASE :][: len(data)] = np.frombuffer(data, np.uint8)

    def copy(self, physical: int) -> FakeTile:
        twin = copies.deepcopy(self)
        twin.physical = physical
        return twin

    def invalidate(self, address: int, size: int) -> None:
        """Nothing is kept between instructions, so nothing becomes stale."""

    def csr(self, number: int, context: int = 0) -> int:
        return self.physical if number == TILE_ID else self.csrs.get(number, 0)

    def set_csr(self, number: int, value: int, context: int = 0) -> None:
        self.csrs[number] = value

    def set_watch(self, addresses: NDArray[np.int64], steps: NDArray[np.int64]) -> None:
        self.watched = dict(zip(addresses.tolist(), steps.tolist(), strict=True))

    def take_marks(self) -> NDArray[np.void]:
        taken, self.marks = np.array(self.marks, MARK), []
        return taken

    def take_log(self) -> NDArray[np.void]:
        taken, self.log = np.array(self.log, ITEM), []
        return taken

    def word(self, address: int) -> int:
        return int(self.memory[address - TILE_BASE :][:4].view("<u4")[0])

    def resume(self, clock: int) -> None:
        self.clock = clock
        if self.resumed == 3:
            self.window = True
            if self.word(self.pc) >> 24 == 0x18:
                self.clock = clock - 6
        self.resumed = 0

    def stop(self, kind: StopKind, pc: int, **more: int) -> Stop:
        return Stop(kind, self.clock, pc, **more)

    def run(self) -> Stop:
        while True:
            word, pc = self.word(self.pc), self.pc
            if self.window and not self.in_row(word):
                self.window = False
                return self.stop(StopKind.WINDOW_CLOSED, pc)
            if pc in self.watched:
                self.marks.append((self.watched[pc], self.clock))
            stop = self.step(word)
            if stop is not None:
                return stop

    @staticmethod
    def in_row(word: int) -> bool:
        return word >> 24 == 0x18 or word >> 28 in (6, 7, 0xF) or word & 0xFFF80000 == 0x40A00000

    def wait_for(self, register: int) -> int:
        self.clock = max(self.clock, self.ready[register])
        return self.m[register]

    def produce(self, register: int, value: int) -> None:
        self.m[register], self.ready[register] = value, self.clock + 6

    def step(self, word: int) -> Stop | None:
        pc, self.pc = self.pc, self.pc + 4
        top, field = word >> 24, word >> 20 & 15
        cost = 1
        if word == 0x41800002:
            self.clock = max(self.clock, self.workers_end)
            return None
        if word & 0xFFFFFFF0 == 0x41800000:
            self.resumed = word & 15
            return self.stop(StopKind.SYNC, pc, zone=word & 15)
        if word & 0xFFF80000 == 0x40C00000:
            self.sans += (word & 0x7FFFF) + 1
            self.sans_clock = self.clock
        elif word & 0xFFF80000 == 0x40A00000:
            cost = (word & 0x7FFFF) + 1
        elif top == 0x19:
            self.produce(field, word & 0xFFFFF)
        elif top == 0x18:
            self.produce(field, self.pc)
            self.pc, cost = (word & 0x7FFFF) << 2, 6
        elif word & 0xFF00FFFF == 0x43000000:
            self.pc, cost = self.wait_for(field), 6
            if self.pc == 0:
                return self.stop(StopKind.ENDED, pc)
        elif word & 0xFF00FF00 == 0x43008000:
            self.put(word & 0xFF, 0 if field == 15 else self.wait_for(field), pc)
        elif word & 0xFF00FF00 == 0x41000000:
            if word & 0xFF == TILE_ID and self.shared:
                self.pc = pc
                return self.stop(StopKind.NEEDS_IDENTITY, pc)
            self.produce(word >> 16 & 15, self.csr(word & 0xFF))
        elif word & 0xFFFFF000 == 0x4F10F000:
            self.wait_for(0)
            self.memory[self.wait_for(1) - TILE_BASE :][:4].view("<u4")[0] = self.m[0]
        elif word == 0x1500F000:
            self.wait_for(0)
            self.workers_end = self.clock + 10 + 6 + 18
        elif word == 0x44F0F301:
            self.produce(0, 0)
        elif word >> 28 in (6, 7):
            cost = self.exchange(word, pc)
        elif word != 0x19E00000:
            return Stop(StopKind.EXCEPTION, self.clock, pc, text=f"no instruction {word:#010x}")
        self.clock += cost
        return None

    def put(self, number: int, value: int, pc: int) -> None:
        self.csrs[number] = value
        if number == INCOMING_MUX:
            self.log.append((MUX, self.clock, 0, value, 0, pc))

    def exchange(self, word: int, pc: int) -> int:
        if word & 0xFC000000 == 0x60000000:
            cost, value = (word >> 19 & 0x7F) + 1, word & 0x3FFFF
            self.log.append((POINTER, self.clock + cost, 0, (value << 2) + self.csr(INCOMING_BASE), 0, pc))
        elif word & 0xFC000000 == 0x64000000:
            cost, value = (word >> 14 & 0xFFF) + 1, word & 0x1FFF
            self.csrs[INCOMING_MUX] = value
            self.log.append((MUX, self.clock + cost, 0, value, 0, pc))
        else:
            cost, value = (word >> 21 & 0x3F) + 1, word >> 3 & 0x3FFFF
            address = (value << 2) + self.csr(OUTGOING_BASE)
            self.log.append((SEND, self.clock, cost, address, word & 7, pc))
        return cost
