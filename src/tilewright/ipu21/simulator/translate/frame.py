"""A worker's registers inside a translated function: stack slots that the optimiser turns into values."""

from __future__ import annotations

from collections.abc import Set

from ...isa.meaning.address import ADDRESS
from .. import state as at
from ..engine_registers import csr_index
from .ir import Builder


class Frame:
    """Register files, counters and pointers of one function.

    %state, %context and %scratch are the function's parameters. A register is loaded from the state array in
    the entry block when it is first mentioned, and stored back at the exit if it was ever written. Packed
    address pairs are kept taken apart between paced accesses.
    """

    def __init__(self, wide_pairs: Set[int]) -> None:
        self.builder = Builder()
        self._wide_pairs = wide_pairs
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
            "  %issues = alloca i64",
            "  store i64 0, ptr %issues",
            "  %slots = alloca i64",
            "  store i64 0, ptr %slots",
            "  %agrees = alloca i64",
            "  %specials = alloca i64",
            "  store i64 0, ptr %specials",
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
        """An M register as i32. The last one is zero."""
        if number == 15:
            return "0"
        self._raw(number)
        place = self._m_place(number)
        return f"%m{number}word" if number >= 12 else self.builder.load("i32", place)

    def read_m64(self, number: int) -> str:
        return "0" if number == 15 else self.builder.op(f"zext i32 {self.read_m(number)} to i64")

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
        """One of three addresses of a pair, as i64."""
        return self.builder.load("i64", self._fields[pair][index])

    def set_field(self, pair: int, index: int, text: str) -> None:
        """Set an address. Bits above the 21st count as zero, which `pack` and accesses see to."""
        self.builder.store("i64", text, self._fields[pair][index])

    def unpack(self, pair: int) -> None:
        """Keep a pair's three addresses apart from now on."""
        if pair in self.unpacked:
            return
        build = self.builder
        low, high = self.read_m64(pair), self.read_m64(pair + 1)
        self.open_pair(pair)
        self.set_field(pair, 0, build.op(f"and i64 {low}, {ADDRESS}"))
        self.set_field(pair, 1, build.op(f"and i64 {high}, {ADDRESS}"))
        top = build.op(f"and i64 {build.op(f'lshr i64 {high}, 21')}, 1023")
        third = build.op(f"or i64 {build.op(f'lshr i64 {low}, 21')}, {build.op(f'shl i64 {top}, 11')}")
        self.set_field(pair, 2, third)

    def open_pair(self, pair: int) -> None:
        """Make the three addresses of a pair the valid form, without giving them values."""
        if pair not in self._fields:
            self._fields[pair] = [self.builder.alloca("i64", "field") for _ in range(3)]
        self.unpacked.add(pair)

    def pack(self, pair: int) -> None:
        """Write a pair's addresses back to its registers."""
        build = self.builder
        a0, a1, a2 = (build.op(f"and i64 {self.field(pair, index)}, {ADDRESS}") for index in range(3))
        self.unpacked.discard(pair)
        low = build.op(f"or i64 {a0}, {build.op(f'shl i64 {a2}, 21')}")
        top = build.op(f"shl i64 {build.op(f'lshr i64 {a2}, 11')}, 21")
        high = build.op(f"or i64 {a1}, {top}")
        self.write_m(pair, build.op(f"trunc i64 {low} to i32"))
        self.write_m(pair + 1, build.op(f"trunc i64 {high} to i32"))

    def pack_all(self) -> None:
        for pair in sorted(self.unpacked):
            self.pack(pair)

    # ---- A registers

    def _a_place(self, number: int) -> str:
        """Pointer to an A register below 8, or to its pair if that is kept as one value."""
        if number & ~1 in self._wide_pairs:
            return self._pair_place(number & ~1)
        self._enter_a(
            number,
            f"%a{number}word = trunc i64 %a{number}wide to i32",
            f"%a{number}place = alloca i32",
            f"store i32 %a{number}word, ptr %a{number}place",
        )
        return f"%a{number}place"

    def _pair_place(self, number: int) -> str:
        self._enter_a(
            number,
            f"%a{number}next = getelementptr i64, ptr %a{number}at, i64 1",
            f"%a{number}high = load i64, ptr %a{number}next",
            f"%a{number}top = shl i64 %a{number}high, 32",
            f"%a{number}both = or i64 %a{number}wide, %a{number}top",
            f"%a{number}place = alloca i64",
            f"store i64 %a{number}both, ptr %a{number}place",
        )
        return f"%a{number}place"

    def _a_constant(self, number: int) -> str:
        """An A register from 8 on, which no instruction changes; the last two are zero."""
        if number >= 14:
            return "0"
        self._enter_a(number, f"%a{number}word = trunc i64 %a{number}wide to i32")
        return f"%a{number}word"

    def _enter_a(self, number: int, *further: str) -> None:
        """Load an A register on entry as %a..wide and go on with `further`, unless that is done already."""
        if number in self._a_known:
            return
        self._a_known.add(number)
        lines = (
            f"%a{number}at = getelementptr i64, ptr %regs, i64 {at.A_REGISTERS + number}",
            f"%a{number}wide = load i64, ptr %a{number}at",
            *further,
        )
        self.builder.allocas += [f"  {line}" for line in lines]

    def read_a(self, number: int) -> str:
        """An A register as i32."""
        build = self.builder
        if number >= 8:
            return self._a_constant(number)
        place = self._a_place(number)
        if number & ~1 not in self._wide_pairs:
            return build.load("i32", place)
        both = build.load("i64", place)
        return build.op(f"trunc i64 {build.op(f'lshr i64 {both}, 32') if number & 1 else both} to i32")

    def read_a64(self, number: int) -> str:
        """A register pair as i64, the low word first."""
        build = self.builder
        if number < 8 and number in self._wide_pairs:
            return build.load("i64", self._a_place(number))
        if number == 14:
            return "0"
        low = build.op(f"zext i32 {self.read_a(number)} to i64")
        high = build.op(f"zext i32 {self.read_a(number + 1)} to i64")
        return build.op(f"or i64 {low}, {build.op(f'shl i64 {high}, 32')}")

    def write_a(self, number: int, text: str) -> None:
        """Set an A register to an i32; those that are no storage drop it."""
        build = self.builder
        if number >= 8:
            return
        place = self._a_place(number)
        self._a_written.add(number)
        if number & ~1 not in self._wide_pairs:
            build.store("i32", text, place)
            return
        wide = build.op(f"zext i32 {text} to i64")
        keep = 0xFFFFFFFF if number & 1 else -(1 << 32)
        kept = build.op(f"and i64 {build.load('i64', place)}, {keep}")
        moved = build.op(f"shl i64 {wide}, 32") if number & 1 else wide
        build.store("i64", build.op(f"or i64 {kept}, {moved}"), place)

    def write_a64(self, number: int, text: str) -> None:
        """Set a pair to an i64."""
        if number >= 8:
            return
        if number in self._wide_pairs:
            self._a_written |= {number, number + 1}
            self.builder.store("i64", text, self._a_place(number))
            return
        self.write_a(number, self.builder.op(f"trunc i64 {text} to i32"))
        high = self.builder.op(f"lshr i64 {text}, 32")
        self.write_a(number + 1, self.builder.op(f"trunc i64 {high} to i32"))

    # ---- the exit

    def store_back(self) -> None:
        """Write all changed registers to the state array."""
        build = self.builder
        for number in sorted(self._m_written):
            wide = build.op(f"zext i32 {build.load('i32', f'%m{number}')} to i64")
            build.store("i64", wide, f"%m{number}at")
        for number in sorted(self._a_written):
            wide = build.op(f"zext i32 {self.read_a(number)} to i64")
            build.store("i64", wide, build.at("%regs", "i64", at.A_REGISTERS + number))

    def csr(self, number: int) -> str:
        """Pointer to one of the worker's control registers."""
        return self.builder.at("%csrs", "i64", number)
