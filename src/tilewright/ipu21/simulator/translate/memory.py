"""Loads and stores of a translated worker."""

from __future__ import annotations

from .. import codes
from ..instruction_tables import INFO_A_REGISTER, INFO_BROADCAST, INFO_LANES
from . import reasons
from .checking import CheckEmitter
from .program import Operation


class MemoryEmitter(CheckEmitter):
    """Emits memory instructions."""

    def memory(self, op: Operation) -> None:
        """Any instruction of the memory group."""
        function = op.function
        if function <= codes.STORE_STEP:
            self._plain(op)
        elif function <= codes.STM_STEP:
            self._stm(op)
        elif function < codes.TAPACK:
            self._paced(op)
        elif function == codes.TAPACK:
            self._tapack(op)
        elif function == codes.ATOM:
            self.write_m(op.register(0), self.read_a(op.register(1)))
        elif function == codes.LD64A32:
            self._dense_and_sparse(op)
        elif function == codes.LDB16B16:
            self._mini_delta(op)
        else:
            self._delta(op)

    def _dense_and_sparse(self, op: Operation) -> None:
        build, number = self.builder, op.register(0)
        pointer = self.read_m(op.register(1))
        low = build.op(f"and i32 {self.read_m(op.register(3))}, 65535")
        address = build.op(f"add i32 {self.read_m(op.register(2))}, {low}")
        if number + 2 < 8:
            self._load_a(self._wide(pointer), 3, 0, number + 2)
            self._load_a(self._wide(address), 2, 0, number + 1)
        self.write_m(op.register(1), build.op(f"add i32 {pointer}, 8"))

    def _mini_delta(self, op: Operation) -> None:
        build, number = self.builder, op.register(0)
        base, deltas = self.read_m(op.register(1)), self.read_m(op.register(2))
        minis = self.read_m(op.register(3))
        low, high = build.op(f"and i32 {deltas}, 65535"), build.op(f"lshr i32 {deltas}, 16")
        for index, part in enumerate((low, high)):
            address = self._wide(build.op(f"add i32 {base}, {part}"))
            self._load_a(address, 1, codes.EXTEND_REPEAT, number + index)
        grown = build.op(f"and i32 {build.op(f'add i32 {low}, 2')}, 65535")
        nibble = build.op(f"shl i32 {build.op(f'and i32 {minis}, 15')}, 1")
        top = build.op(f"shl i32 {build.op(f'add i32 {high}, {nibble}')}, 16")
        self.write_m(op.register(2), build.op(f"or i32 {grown}, {top}"))
        self.write_m(op.register(3), build.op(f"lshr i32 {minis}, 4"))

    def _load(self, pointer: str, size_log: int, extend: int) -> str:
        """A load of up to 4 bytes as i32."""
        build = self.builder
        if size_log == 2:
            return build.load("i32", pointer, 4)
        kind = "i16" if size_log == 1 else "i8"
        value = build.load(kind, pointer, 1 << size_log)
        if extend == codes.EXTEND_SIGN:
            return build.op(f"sext {kind} {value} to i32")
        wide = build.op(f"zext {kind} {value} to i32")
        if extend == codes.EXTEND_REPEAT:
            return build.op(f"mul i32 {wide}, {0x00010001 if size_log == 1 else 0x01010101}")
        return wide

    def _wide(self, address: str) -> str:
        """An i32 address as i64."""
        return self.builder.op(f"zext i32 {address} to i64")

    def _load_a(self, address: str, size_log: int, extend: int, number: int) -> None:
        """Load into A registers from `number` on; those that are no storage discard, without any check."""
        if number >= 8:
            return
        pointer = self._pointer(address, 1 << size_log)
        if size_log <= 2:
            self.write_a(number, self._load(pointer, size_log, extend))
            return
        self.write_a64(number, self.builder.load("i64", pointer, 8))
        if size_log == 4:
            second = self.builder.at(pointer, "i64", 1)
            self.write_a64(number + 2, self.builder.load("i64", second, 8))

    def _plain(self, op: Operation) -> None:
        build, function = self.builder, op.function
        size_log = op.info >> INFO_LANES & 7
        delta_number, data = op.register(2), op.register(0)
        delta = self.read_m(delta_number)
        address = build.join("add", "i32", self.read_m(op.register(1)), delta)
        if op.place(3):
            offset = build.op(f"shl i32 {self.read_m(op.register(3))}, {size_log}")
        else:
            offset = str((op.immediate << size_log) & 0xFFFFFFFF)
        if function in (codes.LOAD, codes.STORE):
            address = build.join("add", "i32", address, offset)
        a_register = op.info >> INFO_A_REGISTER & 1
        if function in (codes.STORE, codes.STORE_STEP):
            if size_log == 3:
                value = self.read_a64(data)
                build.store("i64", value, self._pointer(self._wide(address), 8), 8)
            else:
                value = self.read_a(data) if a_register else self.read_m(data)
                build.store("i32", value, self._pointer(self._wide(address), 4), 4)
        elif a_register:
            self._load_a(self._wide(address), size_log, op.info >> INFO_BROADCAST & 3, data)
        elif data < 12:
            pointer = self._pointer(self._wide(address), 1 << size_log)
            self.write_m(data, self._load(pointer, size_log, op.info >> INFO_BROADCAST & 3))
        if function in (codes.LOAD_STEP, codes.STORE_STEP):
            self.write_m(delta_number, build.join("add", "i32", delta, offset))

    def _stm(self, op: Operation) -> None:
        build = self.builder
        base = self.read_m(op.register(1))
        moved = build.op(f"add i32 {base}, {build.op(f'shl i32 {self.read_m(op.register(2))}, 2')}")
        value = self.read_m(op.register(0))
        pointer = self._pointer(self._wide(moved if op.function == codes.STM else base), 4)
        build.store("i32", value, pointer, 4)
        if op.function == codes.STM_STEP:
            self.write_m(op.register(1), moved)

    def _tapack(self, op: Operation) -> None:
        values = [self.read_m64(op.register(index)) for index in (1, 2, 3)]
        pair = op.register(0)
        if pair < 12:
            self.unpacked.discard(pair)
            self.open_pair(pair)
            for index, text in enumerate(values):
                self.set_field(pair, index, text)

    def _move(self, pair: int, index: int, stride: int, selector: int, size: int) -> None:
        """Advance one packed address."""
        build = self.builder
        address = self.field(pair, index)
        if selector == 0:
            amount = str(size)
        else:
            raw = build.op(f"shl i64 {self.read_m64(stride)}, {64 - 10 * selector}")
            units = build.op(f"ashr i64 {raw}, 54")
            amount = build.op(f"mul i64 {units}, {size}")
        self.set_field(pair, index, build.op(f"add i64 {address}, {amount}"))

    def _paced(self, op: Operation) -> None:
        function, selectors, first = op.function, op.immediate, op.register(0)
        build = self.builder
        if function == codes.ST64PACE:
            second, pair, stride = first, op.register(1), op.register(2)
        else:
            second, pair, stride = op.register(1), op.register(2), op.register(3)
        if pair >= 12:
            build.jump(self.bail(reasons.OPERAND))
            return
        self.unpack(pair)
        if stride & ~1 == pair:
            # The strides are read from the packed form; keep both for this once.
            build.jump(self.bail(reasons.OPERAND))
            return
        a0, a1, a2 = (self.field(pair, index) for index in range(3))
        if function == codes.LD2X64PACE:
            self._conflicts((a0, a1))
            self._load_a(a0, 3, 0, first)
            self._load_a(a1, 3, 0, second)
            moves = [(0, selectors, 8), (1, selectors >> 2, 8)]
        elif function == codes.LDST64PACE:
            self._conflicts((a0, a2))
            value = self.read_a64(second)
            build.store("i64", value, self._pointer(a2, 8), 8)
            self._load_a(a0, 3, 0, first)
            moves = [(0, selectors, 8), (2, selectors >> 2, 8)]
        elif function == codes.LD2XST64PACE:
            self._conflicts((a0, a1), (a0, a2), (a1, a2))
            value = self.read_a64(second)
            build.store("i64", value, self._pointer(a2, 8), 8)
            self._load_a(a0, 3, 0, first)
            self._load_a(a1, 3, 0, first + 2)
            moves = [(0, selectors, 8), (1, selectors >> 2, 8), (2, selectors >> 4, 8)]
        elif function == codes.ST64PACE:
            value = self.read_a64(first)
            build.store("i64", value, self._pointer(a2, 8), 8)
            moves = [(2, selectors, 8)]
        else:
            size_log = 2 if function == codes.LD64A32PACE else 1
            self._conflicts((a0, a1))
            self._load_a(a0, 3, 0, first)
            self._load_a(a1, size_log, op.info >> INFO_BROADCAST & 3, second)
            moves = [(0, selectors, 8), (1, selectors >> 2, 1 << size_log)]
        for index, selector, size in moves:
            self._move(pair, index, stride, selector & 3, size)

    def _delta(self, op: Operation) -> None:
        build = self.builder
        double = op.function == codes.DELTA_LOAD_PAIR
        list_log = 2 if double else 1
        pointer = self.read_m(op.register(1))
        delta = self.read_m(op.register(3))
        offset = build.op(f"lshr i32 {delta}, 16") if double else delta
        address = build.op(f"add i32 {self.read_m(op.register(2))}, {offset}")
        place = self._pointer(self._wide(pointer), 1 << list_log)
        self._load_a(
            self._wide(address), op.info >> INFO_LANES & 7, op.info >> INFO_BROADCAST & 3, op.register(0)
        )
        self.write_m(op.register(3), self._load(place, list_log, 0))
        self.write_m(op.register(1), build.op(f"add i32 {pointer}, {1 << list_log}"))
