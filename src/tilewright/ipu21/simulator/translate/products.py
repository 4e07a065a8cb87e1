"""AMP instructions natively: sums of products in vectors that stay in the CPU's registers.

Where all instructions on accumulators are sixteen-unit half-precision AMPs (modes `lines` and `matrix`),
working sums and delay lines are vectors of sixteen in the order in which results leave, and the weights are
sixteen more. In mode `split` even and odd accumulators are vectors in the order of the units.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...isa.meaning.products import lane_of
from .. import state as at
from .auxiliary import AuxEmitter
from .program import Operation, Step

AMP = "f16v4hihov4amp"
UNITS = 16
SUMS = "<16 x float>"
NAMES = ("work", "delay")
MATRIX, LINES, SPLIT, MEMORY = "matrix", "lines", "split", "memory"


def native_amp(op: Operation) -> bool:
    """An AMP in which all units take part."""
    return op.mnemonic == AMP and op.immediate < 4


class ProductEmitter(AuxEmitter):
    """Emits AMPs. `prepare` first."""

    mode = MEMORY

    def prepare(self, mode: str) -> None:
        """Choose how accumulators are kept (`memory`: where they are), and load them."""
        self.mode = mode
        self._held: list[str] = []
        if mode == MEMORY:
            return
        self.builder.allocas += [
            *(f"  %{name} = alloca {SUMS}, align 64" for name in NAMES),
            f"  %accat = getelementptr i64, ptr %state, i64 {at.ACCUMULATORS}",
            "  %accint = load i64, ptr %accat",
            "  %accbias = mul i64 %context, 128",
            "  %accsum = add i64 %accint, %accbias",
            "  %accfirst = sub i64 %accsum, 128",
            "  %accs = inttoptr i64 %accfirst to ptr",
        ]
        self.load_accumulators()
        if mode != SPLIT:
            place = self.builder.load("i64", self.builder.at("%state", "i64", at.HALF_WEIGHTS))
            self._weights = self.builder.op(f"inttoptr i64 {place} to ptr")

    def _weights_at(self, index: int) -> str:
        """Of every unit the half with which an AMP of phase index / 4 multiplies input index % 4."""
        return self._held[index] if self._held else self._load_weights(index)

    def _load_weights(self, index: int) -> str:
        return self.builder.load(SUMS, self.builder.at(self._weights, SUMS, index), 64)

    def hold_weights(self, body: Iterable[Step]) -> None:
        """Before a repeat body with AMPs: keep all weights in the CPU's registers. No supervisor changes them
        while workers run."""
        if self.mode in (LINES, MATRIX) and any(
            step.aux is not None and native_amp(step.aux) for step in body
        ):
            self._held = [self._load_weights(index) for index in range(UNITS)]

    def release_weights(self) -> None:
        """Behind a repeat body."""
        self._held = []

    def _place(self, unit: int) -> int:
        return unit if self.mode == SPLIT else lane_of(unit)

    def load_accumulators(self) -> None:
        """From the state: even and odd accumulators apart."""
        build = self.builder
        low, high = (build.load(SUMS, build.at("%accs", SUMS, half), 4) for half in range(2))
        units = sorted(range(UNITS), key=self._place)
        for odd, name in enumerate(NAMES):
            self.put_sums(name, self.shuffled("float", 16, low, high, (2 * unit + odd for unit in units)))

    def store_accumulators(self) -> None:
        """Back to the state."""
        if self.mode == MEMORY:
            return
        build = self.builder
        work, delay = (self.take_sums(name) for name in NAMES)
        for half in range(2):
            places = [self._place(8 * half + index // 2) + UNITS * (index % 2) for index in range(UNITS)]
            both = self.shuffled("float", 16, work, delay, places)
            build.store(SUMS, both, build.at("%accs", SUMS, half), 4)

    def look_at_sums(self) -> None:
        """In fast code: give up at the exit if a sum is a NaN, which need not be the machine's."""
        if self.mode != LINES:
            return
        build = self.builder
        for name in NAMES:
            value = self.take_sums(name)
            wrong = build.op(f"fcmp uno {SUMS} {value}, {value}")
            some = build.call("i1", "llvm.vector.reduce.or.v16i1", f"<16 x i1> {wrong}")
            self.note_special(build.op(f"zext i1 {some} to i64"))

    def clear_accumulators(self, condition: str) -> None:
        if self.mode == MEMORY:
            return
        build = self.builder
        self.look_at_sums()
        for name in NAMES:
            old = self.take_sums(name)
            self.put_sums(name, build.op(f"select i1 {condition}, {SUMS} zeroinitializer, {SUMS} {old}"))

    def take_sums(self, name: str) -> str:
        """The `work` or `delay` accumulators."""
        return self.builder.load(SUMS, f"%{name}", 64)

    def put_sums(self, name: str, vector: str) -> None:
        self.builder.store(SUMS, vector, f"%{name}", 64)

    # ---- vectors

    def halves_of(self, text: str, count: int = 4) -> str:
        """The first 2 or 4 halves of an i64."""
        scalar = "i64" if count == 4 else "i32"
        narrow = text if count == 4 else self.builder.op(f"trunc i64 {text} to i32")
        return self.builder.op(f"bitcast {scalar} {narrow} to <{count} x half>")

    def shuffled(self, kind: str, size: int, one: str, other: str, order: Iterable[int]) -> str:
        picked = list(order)
        mask = ", ".join("i32 poison" if index < 0 else f"i32 {index}" for index in picked)
        vectors = f"<{size} x {kind}> {one}, <{size} x {kind}> {other}"
        return self.builder.op(f"shufflevector {vectors}, <{len(picked)} x i32> <{mask}>")

    def quieted(self, count: int, sums: str) -> str:
        """Sums as singles, every NaN the same: which one entered does not matter."""
        build, kind = self.builder, f"<{count} x float>"
        nan = build.op(f"fcmp uno {kind} {sums}, {sums}")
        quiet = "<" + ", ".join(["float 0x7FF8000000000000"] * count) + ">"
        return build.op(f"select <{count} x i1> {nan}, {kind} {quiet}, {kind} {sums}")

    # ---- sixteen units, halves

    def dot(self, inputs: list[str], phase: int) -> str:
        """Sums of products of four inputs, spread over vectors, with the weights of every unit.

        A product is exact, so that it does not matter whether it is rounded before it is added.
        """
        build, total = self.builder, ""
        for index, value in enumerate(inputs):
            weights = self._weights_at(4 * phase + index)
            if total:
                arguments = f"{SUMS} {value}, {SUMS} {weights}, {SUMS} {total}"
                total = build.call(SUMS, "llvm.fmuladd.v16f32", arguments)
            else:
                total = build.op(f"fmul {SUMS} {value}, {weights}")
        return total

    def amp_of_halves(self, op: Operation) -> str:
        """`f16v4hihov4amp` with all units, in `matrix`: the results as <4 x float>."""
        build, phase = self.builder, op.immediate
        x = build.op(f"fpext <4 x half> {self.halves_of(self._low_pair(op, 0))} to <4 x float>")
        inputs = [self.shuffled("float", 4, x, "poison", [index] * UNITS) for index in range(4)]
        partials = build.op(f"fpext <4 x half> {self.halves_of(self._low_pair(op, 1))} to <4 x float>")
        work, delay = (self.take_sums(name) for name in NAMES)
        # Only this sum waits for the instruction before.
        total = build.op(f"fadd {SUMS} {delay if phase == 0 else work}, {self.dot(inputs, phase)}")
        self.put_sums("work", self.quieted(UNITS, total))
        line = work if phase == 0 else delay
        entering = self.shuffled("float", 4, partials, "poison", [*range(4), *[-1] * 12])
        self.put_sums("delay", self.shuffled("float", 16, line, entering, range(4, 20)))
        return self.shuffled("float", 16, line, "poison", range(4))
