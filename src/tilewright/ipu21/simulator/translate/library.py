"""The library every translation calls: aux instructions in their general form, and `runtime`.

Each value function of the aux pipeline gets a wrapper that reads $FP_CTL, draws random bits, applies the
function to all lanes and records the flags, exactly as the other engine does. A wrapper returns the result
words as one 64-bit number, and 1 if the worker cannot go on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...isa.meaning.float16 import ESR
from ...isa.meaning.products import lane_of
from ...isa.meaning.registry import Meaning
from .. import codes, pointers
from .. import state as at
from ..dispatch import signed_scale
from ..engine_registers import (
    FP_CTL,
    FP_INFMT,
    FP_ISCL,
    FP_NFMT,
    FP_SCL,
    TAS,
    csr_index,
    decode_weight,
    draw,
    upper_put,
)
from ..instruction_tables import instruction_tables
from . import runtime
from .half_tables import filler_source, has_table
from .ir import Builder
from .lowering import Lowering
from .operands import Value, constant
from .recording import close_span, record_comb
from .single_instructions import special
from .sources import symbol

PAIR = "{ i64, i64 }"
RUNTIME = (
    runtime.assist,
    runtime.prepare_store,
    runtime.meet,
    close_span,
    record_comb,
    upper_put,
    runtime.narrow,
    draw,
)
"""Functions that other modules call by name."""

_NUMBERED = {"draw": 0, "draw1": 16, "draw2": 32, "draw3": 48}
_ARRAYS: dict[str, Callable[..., Any]] = {
    "accumulators": pointers.accumulators,
    "accumulator_words": pointers.accumulator_words,
}
_COMMON: dict[str, Callable[..., Any]] = {
    "weights": pointers.half_weights,
    "single_weights": pointers.single_weights,
    "weight_words": pointers.weight_words,
}


def wrapper_name(group: int, number: int) -> str:
    """Link name of a value function's wrapper."""
    return f"tw.aux.{group}.{number}"


def draws_of(meaning: Meaning) -> tuple[int, bool]:
    """Draws of an instruction, and whether it draws even without stochastic rounding."""
    names = meaning.parameters
    if any(name in names for name in ("random2", "random3")):
        count = 2
    else:
        count = 1 if any(name.startswith(("draw", "random")) for name in names) else 0
    return count, count > 0 and "control" not in names


class _Wrapper:
    """One wrapper under construction. %state and %context are its first parameters."""

    def __init__(self, wanted: dict[str, Callable[..., Any]], meaning: Meaning) -> None:
        self.builder = Builder()
        self.lowering = Lowering(self.builder, wanted)
        self.meaning = meaning
        self.state = Value("p", "%state", element=("i64", "signed"))
        self.context = Value("i", "%context")
        self.control = self.csr(FP_CTL)
        self.flags = self.builder.alloca("i64")
        self.builder.store("i64", "0", self.flags)
        self._draw()

    def csr(self, number: int, context: Value | None = None) -> Value:
        place = self.lowering.call(csr_index, [context or self.context, constant(number)])
        return Value("i", self.builder.load("i64", self.builder.at("%state", "i64", place.text or "0")))

    def supervisor_csr(self, number: int) -> Value:
        index = at.CSRS + number
        return Value("i", self.builder.load("i64", self.builder.at("%state", "i64", index)))

    def word(self, index: int) -> str:
        return self.builder.load("i64", self.builder.at("%state", "i64", index))

    def _draw(self) -> None:
        count, always = draws_of(self.meaning)
        if not count:
            return
        do, skip = self.builder.name("draw"), self.builder.name("drawn")
        if not always:
            bit = self.builder.op(f"and i64 {self.control.text}, {ESR}")
            self.builder.branch(self.builder.op(f"icmp ne i64 {bit}, 0"), do, skip)
            self.builder.label(do)
        for place in range(0, 2 * count, 2):
            self.lowering.call(draw, [self.state, self.context, constant(place)])
        self.builder.label(skip)

    def note(self, flags: str) -> None:
        """OR into the flags of the whole instruction."""
        text = self.builder.op(f"or i64 {self.builder.load('i64', self.flags)}, {flags}")
        self.builder.store("i64", text, self.flags)

    def finish(self, result: str) -> str:
        """Record the flags and return."""
        flags = self.builder.load("i64", self.flags)
        yes, done = self.builder.name("flags"), self.builder.name("done")
        fault = self.builder.alloca("i64")
        self.builder.store("i64", "0", fault)
        self.builder.branch(self.builder.op(f"icmp ne i64 {flags}, 0"), yes, done)
        self.builder.label(yes)
        bad = self.lowering.call(runtime.note_flags, [self.state, self.context, Value("i", flags)])
        self.builder.store("i64", self.lowering.as_int(bad), fault)
        self.builder.label(done)
        text = self.builder.op(f"insertvalue {PAIR} undef, i64 {result}, 0")
        text = self.builder.op(f"insertvalue {PAIR} {text}, i64 {self.builder.load('i64', fault)}, 1")
        self.builder.end(f"ret {PAIR} {text}")
        return text


def _lanes(group: int, number: int, meaning: Meaning, wanted: dict[str, Callable[..., Any]]) -> str:
    """Wrapper of a function of lanes: (state, context, lanes, x, y)."""
    width = 16 if group == codes.GROUP_HALVES else 32
    mask = (1 << width) - 1
    work = _Wrapper(wanted, meaning)
    build = work.builder
    random = "0"
    if draws_of(meaning)[0]:
        high = build.op(f"shl i64 {work.word(at.RANDOM + 1)}, 32")
        random = build.op(f"or i64 {work.word(at.RANDOM)}, {high}")
    shift, out = build.alloca("i64"), build.alloca("i64")
    build.store("i64", "0", shift)
    build.store("i64", "0", out)
    end = build.op(f"mul i64 %lanes, {width}")
    head, body, done = build.name("head"), build.name("body"), build.name("end")
    build.label(head)
    at_shift = build.load("i64", shift)
    build.branch(build.op(f"icmp slt i64 {at_shift}, {end}"), body, done)
    build.label(body)

    def lane(source: str, amount: str) -> Value:
        return Value("i", build.op(f"and i64 {build.op(f'lshr i64 {source}, {amount}')}, {mask}"))

    values = {
        "x": lambda: lane("%x", at_shift),
        "y": lambda: lane("%y", at_shift),
        "lower": lambda: lane("%y", "0"),
        "upper": lambda: lane("%y", str(width)),
        "control": lambda: work.control,
        "draw": lambda: Value("i", build.op(f"and i64 {build.op(f'lshr i64 {random}, {at_shift}')}, 65535")),
    }
    result = work.lowering.call(meaning.function, [values[name]() for name in meaning.parameters])
    text = work.lowering.as_int(result)
    work.note(build.op(f"lshr i64 {text}, 32"))
    low = build.op(f"and i64 {text}, {mask}")
    build.store(
        "i64", build.op(f"or i64 {build.load('i64', out)}, {build.op(f'shl i64 {low}, {at_shift}')}"), out
    )
    build.store("i64", build.op(f"add i64 {at_shift}, {width}"), shift)
    build.jump(head)
    build.label(done)
    work.finish(build.load("i64", out))
    name = wrapper_name(group, number)
    return build.text(f"define {PAIR} @{name}(ptr %state, i64 %context, i64 %lanes, i64 %x, i64 %y)")


def _whole(
    group: int,
    number: int,
    meaning: Meaning,
    arguments: tuple[str, ...],
    wanted: dict[str, Callable[..., Any]],
) -> str:
    """Wrapper of a function of whole registers: (state, context, x01, x23, y01, y23, immediate)."""
    work = _Wrapper(wanted, meaning)
    build = work.builder
    halves = {"0": ("01", 0), "1": ("01", 32), "2": ("23", 0), "3": ("23", 32)}

    def value(name: str) -> Value:
        if name == "control":
            return work.control
        if name == "immediate":
            return Value("i", "%immediate")
        if name in _NUMBERED:
            word = work.word(at.RANDOM + _NUMBERED[name] // 32)
            shifted = build.op(f"lshr i64 {word}, {_NUMBERED[name] % 32}")
            return Value("i", build.op(f"and i64 {shifted}, 65535"))
        if name.startswith("random"):
            return Value("i", work.word(at.RANDOM + int(name[6:])))
        if name in _ARRAYS:
            return work.lowering.expand(_ARRAYS[name], [work.state, work.context])
        if name in _COMMON:
            return work.lowering.expand(_COMMON[name], [work.state])
        if name == "tas":
            return work.csr(TAS)
        if name == "number_format":
            return Value("i", build.op(f"and i64 {work.csr(FP_NFMT).text}, 1"))
        if name == "scale":
            return work.lowering.call(signed_scale, [work.csr(FP_SCL)])
        if name == "input_format":
            return Value("i", build.op(f"and i64 {work.supervisor_csr(FP_INFMT).text}, 3"))
        if name == "input_scale":
            return work.lowering.call(signed_scale, [work.supervisor_csr(FP_ISCL)])
        half, shift = halves[name[1]]
        source = f"%{name[0]}{half}"
        shifted = build.op(f"lshr i64 {source}, {shift}") if shift else source
        return Value("i", build.op(f"and i64 {shifted}, 4294967295"))

    result = work.lowering.call(meaning.function, [value(name) for name in arguments])
    items = result.items if result.kind == "t" else (result,)
    texts = [work.lowering.as_int(item) for item in items]
    for text in texts:
        work.note(build.op(f"lshr i64 {text}, 32"))
    out = build.op(f"and i64 {texts[0]}, 4294967295")
    if len(texts) == 2:
        out = build.op(f"or i64 {out}, {build.op(f'shl i64 {texts[1]}, 32')}")
    work.finish(out)
    return build.text(
        f"define {PAIR} @{wrapper_name(group, number)}"
        "(ptr %state, i64 %context, i64 %x01, i64 %x23, i64 %y01, i64 %y23, i64 %immediate)"
    )


def _lower_call_worker(lowering: Lowering, arguments: list[Value]) -> Value:
    function = lowering.builder.op(f"inttoptr i64 {lowering.as_int(arguments[0])} to ptr")
    texts = f"ptr {arguments[1].text}, i64 {lowering.as_int(arguments[2])}, ptr {arguments[3].text}"
    return Value("i", lowering.builder.op(f"call i64 {function}({texts})"))


special(runtime.call_worker)(_lower_call_worker)


def _lower_copy_integers(lowering: Lowering, arguments: list[Value]) -> Value:
    build = lowering.builder
    target, source = (
        build.op(f"inttoptr i64 {lowering.as_int(argument)} to ptr") for argument in arguments[:2]
    )
    size = build.op(f"mul i64 {lowering.as_int(arguments[2])}, 8")
    build.call("void", "llvm.memcpy.p0.p0.i64", f"ptr {target}, ptr {source}, i64 {size}, i1 false")
    return constant(0)


special(runtime.copy_integers)(_lower_copy_integers)
special(runtime.address_of)(lambda lowering, arguments: Value("i", lowering.as_int(arguments[0])))


def _weights(lowering: Lowering, state: Value) -> tuple[str, str]:
    """Pointers to the raw weight entries and to the singles they are decoded to."""
    build = lowering.builder
    raw, halves = (
        build.op(f"inttoptr i64 {build.load('i64', build.at(state.text, 'i64', place))} to ptr")
        for place in (at.WEIGHTS, at.HALF_WEIGHTS)
    )
    return raw, halves


def _lower_decode_weight(lowering: Lowering, arguments: list[Value]) -> Value:
    build, entry = lowering.builder, lowering.as_int(arguments[1])
    raw, halves = _weights(lowering, arguments[0])
    four = build.op(f"bitcast i64 {build.load('i64', build.at(raw, 'i64', entry))} to <4 x half>")
    wide = build.op(f"fpext <4 x half> {four} to <4 x float>")
    rows = build.op(f"shl i64 {build.op(f'and i64 {entry}, 3')}, 6")
    lane = lowering.as_int(lowering.call(lane_of, [Value("i", build.op(f"lshr i64 {entry}, 2"))]))
    begin = build.at(halves, "float", build.op(f"or i64 {rows}, {lane}"))
    for index in range(4):
        one = build.op(f"extractelement <4 x float> {wide}, i32 {index}")
        build.store("float", one, build.at(begin, "float", 16 * index))
    return constant(0)


def _lower_decode_all_weights(lowering: Lowering, arguments: list[Value]) -> Value:
    """Sixteen units of sixteen halves become sixteen rows, one per half, of sixteen singles: eight units at a
    time, whose halves three rounds of unpacking bring side by side."""
    build = lowering.builder
    raw, halves_at = _weights(lowering, arguments[0])

    def shuffled(kind: str, one: str, other: str, order: list[int]) -> str:
        mask = ", ".join(f"i32 {index}" for index in order)
        return build.op(f"shufflevector {kind} {one}, {kind} {other}, <{len(order)} x i32> <{mask}>")

    def unpacked(one: str, other: str, bits: int, side: int) -> str:
        """Elements of one and the other in turn, from the lower or the upper half of each 128 bits."""
        count, kind = 256 // bits, f"<{256 // bits} x i{bits}>"
        one, other = (build.op(f"bitcast <16 x i16> {item} to {kind}") for item in (one, other))
        first = [lane + side * count // 4 for lane in (0, count // 2)]
        order = [
            place for lane in first for at in range(count // 4) for place in (lane + at, lane + at + count)
        ]
        return build.op(f"bitcast {kind} {shuffled(kind, one, other, order)} to <16 x i16>")

    units = sorted(range(16), key=lane_of)
    sides = []
    for lane in (0, 8):
        columns = [
            [build.load("<16 x i16>", build.at(raw, "<16 x i16>", unit), 4)]
            for unit in units[lane : lane + 8]
        ]
        for bits in (16, 32, 64):
            columns = [
                [
                    unpacked(one, other, bits, side)
                    for one, other in zip(columns[first], columns[first + 1], strict=True)
                    for side in (0, 1)
                ]
                for first in range(0, len(columns), 2)
            ]
        sides.append(columns[0])
    for row, (left, right) in enumerate(zip(*sides, strict=True)):
        for upper in (0, 8):
            order = [upper + 16 * (lane >> 3) + (lane & 7) for lane in range(16)]
            both = build.op(f"bitcast <16 x i16> {shuffled('<16 x i16>', left, right, order)} to <16 x half>")
            # Whole vectors, as AMPs load them: parts would have to reach memory first.
            singles = build.op(f"fpext <16 x half> {both} to <16 x float>")
            build.store("<16 x float>", singles, build.at(halves_at, "<16 x float>", row + upper), 64)
    return constant(0)


def library_source(native_halves: bool) -> str:
    """The library as LLVM text. `native_halves`: the CPU converts half precision itself."""
    if native_halves:
        special(decode_weight)(_lower_decode_weight)
        special(runtime.decode_all_weights)(_lower_decode_all_weights)
    wanted: dict[str, Callable[..., Any]] = {symbol(function): function for function in RUNTIME}
    public = set(wanted)
    parts: list[str] = []
    externals: dict[str, str] = {}
    groups = instruction_tables().groups
    for group in (codes.GROUP_HALVES, codes.GROUP_SINGLES, codes.GROUP_WHOLE, codes.GROUP_STATE):
        for number, meaning in enumerate(groups[group].functions):
            if group in (codes.GROUP_HALVES, codes.GROUP_SINGLES):
                parts.append(_lanes(group, number, meaning, wanted))
                if group == codes.GROUP_HALVES and has_table(meaning):
                    parts.append(filler_source(number, meaning, wanted))
            else:
                parts.append(_whole(group, number, meaning, groups[group].arguments[number], wanted))
    done: set[str] = set()
    while len(done) < len(wanted):
        for name, function in list(wanted.items()):
            if name in done:
                continue
            done.add(name)
            builder = Builder()
            text = Lowering(builder, wanted).define(function, "" if name in public else "internal")
            parts.append(text)
            externals |= builder.externals
    return "\n".join([*externals.values(), *parts])
