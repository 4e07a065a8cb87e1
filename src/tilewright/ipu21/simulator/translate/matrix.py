"""Instructions on accumulators, natively: in vectors that stay in the CPU's registers.

Three ways to keep a worker's accumulators, chosen by what its code contains:

- `memory`: where they are, for the library.
- `matrix`: for code whose only instructions on them are sixteen-unit half-precision AMPs. Working sums and
  delay lines of each set are vectors of eight.
- `split`: for everything else that has a native form here. Even and odd accumulators are two vectors of
  sixteen.
"""

from __future__ import annotations

from collections.abc import Iterable

from .. import codes
from .. import state as at
from ..engine_registers import TAS
from ..instruction_tables import instruction_tables
from .auxiliary import AuxEmitter
from .library import PAIR
from .program import Operation, Step

AMP = "f16v4hihov4amp"
SPLIT = frozenset(("f16v4mix", "f32v2axpy", "f16v4acc", "f16v8acc", "f32v4acc", "f16v2gina", "f32v2gina"))
"""Instructions on accumulators with a native form in `split`."""


def uses_accumulators(op: Operation) -> bool:
    if op.group != codes.GROUP_STATE:
        return False
    names = instruction_tables().groups[op.group].arguments[op.function]
    return "accumulators" in names or "accumulator_words" in names


def _native_amp(op: Operation) -> bool:
    """An AMP in which all units take part."""
    return op.mnemonic == AMP and op.immediate < 4


def mode_of(steps: Iterable[Step], native: bool) -> str:
    """`memory`, `matrix` or `split`."""
    ops = [step.aux for step in steps if step.aux is not None and uses_accumulators(step.aux)]
    if not native or not ops:
        return "memory"
    if all(_native_amp(op) for op in ops):
        return "matrix"
    if all(op.mnemonic in SPLIT for op in ops):
        return "split"
    return "memory"


class MatrixEmitter(AuxEmitter):
    """Emits instructions on accumulators. `prepare` first."""

    mode = "memory"

    def prepare(self, mode: str) -> None:
        """Choose how accumulators are kept, and load them."""
        self.mode = mode
        if mode == "memory":
            return
        self.builder.allocas += [
            "  %work = alloca [16 x float], align 64",
            "  %delay = alloca [16 x float], align 64",
            f"  %accat = getelementptr i64, ptr %state, i64 {at.ACCUMULATORS}",
            "  %accint = load i64, ptr %accat",
            "  %accbias = mul i64 %context, 128",
            "  %accsum = add i64 %accint, %accbias",
            "  %accfirst = sub i64 %accsum, 128",
            "  %accs = inttoptr i64 %accfirst to ptr",
        ]
        if mode == "matrix":
            self.builder.allocas += [
                f"  %weightsat = getelementptr i64, ptr %state, i64 {at.HALF_WEIGHTS}",
                "  %weightsint = load i64, ptr %weightsat",
                "  %weights = inttoptr i64 %weightsint to ptr",
            ]
        self.load_accumulators()

    def load_accumulators(self) -> None:
        """From the state: even and odd accumulators apart."""
        build = self.builder
        for half in range(2):
            raw = build.load("<16 x float>", build.at("%accs", "float", 16 * half), 4)
            for odd, name in enumerate(("work", "delay")):
                order = ", ".join(f"i32 {2 * index + odd}" for index in range(8))
                part = build.op(f"shufflevector <16 x float> {raw}, <16 x float> poison, <8 x i32> <{order}>")
                build.store("<8 x float>", part, self._set(name, half), 32)

    def store_accumulators(self) -> None:
        """Back to the state."""
        if self.mode == "memory":
            return
        build = self.builder
        order = ", ".join(f"i32 {index // 2 + 8 * (index % 2)}" for index in range(16))
        for half in range(2):
            work = build.load("<8 x float>", self._set("work", half), 32)
            delay = build.load("<8 x float>", self._set("delay", half), 32)
            both = build.op(f"shufflevector <8 x float> {work}, <8 x float> {delay}, <16 x i32> <{order}>")
            build.store("<16 x float>", both, build.at("%accs", "float", 16 * half), 4)

    def clear_accumulators(self, condition: str) -> None:
        if self.mode == "memory":
            return
        build = self.builder
        for name in ("work", "delay"):
            for half in range(2):
                place = self._set(name, half)
                old = build.load("<8 x float>", place, 32)
                new = build.op(f"select i1 {condition}, <8 x float> zeroinitializer, <8 x float> {old}")
                build.store("<8 x float>", new, place, 32)

    def _set(self, name: str, half: int) -> str:
        """Pointer to eight accumulators."""
        return self.builder.at(f"%{name}", "float", 8 * half)

    def fast_whole(self, op: Operation, words: int) -> str | None:
        if not uses_accumulators(op):
            return self._conversion(op)
        if self.mode == "memory":
            return None
        if self.mode == "matrix":
            return self._amp(op)
        return getattr(self, f"_{op.mnemonic}")(op)  # type: ignore[no-any-return]

    # ---- vectors

    def _halves(self, text: str, count: int = 4) -> str:
        scalar = "i64" if count == 4 else "i32"
        narrow = text if count == 4 else self.builder.op(f"trunc i64 {text} to i32")
        return self.builder.op(f"bitcast {scalar} {narrow} to <{count} x half>")

    def _singles(self, text: str) -> str:
        return self.builder.op(f"bitcast i64 {text} to <2 x float>")

    def _shuffle(self, kind: str, size: int, one: str, other: str, order: Iterable[int]) -> str:
        picked = list(order)
        mask = ", ".join(f"i32 {index}" for index in picked)
        vectors = f"<{size} x {kind}> {one}, <{size} x {kind}> {other}"
        return self.builder.op(f"shufflevector {vectors}, <{len(picked)} x i32> <{mask}>")

    def _narrowed(self, singles: str, count: int) -> str:
        """A vector of 2 or 4 singles rounded to halves, as i32 or i64; specials by the library."""
        build = self.builder
        scalar = "i64" if count == 4 else "i32"
        value = build.op(f"fptrunc <{count} x float> {singles} to <{count} x half>")
        bits = build.op(f"bitcast <{count} x half> {value} to {scalar}")

        def slow() -> str:
            words = build.op(f"bitcast <{count} x float> {singles} to <{count} x i32>")
            texts = []
            for index in range(4):
                if index >= count:
                    texts.append("i64 0")
                    continue
                word = build.op(f"extractelement <{count} x i32> {words}, i32 {index}")
                texts.append(f"i64 {build.op(f'zext i32 {word} to i64')}")
            both = build.call(PAIR, "tw.runtime.narrow", f"ptr %state, i64 %context, {', '.join(texts)}")
            fault = build.op(f"extractvalue {PAIR} {both}, 1")
            self.bail_if(build.op(f"icmp ne i64 {fault}, 0"))
            result = build.op(f"extractvalue {PAIR} {both}, 0")
            return result if count == 4 else build.op(f"trunc i64 {result} to i32")

        return self.otherwise(self._special(bits, scalar, True), scalar, bits, slow)

    # ---- AMP

    def _amp(self, op: Operation) -> str:
        build = self.builder
        phase = op.immediate
        x = build.op(f"fpext <4 x half> {self._halves(self._low_pair(op, 0))} to <4 x double>")
        inputs = self._spread(x)
        partials = build.op(f"fpext <4 x half> {self._halves(self._low_pair(op, 1))} to <4 x float>")
        leaving = []
        for half in range(2):
            work_place, delay_place = self._set("work", half), self._set("delay", half)
            work = build.load("<8 x float>", work_place, 32)
            delay = build.load("<8 x float>", delay_place, 32)
            weights = [
                build.load(
                    "<8 x double>", build.at("%weights", "double", 64 * phase + 16 * index + 8 * half), 8
                )
                for index in range(4)
            ]
            dot = self._dot(inputs, weights)
            base = delay if phase == 0 else work
            wide = build.op(f"fpext <8 x float> {base} to <8 x double>")
            total = build.op(f"fadd <8 x double> {wide}, {dot}")
            build.store(
                "<8 x float>", build.op(f"fptrunc <8 x double> {total} to <8 x float>"), work_place, 32
            )
            line = work if phase == 0 else delay
            leaving.append(line)
            entering = build.op(
                f"shufflevector <4 x float> {partials}, <4 x float> poison, <8 x i32> <"
                f"i32 {2 * half}, i32 {2 * half + 1}, {', '.join(['i32 poison'] * 6)}>"
            )
            moved = self._shuffle("float", 8, line, entering, (2, 3, 4, 5, 6, 7, 8, 9))
            build.store("<8 x float>", moved, delay_place, 32)
        results = self._shuffle("float", 8, leaving[0], leaving[1], (0, 1, 8, 9))
        return self._narrowed(results, 4)

    def _spread(self, x: str) -> list[str]:
        """Each of four doubles in all eight places of a vector.

        Through memory: load units repeat a number for nothing, while AMPs wait for the shuffle unit.
        """
        build = self.builder
        room = build.alloca("<4 x double>", "spread", 32)
        build.do(f"store volatile <4 x double> {x}, ptr {room}, align 32")
        vectors = []
        for index in range(4):
            one = build.op(f"load volatile double, ptr {build.at(room, 'double', index)}, align 8")
            single = build.op(f"insertelement <8 x double> poison, double {one}, i32 0")
            vectors.append(self._shuffle("double", 8, single, "poison", [0] * 8))
        return vectors

    def _dot(self, inputs: list[str], weights: list[str]) -> str:
        """(x0 w0 + x1 w1) + (x2 w2 + x3 w3): products are exact, so fused operations change nothing."""
        build = self.builder
        pairs = []
        for first in (0, 2):
            product = build.op(f"fmul <8 x double> {inputs[first + 1]}, {weights[first + 1]}")
            pairs.append(
                build.call(
                    "<8 x double>",
                    "llvm.fmuladd.v8f64",
                    f"<8 x double> {inputs[first]}, <8 x double> {weights[first]}, <8 x double> {product}",
                )
            )
        return build.op(f"fadd <8 x double> {pairs[0]}, {pairs[1]}")

    # ---- split: even accumulators are `work`, odd ones `delay`

    def _four(self) -> tuple[str, str]:
        """The place and the value of A[0, 2, 4, 6]."""
        place = self._set("work", 0)
        return place, self.builder.load("<4 x float>", place, 16)

    def _f16v4mix(self, op: Operation) -> str:
        build = self.builder
        place, old = self._four()
        x = build.op(f"fpext <4 x half> {self._halves(self._low_pair(op, 0))} to <4 x double>")
        y = build.op(f"fpext <4 x half> {self._halves(self._low_pair(op, 1))} to <4 x double>")
        factors = build.op(
            f"fpext <2 x half> {self._halves(build.load('i64', self.csr(TAS)), 2)} to <2 x double>"
        )
        p = self._shuffle("double", 2, factors, "poison", (0, 0, 0, 0))
        q = self._shuffle("double", 2, factors, "poison", (1, 1, 1, 1))
        first = build.op(f"fmul <4 x double> {p}, {x}")
        second = build.op(f"fmul <4 x double> {q}, {y}")
        total = build.op(f"fadd <4 x double> {first}, {second}")
        result = self._narrowed(old, 4)
        build.store("<4 x float>", build.op(f"fptrunc <4 x double> {total} to <4 x float>"), place, 16)
        return result

    def _canonical(self, singles: str) -> str:
        """Two singles as i64, every NaN as the one the machine delivers."""
        build = self.builder
        nan = build.op(f"fcmp uno <2 x float> {singles}, {singles}")
        word = build.op(f"bitcast <2 x float> {singles} to <2 x i32>")
        quiet = f"<2 x i32> <i32 {0x7FC00000}, i32 {0x7FC00000}>"
        return build.op(
            f"bitcast <2 x i32> {build.op(f'select <2 x i1> {nan}, {quiet}, <2 x i32> {word}')} to i64"
        )

    def _f32v2axpy(self, op: Operation) -> str:
        build = self.builder
        place = self._set("work", 0)
        old = build.load("<2 x float>", place, 8)
        x = build.op(f"fpext <2 x float> {self._singles(self._low_pair(op, 0))} to <2 x double>")
        y = build.op(f"fpext <2 x float> {self._singles(self._low_pair(op, 1))} to <2 x double>")
        word = build.op(f"trunc i64 {build.load('i64', self.csr(TAS))} to i32")
        factor = build.op(f"fpext float {build.op(f'bitcast i32 {word} to float')} to double")
        single = build.op(f"insertelement <2 x double> poison, double {factor}, i32 0")
        both = self._shuffle("double", 2, single, "poison", (0, 0))
        product = build.op(f"fmul <2 x double> {both}, {x}")
        total = build.op(f"fadd <2 x double> {product}, {y}")
        build.store("<2 x float>", build.op(f"fptrunc <2 x double> {total} to <2 x float>"), place, 8)
        return self._canonical(old)

    def _add(self, values: str, first: int, count: int) -> str:
        """Even accumulators from `first` on += a vector of singles. One rounding, as through a double."""
        build = self.builder
        place = build.at("%work", "float", first)
        kind = f"<{count} x float>"
        old = build.load(kind, place, 4 * count)
        build.store(kind, build.op(f"fadd {kind} {old}, {values}"), place, 4 * count)
        return ""

    def _f16v4acc(self, op: Operation) -> str:
        text = self._halves(self._low_pair(op, 0))
        return self._add(self.builder.op(f"fpext <4 x half> {text} to <4 x float>"), 0, 4)

    def _f16v8acc(self, op: Operation) -> str:
        for index, text in enumerate(self._quad(op, 0)):
            wide = self.builder.op(f"fpext <4 x half> {self._halves(text)} to <4 x float>")
            self._add(wide, 4 * index, 4)
        return ""

    def _f32v4acc(self, op: Operation) -> str:
        for index, text in enumerate(self._quad(op, 0)):
            self._add(self._singles(text), 2 * index, 2)
        return ""

    def _gina(self, op: Operation, values: str) -> str:
        """Read the first two of a chain, shift it, enter two values; returns what was read."""
        build = self.builder
        chain = op.immediate
        place = self._set("delay" if chain & 1 else "work", chain >> 1)
        old = build.load("<8 x float>", place, 32)
        wide = build.op(
            f"shufflevector <2 x float> {values}, <2 x float> poison, <8 x i32> <i32 0, i32 1, i32 poison, "
            "i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>"
        )
        build.store("<8 x float>", self._shuffle("float", 8, old, wide, range(2, 10)), place, 32)
        return self._shuffle("float", 8, old, "poison", (0, 1))

    def _f16v2gina(self, op: Operation) -> str:
        if op.immediate > 3:
            self.builder.jump("bail")
            return "0"
        text = self._halves(self._low_pair(op, 0), 2)
        old = self._gina(op, self.builder.op(f"fpext <2 x half> {text} to <2 x float>"))
        return self._narrowed(old, 2)

    def _f32v2gina(self, op: Operation) -> str:
        if op.immediate > 3:
            self.builder.jump("bail")
            return "0"
        return self._canonical(self._gina(op, self._singles(self._low_pair(op, 0))))

    # ---- conversions

    def _conversion(self, op: Operation) -> str | None:
        if not self.fast_halves:
            return None
        build = self.builder
        if op.mnemonic == "f32v2tof16":
            return self._narrowed(self._singles(self._low_pair(op, 0)), 2)
        if op.mnemonic == "f32v4tof16":
            low, high = (self._singles(text) for text in self._quad(op, 0))
            return self._narrowed(self._shuffle("float", 2, low, high, (0, 1, 2, 3)), 4)
        if op.mnemonic == "f16v2tof32":
            how = self._low_pair(op, 0)
            return self._canonical(build.op(f"fpext <2 x half> {self._halves(how, 2)} to <2 x float>"))
        return None
