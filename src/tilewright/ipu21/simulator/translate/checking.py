"""What must hold for a translated worker's accesses, and their records.

Looked at for a whole stretch of steps at once where addresses are known before it (see `accesses`).
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from ...isa.meaning.address import ADDRESS
from ...machine.memory import REGION1_BASE, TILE_BASE, TILE_BYTES, TILE_END
from . import reasons
from .accesses import ELEMENT_BITS, INTERLEAVED_BITS, Analysis, Group, Terms, Unknown, groups_of
from .spans import Pointer, SpanEmitter, pointer_of


class CheckEmitter(SpanEmitter):
    """Emits checks; `begin` before each stretch tells it which accesses come."""

    def __init__(self, wide_pairs: Set[int]) -> None:
        super().__init__(wide_pairs)
        self._apart = False
        self._may_meet = False
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

    def hoist(self, count: str) -> None:
        """Check and record, before a repeat body, what advances evenly over `count` > 0 repetitions."""
        for group, _ in self._groups:
            if group.advance is not None and self._evaluable(group.terms):
                self._hoist(group, count)
                group.emitted = True
        self._apart = self._keep_apart(count)

    def look_ahead(self) -> None:
        """Check and record, before steps that run once, the accesses whose addresses are known now."""
        build = self.builder
        wrong, region, outside = "0", "false", "false"
        lowest: dict[Terms, str] = {}
        seen: set[tuple[Terms, int, int]] = set()
        spans: list[tuple[Group, str, str]] = []
        for group, _ in self._groups:
            if not self._evaluable(group.terms):
                continue
            group.emitted = True
            if group.terms not in lowest:
                lowest[group.terms] = self._sum(group.terms, 0)
            low = self._address(build.join("add", "i64", lowest[group.terms], str(group.low)))
            for size, residue in sorted(group.residues):
                if (group.terms, size, residue) not in seen:
                    seen.add((group.terms, size, residue))
                    wrong = build.join("or", "i64", wrong, self._odd_bits(group, size, residue, low))
            if group.wide:
                region = build.op(f"or i1 {region}, {build.op(f'icmp ult i64 {low}, {REGION1_BASE}')}")
            outside = build.op(f"or i1 {outside}, {self._outside(low, group.size)}")
            spans.append((group, low, build.op(f"add i64 {low}, {group.size}")))
        if wrong != "0":
            self.bail_if(build.op(f"icmp ne i64 {wrong}, 0"), reasons.ALIGNMENT)
        if region != "false":
            self.bail_if(region, reasons.REGION)
        if spans:
            self.bail_if(outside, reasons.ADDRESS)
        self._note_spans(spans)

    def _note_spans(self, spans: list[tuple[Group, str, str]]) -> None:
        """Of each pointer's spans the longest may continue; the others are recorded as they are."""
        longest: dict[Pointer, Group] = {}
        for group, _, _ in spans:
            pointer = pointer_of(group.store, group.terms)
            if pointer not in longest or group.size > longest[pointer].size:
                longest[pointer] = group
        for group, low, high in spans:
            if longest[pointer_of(group.store, group.terms)] is group:
                self.note_span(group.store, group.terms, low, high)
        bad = "0"
        for group, low, high in spans:
            if longest[pointer_of(group.store, group.terms)] is not group:
                bad = self.builder.join("or", "i64", bad, self.record_span(group.store, low, high))
        if bad != "0":
            self.bail_if(self.builder.op(f"icmp ne i64 {bad}, 0"), reasons.ADDRESS)

    def _address(self, total: str) -> str:
        """A sum as an address. Packed ones are not cut: what lies outside memory must stay there."""
        return self.builder.op(f"and i64 {total}, {0xFFFFFFFF}")

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
            bases = [self.builder.op(f"and i64 {self._sum(item, 0)}, {ADDRESS}") for item in terms]
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
            self.unpack(first)
            return self.field(first, second)
        moved = build.op(f"shl i64 {self.read_m64(first)}, {64 - 10 * second}")
        return build.op(f"ashr i64 {moved}, 54")

    def _sum(self, terms: tuple[tuple[Unknown, int], ...], constant: int) -> str:
        build, total = self.builder, str(constant)
        for item, count in terms:
            text = self._term(item)
            scaled = text if count == 1 else build.op(f"mul i64 {text}, {count}")
            total = build.join("add", "i64", total, scaled)
        return total

    def _hoist(self, group: Group, count: str) -> None:
        build = self.builder
        first = self._address(self._sum(group.terms, group.low))
        assert group.advance is not None
        step = self._sum(group.advance.terms, group.advance.constant)
        step = build.op(f"ashr i64 {build.op(f'shl i64 {step}, 32')}, 32")
        self._aligned(group, first, step)
        way = build.op(f"mul i64 {step}, {build.op(f'sub i64 {count}, 1')}")
        size = group.size
        if group.wide:
            self._region(first)
            self._region(build.op(f"add i64 {first}, {way}"))
        below = build.call("i64", "llvm.smin.i64", f"i64 {way}, i64 0")
        above = build.call("i64", "llvm.smax.i64", f"i64 {way}, i64 0")
        low = build.op(f"add i64 {first}, {below}")
        high = build.op(f"add i64 {build.op(f'add i64 {first}, {above}')}, {size}")
        before = build.op(f"icmp slt i64 {low}, {TILE_BASE}")
        behind = build.op(f"icmp sgt i64 {high}, {TILE_END}")
        self.bail_if(build.op(f"or i1 {before}, {behind}"), reasons.ADDRESS)
        # Steps of no more than the size leave no gaps.
        wide = build.op(f"icmp ugt i64 {build.op(f'add i64 {step}, {size}')}, {2 * size}")
        gaps, none, done = build.name("gaps"), build.name("none"), build.name("done")
        build.branch(wide, gaps, none)
        build.label(gaps)
        self.record_comb(group.store, (low, high), step, count, size)
        build.jump(done)
        build.label(none)
        self.note_span(group.store, group.terms, low, high)
        build.label(done)

    def _outside(self, low: str, size: int) -> str:
        """i1: not all of some bytes are in memory."""
        offset = self.builder.op(f"sub i64 {low}, {TILE_BASE}")
        return self.builder.op(f"icmp ugt i64 {offset}, {TILE_BYTES - size}")

    def _aligned(self, group: Group, first: str, step: str = "0") -> None:
        """`first` is the address of the group's lowest byte."""
        build, wrong = self.builder, "0"
        for size, residue in sorted(group.residues):
            wrong = build.join("or", "i64", wrong, self._odd_bits(group, size, residue, first, step))
        if wrong != "0":
            self.bail_if(build.op(f"icmp ne i64 {wrong}, 0"), reasons.ALIGNMENT)

    def _odd_bits(self, group: Group, size: int, residue: int, first: str, step: str = "0") -> str:
        """Not zero if the group's accesses of a size and residue are not aligned, or their step is not."""
        if size == 1:
            return "0"
        # An access at constant c lies c - low bytes behind `first`; all of one residue agree modulo size.
        place = self.builder.join("add", "i64", first, str((residue - group.low) % size))
        both = self.builder.join("or", "i64", place, step)
        return self.builder.op(f"and i64 {both}, {size - 1}")

    def _region(self, address: str) -> None:
        self.bail_if(self.builder.op(f"icmp ult i64 {address}, {REGION1_BASE}"), reasons.REGION)

    def _pointer(self, address: str, size: int) -> str:
        """The next access of the stretch, at an i64 address: checked, recorded, and as a pointer."""
        build = self.builder
        access = self._analysis.accesses[self._next]
        assert access.size == size
        group = self._owner[self._next]
        self._next += 1
        if not group.emitted:
            group.emitted = True
            low = build.join("add", "i64", address, str(group.low - access.address.constant))
            self._aligned(group, low)
            if group.wide:
                self._region(low)
            size = group.size
            self.bail_if(self._outside(low, size), reasons.ADDRESS)
            self.note_span(group.store, group.terms, low, build.op(f"add i64 {low}, {size}"))
        return build.op(f"getelementptr i8, ptr %mem, i64 {address}")

    def _conflicts(self, *pairs: tuple[str, str]) -> None:
        """Two accesses of one instruction in one memory element make the launch fail at its exit."""
        if self._apart:
            return
        build = self.builder
        if not self._may_meet:
            self._may_meet = True
            build.allocas += ["  %met = alloca i1", "  store i1 false, ptr %met"]
        for first, second in pairs:
            low = build.op(f"icmp ult i64 {build.op(f'and i64 {first}, {ADDRESS}')}, {REGION1_BASE}")
            mask = build.op(f"select i1 {low}, i64 {ELEMENT_BITS}, i64 {INTERLEAVED_BITS}")
            differ = build.op(f"and i64 {build.op(f'xor i64 {first}, {second}')}, {mask}")
            same = build.op(f"icmp eq i64 {differ}, 0")
            build.store("i1", build.op(f"or i1 {build.load('i1', '%met')}, {same}"), "%met")

    def look_at_conflicts(self) -> None:
        """At the exit: give up if two accesses of one instruction met."""
        if self._may_meet:
            self.bail_if(self.builder.load("i1", "%met"), reasons.CONFLICT)
