"""Which addresses a stretch of worker code touches, in terms of what its registers held at the beginning.

An address is a sum of unknowns and a constant. Accesses with the same unknowns are checked and recorded
together, once; in a repeat body whose unknowns advance evenly, once for all repetitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...isa.meaning.bits import signed
from .. import codes
from ..instruction_tables import INFO_A_REGISTER, INFO_LANES
from .program import Operation, Step

Unknown = tuple[str, int, int]
"""(`m`, register, 0): its value at the beginning; (`field`, pair, index): a packed address at the beginning;
(`pace`, stride register, selector): accesses to move by; (`new`, number, 0): anything else."""

Terms = tuple[tuple[Unknown, int], ...]
"""Unknowns with their factors, sorted."""

ELEMENT_BITS, INTERLEAVED_BITS = 0x1FC000, 0x1F8008
"""Bits that tell an address's memory element: of 16 KiB, in region 1 every other 8 bytes of 32 KiB."""


@dataclass(frozen=True)
class Linear:
    """A sum of multiples of unknowns, and a constant."""

    terms: Terms = ()
    constant: int = 0

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        sums = dict(self.terms)
        for unknown, count in other.terms:
            sums[unknown] = sums.get(unknown, 0) + factor * count
        terms = tuple(sorted((unknown, count) for unknown, count in sums.items() if count))
        return Linear(terms, self.constant + factor * other.constant)

    def shifted(self, constant: int) -> Linear:
        return Linear(self.terms, self.constant + constant)


def unknown(kind: str, first: int, second: int = 0) -> Linear:
    return Linear((((kind, first, second), 1),))


@dataclass(frozen=True)
class Access:
    """One checked access. `step` counts the steps of the stretch."""

    step: int
    store: bool
    address: Linear
    size: int


@dataclass
class Group:
    """Accesses of one kind to one run of bytes.

    Attributes:
        terms: their common unknowns.
        low, high: constants of the first byte and of the end.
        residues: (size, constant modulo size) of the accesses, for alignment.
        advance: of a repeat body, how far the run moves per repetition; None if that is not known.
    """

    store: bool
    terms: Terms
    low: int
    high: int
    residues: set[tuple[int, int]]
    wide: bool
    advance: Linear | None = None
    emitted: bool = False

    @property
    def size(self) -> int:
        """Bytes of the run."""
        return self.high - self.low


@dataclass
class Analysis:
    """Follows a stretch of steps.

    Attributes:
        accesses: in the order of execution.
        registers: what each M register holds now, where it is not what it held at the beginning.
        fields: packed addresses by pair, where they are known.
    """

    accesses: list[Access] = field(default_factory=list)
    registers: dict[int, Linear] = field(default_factory=dict)
    fields: dict[int, list[Linear]] = field(default_factory=dict)
    conflicts: list[tuple[Linear, Linear]] = field(default_factory=list)
    paced_pairs: set[int] = field(default_factory=set)
    _step: int = -1
    _fresh: int = 0

    def follow(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self._step += 1
            if step.main is not None:
                self._main(step.main)

    def value(self, number: int) -> Linear:
        if number == 15:
            return Linear()
        return self.registers.get(number, unknown("m", number))

    def fresh(self) -> Linear:
        self._fresh += 1
        return unknown("new", self._fresh)

    def assign(self, number: int, value: Linear) -> None:
        if number < 12:
            self.registers[number] = value
            # The addresses packed there are others from here on.
            self.fields[number & ~1] = [self.fresh() for _ in range(3)]

    def pair(self, number: int) -> list[Linear]:
        if number not in self.fields:
            self.fields[number] = [unknown("field", number, index) for index in range(3)]
        return self.fields[number]

    def _main(self, op: Operation) -> None:
        if op.group == codes.GROUP_WORDS:
            number = op.word >> (op.place(3) - 1) & 15
            self.assign(number, self._word(op))
        elif op.group == codes.GROUP_MEMORY:
            self._memory(op)
        elif op.group == codes.GROUP_CONTROL and op.function in (codes.GET, codes.CALL, codes.BRNZDEC):
            self.assign(op.register(0), self.fresh())

    def _operand(self, op: Operation, index: int) -> Linear | None:
        place = op.place(index)
        if place == 63:
            return Linear((), signed(op.immediate))
        return self.value(op.register(index)) if place else None

    def _word(self, op: Operation) -> Linear:
        x, y = self._operand(op, 0), self._operand(op, 1)
        if op.mnemonic == "setzi" and x is not None:
            return x
        if x is None or y is None:
            return self.fresh()
        if op.mnemonic == "add":
            return x.plus(y)
        if op.mnemonic == "sub":
            return x.plus(y, -1)
        if op.mnemonic == "or" and Linear() in (x, y):
            return x.plus(y)
        return self.fresh()

    def _access(self, store: bool, address: Linear, size: int) -> None:
        self.accesses.append(Access(self._step, store, address, size))

    def _memory(self, op: Operation) -> None:
        function = op.function
        if function <= codes.STORE_STEP:
            self._plain(op)
        elif function <= codes.STM_STEP:
            base = self.value(op.register(1))
            moved = self.fresh()
            self._access(True, moved if function == codes.STM else base, 4)
            if function == codes.STM_STEP:
                self.assign(op.register(1), moved)
        elif function < codes.TAPACK:
            self._paced(op)
        elif function == codes.TAPACK:
            values = [self.value(op.register(index)) for index in (1, 2, 3)]
            pair = op.register(0)
            if pair < 12:
                self.registers[pair], self.registers[pair + 1] = self.fresh(), self.fresh()
                self.fields[pair] = values
        elif function == codes.ATOM:
            self.assign(op.register(0), self.fresh())
        elif function == codes.LD64A32:
            pointer = self.value(op.register(1))
            if op.register(0) + 2 < 8:
                self._access(False, pointer, 8)
                self._access(False, self.fresh(), 4)
            self.assign(op.register(1), pointer.shifted(8))
        elif function == codes.LDB16B16:
            if op.register(0) < 8:
                self._access(False, self.fresh(), 2)
                self._access(False, self.fresh(), 2)
            self.assign(op.register(2), self.fresh())
            self.assign(op.register(3), self.fresh())
        else:
            self._delta(op)

    def _plain(self, op: Operation) -> None:
        function = op.function
        size_log = op.info >> INFO_LANES & 7
        delta_number = op.register(2)
        delta = self.value(delta_number)
        address = self.value(op.register(1)).plus(delta)
        if op.place(3):
            offset = Linear()
            register = self.value(op.register(3))
            for item, count in register.terms:
                offset = offset.plus(Linear(((item, count << size_log),)))
            offset = offset.shifted(register.constant << size_log)
        else:
            offset = Linear((), signed(op.immediate) << size_log)
        if function in (codes.LOAD, codes.STORE):
            address = address.plus(offset)
        store = function in (codes.STORE, codes.STORE_STEP)
        a_register = op.info >> INFO_A_REGISTER & 1
        data = op.register(0)
        if store or data < (8 if a_register else 12):
            self._access(store, address, 1 << size_log)
        if not store and not a_register:
            self.assign(data, self.fresh())
        if function in (codes.LOAD_STEP, codes.STORE_STEP):
            self.assign(delta_number, delta.plus(offset))

    def _paced(self, op: Operation) -> None:
        function, selectors = op.function, op.immediate
        first = op.register(0)
        if function == codes.ST64PACE:
            second, pair, stride = first, op.register(1), op.register(2)
        else:
            second, pair, stride = op.register(1), op.register(2), op.register(3)
        fields = self.pair(pair)
        if pair < 12:
            self.paced_pairs.add(pair)
        sizes = {codes.LD64A32PACE: 4, codes.LD64B16PACE: 2}
        size = sizes.get(function, 8)
        # (field, store, size, data register, place of the selector)
        if function == codes.LD2X64PACE:
            plan = [(0, False, 8, first, 0), (1, False, 8, second, 1)]
        elif function == codes.LDST64PACE:
            plan = [(2, True, 8, 0, 1), (0, False, 8, first, 0)]
        elif function == codes.LD2XST64PACE:
            plan = [(2, True, 8, 0, 2), (0, False, 8, first, 0), (1, False, 8, first + 2, 1)]
        elif function == codes.ST64PACE:
            plan = [(2, True, 8, 0, 0)]
        else:
            plan = [(0, False, 8, first, 0), (1, False, size, second, 1)]
        places = [place for place, *_ in plan]
        for index, place in enumerate(places):
            self.conflicts += [(fields[place], fields[other]) for other in places[:index]]
        for place, store, width, data, _ in plan:
            if store or data < 8:
                self._access(store, fields[place], width)
        for place, _, width, _, selector in plan:
            chosen = selectors >> 2 * selector & 3
            if chosen == 0:
                fields[place] = fields[place].shifted(width)
            elif self.value(stride) == unknown("m", stride):
                fields[place] = fields[place].plus(unknown("pace", stride, chosen), width)
            else:
                fields[place] = self.fresh()
        self.registers[pair], self.registers[pair + 1] = self.fresh(), self.fresh()

    def _delta(self, op: Operation) -> None:
        pair = op.function == codes.DELTA_LOAD_PAIR
        pointer = self.value(op.register(1))
        self._access(False, pointer, 4 if pair else 2)
        if op.register(0) < 8:
            self._access(False, self.fresh(), 1 << (op.info >> INFO_LANES & 7))
        self.assign(op.register(3), self.fresh())
        self.assign(op.register(1), pointer.shifted(4 if pair else 2))

    def fields_used(self) -> set[int]:
        """Pairs whose addresses paced instructions of the stretch use."""
        return self.paced_pairs

    # ---- repetition

    def advance(self, terms: Sequence[tuple[Unknown, int]]) -> Linear | None:
        """How far a sum moves from one repetition of the stretch to the next; None if that can vary."""
        total = Linear()
        for (kind, first, second), count in terms:
            if kind == "m":
                moved = self.value(first).plus(unknown("m", first), -1)
            elif kind == "field":
                moved = self.fields[first][second].plus(unknown("field", first, second), -1)
            elif kind == "pace" and self.value(first) == unknown("m", first):
                moved = Linear()
            else:
                return None
            total = total.plus(moved, count)
        for (kind, first, _), _ in total.terms:
            if kind not in ("m", "pace") or self.value(first) != unknown("m", first):
                return None
        return total


def groups_of(analysis: Analysis, repeated: bool) -> list[tuple[Group, set[int]]]:
    """Runs of accesses, each with the indices of its accesses."""
    buckets: dict[tuple[bool, Terms], list[int]] = {}
    for index, access in enumerate(analysis.accesses):
        buckets.setdefault((access.store, access.address.terms), []).append(index)
    found = []
    for (store, terms), indices in buckets.items():
        indices.sort(key=lambda index: analysis.accesses[index].address.constant)
        current: tuple[Group, set[int]] | None = None
        for index in indices:
            access = analysis.accesses[index]
            low, high = access.address.constant, access.address.constant + access.size
            if current is None or low > current[0].high:
                current = (Group(store, terms, low, high, set(), False), set())
                found.append(current)
            group, members = current
            group.high = max(group.high, high)
            group.residues.add((access.size, low % access.size))
            group.wide |= access.size == 16
            members.add(index)
    if repeated:
        for group, _ in found:
            group.advance = analysis.advance(group.terms)
    return found
