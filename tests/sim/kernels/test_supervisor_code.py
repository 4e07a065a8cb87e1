"""Supervisor code in another order: the same values, registers enough, few waits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from tilewright.ipu21.isa import build
from tilewright.ipu21.kernels.supervisor import call_cycles, launch, launch_cycle, schedule
from tilewright.ipu21.machine.timing import SUPERVISOR_LATENCY, WORKER_SLOTS
from tilewright.ipu21.simulator.single import STACK_TOP, prepare, run_function
from tilewright.ipu21.simulator.stops import StopKind
from tilewright.ipu21.toolchain import LinkedImage, assemble, link

pytestmark = pytest.mark.sim

RUN = launch(0)[0]
POOL = ("$m0", "$m1", "$m2")
GIVEN = {"%in": "$m3", "%other": "$m4"}


def meaning(lines: Sequence[str], given: Mapping[str, str | int]) -> dict[str, int]:
    """Words of the frame, and $m5, after straight code on registers and names alike."""
    values = {name: value for name, value in given.items() if isinstance(value, int)}
    frame: dict[str, int] = {}
    for line in lines:
        mnemonic, _, rest = line.partition(" ")
        first, *operands = rest.split(", ")

        def of(operand: str) -> int:
            return values[operand] if operand[0] in "$%" else int(operand)

        if mnemonic == "st32":
            frame[operands[-1]] = of(first)
        elif mnemonic == "ld32":
            values[first] = frame[operands[-1]]
        elif mnemonic == "setzi":
            values[first] = of(operands[0])
        elif mnemonic == "movnz":
            values[first] = of(operands[1]) if of(operands[0]) else values[first]
        else:
            assert mnemonic == "add"
            values[first] = of(operands[0]) + of(operands[1])
    return frame | {"$m5": values["$m5"]} if "$m5" in values else frame


def some_code(seed: int, most: int) -> list[str]:
    """Straight code that never has more than so many names alive, beside what is given."""
    random = np.random.default_rng(seed)
    lines, alive, words = ["setzi $m5, 7"], list(GIVEN), 0
    for number in range(16):
        one, two = (str(random.choice(alive)) for _ in range(2))
        kind = random.integers(5)
        if kind == 0 and words:
            lines.append(f"ld32 $m5, $m11, $mzero, {random.integers(words)}")
        elif kind == 1:
            lines.append(f"st32 {one}, $m11, $mzero, {words}")
            words += 1
        elif kind == 2:
            lines.append(f"movnz $m5, {one}, {two}")
        elif len(alive) - len(GIVEN) < most:
            lines.append(f"add %n{number}, {one}, {two}" if kind == 3 else f"setzi %n{number}, {number}")
            alive.append(f"%n{number}")
        else:
            gone = alive.pop(int(random.integers(len(GIVEN), len(alive))))
            lines.append(f"add $m5, $m5, {gone}")
    lines += [f"st32 {name}, $m11, $mzero, {words + place}" for place, name in enumerate(alive)]
    return lines


@pytest.mark.parametrize("seed", range(60))
def test_another_order_means_the_same_in_the_registers_of_the_pool(seed: int) -> None:
    lines = some_code(seed, len(POOL))
    inputs = {"%in": 100, "%other": 0 if seed % 2 else 3000}
    there = {GIVEN[name]: value for name, value in inputs.items()}
    ordered = schedule(lines, POOL, GIVEN)
    assert meaning(ordered, there) == meaning(lines, inputs)
    assert set(re.findall(r"%\w+|\$m\d+", " ".join(ordered))) <= {*POOL, *there, "$m5", "$m11"}
    assert len(ordered) == len(lines)


def test_registers_that_are_named_stay() -> None:
    lines = ["setzi $m5, 1", "add $m6, $m5, 2", "setzi %a, 3", "add $m5, $m6, %a"]
    assert sorted(schedule(lines, ["$m0"])) == sorted(line.replace("%a", "$m0") for line in lines)


def test_given_registers_are_kept_until_their_values_are_used_for_the_last_time() -> None:
    lines = ["setzi %a, 1", "add $m5, %in, %a", "add %b, %in, 2", "add $m5, $m5, %b"]
    assert meaning(schedule(lines, ["$m0", "$m1"], {"%in": "$m3"}), {"$m3": 50}) == {"$m5": 103}
    # One that nobody uses is free from the beginning.
    assert schedule(["setzi %a, 1", "add $m5, %a, %a"], [], {"%in": "$m3"})[0] == "setzi $m3, 1"


def test_too_few_registers() -> None:
    lines = ["setzi %a, 1", "setzi %b, 2", "add $m5, %a, %b"]
    with pytest.raises(ValueError, match=r"too few registers for 'setzi %a, 1'"):
        schedule(lines, ["$m0"])
    assert meaning(schedule(lines, ["$m0", "$m1"]), {}) == {"$m5": 3}


def soonest(lines: Sequence[str], registers: int) -> int:
    """Cycle behind the last instruction in the best of all orders in which names find so many registers.

    Every name is written once, and nothing is read back from the frame.
    """
    named = [re.findall(r"%\w+", line) for line in lines]
    written = [
        names[0] if not line.startswith("st32") else "" for line, names in zip(lines, named, strict=True)
    ]
    read = [set(names) - {name} for names, name in zip(named, written, strict=True)]
    best = 1 << 30

    def extend(left: frozenset[int], cycle: int, ready: Mapping[str, int]) -> None:
        nonlocal best
        if not left:
            best = min(best, cycle)
        for index in left if cycle + len(left) < best else ():
            if read[index] <= ready.keys():
                at = max([cycle, *(ready[name] for name in read[index])])
                later = {name for other in left - {index} for name in read[other]}
                alive = {name for name in ready if name in later} | ({written[index]} - {""})
                if len(alive) <= registers:
                    extend(left - {index}, at + 1, {**ready, written[index]: at + SUPERVISOR_LATENCY})

    extend(frozenset(range(len(lines))), 0, {})
    return best


TO_FRAME = "st32 {}, $m11, $mzero, {}"


@pytest.mark.parametrize(
    ("lines", "registers"),
    [
        # What waits for nothing goes between.
        (["setzi %a, 1", "add %b, %a, 1", "setzi %c, 3", "add %d, %c, 1", "add %e, %b, %d"], 3),
        (["setzi %a, 1", "add %b, %a, 1", "add %c, %b, 1", "setzi %d, 1", "add %e, %d, 1"], 2),
        # A register is kept for what comes first in the text; what needs none does not wait for it.
        (
            [
                *("setzi %a, 0", "setzi %b, 1", "add %c, %b, %b", "add %d, %c, %b"),
                *(TO_FRAME.format(f"%{name}", word) for word, name in enumerate("dabc")),
            ],
            2,
        ),
    ],
)
def test_few_instructions_wait(lines: list[str], registers: int) -> None:
    ordered = schedule(lines, POOL[:registers])
    assert launch_cycle([*ordered, RUN]) == soonest(lines, registers) < launch_cycle([*lines, RUN])


def image_of(lines: Sequence[str]) -> LinkedImage:
    """A function `f`."""
    text = "\n".join(line.lstrip("!") for line in lines)
    source = f'.section .text.f, "ax"\n.globl f\n.globl last\n.type f, @function\nf:\n{text}\n'
    return link([assemble(source, filename="f.S")], intervals=((0x4C000, 0x50000),), roots=["f"])


def on_tile(lines: Sequence[str]) -> int:
    """Cycle in which a tile comes to what follows some lines."""
    image = image_of([*lines, "last:", "br $m10"])
    trap = build.trap(0).to_bytes(4, "little")
    tile = prepare(image, "f", {2: 5}, {image.symbols["last"]: trap})
    assert tile.run().kind == StopKind.EXCEPTION
    return int(tile.clock)


@pytest.mark.parametrize(
    "lines",
    [
        ["setzi $m0, 1", "add $m1, $m0, 1", "setzi $m4, 1", "add $m3, $m1, $m0", "add $m3, $m4, $m4"],
        # It leaves what it finds if the condition is 0.
        ["setzi $m0, 1", "movnz $m0, $m2, $m2", "add $m1, $m0, 1"],
        ["setzi $m0, 1", "setzi $m0, 2", "mov $m1, $m0"],
        # A word of the frame is there at once, a register that is loaded is not.
        ["add $m11, $m11, -16", "st32 $m2, $m11, $mzero, 1", "ld32 $m1, $m11, $mzero, 1", "add $m1, $m1, 1"],
        ["!bri last"],
        ["setzi $m0, 1", "brz $m0, last", "!brnz $m2, last"],
    ],
)
def test_the_launch_comes_when_it_does_on_a_tile(lines: list[str]) -> None:
    assert launch_cycle([*lines, RUN, "setzi $m0, 1"]) == on_tile(lines)


@pytest.mark.parametrize("slots", [1, 40])
def test_a_call_ends_when_its_workers_have(slots: int) -> None:
    lines = ["add $m11, $m11, -16", "setzi $m9, .Lworker", *launch(16)]
    worker = [".balign 8", ".Lworker:", *["add $m0, $m0, 1"] * (slots - 1), "exitz $m15"]
    found = run_function(image_of([*lines, *worker, "last:"]), "f", {}, {})
    assert found.cycles == call_cycles(lines) + WORKER_SLOTS * slots
    assert found.tile.m[0, 11] == STACK_TOP
