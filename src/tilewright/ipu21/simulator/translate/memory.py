"""Loads and stores of a translated worker."""

from __future__ import annotations

from collections.abc import Sequence, Set

from ...machine.memory import REGION1_BASE, TILE_BASE
from .. import codes
from ..instruction_tables import INFO_A_REGISTER, INFO_BROADCAST, INFO_LANES
from . import reasons
from .accesses import ADDRESS_BITS, Analysis, Group, Terms, Unknown, groups_of
from .frame import Frame
from .program import Operation

COLD = ", !prof !0"
"""Attached to branches that are hardly ever taken to their first target."""


class MemoryEmitter(Frame):
    """Emits memory instructions; `begin` before each stretch tells it which accesses come."""

    def __init__(self, wide_pairs: Set[int]) -> None:
        super().__init__(wide_pairs)
        self._apart = False
        self.bail_reasons: set[int] = set()
        self.builder.allocas += [
            f"  %membias = sub i64 %memint, {TILE_BASE}",
            "  %mem = inttoptr i64 %membias to ptr",
        ]
        self._groups: list[tuple[Group, set[int]]] = []
        self._owner: dict[int, Group] = {}
        self._analysis = Analysis()
        self._next = 0

    # ---- stretches

    def begin(self, analysis: Analysis, repeated: bool) -> None:
        """A stretch whose accesses have been analysed follows."""
        self._analysis = analysis
        self._apart = False
        self._next = 0
        self._groups = groups_of(analysis, repeated)
        self._owner = {index: group for group, members in self._groups for index in members}

    def bail(self, reason: int) -> str:
        """Label of the block that gives up the launch for a reason (see `reasons`)."""
        self.bail_reasons.add(reason)
        return f"bail_{reason}"

    def bail_if(self, condition: str, reason: int) -> None:
        """Give up the launch if an i1 is true."""
        go_on = self.builder.name("ok")
        self.builder.branch(condition, self.bail(reason), go_on, COLD)
        self.builder.label(go_on)

    def hoist(self, count: str) -> None:
        """Check and record, before a repeat body, what advances evenly over `count` > 0 repetitions."""
        for group, _ in self._groups:
            if group.advance is not None and self._evaluable(group.terms):
                self._hoist(group, count)
                group.emitted = True
        self._apart = self._keep_apart(count)

    @staticmethod
    def _evaluable(terms: Terms) -> bool:
        return all(kind != "new" for (kind, _, _), _ in terms)

    def _keep_apart(self, count: str) -> bool:
        """Look before a repeat body for two accesses of one instruction in one memory element.

        False if that cannot be told before.
        """
        spans: dict[tuple[Terms, Terms], set[tuple[int, int]]] = {}
        for first, second in self._analysis.conflicts:
            spans.setdefault((first.terms, second.terms), set()).add((first.constant, second.constant))
        walks: list[tuple[list[str], list[str], list[tuple[int, int]]]] = []
        safe = "true"
        less = self.builder.op(f"sub i64 {count}, 1")
        for terms, constants in spans.items():
            advances = [self._analysis.advance(item) if self._evaluable(item) else None for item in terms]
            if advances[0] is None or advances[1] is None:
                return False
            bases = [self.builder.op(f"and i64 {self._sum(item, 0)}, {ADDRESS_BITS}") for item in terms]
            steps = [self._sum(item.terms, item.constant) for item in advances if item is not None]
            apart = self._pair_apart(bases, steps, sorted(constants), less)
            safe = self.builder.op(f"and i1 {safe}, {apart}")
            walks.append((bases, steps, sorted(constants)))
        if walks:
            self._walk(safe, walks, count)
        return True

    def _walk(
        self, safe: str, walks: Sequence[tuple[list[str], list[str], list[tuple[int, int]]]], count: str
    ) -> None:
        """Unless they are known to stay apart, look at every repetition."""
        build = self.builder
        look, apart = build.name("look"), build.name("apart")
        build.branch(safe, apart, look)
        build.label(look)
        found = "0"
        for bases, steps, constants in walks:
            for pair in constants:
                places = [build.op(f"add i64 {base}, {item}") for base, item in zip(bases, pair, strict=True)]
                arguments = f"i64 {places[0]}, i64 {steps[0]}, i64 {places[1]}, i64 {steps[1]}, i64 {count}"
                found = build.op(f"or i64 {found}, {build.call('i64', 'tw.runtime.meet', arguments)}")
        self.bail_if(build.op(f"icmp ne i64 {found}, 0"), reasons.CONFLICT)
        build.label(apart)

    def _pair_apart(
        self,
        bases: Sequence[str],
        steps: Sequence[str],
        constants: Sequence[tuple[int, int]],
        less: str,
    ) -> str:
        """i1: two walks certainly stay in different elements."""
        build = self.builder
        lows, highs = [], []
        for side in range(2):
            mine = [item[side] for item in constants]
            way = build.op(f"mul i64 {steps[side]}, {less}")
            ends = [build.op(f"add i64 {bases[side]}, {bound(mine)}") for bound in (min, max)]
            below = build.call("i64", "llvm.smin.i64", f"i64 {way}, i64 0")
            above = build.call("i64", "llvm.smax.i64", f"i64 {way}, i64 0")
            lows.append(build.op(f"add i64 {ends[0]}, {below}"))
            highs.append(build.op(f"add i64 {ends[1]}, {above}"))
        blocks = [[build.op(f"ashr i64 {text}, 15") for text in texts] for texts in (lows, highs)]
        before = build.op(f"icmp slt i64 {blocks[1][0]}, {blocks[0][1]}")
        behind = build.op(f"icmp slt i64 {blocks[1][1]}, {blocks[0][0]}")
        apart = build.op(f"or i1 {before}, {behind}")
        distances = {(first - second) & 15 for first, second in constants}
        if len(distances) > 1 or distances.pop() not in (0, 8):
            return apart
        # In region 1 two addresses of different parity never meet, and equal steps of 16 keep it.
        parity = build.op(f"xor i64 {bases[0]}, {bases[1]}")
        distance = (constants[0][0] - constants[0][1]) & 8
        differ = build.op(f"icmp ne i64 {build.op(f'and i64 {parity}, 8')}, {distance}")
        even = build.op(f"and i64 {build.op(f'or i64 {steps[0]}, {steps[1]}')}, 15")
        lower = build.call("i64", "llvm.smin.i64", f"i64 {lows[0]}, i64 {lows[1]}")
        for test in (f"icmp eq i64 {even}, 0", f"icmp sge i64 {lower}, {REGION1_BASE}"):
            differ = build.op(f"and i1 {differ}, {build.op(test)}")
        return build.op(f"or i1 {apart}, {differ}")

    def _term(self, item: Unknown) -> str:
        kind, first, second = item
        if kind == "m":
            return self.read_m64(first)
        build = self.builder
        if kind == "field":
            return build.op(f"zext i32 {self.field(first, second)} to i64")
        moved = build.op(f"shl i64 {self.read_m64(first)}, {64 - 10 * second}")
        return build.op(f"ashr i64 {moved}, 54")

    def _sum(self, terms: tuple[tuple[Unknown, int], ...], constant: int) -> str:
        build, total = self.builder, str(constant)
        for item, count in terms:
            text = self._term(item)
            scaled = text if count == 1 else build.op(f"mul i64 {text}, {count}")
            total = build.op(f"add i64 {total}, {scaled}")
        return total

    def _hoist(self, group: Group, count: str) -> None:
        build = self.builder
        raw = self._sum(group.terms, group.low)
        packed = any(kind == "field" for (kind, _, _), _ in group.terms)
        first = build.op(f"and i64 {raw}, {ADDRESS_BITS if packed else 0xFFFFFFFF}")
        assert group.advance is not None
        step = self._sum(group.advance.terms, group.advance.constant)
        if not packed:
            step = build.op(f"ashr i64 {build.op(f'shl i64 {step}, 32')}, 32")
        self._aligned(group, first, step)
        size = group.high - group.low
        name = "prepare_stores" if group.store else "prepare_loads"
        arguments = f"ptr %scratch, i64 {first}, i64 {step}, i64 {count}, i64 {size}"
        bad = build.call("i64", f"tw.runtime.{name}", arguments)
        if group.wide:
            self._region(first)
            less = build.op(f"sub i64 {count}, 1")
            self._region(build.op(f"add i64 {first}, {build.op(f'mul i64 {step}, {less}')}"))
        self.bail_if(build.op(f"icmp ne i64 {bad}, 0"), reasons.ADDRESS)

    def _aligned(self, group: Group, first: str, step: str) -> None:
        """`first` is the address of the group's lowest byte."""
        build, wrong = self.builder, "0"
        for size, residue in sorted(group.residues):
            if size == 1:
                continue
            # An access at constant c lies c - low bytes behind `first`; all of one residue agree modulo size.
            place = build.op(f"add i64 {first}, {(residue - group.low) % size}")
            both = build.op(f"or i64 {place}, {step}") if step != "0" else place
            wrong = build.op(f"or i64 {wrong}, {build.op(f'and i64 {both}, {size - 1}')}")
        if wrong != "0":
            self.bail_if(build.op(f"icmp ne i64 {wrong}, 0"), reasons.ALIGNMENT)

    def _region(self, address: str) -> None:
        self.bail_if(self.builder.op(f"icmp ult i64 {address}, {REGION1_BASE}"), reasons.REGION)

    def _pointer(self, address: str, size: int) -> str:
        """The next access of the stretch, at an i32 address: checked, recorded, and as a pointer."""
        build = self.builder
        access = self._analysis.accesses[self._next]
        assert access.size == size
        group = self._owner[self._next]
        self._next += 1
        wide = build.op(f"zext i32 {address} to i64")
        if not group.emitted:
            group.emitted = True
            low = build.op(f"add i64 {wide}, {group.low - access.address.constant}")
            self._aligned(group, low, "0")
            if group.wide:
                self._region(low)
            name = "prepare_store" if group.store else "prepare_load"
            bad = build.call(
                "i64", f"tw.runtime.{name}", f"ptr %scratch, i64 {low}, i64 {group.high - group.low}"
            )
            self.bail_if(build.op(f"icmp ne i64 {bad}, 0"), reasons.ADDRESS)
        return build.op(f"getelementptr i8, ptr %mem, i64 {wide}")

    # ---- instructions

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
            self._load_a(pointer, 3, 0, number + 2)
            self._load_a(address, 2, 0, number + 1)
        self.write_m(op.register(1), build.op(f"add i32 {pointer}, 8"))

    def _mini_delta(self, op: Operation) -> None:
        build, number = self.builder, op.register(0)
        base, deltas = self.read_m(op.register(1)), self.read_m(op.register(2))
        minis = self.read_m(op.register(3))
        low, high = build.op(f"and i32 {deltas}, 65535"), build.op(f"lshr i32 {deltas}, 16")
        for index, part in enumerate((low, high)):
            self._load_a(build.op(f"add i32 {base}, {part}"), 1, codes.EXTEND_REPEAT, number + index)
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
        address = build.op(f"add i32 {self.read_m(op.register(1))}, {delta}")
        if op.place(3):
            offset = build.op(f"shl i32 {self.read_m(op.register(3))}, {size_log}")
        else:
            offset = str((op.immediate << size_log) & 0xFFFFFFFF)
        if function in (codes.LOAD, codes.STORE):
            address = build.op(f"add i32 {address}, {offset}")
        moved = build.op(f"add i32 {delta}, {offset}")
        a_register = op.info >> INFO_A_REGISTER & 1
        if function in (codes.STORE, codes.STORE_STEP):
            if size_log == 3:
                value = self.read_a64(data)
                build.store("i64", value, self._pointer(address, 8), 8)
            else:
                value = self.read_a(data) if a_register else self.read_m(data)
                build.store("i32", value, self._pointer(address, 4), 4)
        elif a_register:
            self._load_a(address, size_log, op.info >> INFO_BROADCAST & 3, data)
        elif data < 12:
            pointer = self._pointer(address, 1 << size_log)
            self.write_m(data, self._load(pointer, size_log, op.info >> INFO_BROADCAST & 3))
        if function in (codes.LOAD_STEP, codes.STORE_STEP):
            self.write_m(delta_number, moved)

    def _stm(self, op: Operation) -> None:
        build = self.builder
        base = self.read_m(op.register(1))
        moved = build.op(f"add i32 {base}, {build.op(f'shl i32 {self.read_m(op.register(2))}, 2')}")
        value = self.read_m(op.register(0))
        pointer = self._pointer(moved if op.function == codes.STM else base, 4)
        build.store("i32", value, pointer, 4)
        if op.function == codes.STM_STEP:
            self.write_m(op.register(1), moved)

    def _tapack(self, op: Operation) -> None:
        values = [self.read_m(op.register(index)) for index in (1, 2, 3)]
        pair = op.register(0)
        if pair < 12:
            self.unpacked.discard(pair)
            self.open_pair(pair)
            for index, text in enumerate(values):
                self.set_field(pair, index, text)

    def _conflicts(self, *pairs: tuple[str, str]) -> None:
        """Two accesses of one instruction in one memory element end the launch."""
        if self._apart:
            return
        build = self.builder
        for first, second in pairs:
            low = build.op(f"icmp ult i32 {first}, {REGION1_BASE}")
            # Elements are 16 KiB, in region 1 every other 8 bytes of 32 KiB.
            mask = build.op(f"select i1 {low}, i32 {0xFFFFC000}, i32 {0xFFFF8008}")
            differ = build.op(f"and i32 {build.op(f'xor i32 {first}, {second}')}, {mask}")
            self.bail_if(build.op(f"icmp eq i32 {differ}, 0"), reasons.CONFLICT)

    def _move(self, pair: int, index: int, stride: int, selector: int, size: int) -> None:
        """Advance one packed address."""
        build = self.builder
        address = self.field(pair, index)
        if selector == 0:
            amount = str(size)
        else:
            raw = build.op(f"shl i32 {self.read_m(stride)}, {32 - 10 * selector}")
            units = build.op(f"ashr i32 {raw}, 22")
            amount = build.op(f"mul i32 {units}, {size}")
        self.set_field(pair, index, build.op(f"add i32 {address}, {amount}"))

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
        place = self._pointer(pointer, 1 << list_log)
        self._load_a(address, op.info >> INFO_LANES & 7, op.info >> INFO_BROADCAST & 3, op.register(0))
        self.write_m(op.register(3), self._load(place, list_log, 0))
        self.write_m(op.register(1), build.op(f"add i32 {pointer}, {1 << list_log}"))
