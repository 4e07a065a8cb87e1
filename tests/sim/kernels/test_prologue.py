"""Supervisor code that the compiler executes ahead does what it does on a tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runs import image_of

from tilewright.ipu21.isa import build
from tilewright.ipu21.isa.meaning.registry import MEANINGS
from tilewright.ipu21.kernels import KERNELS
from tilewright.ipu21.kernels.kernel import STACK_BYTES, Kernel
from tilewright.ipu21.kernels.prologue import OPERATIONS, RETURN, STACK, Code, Reached, run_ahead
from tilewright.ipu21.kernels.tail import Tail, tail_of
from tilewright.ipu21.machine.timing import SUPERVISOR_LATENCY
from tilewright.ipu21.simulator.single import STACK_TOP, prepare
from tilewright.ipu21.simulator.stops import StopKind
from tilewright.ipu21.toolchain import assemble, link

pytestmark = pytest.mark.sim

CALLS = 24
RETURN_ADDRESS = 0x5BFF0
NEVER_READY = ("copy_u64", "fill_u64")
"""Kernels that turn to their operands at once."""


def some_calls(kernel: Kernel, seed: int) -> list[dict[int, int]]:
    """Registers of legal calls: sizes small and large, operands in both kinds of memory."""
    random = np.random.default_rng(seed)
    calls = []
    for _ in range(CALLS):
        values = {}
        for operand in (item for item in kernel.contract.operands if item.role != "unused"):
            base = 0x80000 if operand.interleaved or random.random() < 0.5 else 0x5C000
            values[operand.name] = base + 16 * int(random.integers(0x800))
        for scalar in kernel.contract.scalars:
            highest = min(scalar.maximum, int(random.choice([2, 9, 40, 200, 2000, 100_000])))
            value = int(random.integers(scalar.minimum, max(scalar.minimum, highest) + 1))
            values[scalar.name] = -(-value // scalar.multiple) * scalar.multiple
        calls.append(kernel.contract.registers(**values))
    return calls


def ahead(symbol: str, calls: list[dict[int, int]]) -> list[Reached]:
    image = image_of(symbol)
    arguments = {number: np.array([call[number] & 0xFFFFFFFF for call in calls]) for number in calls[0]}
    return run_ahead(Code(image), image.symbols[symbol], arguments, STACK_TOP)


def on_tile(symbol: str, call: dict[int, int], stop: int) -> Any:
    """The tile when it meets the instruction at `stop`."""
    image = image_of(symbol)
    tile = prepare(image, symbol, call, {stop: build.trap(0).to_bytes(4, "little")})
    tile.m[0, RETURN] = RETURN_ADDRESS
    assert tile.run().kind == StopKind.EXCEPTION
    assert tile.pc == stop
    return tile


@pytest.mark.parametrize("symbol", KERNELS)
def test_prologue_reaches_what_a_tile_reaches(symbol: str) -> None:
    kernel = KERNELS[symbol]
    calls = some_calls(kernel, seed=len(symbol))
    groups = ahead(symbol, calls)
    assert sorted(np.concatenate([group.calls for group in groups]).tolist()) == list(range(CALLS))
    for group in groups:
        if group.stop is None:
            continue
        for place, index in enumerate(group.calls.tolist()):
            tile = on_tile(symbol, calls[index], group.stop)
            for number, values in group.registers.items():
                assert tile.m[0, number] == values[place], f"$m{number}"
            for number in group.returns:
                assert tile.m[0, number] == RETURN_ADDRESS, f"$m{number}"
            words = {offset: int(values[place]) for offset, values in group.frame.items()}
            words |= dict.fromkeys(group.return_words, RETURN_ADDRESS)
            for offset, word in words.items():
                assert int.from_bytes(tile.read(STACK_TOP + offset, 4), "little") == word, offset
            # The tile stops in front of an instruction that may have to wait for what it reads.
            assert 0 <= group.cycles - tile.clock <= SUPERVISOR_LATENCY


@pytest.mark.parametrize("symbol", [name for name in KERNELS if name not in NEVER_READY])
def test_kernels_leave_the_launch_and_little_else(symbol: str) -> None:
    """A kernel whose prologue could not be executed ahead would be called in full, unnoticed."""
    image = image_of(symbol)
    code = Code(image)
    for group in ahead(symbol, some_calls(KERNELS[symbol], seed=3)):
        if group.stop is None:
            continue
        tail = tail_of(code, group.stop)
        if symbol.startswith("gemm_listed"):
            assert code.at(group.stop).form.mnemonic == "ld32step"
            assert not group.puts
        elif symbol.startswith("gemm"):
            assert code.at(group.stop).form.mnemonic in ("ld64putcs", "ld128putcs")
            assert len(group.puts) == 1
        else:
            assert tail.launch
        assert tail.live - {RETURN} <= group.registers.keys()


def test_calls_without_work_leave_nothing() -> None:
    (group,) = ahead("gemm_f16", [KERNELS["gemm_f16"].contract.registers(
        c=0x80000, a=0x90000, w=0xA0000, rows=0, inner=1, columns=1, w_inner_stride=512, w_column_stride=512
    )])  # fmt: skip
    assert group.stop is None
    assert group.cycles == KERNELS["gemm_f16"].cycles(rows=0, inner=1, columns=1)


INTERESTING = [0, 1, 2, 5, 15, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFF0, 0xFFFFFFFF]


@pytest.mark.parametrize("mnemonic", OPERATIONS)
def test_operations_mean_what_the_instruction_set_says(mnemonic: str) -> None:
    meaning = MEANINGS[mnemonic]
    random = np.random.default_rng(7).integers(0, 1 << 32, 40).tolist()
    pool = [*INTERESTING, *random]
    for first in pool:
        rows = [[first, second, third] for second in pool for third in pool[:3]]
        sources = [np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True)]
        count = len(meaning.parameters)
        found = OPERATIONS[mnemonic](*sources[:count]) & np.uint64(0xFFFFFFFF)
        assert found.tolist() == [meaning.function(*row[:count]) for row in rows]


def linked(text: str) -> tuple[Code, int]:
    """A function's code, and its address."""
    source = f'.section .text.f, "ax"\n.globl f\n.type f, @function\nf:\n{text}\n'
    image = link([assemble(source, filename="f.S")], intervals=((0x4C000, 0x50000),), roots=["f"])
    return Code(image), image.symbols["f"]


def run_text(text: str, arguments: dict[int, int]) -> list[Reached]:
    return run_ahead(*linked(text), {n: np.array([v]) for n, v in arguments.items()}, STACK_TOP)


@pytest.mark.parametrize(
    "text",
    [
        "ld32 $m0, $m2, $mzero, 0",  # what an operand holds
        "st32 $m2, $m2, $mzero, 0",  # outside the frame
        "ld32 $m0, $m11, $mzero, 0",  # above the frame
        "add $m0, $m7, 1",  # a register nobody has set
        "add $m0, $m10, 4",  # the return address is not known yet
        "get $m0, $TILE_ID",
        "put $INCOMING_MUX, $m2",
        "put $CCCSLOAD, $m7",
        "call $m10, f",
        "br $m2",  # not back to the caller
        "brz $m7, f",
        "sync 2",
        # Registers of the other kind are not known.
        "or $a3, $azero, 5",
        "ld32 $a3, $m4, $mzero, 1",
        "st32 $a3, $m4, $mzero, 1",
        # Where it goes depends on a register that nobody has set.
        "ld32 $m9, $m7, $mzero, 0",
        "ld32 $m9, $m4, $m7, 0",
        "ld32 $m9, $m4, $mzero, $m7",
        "st32 $m2, $m7, $mzero, 0",
        "st32 $m7, $m4, $mzero, 1",  # what is stored does
        "st32 $m2, $m5, $mzero, 0",  # between two words of the frame
        "st32 $m2, $m6, $mzero, 0",  # a word further down than any kernel's frame
        # Only a copy of the return address is known to be that.
        "and $m9, $m10, 0",
        "or $m9, $m10, 4",
        "or $m9, $m10, $m0",
        "or $m9, $m10, $m8",
        "movnz $m7, $m2, $m3",
    ],
)
def test_what_needs_the_tile_is_not_executed(text: str) -> None:
    frames = f"add $m4, $m11, -16\nadd $m5, $m11, -10\nadd $m6, $m11, {-STACK_BYTES - 4}"
    (group,) = run_text(
        f"{frames}\nsetzi $m0, 0\nsetzi $m8, 0\nadd $m3, $m2, 1\n{text}\nbr $m10", {2: 0x80000}
    )
    assert group.registers[3].tolist() == [0x80001]
    assert group.stop == 0x4C000 + 4 * 6
    assert not group.frame and not group.return_words and not group.puts
    assert group.returns == {RETURN}
    assert group.registers.keys() == {0, 2, 3, 4, 5, 6, 8, STACK}


def test_code_that_ends_is_followed_to_its_end() -> None:
    (group,) = run_text("add $m3, $m2, 1", {2: 7})
    assert group.stop == 0x4C000 + 4 and group.registers[3].tolist() == [8]


@pytest.mark.parametrize("copy", ["mov $m4, $m10", "or $m4, $m10, $mzero", "or $m4, $m10, 0"])
def test_the_return_address_may_be_copied_stored_and_loaded(copy: str) -> None:
    (group,) = run_text(f"{copy}\nmov $m5, $m2\nsync 2", {2: 0})
    assert group.returns == {4, RETURN} and group.registers[5].tolist() == [0]
    through_frame = [
        f"add $m11, $m11, {-STACK_BYTES}",
        copy,
        "st32 $m4, $m11, $mzero, 0",
        "st32 $m2, $m11, $mzero, 1",
        "ld32 $m6, $m11, $mzero, 0",
        "ld32 $m4, $m11, $mzero, 1",
    ]
    (group,) = run_text("\n".join([*through_frame, "sync 2"]), {2: 5})
    assert group.return_words == {-STACK_BYTES} and group.returns == {6, RETURN}
    assert {offset: words.tolist() for offset, words in group.frame.items()} == {4 - STACK_BYTES: [5]}
    assert group.registers[4].tolist() == [5]
    (group,) = run_text("\n".join([*through_frame, "br $m6"]), {2: 5})
    assert group.stop is None


def test_calls_part_where_they_take_different_ways() -> None:
    text = ["brnz $m2, .Lthere", "setzi $m3, 1", "sync 2", ".Lthere:", "setzi $m3, 2", "sync 2"]
    parted = run_ahead(*linked("\n".join(text)), {2: np.array([0, 5, 0, 6])}, STACK_TOP)
    found = {tuple(group.calls.tolist()): group.registers[3].tolist() for group in parted}
    assert found == {(0, 2): [1, 1], (1, 3): [2, 2]}
    for value, went in ((0, 1), (5, 2)):
        (group,) = run_ahead(*linked("\n".join(text)), {2: np.array([value, value])}, STACK_TOP)
        assert group.calls.tolist() == [0, 1] and group.registers[3].tolist() == [went, went]


@pytest.mark.parametrize(("condition", "left"), [(0, 9), (4, 77)])
def test_a_conditional_move_reads_what_it_may_leave(condition: int, left: int) -> None:
    (group,) = run_text("setzi $m4, 9\nmovnz $m4, $m2, $m3\nsync 2", {2: condition, 3: 77})
    assert group.registers[4].tolist() == [left]
    assert group.cycles == SUPERVISOR_LATENCY + 1


def test_an_endless_prologue_ends() -> None:
    (group,) = run_text(".Lagain:\nbri .Lagain", {2: 1})
    assert group.stop is not None


def tail(*lines: str) -> Tail:
    """What `tail_of` says of a text."""
    return tail_of(*linked("\n".join(lines)))


LAUNCH, WAIT, BACK = "runall $m9, $m11, 2", "sync 2", "br $m10"


def test_a_launch_and_what_is_none() -> None:
    for between in ([], ["add $m11, $m11, 16"], ["ld32 $m10, $m11, $mzero, 3"]):
        found = tail(LAUNCH, *between, WAIT, BACK)
        assert found.launch == (9, 11, 2) and found.live == {9, 11}
    for lines in (
        (WAIT, BACK),
        ("add $m9, $m9, 4", LAUNCH, WAIT, BACK),
        (LAUNCH, "st32 $m0, $m11, $mzero, 0", WAIT, BACK),
        (LAUNCH, WAIT, WAIT, BACK),
        (LAUNCH, BACK),
        ("add $m0, $m0, 4", WAIT, BACK),
    ):
        assert tail(*lines).launch is None


def test_registers_that_are_read_before_they_are_written_live() -> None:
    found = tail("add $m3, $m4, $m5", "add $m4, $m3, 1", "st32 $m4, $m11, $mzero, 0", BACK)
    assert found.live == {4, 5, 10, 11}
    assert tail("brz $m0, .Lend", "mov $m1, $m2", ".Lend:", "add $m0, $m1, $m6", BACK).live == {
        0,
        1,
        2,
        6,
        10,
    }
