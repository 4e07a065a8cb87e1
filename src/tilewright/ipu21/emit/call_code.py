"""The words of one kernel call: in full, or what is left of a prepared one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..isa import build
from ..kernels.prologue import RETURN, STACK
from ..kernels.runtime import STACK_TOP
from ..machine import sync_zones
from ..machine.timing import SUPERVISOR_BRANCH
from .copy_frames import Launch
from .lines import Line, constants, last_issue, load, put, words_of
from .memory_map import ITERATION
from .prepared import Prepared

CALL = 6
"""Cycles of a call beside the words that load its registers (fitted to the simulator)."""
ITERATED = 22
"""Cycles to move an operand of a call to the current iteration (fitted to the simulator)."""


@dataclass(frozen=True)
class Block:
    """A piece of step code.

    Attributes:
        setup: sets registers and does nothing else; may be done earlier.
        body: the rest.
        launches: it ends with `runall` and `sync 2`.
    """

    setup: list[Line]
    body: list[Line]
    launches: bool = False


def prepared_block(call: Prepared, area: int) -> Block:
    """What is left of a prepared call. `area`: where the frames lie."""
    assert call.stop is not None
    used = {*call.registers, *call.loaded}
    puts = [put(csr, register) for csr, register in call.puts]
    if call.tail.launch:
        entry, base, stride = call.tail.launch
        # The stack pointer stays: another register names the frame.
        renamed = {STACK: next(register for register in range(RETURN) if register not in used)}
        entry, base = renamed.get(entry, entry), renamed.get(base, base)
        values = {renamed.get(register, register): value for register, value in call.registers.items()}
        loaded = {renamed.get(register, register): place for register, place in call.loaded.items()}
        launch = Line(build.runall(entry, base, stride), -1, (entry, base))
        body = [*puts, launch, Line(build.sync(sync_zones.LOCAL))]
        return Block(_setup(values, loaded, area), body, launches=True)
    live = tuple(sorted(call.tail.live & used))
    onward = Line(build.call(RETURN, call.stop), RETURN, live)
    if RETURN in used:
        onward = Line(build.bri(call.stop), -1, live)
    setup = _setup(call.registers, call.loaded, area)
    return Block(setup, [*puts, onward, *constants({STACK: STACK_TOP})])


def launch_block(launch: Launch) -> Block:
    """Start workers whose frames lie ready, and wait for them."""
    body = [
        Line(build.runall(0, 1, launch.stride), -1, (0, 1)),
        Line(build.sync(sync_zones.LOCAL)),
    ]
    return Block(constants({0: launch.entry, 1: launch.base}), body, launches=True)


def launch_cycles(launch: Launch, block: Block, hidden: int) -> int:
    """Cycles of such a block, if `hidden` of its setup is done before."""
    return last_issue([*block.setup[hidden:], *block.body][:-1]) + launch.cycles


def _setup(values: Mapping[int, int], loaded: Mapping[int, int], area: int) -> list[Line]:
    """Set registers to values and to words of the area. Pointers, which are waited for, come first."""
    if not loaded:
        return constants(values)
    # The last register that is loaded holds the address until then.
    base, lowest = list(loaded)[-1], min(loaded.values())
    return [
        *constants({base: area + lowest}),
        *constants(values),
        *(load(register, base, place - lowest) for register, place in loaded.items()),
    ]


def block_cycles(call: Prepared, block: Block, hidden: int) -> int:
    """Cycles of a prepared call beside its kernel's formula, if `hidden` of its setup is done before."""
    lines = [*block.setup[hidden:], *block.body]
    if block.launches:
        return last_issue(lines[:-1]) - call.cycles - SUPERVISOR_BRANCH
    restored = 1
    onward = last_issue(lines[:-restored])
    return onward + SUPERVISOR_BRANCH + restored - call.cycles


def call_words(symbols: Mapping[str, int], symbol: str, values: Sequence[int]) -> list[int]:
    """Load the call registers $m2, $m3, ... and call a kernel."""
    return [*argument_words(values), build.call(10, symbols[symbol])]


def call_code(values: Sequence[int], strides: Mapping[int, int], entry: int) -> list[int]:
    """Load the call registers, move those of iterated operands to the current iteration, and call.

    Args:
        strides: operand position -> bytes from one iteration's part to the next.
    """
    words = [build.setzi(1, ITERATION), build.ld32(0, 1, build.ZERO, 0)] if strides else []
    words += argument_words(values)
    for position, stride in strides.items():
        words += [
            build.setzi(1, stride),
            build.mul(1, 1, 0),
            build.add(2 + position, 2 + position, 1),
        ]
    return [*words, build.call(10, entry)]


def argument_words(values: Sequence[int]) -> list[int]:
    """Load $m2, $m3, ... with 32-bit values; those under 2^20 take one instruction."""
    return words_of(constants(dict(enumerate(values, 2))))
