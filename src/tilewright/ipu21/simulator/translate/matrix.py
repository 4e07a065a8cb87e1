"""Instructions on accumulators, natively: in vectors that stay in the CPU's registers.

Ways to keep a worker's accumulators, chosen by what its code contains:

- `memory`: where they are, for the library.
- `lines`, in fast code, and `matrix`: for code whose only instructions on them are sixteen-unit
  half-precision AMPs. Working sums and delay lines are vectors of sixteen.
- `split`: for everything else that has a native form here. Even and odd accumulators are two vectors of
  sixteen.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...machine.matrix_unit import SUMS_OF_SINGLES
from .. import codes
from ..engine_registers import TAS
from ..instruction_tables import instruction_tables
from . import reasons
from .delay_lines import DelayLineEmitter
from .library import PAIR
from .products import LINES, MATRIX, MEMORY, SPLIT, native_amp
from .program import Operation, Step

SPLIT_FORMS = frozenset(
    (
        "f16v4mix",
        "f32v2axpy",
        "f16v4acc",
        "f16v8acc",
        "f16v8sqacc",
        "f32v4acc",
        "f16v2gina",
        "f32v2gina",
        "f16v4gacc",
        "f16v4stacc",
        "f16v4istacc",
    )
)
"""Instructions on accumulators with a native form in `split`."""


def uses_accumulators(op: Operation) -> bool:
    if op.group != codes.GROUP_STATE:
        return False
    names = instruction_tables().groups[op.group].arguments[op.function]
    return "accumulators" in names or "accumulator_words" in names


def mode_of(steps: Iterable[Step], native: bool, fast: bool) -> str:
    """`memory`, `lines`, `matrix` or `split`."""
    ops = [step.aux for step in steps if step.aux is not None and uses_accumulators(step.aux)]
    if not native or not ops:
        return MEMORY
    if SUMS_OF_SINGLES and all(native_amp(op) for op in ops):
        return LINES if fast else MATRIX
    if all(op.mnemonic in SPLIT_FORMS for op in ops):
        return SPLIT
    return MEMORY


class MatrixEmitter(DelayLineEmitter):
    """Emits instructions on accumulators. `prepare` first."""

    def fast_whole(self, op: Operation, words: int) -> str | None:
        if not uses_accumulators(op):
            return self._conversion(op)
        if self.mode == MEMORY:
            return None
        if self.mode == LINES:
            return self.amp_in_lines(op)
        if self.mode == MATRIX:
            return self._narrowed(self.amp_of_halves(op), 4)
        return getattr(self, f"_{op.mnemonic}")(op)  # type: ignore[no-any-return]

    def _singles(self, text: str) -> str:
        return self.builder.op(f"bitcast i64 {text} to <2 x float>")

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
            self.bail_if(build.op(f"icmp ne i64 {fault}, 0"), reasons.EXCEPTION)
            result = build.op(f"extractvalue {PAIR} {both}, 0")
            return result if count == 4 else build.op(f"trunc i64 {result} to i32")

        return self.checked(bits, scalar, True, slow)

    # ---- split: even accumulators are `work`, odd ones `delay`

    def _four(self) -> tuple[str, str]:
        """The place and the value of A[0, 2, 4, 6]."""
        place = "%work"
        return place, self.builder.load("<4 x float>", place, 16)

    def _f16v4mix(self, op: Operation) -> str:
        build = self.builder
        place, old = self._four()
        x = build.op(f"fpext <4 x half> {self.halves_of(self._low_pair(op, 0))} to <4 x double>")
        y = build.op(f"fpext <4 x half> {self.halves_of(self._low_pair(op, 1))} to <4 x double>")
        factors = build.op(
            f"fpext <2 x half> {self.halves_of(build.load('i64', self.csr(TAS)), 2)} to <2 x double>"
        )
        p = self.shuffled("double", 2, factors, "poison", (0, 0, 0, 0))
        q = self.shuffled("double", 2, factors, "poison", (1, 1, 1, 1))
        first = build.op(f"fmul <4 x double> {p}, {x}")
        second = build.op(f"fmul <4 x double> {q}, {y}")
        total = build.op(f"fadd <4 x double> {first}, {second}")
        result = self._narrowed(old, 4)
        sums = self.quieted(4, build.op(f"fptrunc <4 x double> {total} to <4 x float>"))
        build.store("<4 x float>", sums, place, 16)
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
        place = "%work"
        old = build.load("<2 x float>", place, 8)
        x = build.op(f"fpext <2 x float> {self._singles(self._low_pair(op, 0))} to <2 x double>")
        y = build.op(f"fpext <2 x float> {self._singles(self._low_pair(op, 1))} to <2 x double>")
        word = build.op(f"trunc i64 {build.load('i64', self.csr(TAS))} to i32")
        factor = build.op(f"fpext float {build.op(f'bitcast i32 {word} to float')} to double")
        single = build.op(f"insertelement <2 x double> poison, double {factor}, i32 0")
        both = self.shuffled("double", 2, single, "poison", (0, 0))
        product = build.op(f"fmul <2 x double> {both}, {x}")
        total = build.op(f"fadd <2 x double> {product}, {y}")
        sums = self.quieted(2, build.op(f"fptrunc <2 x double> {total} to <2 x float>"))
        build.store("<2 x float>", sums, place, 8)
        return self._canonical(old)

    def _add(self, values: str, first: int, count: int) -> str:
        """Even accumulators from `first` on += a vector of singles. One rounding, as through a double."""
        build = self.builder
        place = build.at("%work", "float", first)
        kind = f"<{count} x float>"
        old = build.load(kind, place, 4 * count)
        sums = self.quieted(count, build.op(f"fadd {kind} {old}, {values}"))
        build.store(kind, sums, place, 4 * count)
        return ""

    def _f16v4acc(self, op: Operation) -> str:
        text = self.halves_of(self._low_pair(op, 0))
        return self._add(self.builder.op(f"fpext <4 x half> {text} to <4 x float>"), 0, 4)

    def _f16v8acc(self, op: Operation) -> str:
        for index, text in enumerate(self._quad(op, 0)):
            wide = self.builder.op(f"fpext <4 x half> {self.halves_of(text)} to <4 x float>")
            self._add(wide, 4 * index, 4)
        return ""

    def _f32v4acc(self, op: Operation) -> str:
        for index, text in enumerate(self._quad(op, 0)):
            self._add(self._singles(text), 2 * index, 2)
        return ""

    def _f16v8sqacc(self, op: Operation) -> str:
        """Squares of halves are singles."""
        for index, text in enumerate(self._quad(op, 0)):
            wide = self.builder.op(f"fpext <4 x half> {self.halves_of(text)} to <4 x float>")
            self._add(self.builder.op(f"fmul <4 x float> {wide}, {wide}"), 4 * index, 4)
        return ""

    def _raw_pair(self, name: str, first: int) -> str:
        """Two neighbours of the even or the odd accumulators, as they are, as i64."""
        place = self.builder.at(f"%{name}", "float", first)
        return self.builder.op(f"bitcast <2 x float> {self.builder.load('<2 x float>', place, 8)} to i64")

    def _f16v4stacc(self, op: Operation) -> str:
        if op.immediate > 1:
            self.builder.jump(self.bail(reasons.EXCEPTION))
            return "0"
        build = self.builder
        result = self._raw_pair("delay" if op.immediate else "work", 0)
        source = build.at("%work", "float", 4 if op.immediate else 2)
        build.store("<2 x float>", build.load("<2 x float>", source, 8), build.at("%delay", "float", 0), 8)
        return result

    def _f16v4istacc(self, op: Operation) -> str:
        if op.immediate > 1:
            self.builder.jump(self.bail(reasons.EXCEPTION))
            return "0"
        build = self.builder
        result = self._raw_pair("delay", 0)
        place = "%work"
        old = build.load("<8 x float>", place, 32)
        if op.immediate == 0:
            entering = self.shuffled("float", 8, old, "poison", (6, 7))
            build.store("<2 x float>", entering, build.at("%delay", "float", 0), 8)
        x, y = (build.op(f"bitcast i64 {self._low_pair(op, index)} to <4 x i16>") for index in (0, 1))
        both = self.shuffled("i16", 4, x, y, (0, 4, 1, 5, 2, 6, 3, 7))
        rows = build.op(f"bitcast <8 x i16> {both} to <4 x float>")
        wide = self.shuffled("float", 4, rows, "poison", (0, 1, 2, 3, -1, -1, -1, -1))
        order = [8 + index // 2 if index % 2 == op.immediate else index for index in range(8)]
        build.store("<8 x float>", self.shuffled("float", 8, old, wide, order), place, 32)
        return result

    def _f16v4gacc(self, op: Operation) -> str:
        return self._narrowed(self._four()[1], 4)

    def _gina(self, op: Operation, values: str) -> str:
        """Read the first two of a chain, shift it, enter two values; returns what was read."""
        build = self.builder
        chain = op.immediate
        place = build.at("%delay" if chain & 1 else "%work", "float", 8 * (chain >> 1))
        old = build.load("<8 x float>", place, 32)
        wide = build.op(
            f"shufflevector <2 x float> {values}, <2 x float> poison, <8 x i32> <i32 0, i32 1, i32 poison, "
            "i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>"
        )
        build.store("<8 x float>", self.shuffled("float", 8, old, wide, range(2, 10)), place, 32)
        return self.shuffled("float", 8, old, "poison", (0, 1))

    def _f16v2gina(self, op: Operation) -> str:
        if op.immediate > 3:
            self.builder.jump(self.bail(reasons.EXCEPTION))
            return "0"
        text = self.halves_of(self._low_pair(op, 0), 2)
        old = self._gina(op, self.builder.op(f"fpext <2 x half> {text} to <2 x float>"))
        return self._narrowed(old, 2)

    def _f32v2gina(self, op: Operation) -> str:
        if op.immediate > 3:
            self.builder.jump(self.bail(reasons.EXCEPTION))
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
            return self._narrowed(self.shuffled("float", 2, low, high, (0, 1, 2, 3)), 4)
        if op.mnemonic == "f16v2tof32":
            how = self._low_pair(op, 0)
            return self._canonical(build.op(f"fpext <2 x half> {self.halves_of(how, 2)} to <2 x float>"))
        return None
