"""A worker's registers inside a translated function: stack slots that the optimiser turns into values."""

from __future__ import annotations

from .. import state as at
from ..engine_registers import csr_index
from .ir import Builder

ADDRESS_BITS = 0x1FFFFF


class Frame:
    """Register files, counters and pointers of one function.

    %state, %context and %scratch are the function's parameters. A register is loaded from the state array in
    the entry block when it is first mentioned, and stored back at the exit if it was ever written. Packed
    address pairs are kept taken apart between paced accesses.
    """

    def __init__(self) -> None:
        self.builder = Builder()
        entry = self.builder.allocas
        self._m: dict[int, str] = {}
        self._m_written: set[int] = set()
        self._a_known: set[int] = set()
        self._a_written: set[int] = set()
        self._fields: dict[int, list[str]] = {}
        self.unpacked: set[int] = set()
        entry += [
            f"  %regbase = mul i64 %context, {at.REGISTER_STRIDE}",
            "  %regs = getelementptr i64, ptr %state, i64 %regbase",
            f"  %csrbase = mul i64 %context, {at.CSR_STRIDE}",
            f"  %csrindex = add i64 %csrbase, {csr_index(0, 0)}",
            "  %csrs = getelementptr i64, ptr %state, i64 %csrindex",
            f"  %memat = getelementptr i64, ptr %state, i64 {at.MEMORY}",
            "  %memint = load i64, ptr %memat",
            "  %afile = alloca [8 x i32], align 16",
            "  %issues = alloca i64",
            "  store i64 0, ptr %issues",
            "  %slots = alloca i64",
            "  store i64 0, ptr %slots",
            "  %agrees = alloca i64",
            "  %last = alloca i64",
        ]

    # ---- M registers

    def _m_place(self, number: int) -> str:
        place = self._m.get(number)
        if place is None:
            place = self._m[number] = f"%m{number}"
            self.builder.allocas += [
                f"  %m{number} = alloca i32",
                f"  %m{number}at = getelementptr i64, ptr %regs, i64 {number}",
                f"  %m{number}wide = load i64, ptr %m{number}at",
                f"  %m{number}word = trunc i64 %m{number}wide to i32",
                f"  store i32 %m{number}word, ptr %m{number}",
            ]
        return place

    def read_m(self, number: int) -> str:
        """An M register as i32."""
        self._raw(number)
        place = self._m_place(number)
        return f"%m{number}word" if number >= 12 else self.builder.load("i32", place)

    def read_m64(self, number: int) -> str:
        return self.builder.op(f"zext i32 {self.read_m(number)} to i64")

    def write_m(self, number: int, text: str) -> None:
        """Set an M register to an i32; those that are no storage drop it."""
        if number < 12:
            self._raw(number)
            place = self._m_place(number)
            self._m_written.add(number)
            self.builder.store("i32", text, place)

    def _raw(self, number: int) -> None:
        """The packed form of a pair is needed."""
        if number & ~1 in self.unpacked:
            self.pack(number & ~1)

    # ---- packed addresses

    def field(self, pair: int, index: int) -> str:
        """One of three addresses of a pair, as i32."""
        return self.builder.load("i32", self._fields[pair][index])

    def set_field(self, pair: int, index: int, text: str) -> None:
        """Set an address; `text` may have more than 21 bits."""
        low = self.builder.op(f"and i32 {text}, {ADDRESS_BITS}")
        self.builder.store("i32", low, self._fields[pair][index])

    def unpack(self, pair: int) -> None:
        """Keep a pair's three addresses apart from now on."""
        if pair in self.unpacked:
            return
        build = self.builder
        low, high = self.read_m(pair), self.read_m(pair + 1)
        self.open_pair(pair)
        self.set_field(pair, 0, low)
        self.set_field(pair, 1, high)
        top = build.op(f"and i32 {build.op(f'lshr i32 {high}, 21')}, 1023")
        third = build.op(f"or i32 {build.op(f'lshr i32 {low}, 21')}, {build.op(f'shl i32 {top}, 11')}")
        self.set_field(pair, 2, third)

    def open_pair(self, pair: int) -> None:
        """Make the three addresses of a pair the valid form, without giving them values."""
        if pair not in self._fields:
            self._fields[pair] = [self.builder.alloca("i32", "field") for _ in range(3)]
        self.unpacked.add(pair)

    def pack(self, pair: int) -> None:
        """Write a pair's addresses back to its registers."""
        build = self.builder
        a0, a1, a2 = (self.field(pair, index) for index in range(3))
        self.unpacked.discard(pair)
        low = build.op(f"or i32 {a0}, {build.op(f'shl i32 {a2}, 21')}")
        top = build.op(f"shl i32 {build.op(f'lshr i32 {a2}, 11')}, 21")
        self.write_m(pair, low)
        self.write_m(pair + 1, build.op(f"or i32 {a1}, {top}"))

    def pack_all(self) -> None:
        for pair in sorted(self.unpacked):
            self.pack(pair)

    # ---- A registers

    def _a_place(self, number: int) -> str:
        """Pointer to an A register below 8."""
        for index in (number,):
            if index not in self._a_known:
                self._a_known.add(index)
                self.builder.allocas += [
                    f"  %a{index}at = getelementptr i64, ptr %regs, i64 {at.A_REGISTERS + index}",
                    f"  %a{index}wide = load i64, ptr %a{index}at",
                    f"  %a{index}word = trunc i64 %a{index}wide to i32",
                    f"  %a{index}place = getelementptr i32, ptr %afile, i64 {index}",
                    f"  store i32 %a{index}word, ptr %a{index}place",
                ]
        return f"%a{number}place"

    def _a_constant(self, number: int) -> str:
        """An A register from 8 on, which no instruction changes."""
        if number not in self._a_known:
            self._a_known.add(number)
            self.builder.allocas += [
                f"  %a{number}at = getelementptr i64, ptr %regs, i64 {at.A_REGISTERS + number}",
                f"  %a{number}wide = load i64, ptr %a{number}at",
                f"  %a{number}word = trunc i64 %a{number}wide to i32",
            ]
        return f"%a{number}word"

    def read_a(self, number: int) -> str:
        """An A register as i32."""
        if number >= 8:
            return self._a_constant(number)
        return self.builder.load("i32", self._a_place(number))

    def read_a64(self, number: int) -> str:
        """A register pair as i64, the low word first."""
        if number >= 8:
            low = self.builder.op(f"zext i32 {self._a_constant(number)} to i64")
            high = self.builder.op(f"zext i32 {self._a_constant(number + 1)} to i64")
            return self.builder.op(f"or i64 {low}, {self.builder.op(f'shl i64 {high}, 32')}")
        place = self._a_place(number)
        self._a_place(number + 1)
        return self.builder.load("i64", place, 8)

    def write_a(self, number: int, text: str) -> None:
        """Set an A register to an i32; those that are no storage drop it."""
        if number < 8:
            self._a_written.add(number)
            self.builder.store("i32", text, self._a_place(number))

    def write_a64(self, number: int, text: str) -> None:
        """Set a pair to an i64."""
        if number < 8:
            place = self._a_place(number)
            self._a_place(number + 1)
            self._a_written |= {number, number + 1}
            self.builder.store("i64", text, place, 8)

    # ---- the exit

    def store_back(self) -> None:
        """Write all changed registers to the state array."""
        build = self.builder
        for number in sorted(self._m_written):
            wide = build.op(f"zext i32 {build.load('i32', f'%m{number}')} to i64")
            build.store("i64", wide, f"%m{number}at")
        for number in sorted(self._a_written):
            wide = build.op(f"zext i32 {build.load('i32', f'%a{number}place')} to i64")
            build.store("i64", wide, f"%a{number}at")

    def csr(self, number: int) -> str:
        """Pointer to one of the worker's control registers."""
        return self.builder.at("%csrs", "i64", number)
