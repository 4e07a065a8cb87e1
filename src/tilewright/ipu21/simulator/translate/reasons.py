"""Why a launch was left to the compiled engine: numbers, counted in the scratch."""

from __future__ import annotations

RACE = 0
RESTARTED = 1
TOO_LARGE = 2
GIVEN_UP = 3
SPECIAL = 4
ADDRESS = 5
ALIGNMENT = 6
REGION = 7
CONFLICT = 8
BUDGET = 9
UNKNOWN_CODE = 10
INDIRECT = 11
EXCEPTION = 12
CONTROL = 13
OPERAND = 14
TRAP = 15
UNWRITTEN = 16
TOUCHED = 17
REWRITTEN = 18

NAMES = {
    RACE: "workers share a word that one of them stores",
    RESTARTED: "workers stopped between their issues",
    TOO_LARGE: "the code is too large to be translated",
    GIVEN_UP: "the code failed too often before",
    SPECIAL: "an infinity or a NaN in fast code, replaced from now on",
    ADDRESS: "an address outside memory or in running code",
    ALIGNMENT: "an address that is not aligned",
    REGION: "a 128-bit access outside interleaved memory",
    CONFLICT: "two accesses of one instruction in one memory element",
    BUDGET: "the budget of the run ends inside the launch",
    UNKNOWN_CODE: "no instruction, or one that a worker cannot execute",
    INDIRECT: "a branch to an address that no call has left behind",
    EXCEPTION: "a floating-point exception, or an operand without a known meaning",
    CONTROL: "a control register that needs the other engine",
    OPERAND: "registers that an instruction does not accept",
    TRAP: "a trap",
    UNWRITTEN: "a load of what nobody had written before the launch",
    TOUCHED: "workers share a word with the supervisor, or it has touched many words since it launched them",
    REWRITTEN: "the program has stored over the code",
}
"""Numbers to words. All but the first five end in an exception or a stop of the other engine, or might. The
last three are met only where unwritten memory, races or stores into code are watched."""
COUNT = 24
"""Room for counts."""
