"""Sixteen-unit AMPs in fast code: delay lines taken apart.

Nothing moves along a delay line. It is known here, while code is emitted, how many partials have entered
since it was filled with sums (at phase 0, or where a block begins): those that have not left are still where
they were, and the partials are the words they came in. A row's sums become halves all at once, in a vector
from which each AMP takes its word.

A NaN is not made the one the machine delivers, as in other code: results, cleared accumulators and those that
remain are looked at, and the launch is given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .half_tables import SINGLES_TABLE
from .ir import double_text
from .products import LINES, SUMS, UNITS, ProductEmitter, native_amp
from .program import Operation, Step

WORDS = 4
"""Words of the delay lines of both sets: an AMP takes one out and enters one."""
NOTHING = -1
ZERO_PAIR = 14
"""A registers that are zero."""


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


class DelayLineEmitter(ProductEmitter):
    """Emits AMPs in mode `lines`.

    `delay` holds what the delay lines were filled with. `entered` says where the words are that came since,
    at most four, which replaced as many of its first: number of a variable, or `NOTHING` for a zero.
    `packed`: the sums of `delay` are there as halves.
    """

    def prepare(self, mode: str) -> None:
        self._entered: list[int] = []
        self._packed = False
        super().prepare(mode)
        if mode == LINES:
            words = [
                *(f"  %entered{place} = alloca double" for place in range(WORDS)),
                "  %leaving = alloca <4 x double>",
            ]
            self.builder.allocas += words

    # ---- where control flow meets

    def settle_sums(self) -> None:
        """The delay lines whole, as blocks expect them."""
        if self.mode == LINES and self._entered:
            self.put_sums("delay", self._lines())
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

    def amp_in_lines(self, op: Operation) -> str:
        """`f16v4hihov4amp` with all units: the results as i64."""
        build, phase = self.builder, op.immediate
        inputs = self._spread(self._low_pair(op, 0))
        total = self.take_sums("work")
        if phase == 0:
            finished, total = total, self._lines()
            self.put_sums("delay", finished)
            self._entered = []
            self._pack()
        # Only this sum waits for the instruction before.
        self.put_sums("work", build.op(f"fadd {SUMS} {total}, {self.dot(inputs, phase)}"))
        result = self._leaving()
        self._entered = _enter(op, self._entered)
        if self._entered[-1] != NOTHING:
            word = build.op(f"bitcast i64 {self._low_pair(op, 1)} to double")
            build.store("double", word, f"%entered{self._entered[-1]}")
        return result

    def _spread(self, word: str) -> list[str]:
        """Each of four halves as a single in all places of a vector.

        By a table of all halves: load units repeat a number for nothing, while AMPs wait for the units that
        convert and shuffle.
        """
        build = self.builder
        build.externals[SINGLES_TABLE] = f"@{SINGLES_TABLE} = external global [65536 x float]"
        vectors = []
        for lane in range(4):
            moved = build.op(f"lshr i64 {word}, {16 * lane}") if lane else word
            half = moved if lane == 3 else build.op(f"and i64 {moved}, 65535")
            one = build.load("float", build.at(f"@{SINGLES_TABLE}", "float", half), 4)
            single = build.op(f"insertelement {SUMS} poison, float {one}, i32 0")
            vectors.append(self.shuffled("float", 16, single, "poison", [0] * UNITS))
        return vectors

    # ---- delay lines

    def _lines(self) -> str:
        """The whole delay lines."""
        build, count = self.builder, len(self._entered)
        old = self.take_sums("delay") if count < WORDS else ""
        if not count:
            return old
        if self._entered == [NOTHING] * WORDS:
            return "zeroinitializer"
        places = [*[None] * (WORDS - count), *self._entered]
        halves = self.shuffled("i32", 4, self._pair(places[:2]), self._pair(places[2:]), range(8))
        line = build.op(
            f"fpext <16 x half> {build.op(f'bitcast <8 x i32> {halves} to <16 x half>')} to {SUMS}"
        )
        if count < WORDS:
            # The old ones from behind those that have left, the new ones in their places.
            line = self.shuffled("float", 16, old, line, (*range(4 * count, 16), *range(32 - 4 * count, 32)))
        return line

    def _pair(self, places: list[int | None]) -> str:
        """Two entered words as a vector of four; None: any word."""
        build, both = self.builder, "poison"
        for index, place in enumerate(places):
            if place is None:
                continue
            word = double_text(0.0)
            if place != NOTHING:
                word = build.load("double", f"%entered{place}")
            both = build.op(f"insertelement <2 x double> {both}, double {word}, i32 {index}")
        return build.op(f"bitcast <2 x double> {both} to <4 x i32>")

    def _pack(self) -> None:
        """What fills the delay lines, as halves."""
        build = self.builder
        halves = build.op(f"fptrunc {SUMS} {self.take_sums('delay')} to <16 x half>")
        self.note_peaks(build.op(f"bitcast <16 x half> {halves} to <16 x i16>"), 16, "i16")
        build.store("<4 x double>", build.op(f"bitcast <16 x half> {halves} to <4 x double>"), "%leaving")
        self._packed = True

    def _leaving(self) -> str:
        """The first word of the delay lines, as i64."""
        build, count = self.builder, len(self._entered)
        if count == WORDS:
            if self._entered[0] == NOTHING:
                return "0"
            word = build.load("double", f"%entered{self._entered[0]}")
            first = build.op(f"bitcast double {word} to i64")
            self.note_peaks(build.op(f"bitcast i64 {first} to <4 x i16>"), 4, "i16")
            return first
        if not self._packed:
            self._pack()
        word = build.op(f"extractelement <4 x double> {build.load('<4 x double>', '%leaving')}, i32 {count}")
        return build.op(f"bitcast double {word} to i64")
