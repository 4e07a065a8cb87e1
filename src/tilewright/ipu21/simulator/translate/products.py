"""AMP instructions natively: sums of products in vectors that stay in the CPU's registers.

Two forms of the accumulators. `matrix` keeps them as singles and rounds each sum to one, as the definition
says. `wide`, for fast code, keeps the same values as doubles (see there).
"""

from __future__ import annotations

from collections.abc import Iterable

from .. import state as at
from .auxiliary import AuxEmitter
from .program import Operation

SETS = 2
_LEAST, _MOST = 27 << 23, 227 << 23
"""Magnitudes of a single, as bits, that `wide` sums may start from: 2**-100 and 2**100."""

SINGLES, DOUBLES = "<8 x float>", "<8 x double>"


class ProductEmitter(AuxEmitter):
    """Emits AMPs. `prepare` first."""

    mode = "memory"

    def prepare(self, mode: str) -> None:
        """Choose how accumulators are kept (`memory`: where they are), and load them."""
        self.mode = mode
        if mode == "memory":
            return
        kind = "double" if mode == "wide" else "float"
        self.builder.allocas += [
            f"  %work = alloca [16 x {kind}], align 64",
            f"  %delay = alloca [16 x {kind}], align 64",
            f"  %accat = getelementptr i64, ptr %state, i64 {at.ACCUMULATORS}",
            "  %accint = load i64, ptr %accat",
            "  %accbias = mul i64 %context, 128",
            "  %accsum = add i64 %accint, %accbias",
            "  %accfirst = sub i64 %accsum, 128",
            "  %accs = inttoptr i64 %accfirst to ptr",
            f"  %weightsat = getelementptr i64, ptr %state, i64 {at.HALF_WEIGHTS}",
            "  %weightsint = load i64, ptr %weightsat",
            "  %weights = inttoptr i64 %weightsint to ptr",
            f"  %singlesat = getelementptr i64, ptr %state, i64 {at.WEIGHTS}",
            "  %singlesint = load i64, ptr %singlesat",
            "  %singleweights = inttoptr i64 %singlesint to ptr",
        ]
        if mode == "wide":
            self.builder.allocas += [
                "  %unfit = alloca i64",
                "  store i64 0, ptr %unfit",
                "  %amps = alloca i64",
                "  store i64 0, ptr %amps",
            ]
        self.load_accumulators()

    def load_accumulators(self) -> None:
        """From the state: even and odd accumulators apart."""
        build = self.builder
        unfit = "false"
        for half in range(SETS):
            raw = build.load("<16 x float>", build.at("%accs", "float", 16 * half), 4)
            for odd, name in enumerate(("work", "delay")):
                order = ", ".join(f"i32 {2 * index + odd}" for index in range(8))
                part = build.op(f"shufflevector <16 x float> {raw}, <16 x float> poison, <8 x i32> <{order}>")
                if self.mode == "wide":
                    unfit = build.op(f"or i1 {unfit}, {self._unfit(part)}")
                    part = build.op(f"fpext {SINGLES} {part} to {DOUBLES}")
                self.put_set(name, half, part)
        if self.mode == "wide":
            build.store("i64", build.op(f"zext i1 {unfit} to i64"), "%unfit")

    def _unfit(self, singles: str) -> str:
        """i1: some single is neither zero nor of a magnitude that `wide` sums may start from."""
        build = self.builder

        def all_of(value: int) -> str:
            return "<" + ", ".join([f"i32 {value}"] * 8) + ">"

        bits = build.op(f"bitcast {SINGLES} {singles} to <8 x i32>")
        size = build.op(f"and <8 x i32> {bits}, {all_of(0x7FFFFFFF)}")
        above = build.op(f"sub <8 x i32> {size}, {all_of(_LEAST)}")
        outside = build.op(f"icmp ugt <8 x i32> {above}, {all_of(_MOST - _LEAST)}")
        nonzero = build.op(f"icmp ne <8 x i32> {size}, zeroinitializer")
        return self._any(build.op(f"and <8 x i1> {outside}, {nonzero}"))

    def _any(self, truths: str) -> str:
        return self.builder.call("i1", "llvm.vector.reduce.or.v8i1", f"<8 x i1> {truths}")

    def store_accumulators(self) -> None:
        """Back to the state."""
        if self.mode == "memory":
            return
        build = self.builder
        order = ", ".join(f"i32 {index // 2 + 8 * (index % 2)}" for index in range(16))
        for half in range(SETS):
            parts = [self.take_set(name, half) for name in ("work", "delay")]
            if self.mode == "wide":
                parts = [build.op(f"fptrunc {DOUBLES} {part} to {SINGLES}") for part in parts]
            both = build.op(
                f"shufflevector <8 x float> {parts[0]}, <8 x float> {parts[1]}, <16 x i32> <{order}>"
            )
            build.store("<16 x float>", both, build.at("%accs", "float", 16 * half), 4)

    def look_at_sums(self) -> None:
        """In fast code: give up at the exit if a sum is a NaN, or if sums started from unfit numbers."""
        if self.mode != "wide":
            return
        build = self.builder
        wrong = "false"
        for half in range(SETS):
            for name in ("work", "delay"):
                value = self.take_set(name, half)
                wrong = build.op(
                    f"or i1 {wrong}, {self._any(build.op(f'fcmp uno {DOUBLES} {value}, {value}'))}"
                )
        used = build.op(f"and i64 {build.load('i64', '%unfit')}, {build.load('i64', '%amps')}")
        found = build.op(f"or i64 {used}, {build.op(f'zext i1 {wrong} to i64')}")
        self.note_special(found)

    def clear_accumulators(self, condition: str) -> None:
        if self.mode == "memory":
            return
        build = self.builder
        self.look_at_sums()
        kind = DOUBLES if self.mode == "wide" else SINGLES
        for name in ("work", "delay"):
            for half in range(SETS):
                old = self.take_set(name, half)
                new = build.op(f"select i1 {condition}, {kind} zeroinitializer, {kind} {old}")
                self.put_set(name, half, new)
        if self.mode == "wide":
            kept = build.op(f"select i1 {condition}, i64 0, i64 {build.load('i64', '%unfit')}")
            build.store("i64", kept, "%unfit")

    # ---- sets of eight

    def _set(self, name: str, half: int) -> str:
        """Pointer to eight accumulators."""
        return self.builder.at(f"%{name}", "double" if self.mode == "wide" else "float", 8 * half)

    def take_set(self, name: str, half: int) -> str:
        """The `work` or `delay` accumulators of a set."""
        place = self._set(name, half)
        return (
            self.builder.load(DOUBLES, place, 64)
            if self.mode == "wide"
            else self.builder.load(SINGLES, place, 32)
        )

    def put_set(self, name: str, half: int, vector: str) -> None:
        place = self._set(name, half)
        if self.mode == "wide":
            self.builder.store(DOUBLES, vector, place, 64)
        else:
            self.builder.store(SINGLES, vector, place, 32)

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

    def multiply_add(self, a: str, b: str, c: str) -> str:
        """a * b + c of eight doubles; where the product is exact, it does not matter how."""
        arguments = f"{DOUBLES} {a}, {DOUBLES} {b}, {DOUBLES} {c}"
        return self.builder.call(DOUBLES, "llvm.fmuladd.v8f64", arguments)

    # ---- sixteen units, halves

    def dot(self, inputs: list[str], phase: int, half: int) -> str:
        """Sums of products of four inputs, spread over vectors, with the weights of a set."""
        build, total = self.builder, ""
        for index, value in enumerate(inputs):
            place = build.at("%weights", "double", 64 * phase + 16 * index + 8 * half)
            weights = build.load(DOUBLES, place, 8)
            if total:
                total = self.multiply_add(value, weights, total)
            else:
                total = build.op(f"fmul {DOUBLES} {value}, {weights}")
        return total

    def amp_of_halves(self, op: Operation) -> str:
        """`f16v4hihov4amp` with all units, in `matrix`: the results as <4 x float>."""
        build, phase = self.builder, op.immediate
        x = build.op(f"fpext <4 x half> {self.halves_of(self._low_pair(op, 0))} to <4 x double>")
        inputs = [self.shuffled("double", 4, x, "poison", [index] * 8) for index in range(4)]
        partials = build.op(f"fpext <4 x half> {self.halves_of(self._low_pair(op, 1))} to <4 x float>")
        leaving = []
        for half in range(SETS):
            work, delay = self.take_set("work", half), self.take_set("delay", half)
            total = build.op(f"fpext {SINGLES} {delay if phase == 0 else work} to {DOUBLES}")
            # Only this sum waits for the instruction before.
            total = build.op(f"fadd {DOUBLES} {total}, {self.dot(inputs, phase, half)}")
            positive = build.op(f"fadd {DOUBLES} {total}, zeroinitializer")
            sums = build.op(f"fptrunc {DOUBLES} {positive} to {SINGLES}")
            self.put_set("work", half, self.quieted(8, sums))
            line = work if phase == 0 else delay
            leaving.append(line)
            entering = self.shuffled("float", 4, partials, "poison", (2 * half, 2 * half + 1, *[-1] * 6))
            self.put_set("delay", half, self.shuffled("float", 8, line, entering, range(2, 10)))
        return self.shuffled("float", 8, leaving[0], leaving[1], (0, 1, 8, 9))
