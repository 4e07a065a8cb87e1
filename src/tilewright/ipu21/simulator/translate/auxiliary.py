"""Aux instructions of a translated worker: fast forms of the common ones, calls of the library for the rest.

A fast form computes in the CPU's own arithmetic and looks at the result: an infinity or a NaN sends the
instruction to the library, which knows saturation, flags and canonical NaNs. What remains is exact: sums and
products of halves rounded once, sums and products of singles rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

from .. import codes
from ..engine_registers import FP_CLR, FP_CTL, ZAACC
from ..instruction_tables import (
    CSRS_AT,
    INFO_BROADCAST,
    INFO_LANES,
    INFO_QUICK_ZERO,
    INFO_RESULTS,
    INFO_SLOTS,
    instruction_tables,
)
from . import reasons
from .half_tables import has_table, table_name
from .library import PAIR, wrapper_name
from .lowering import Lowering
from .memory import MemoryEmitter
from .operands import Value
from .program import Operation
from .scratch import FAST, GENERAL
from .spans import COLD

_ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "absadd": "fadd"}
_ORDER = {"cmpeq": "oeq", "cmpne": "une", "cmplt": "olt", "cmple": "ole", "cmpgt": "ogt", "cmpge": "oge"}
HALVES_ABSOLUTE, SINGLES_ABSOLUTE = 0x7FFF7FFF7FFF7FFF, 0x7FFFFFFF7FFFFFFF
HALVES_EXPONENT, HALVES_ONE, HALVES_SIGN = 0x7C007C007C007C00, 0x0400040004000400, -0x7FFF7FFF7FFF8000
SINGLES_EXPONENT, SINGLES_ONE, SINGLES_SIGN = 0x7F8000007F800000, 0x0080000000800000, -0x7FFFFFFF80000000


@dataclass(frozen=True)
class Result:
    """What an aux instruction delivers once its bundle's main half is done: an i32 or i64 and where to."""

    text: str
    register: int
    words: int


class AuxEmitter(MemoryEmitter):
    """Emits aux instructions. `flavour` and `fast_halves` decide what may be computed natively."""

    def __init__(self, flavour: int, fast_halves: bool, wide_pairs: Set[int]) -> None:
        super().__init__(wide_pairs)
        self.flavour = flavour
        self.fast_halves = fast_halves and flavour != GENERAL
        self.fast_singles = flavour != GENERAL
        self.pending_slots = 0
        self._peaks: dict[tuple[int, str], str] = {}

    def aux(self, op: Operation) -> Result | None:
        """Compute; None if there is nothing to deliver."""
        words = op.info >> INFO_RESULTS & 3
        self.pending_slots += (op.info >> INFO_SLOTS & 15) - 1
        text = self._value(op, words)
        if not words or not text:
            return None
        number = op.word >> (op.place(3) - 1) & 15
        return Result(text, number, words)

    def land(self, result: Result | None) -> None:
        """Deliver."""
        if result is None:
            return
        if result.words == 2:
            self.write_a64(result.register, result.text)
        else:
            self.write_a(result.register, result.text)

    def _value(self, op: Operation, words: int) -> str:
        if op.group == codes.GROUP_AUX_WORDS:
            return self._words(op, words)
        if op.group == codes.GROUP_UPPER:
            return self._upper(op)
        if op.info >> INFO_QUICK_ZERO & 1:
            self._quick_zero(op)
        if op.group in (codes.GROUP_HALVES, codes.GROUP_SINGLES):
            return self._lanes(op, words)
        return self._whole(op, words)

    # ---- operands

    def _register(self, op: Operation, index: int) -> int:
        """First register of an operand; $a14, zero, if there is none."""
        place = op.place(index)
        return 14 if place in (0, 63) else op.word >> (place - 1) & 15

    def _single(self, op: Operation, index: int) -> str:
        """A one-word operand as i64."""
        place = op.place(index)
        if place == 63:
            return str(op.immediate)
        if place == 0:
            return "0"
        return self.builder.op(f"zext i32 {self.read_a(op.register(index))} to i64")

    def _low_pair(self, op: Operation, index: int) -> str:
        """The first two words of an operand as i64."""
        number = self._register(op, index)
        if number == 15:
            return self.builder.op(f"zext i32 {self.read_a(15)} to i64")
        if number % 2:
            # A single register: its neighbour would be the second word, which nothing looks at.
            return self.builder.op(f"zext i32 {self.read_a(number)} to i64")
        return self.read_a64(number)

    def _broadcast(self, text: str, how: int) -> str:
        """The first word of an i64, or one of its halves, repeated."""
        build = self.builder
        if how == 0:
            return text
        if how == 1:
            low = build.op(f"and i64 {text}, 4294967295")
            return build.op(f"mul i64 {low}, {0x100000001}")
        half = text if how == 2 else build.op(f"lshr i64 {text}, 16")
        low = build.op(f"and i64 {half}, 65535")
        return build.op(f"mul i64 {low}, {0x0001000100010001}")

    # ---- bitwise and lane instructions

    def _words(self, op: Operation, words: int) -> str:
        function = instruction_tables().groups[op.group].functions[op.function].function
        count = len(instruction_tables().groups[op.group].functions[op.function].parameters)
        build = self.builder
        how = op.info >> INFO_BROADCAST & 3
        results = []
        for word in range(words or 1):
            values = []
            for index in range(count):
                place = op.place(index)
                if word and place not in (0, 63):
                    text = build.op(f"zext i32 {self.read_a(op.register(index) + 1)} to i64")
                elif word:
                    text = build.op("zext i32 0 to i64")
                else:
                    text = self._single(op, index)
                if index == 0 and not word and how > 1:
                    text = build.op(f"and i64 {self._broadcast(text, how)}, 4294967295")
                values.append(Value("i", text))
            result = Lowering(build, None).call(function, values)
            results.append(Lowering(build, None).as_int(result))
        if len(results) == 1:
            return build.op(f"trunc i64 {results[0]} to i32")
        low = build.op(f"and i64 {results[0]}, 4294967295")
        return build.op(f"or i64 {low}, {build.op(f'shl i64 {results[1]}, 32')}")

    def _upper(self, op: Operation) -> str:
        build = self.builder
        number = 0x100 + op.immediate
        if number >= 0x110 or not csr_exists_for_worker(number):
            build.jump(self.bail(reasons.CONTROL))
            return ""
        if op.function == codes.UGET:
            return build.op(f"trunc i64 {build.load('i64', self.csr(number))} to i32")
        value = build.op(f"zext i32 {self.read_a(op.register(0))} to i64")
        if number == FP_CLR:
            self.clear_accumulators(build.op(f"icmp ne i64 {build.op(f'and i64 {value}, {ZAACC}')}, 0"))
        build.call(
            "i64", "tw.engine_registers.upper_put", f"ptr %state, i64 %context, i64 {number}, i64 {value}"
        )
        if number == FP_CTL and self.flavour != GENERAL:
            raise ValueError("plain code that changes $FP_CTL")
        return ""

    def clear_accumulators(self, condition: str) -> None:
        """Accumulators kept in the function are cleared where the condition holds."""

    def _quick_zero(self, op: Operation) -> None:
        """One slot instead of the usual number for a zero operand."""
        build = self.builder
        word = self._broadcast(self._low_pair(op, 0), op.info >> INFO_BROADCAST & 3)
        rest = build.op(f"and i64 {word}, {0x7FFF7FFF}")
        extra = (op.info >> INFO_SLOTS & 15) - 1
        saved = build.op(f"select i1 {build.op(f'icmp eq i64 {rest}, 0')}, i64 {-extra}, i64 0")
        slots = build.op(f"add i64 {build.load('i64', '%slots')}, {saved}")
        build.store("i64", slots, "%slots")

    # ---- lanes

    def _lanes(self, op: Operation, words: int) -> str:
        lanes = op.info >> INFO_LANES & 7
        x = self._broadcast(self._low_pair(op, 0), op.info >> INFO_BROADCAST & 3)
        y = self._low_pair(op, 1)
        name = instruction_tables().groups[op.group].functions[op.function].name
        halves = op.group == codes.GROUP_HALVES
        kind = name.split("_", 1)[-1]
        fast = self.fast_halves if halves else self.fast_singles
        arguments = f"ptr %state, i64 %context, i64 {lanes}, i64 {x}, i64 {y}"
        wide = words == 2
        if halves and fast and has_table(instruction_tables().groups[op.group].functions[op.function]):
            found = self._from_table(op, x, lanes)
            scalar = "i64" if wide else "i32"
            return self.checked(found, scalar, True, lambda: self._narrow(self._call(op, arguments), wide))
        if fast and kind in _ARITHMETIC:
            return self._arithmetic(op, kind, halves, x, y, arguments, wide)
        if fast and (kind in _ORDER or kind in ("max", "min", "absmax")):
            return self._ordered(kind, halves, x, y, wide)
        return self._narrow(self._call(op, arguments), wide)

    def _from_table(self, op: Operation, x: str, lanes: int) -> str:
        """A function of one half, lane by lane."""
        build = self.builder
        name = table_name(op.function)
        build.externals[name] = f"@{name} = external global [65536 x i16]"
        scalar = "i64" if lanes == 4 else "i32"
        out = "0"
        for lane in range(lanes):
            half = build.op(f"and i64 {build.op(f'lshr i64 {x}, {16 * lane}')}, 65535")
            value = build.load("i16", build.at(f"@{name}", "i16", half), 2)
            moved = build.op(f"shl {scalar} {build.op(f'zext i16 {value} to {scalar}')}, {16 * lane}")
            out = build.op(f"or {scalar} {out}, {moved}")
        return out

    def _narrow(self, text: str, wide: bool) -> str:
        return text if wide else self.builder.op(f"trunc i64 {text} to i32")

    def _call(self, op: Operation, arguments: str) -> str:
        """Call the library; the result words as i64."""
        build = self.builder
        both = build.call(PAIR, wrapper_name(op.group, op.function), arguments)
        fault = build.op(f"extractvalue {PAIR} {both}, 1")
        self.bail_if(build.op(f"icmp ne i64 {fault}, 0"), reasons.EXCEPTION)
        return build.op(f"extractvalue {PAIR} {both}, 0")

    @staticmethod
    def _vector(halves: bool, wide: bool) -> tuple[str, str, str]:
        """(floating vector, integer vector, integer scalar)."""
        if halves:
            return ("<4 x half>", "<4 x i16>", "i64") if wide else ("<2 x half>", "<2 x i16>", "i32")
        return ("<2 x float>", "<2 x i32>", "i64") if wide else ("<1 x float>", "<1 x i32>", "i32")

    def _as_vector(self, text: str, kind: str, scalar: str) -> str:
        narrow = text if scalar == "i64" else self.builder.op(f"trunc i64 {text} to i32")
        return self.builder.op(f"bitcast {scalar} {narrow} to {kind}")

    def _special(self, bits: str, scalar: str, halves: bool) -> str:
        """Not zero if some lane is an infinity or a NaN."""
        build = self.builder
        exponent, one, sign = (
            (HALVES_EXPONENT, HALVES_ONE, HALVES_SIGN)
            if halves
            else (SINGLES_EXPONENT, SINGLES_ONE, SINGLES_SIGN)
        )
        if scalar == "i32":
            exponent, one, sign = exponent & 0xFFFFFFFF, one & 0xFFFFFFFF, sign & 0xFFFFFFFF
        # All exponent bits set carry into the sign.
        carried = build.op(f"add {scalar} {build.op(f'and {scalar} {bits}, {exponent}')}, {one}")
        return build.op(f"and {scalar} {carried}, {sign}")

    def _arithmetic(
        self, op: Operation, kind: str, halves: bool, x: str, y: str, arguments: str, wide: bool
    ) -> str:
        build = self.builder
        vector, _, scalar = self._vector(halves, wide)
        if kind == "absadd":
            mask = HALVES_ABSOLUTE if halves else SINGLES_ABSOLUTE
            a = self._as_vector(build.op(f"and i64 {x}, {mask}"), vector, scalar)
            b = self._as_vector(build.op(f"and i64 {y}, {mask}"), vector, scalar)
        else:
            a, b = self._as_vector(x, vector, scalar), self._as_vector(y, vector, scalar)
        value = build.op(f"{_ARITHMETIC[kind]} {vector} {a}, {b}")
        bits = build.op(f"bitcast {vector} {value} to {scalar}")
        return self.checked(bits, scalar, halves, lambda: self._narrow(self._call(op, arguments), wide))

    def checked(self, bits: str, scalar: str, halves: bool, slow: Callable[[], str]) -> str:
        """A result, or what `slow()` emits where one of its lanes is an infinity or a NaN.

        Fast code only keeps the largest magnitude, and gives up at the exit: until then nothing is final.
        """
        build = self.builder
        if self.flavour == FAST:
            self._note_peak(bits, scalar, halves)
            return bits
        rare = self._special(bits, scalar, halves)
        place = build.alloca(scalar, "either")
        build.store(scalar, bits, place)
        cold, done = build.name("rare"), build.name("usual")
        build.branch(build.op(f"icmp ne {scalar} {rare}, 0"), cold, done, COLD)
        build.label(cold)
        build.store(scalar, slow(), place)
        build.label(done)
        return build.load(scalar, place)

    def _note_peak(self, bits: str, scalar: str, halves: bool) -> None:
        """Raise the largest magnitudes so far, lane by lane, to those of a result."""
        lane = "i16" if halves else "i32"
        lanes = (4 if halves else 2) // (1 if scalar == "i64" else 2)
        self.note_peaks(self.builder.op(f"bitcast {scalar} {bits} to <{lanes} x {lane}>"), lanes, lane)

    def note_peaks(self, bits: str, lanes: int, lane: str) -> None:
        """The same for lanes of any number, i16 for halves or i32 for singles."""
        build, vector = self.builder, f"<{lanes} x {lane}>"
        place = f"%peak{lanes}{lane}"
        if (lanes, lane) not in self._peaks:
            self._peaks[lanes, lane] = place
            build.allocas += [
                f"  {place} = alloca {vector}",
                f"  store {vector} zeroinitializer, ptr {place}",
            ]
        ones = _all_of(lanes, lane, 0x7FFF if lane == "i16" else 0x7FFFFFFF)
        size = build.op(f"and {vector} {bits}, {ones}")
        name = f"llvm.umax.v{lanes}{lane}"
        peak = build.call(vector, name, f"{vector} {build.load(vector, place)}, {vector} {size}")
        build.store(vector, peak, place)

    def look_at_peaks(self) -> None:
        """Note in %specials whether a result so far was an infinity or a NaN."""
        build = self.builder
        for (lanes, lane), place in self._peaks.items():
            vector = f"<{lanes} x {lane}>"
            least = _all_of(lanes, lane, 0x7C00 if lane == "i16" else 0x7F800000)
            wrong = build.op(f"icmp uge {vector} {build.load(vector, place)}, {least}")
            some = build.call("i1", f"llvm.vector.reduce.or.v{lanes}i1", f"<{lanes} x i1> {wrong}")
            self.note_special(build.op(f"zext i1 {some} to i64"))

    def note_special(self, text: str) -> None:
        """In fast code: the launch will be given up if this i64 is not zero."""
        build = self.builder
        build.store("i64", build.op(f"or i64 {build.load('i64', '%specials')}, {text}"), "%specials")

    def _ordered(self, kind: str, halves: bool, x: str, y: str, wide: bool) -> str:
        build = self.builder
        vector, integer, scalar = self._vector(halves, wide)
        if kind == "absmax":
            mask = HALVES_ABSOLUTE if halves else SINGLES_ABSOLUTE
            x, y, kind = build.op(f"and i64 {x}, {mask}"), build.op(f"and i64 {y}, {mask}"), "max"
        a, b = self._as_vector(x, vector, scalar), self._as_vector(y, vector, scalar)
        lanes = integer.split(" ")[0][1:]
        if kind in _ORDER:
            test = build.op(f"fcmp {_ORDER[kind]} {vector} {a}, {b}")
            mask_text = build.op(f"sext <{lanes} x i1> {test} to {integer}")
            return build.op(f"bitcast {integer} {mask_text} to {scalar}")
        # The other operand for a NaN in the first place; a NaN in the second never wins.
        better = build.op(f"fcmp {'ogt' if kind == 'max' else 'olt'} {vector} {b}, {a}")
        nan = build.op(f"fcmp uno {vector} {a}, {a}")
        second = build.op(f"or <{lanes} x i1> {better}, {nan}")
        x_bits, y_bits = self._as_vector(x, integer, scalar), self._as_vector(y, integer, scalar)
        chosen = build.op(f"select <{lanes} x i1> {second}, {integer} {y_bits}, {integer} {x_bits}")
        return build.op(f"bitcast {integer} {chosen} to {scalar}")

    # ---- whole registers

    def _quad(self, op: Operation, index: int) -> tuple[str, str]:
        """Four words of an operand as two i64; those an operand does not have are zero."""
        number = self._register(op, index)
        low = self._low_pair(op, index)
        if number % 4 == 0 and number < 8:
            return low, self.read_a64(number + 2)
        return low, "0"

    def general_arguments(self, op: Operation) -> str:
        """Arguments of a library call for a function of whole registers."""
        x01, x23 = self._quad(op, 0)
        y01, y23 = self._quad(op, 1)
        how = op.info >> INFO_BROADCAST & 3
        if how:
            x01 = self._broadcast(x01, how)
        operands = ", ".join(f"i64 {text}" for text in (x01, x23, y01, y23))
        return f"ptr %state, i64 %context, {operands}, i64 {op.immediate}"

    def _whole(self, op: Operation, words: int) -> str:
        fast = self.fast_whole(op, words)
        if fast is not None:
            return fast
        return self._narrow(self._call(op, self.general_arguments(op)), words == 2)

    def fast_whole(self, op: Operation, words: int) -> str | None:
        """A native form of an instruction on whole registers, or None."""
        return None


def _all_of(lanes: int, lane: str, value: int) -> str:
    """A vector constant."""
    return "<" + ", ".join([f"{lane} {value}"] * lanes) + ">"


def csr_exists_for_worker(number: int) -> bool:
    """Whether a worker has a control register."""
    return bool(int(instruction_tables().array[CSRS_AT + number]) >> 1 & 1)
