"""A kernel's supervisor code executed by the compiler, as far as it depends on the call's arguments alone.

What a kernel's supervisor does before it starts its workers (fill their frame, choose their code) is a
function of the arguments, and all arguments are known when the program is made. `run_ahead` executes linked
code from its entry for many calls at once and stops at the first instruction that does more than compute: a
launch, a synchronisation, a load of weights. What was reached by then, registers and the words of the frame,
can stand in the program instead.

The instructions' meaning is `isa.meaning`'s, on arrays; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..isa.csrs import CCCSLOAD
from ..isa.decode import Instruction, decode
from ..isa.forms import Operand
from ..machine.timing import SUPERVISOR_BRANCH, SUPERVISOR_LATENCY
from ..toolchain import LinkedImage
from .kernel import STACK_BYTES

Values = NDArray[np.uint64]
"""One 32-bit value per call."""

RETURN, STACK, ZERO = 10, 11, 15
"""Registers of the call convention."""
WORD = np.uint64(0xFFFFFFFF)
_SIGN = np.uint64(0x80000000)
LONGEST = 4096
"""Instructions after which a prologue is taken for an endless one."""


class Code:
    """Linked code, by address."""

    def __init__(self, image: LinkedImage) -> None:
        self._words: dict[int, int] = {}
        for segment in image.segments:
            words = np.frombuffer(segment.data[: len(segment.data) & ~3], dtype="<u4").tolist()
            self._words |= zip(range(segment.address, segment.end, 4), words, strict=False)
        self._decoded: dict[int, Instruction] = {}

    def holds(self, address: int) -> bool:
        return address in self._words

    def word(self, address: int) -> int:
        return self._words[address]

    def at(self, address: int) -> Instruction:
        """The instruction at an address. Raises KeyError, InvalidInstruction."""
        if address not in self._decoded:
            self._decoded[address] = decode(self._words[address])
        return self._decoded[address]


@dataclass
class Reached:
    """Where calls that take the same way stop, and what they have by then.

    Attributes:
        calls: which of the given calls these are.
        stop: address of the first instruction that is not executed; None if the calls return before.
        registers: values by number.
        frame: words by byte offset from the stack pointer of the call, all below 0.
        returns: registers that hold the return address, and `return_words` of the frame that do.
        puts: (CSR, values), in order.
        cycles: from the entry's first instruction to the issue of the one at `stop`.
    """

    calls: NDArray[np.int64]
    stop: int | None
    registers: dict[int, Values]
    frame: dict[int, Values] = field(default_factory=dict)
    returns: set[int] = field(default_factory=set)
    return_words: set[int] = field(default_factory=set)
    puts: list[tuple[int, Values]] = field(default_factory=list)
    cycles: int = 0


def run_ahead(code: Code, entry: int, arguments: Mapping[int, Values], stack: int) -> list[Reached]:
    """Execute calls from their entry on.

    Args:
        arguments: register number -> its value in every call.
        stack: the stack pointer.
    """
    count = len(next(iter(arguments.values()))) if arguments else 1
    registers = {number: values.astype(np.uint64) & WORD for number, values in arguments.items()}
    registers[STACK] = np.full(count, stack, dtype=np.uint64)
    begin = Reached(np.arange(count), entry, registers, returns={RETURN})
    waiting = [_Run(code, stack, begin, entry)]
    finished: list[Reached] = []
    while waiting:
        waiting += waiting.pop().advance(finished)
    return finished


class _Run:
    """Calls that have taken the same way so far."""

    def __init__(self, code: Code, stack: int, reached: Reached, pc: int) -> None:
        self.code, self.stack, self.reached, self.pc = code, stack, reached, pc
        self.clock = 0
        self.ready: dict[int, int] = {}
        self.weights_ready = 0
        self.steps = 0

    def advance(self, finished: list[Reached]) -> list[_Run]:
        """Execute to the end, or to a branch at which the calls part."""
        while True:
            instruction = self.code.at(self.pc) if self.code.holds(self.pc) else None
            self.steps += 1
            parted = self._step(instruction) if instruction and self.steps < LONGEST else None
            if parted is None:
                self._wait(instruction)
                self.reached.stop, self.reached.cycles = self.pc, self.clock
                finished.append(self.reached)
                return []
            if not parted:
                if self.reached.stop is None:
                    self.reached.cycles = self.clock
                    finished.append(self.reached)
                    return []
                continue
            return parted

    def _wait(self, instruction: Instruction | None) -> None:
        """Until what the instruction reads is there."""
        if instruction is None:
            return
        for operand, number in zip(instruction.form.operands, instruction.operands, strict=True):
            if operand.kind == "mreg" and reads(operand):
                self.clock = max(self.clock, self.ready.get(number, 0))
        if instruction.form.mnemonic in WEIGHT_LOADS:
            self.clock = max(self.clock, self.weights_ready)

    def _step(self, instruction: Instruction) -> list[_Run] | None:
        """One instruction: None if it cannot be executed ahead, else the runs it parts into, if it does."""
        form, operands = instruction.form, instruction.operands
        if form.mnemonic in BRANCHES:
            return self._branch(instruction)
        if form.mnemonic == "br":
            if operands[0] not in self.reached.returns:
                return None
            self._wait(instruction)
            self.clock += SUPERVISOR_BRANCH
            self.reached.stop = None
            return []
        if form.mnemonic == "ld32":
            done = self._load(instruction)
        elif form.mnemonic == "st32":
            done = self._store(instruction)
        elif form.mnemonic == "put":
            done = self._put(operands)
        else:
            done = self._compute(instruction)
        if not done:
            return None
        self.pc += 4
        return []

    def _value(self, operand: Operand, value: int) -> Values | None:
        """What an operand is; None for what is not known, or is the return address."""
        if operand.kind != "mreg":
            return np.full(len(self.reached.calls), value & 0xFFFFFFFF, dtype=np.uint64)
        if value == ZERO:
            return np.zeros(len(self.reached.calls), dtype=np.uint64)
        return self.reached.registers.get(value)

    def _issue(self, instruction: Instruction) -> None:
        self._wait(instruction)
        for operand, number in zip(instruction.form.operands, instruction.operands, strict=True):
            if operand.kind == "mreg" and writes(operand):
                self.ready[number] = self.clock + SUPERVISOR_LATENCY
        self.clock += 1

    def _set(self, number: int, values: Values | None) -> None:
        """A register's new value; None is the return address."""
        self.reached.returns.discard(number)
        self.reached.registers.pop(number, None)
        if values is None:
            self.reached.returns.add(number)
        elif number != ZERO:
            self.reached.registers[number] = values

    def _compute(self, instruction: Instruction) -> bool:
        form, operands = instruction.form, instruction.operands
        function = OPERATIONS.get(form.mnemonic)
        if function is None or any(item.kind.startswith("a") for item in form.operands):
            return False
        named = list(zip(form.operands, operands, strict=True))
        if form.mnemonic == "or" and operands[1] in self.reached.returns and operands[2] in (0, ZERO):
            if form.operands[2].kind == "mreg" and operands[2] != ZERO:
                return False
            self._issue(instruction)
            self._set(operands[0], None)
            return True
        sources = [self._value(*item) for item in named if reads(item[0])]
        known = [source for source in sources if source is not None]
        if len(known) < len(sources):
            return False
        self._issue(instruction)
        self._set(operands[0], function(*known) & WORD)
        return True

    def _address(self, instruction: Instruction) -> Values | None:
        """Where an access by an M register goes, from all operands behind it; None if that is not known."""
        operands = list(zip(instruction.form.operands, instruction.operands, strict=True))
        if operands[0][0].kind != "mreg":
            return None
        base, delta, offset = (self._value(*item) for item in operands[1:])
        if base is None or delta is None or offset is None:
            return None
        return (base + delta + np.uint64(4) * offset) & WORD

    def _in_frame(self, address: Values) -> int | None:
        """Offset from the stack pointer, if it is that of one word of every call's frame."""
        offset = int(address[0]) - self.stack
        inside = -STACK_BYTES <= offset < 0 and offset % 4 == 0
        return offset if inside and (address == address[0]).all() else None

    def _store(self, instruction: Instruction) -> bool:
        register, address = instruction.operands[0], self._address(instruction)
        offset = self._in_frame(address) if address is not None else None
        value = self._value(instruction.form.operands[0], register)
        if offset is None or (value is None and register not in self.reached.returns):
            return False
        self._issue(instruction)
        self.reached.return_words.discard(offset)
        self.reached.frame.pop(offset, None)
        if value is None:
            self.reached.return_words.add(offset)
        else:
            self.reached.frame[offset] = value
        return True

    def _load(self, instruction: Instruction) -> bool:
        register, address = instruction.operands[0], self._address(instruction)
        if address is None:
            return False
        offset = self._in_frame(address)
        if offset in self.reached.return_words:
            loaded = None
        elif offset in self.reached.frame:
            loaded = self.reached.frame[offset]
        else:
            # Out of the code; each call may look into a table of its own.
            places = address.tolist()
            if not all(map(self.code.holds, places)):
                return False
            loaded = np.array([self.code.word(place) for place in places], dtype=np.uint64)
        self._issue(instruction)
        self._set(register, loaded)
        return True

    def _put(self, operands: tuple[int, ...]) -> bool:
        number, register = operands
        value = self.reached.registers.get(register)
        if value is None or number != CCCSLOAD:
            return False
        self.clock = max(self.clock, self.ready.get(register, 0))
        self.weights_ready = self.clock + SUPERVISOR_LATENCY
        self.clock += 1
        self.reached.puts.append((number, value))
        return True

    def _branch(self, instruction: Instruction) -> list[_Run] | None:
        operands = instruction.operands
        target = operands[-1]
        value = self._value(instruction.form.operands[0], operands[0])
        if value is None:
            return None
        taken = BRANCHES[instruction.form.mnemonic](value)
        self._wait(instruction)
        if taken.all() or not taken.any():
            self._go(bool(taken[0]), target)
            return []
        return [self._part(taken, target, True), self._part(~taken, target, False)]

    def _go(self, taken: bool, target: int) -> None:
        self.clock += SUPERVISOR_BRANCH if taken else 1
        self.pc = target if taken else self.pc + 4

    def _part(self, which: NDArray[np.bool_], target: int, taken: bool) -> _Run:
        """The run of some of the calls."""
        old = self.reached
        part = replace(
            old,
            calls=old.calls[which],
            registers={number: values[which] for number, values in old.registers.items()},
            frame={offset: values[which] for offset, values in old.frame.items()},
            returns=set(old.returns),
            return_words=set(old.return_words),
            puts=[(number, values[which]) for number, values in old.puts],
        )
        run = _Run(self.code, self.stack, part, self.pc)
        run.clock, run.ready, run.weights_ready = self.clock, dict(self.ready), self.weights_ready
        run.steps = self.steps
        run._go(taken, target)
        return run


def reads(operand: Operand) -> bool:
    """True unless the operand is only written (`mSrcDst0` is both)."""
    return not operand.name.startswith("mDst")


def writes(operand: Operand) -> bool:
    return "Dst" in operand.name


WEIGHT_LOADS = ("ld64putcs", "ld128putcs")


def _signed(values: Values) -> Values:
    """In an order in which unsigned comparison is signed comparison."""
    return values ^ _SIGN


def _shifted(operation: Callable[[Values, Values], Values]) -> Callable[[Values, Values], Values]:
    def function(a: Values, amount: Values) -> Values:
        inside = np.minimum(amount, np.uint64(31))
        return _chosen(amount > 31, np.zeros_like(a), operation(a, inside))

    return function


def _arithmetic_shift(a: Values, amount: Values) -> Values:
    wide = a.astype(np.uint32).view(np.int32).astype(np.int64)
    return (wide >> np.minimum(amount, np.uint64(31)).astype(np.int64)).view(np.uint64)


def _chosen(condition: NDArray[np.bool_], one: Values, other: Values) -> Values:
    result: Values = np.where(condition, one, other)
    return result


def _truth(comparison: NDArray[np.bool_]) -> Values:
    return comparison.astype(np.uint64)


OPERATIONS: dict[str, Callable[..., Values]] = {
    "setzi": lambda value: value,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "andc": lambda a, b: a & (b ^ WORD),
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": _shifted(np.left_shift),
    "shr": _shifted(np.right_shift),
    "shrs": _arithmetic_shift,
    "cmpeq": lambda a, b: _truth(a == b),
    "cmpne": lambda a, b: _truth(a != b),
    "cmpslt": lambda a, b: _truth(_signed(a) < _signed(b)),
    "cmpult": lambda a, b: _truth(a < b),
    "max": lambda a, b: _chosen(_signed(a) > _signed(b), a, b),
    "min": lambda a, b: _chosen(_signed(a) < _signed(b), a, b),
    "movz": lambda old, condition, value: _chosen(condition != 0, value, old),
}
"""Register instructions, on values of many calls; sources in assembly order."""

BRANCHES: dict[str, Callable[[Values], NDArray[np.bool_]]] = {
    "bri": lambda value: value == value,
    "brz": lambda value: value == 0,
    "brnz": lambda value: value != 0,
    "brneg": lambda value: value >= _SIGN,
    "brpos": lambda value: value < _SIGN,
}
"""When branches are taken, by their first operand; `bri` has only its target."""
