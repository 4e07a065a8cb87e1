"""Sixteen-unit AMPs in fast code: sums as doubles, delay lines taken apart.

An accumulator is the double of its single. Adding a number to -2**29 times itself, in one operation with one
rounding, leaves a multiple of its 24th bit; adding 2**29 times the number to that leaves the number rounded
to 24 bits, ties to even, a zero positive. That is what a conversion to single does as long as no sum is
subnormal as a single, infinite or a NaN. Halves and their products are multiples of 2**-48, so only what the
accumulators held before can lead there: they are looked at when an AMP has used them. An infinity becomes a
NaN, which is never lost unnoticed: results, cleared accumulators and those that remain are looked at too.

Nothing moves along a delay line. It is known here, while code is emitted, how many partials have entered
since it was filled with sums (at phase 0, or where a block begins): those that have not left are still where
they were, and the partials are the words they came in. A row's sums become halves all at once, in memory,
from where each AMP takes its word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import scratch as sc
from .half_tables import DOUBLES_TABLE
from .ir import double_text
from .products import DOUBLES, SETS, SINGLES, ProductEmitter
from .program import Operation, Step

AMP = "f16v4hihov4amp"
WORDS = 4
"""Words of a delay line over both sets: what one AMP takes out and enters."""
NOTHING = -1
ZERO_PAIR = 14
"""A registers that are zero."""
_ROUND = 2.0**29


def native_amp(op: Operation) -> bool:
    """An AMP in which all units take part."""
    return op.mnemonic == AMP and op.immediate < 4


def entered_after(steps: Iterable[Step], entered: list[int]) -> list[int]:
    """Where the partials in the delay line are behind some steps, from what it was before."""
    for step in steps:
        if step.aux is not None and native_amp(step.aux):
            entered = _enter(step.aux, entered)
    return entered


def _enter(op: Operation, entered: list[int]) -> list[int]:
    """The same for one AMP."""
    before = [] if op.immediate == 0 else entered
    free = min(set(range(WORDS)) - set(before[1 - WORDS :]))
    place = NOTHING if op.register(1) == ZERO_PAIR else free
    return [*before, place][-WORDS:]


class WideEmitter(ProductEmitter):
    """Emits AMPs in mode `wide`.

    `delay` holds what the delay lines were filled with. `entered` says where the words are that came since,
    at most four, which replaced as many of its first: number of a place in the scratch, or `NOTHING` for a
    zero. `packed`: the scratch holds `delay` as halves.
    """

    def prepare(self, mode: str) -> None:
        self._entered: list[int] = []
        self._packed = False
        super().prepare(mode)

    # ---- where control flow meets

    def settle_sums(self) -> None:
        """The delay lines whole, as blocks expect them."""
        if self.mode == "wide" and self._entered:
            for half, line in enumerate(self._lines()):
                self.put_set("delay", half, line)
        self.forget_entered()

    def forget_entered(self) -> None:
        """A block begins."""
        self._entered, self._packed = [], False

    def enter_repeat(self, body: Sequence[Step]) -> list[int]:
        """Before a repeat body: the delay lines in a form that its end leaves too.

        Returns that form for `begin_round`.
        """
        if not self._entered or entered_after(body, self._entered) != self._entered:
            self.settle_sums()
        elif not self._packed:
            self._pack()
        return self._entered

    def begin_round(self, entered: list[int]) -> None:
        """Where the body begins, and behind it."""
        self._entered, self._packed = entered, bool(entered)

    def end_round(self, entered: list[int]) -> None:
        """Where the body ends."""
        if self._entered != entered:
            self.settle_sums()

    def clear_accumulators(self, condition: str) -> None:
        self.settle_sums()
        super().clear_accumulators(condition)

    # ---- one AMP

    def amp_of_doubles(self, op: Operation) -> str:
        """`f16v4hihov4amp` with all units: the results as i64."""
        build, phase = self.builder, op.immediate
        inputs = self._spread(self._low_pair(op, 0))
        totals = [self.take_set("work", half) for half in range(SETS)]
        if phase == 0:
            finished, totals = totals, self._lines()
            for half in range(SETS):
                self.put_set("delay", half, finished[half])
            self._entered = []
            self._pack()
        for half in range(SETS):
            # Only this sum waits for the instruction before.
            total = build.op(f"fadd {DOUBLES} {totals[half]}, {self.dot(inputs, phase, half)}")
            self.put_set("work", half, self._rounded(total))
        build.store("i64", "1", "%amps")
        result = self._leaving()
        self._entered = _enter(op, self._entered)
        if self._entered[-1] != NOTHING:
            build.store("i64", self._low_pair(op, 1), self._place(sc.ENTERED, self._entered[-1]), 8)
        return result

    def _spread(self, word: str) -> list[str]:
        """Each of four halves as a double in all eight places of a vector.

        By a table of all halves: load units repeat a number for nothing, while AMPs wait for the units that
        convert and shuffle.
        """
        build = self.builder
        build.externals[DOUBLES_TABLE] = f"@{DOUBLES_TABLE} = external global [65536 x double]"
        vectors = []
        for lane in range(4):
            moved = build.op(f"lshr i64 {word}, {16 * lane}") if lane else word
            half = moved if lane == 3 else build.op(f"and i64 {moved}, 65535")
            one = build.load("double", build.at(f"@{DOUBLES_TABLE}", "double", half), 8)
            single = build.op(f"insertelement {DOUBLES} poison, double {one}, i32 0")
            vectors.append(self.shuffled("double", 8, single, "poison", [0] * 8))
        return vectors

    def _rounded(self, total: str) -> str:
        """Sums rounded to singles."""
        factors = ["<" + ", ".join([f"double {double_text(sign * _ROUND)}"] * 8) + ">" for sign in (-1, 1)]
        rest = self.multiply_add(total, factors[0], total)
        return self.multiply_add(total, factors[1], rest)

    # ---- delay lines

    def _place(self, first: int, index: int) -> str:
        """Pointer to a word of the scratch: memory takes words into and out of vectors without shuffles."""
        return self.builder.at("%scratch", "i64", first + index)

    def _lines(self) -> list[str]:
        """The whole delay line of each set."""
        build, count = self.builder, len(self._entered)
        old = [self.take_set("delay", half) for half in range(SETS)] if count < WORDS else []
        if not count:
            return old
        if self._entered == [NOTHING] * WORDS:
            return ["zeroinitializer"] * SETS
        places = [*[None] * (WORDS - count), *self._entered]
        pairs = [self._pair(places[:2]), self._pair(places[2:])]
        lines = []
        for half in range(SETS):
            order = (half, half + 2, half + 4, half + 6)
            mine = self.shuffled("i32", 4, pairs[0], pairs[1], order)
            halves = build.op(f"bitcast <4 x i32> {mine} to <8 x half>")
            line = build.op(f"fpext <8 x half> {halves} to {DOUBLES}")
            if count < WORDS:
                # The old ones from behind those that have left, the new ones in their places.
                kept = (*range(2 * count, 8), *range(16 - 2 * count, 16))
                line = self.shuffled("double", 8, old[half], line, kept)
            lines.append(line)
        return lines

    def _pair(self, places: list[int | None]) -> str:
        """Two entered words as a vector of four; None: any word."""
        build, both = self.builder, "poison"
        for index, place in enumerate(places):
            if place is None:
                continue
            word = double_text(0.0)
            if place != NOTHING:
                # Volatile, lest two are loaded at once: that would wait until both have been written.
                word = build.op(f"load volatile double, ptr {self._place(sc.ENTERED, place)}, align 8")
            both = build.op(f"insertelement <2 x double> {both}, double {word}, i32 {index}")
        return build.op(f"bitcast <2 x double> {both} to <4 x i32>")

    def _pack(self) -> None:
        """What fills the delay lines, as halves in the order in which AMPs deliver them."""
        build = self.builder
        sets = [
            build.op(f"fptrunc {DOUBLES} {self.take_set('delay', half)} to {SINGLES}") for half in range(SETS)
        ]
        order = [index // 4 * 2 + index % 2 + index % 4 // 2 * 8 for index in range(16)]
        singles = self.shuffled("float", 8, sets[0], sets[1], order)
        halves = build.op(f"fptrunc <16 x float> {singles} to <16 x half>")
        self.note_peaks(build.op(f"bitcast <16 x half> {halves} to <16 x i16>"), 16, "i16")
        build.store("<16 x half>", halves, self._place(sc.LEAVING, 0), 32)
        self._packed = True

    def _leaving(self) -> str:
        """The first word of the delay lines, as i64."""
        build, count = self.builder, len(self._entered)
        if count == WORDS:
            if self._entered[0] == NOTHING:
                return "0"
            first = build.load("i64", self._place(sc.ENTERED, self._entered[0]), 8)
            self.note_peaks(build.op(f"bitcast i64 {first} to <4 x i16>"), 4, "i16")
            return first
        if not self._packed:
            self._pack()
        return build.load("i64", self._place(sc.LEAVING, count), 8)
