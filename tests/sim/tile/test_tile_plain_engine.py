"""The compiled engine against its own functions run as plain Python: same state, same memory, same cycles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tile_programs import DATA, DATA1

from tilewright.ipu21.isa.encode import encode
from tilewright.ipu21.isa.forms import FORMS, Form
from tilewright.ipu21.simulator import engine_loop, state
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.engine_decode import ENTRY_COUNT, ENTRY_INTS
from tilewright.ipu21.simulator.instruction_tables import instruction_tables
from tilewright.ipu21.simulator.tile import Tile

pytestmark = pytest.mark.sim

ENTRY, WORKER = 0x4C014, 0x4C040
SIMULATED = [form for form, known in zip(FORMS, instruction_tables().simulated, strict=True) if known]
VALUES = [
    form
    for form in SIMULATED
    if form.mode != "supervisor" and not form.flags and not form.mnemonic.startswith(("ld", "st"))
]


class PlainState:
    """The state array with Python integers, wrapping like the machine's 64-bit ones."""

    def __init__(self, array: NDArray[np.int64]) -> None:
        self.array = array

    def __getitem__(self, index: int) -> int:
        return int(self.array[index])

    def __setitem__(self, index: int, value: int) -> None:
        self.array[index] = (int(value) + 2**63) % 2**64 - 2**63


def run_plain(tile: Tile) -> None:
    """`Tile.run` without the compiler."""
    tile.set_budget(10_000)
    entries = np.zeros(ENTRY_COUNT * ENTRY_INTS, dtype=np.int64)
    tile._state[state.ENTRIES] = entries.ctypes.data
    with np.errstate(all="ignore"):
        engine_loop.run_tile(PlainState(tile._state))  # type: ignore[arg-type]


INTERESTING = [0, 1, 0x7C00, 0x7C007C00, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00010001]


def fill(tile: Tile, seed: int) -> None:
    """Random registers, accumulators, weights and generator: bit patterns, floats and moderate halves."""
    rng = np.random.default_rng(seed)

    def words(count: int) -> NDArray[np.uint32]:
        kinds = [
            rng.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32),
            rng.normal(0, 100, count).astype(np.float32).view(np.uint32),
            rng.normal(0, 4, 2 * count).astype(np.float16).view(np.uint32),
            rng.choice(np.array(INTERESTING, dtype=np.uint32), count),
        ]
        return np.choose(rng.integers(0, 4, count), kinds).astype(np.uint32)

    tile.m[:, :12] = words(84).reshape(7, 12)
    tile.a[:, :8] = words(48).reshape(6, 8)
    tile.accumulators[...] = rng.normal(0, 10, (6, 32))
    tile.weights[...] = rng.normal(0, 2, (64, 4)).astype(np.float16).view(np.uint64).reshape(64)
    for context in range(1, 7):
        for number in range(0x103, 0x10B):
            tile.set_csr(number, int(rng.integers(0, 2**32)), context)


def operands_for(form: Form, rng: np.random.Generator) -> list[int]:
    """Legal operands; flags and immediates small so that they often mean something."""
    chosen = []
    for operand in form.operands:
        step = operand.step
        top = operand.maximum
        if not operand.is_register and rng.random() < 0.7:
            top = min(top, max(3 * step, operand.minimum))
        chosen.append(int(rng.integers(operand.minimum // step, top // step + 1)) * step)
    return chosen


def program(tile: Tile, words: list[int]) -> None:
    """A supervisor that launches all workers on the words and returns to address 0."""
    code = [
        *encode("setzi $mDst0, zimm20", 0, WORKER),
        *encode("runall $mEntry0, $mVBase0, zimm16", 0, 15, 0),
        *encode("sync zimm4", 2),
        *encode("br $mSrc0", 15),
    ]
    tile.write(ENTRY, np.array(code, dtype=np.uint32).tobytes())
    body = [*words, *encode("exitz $mSrc0", 15)]
    tile.write(WORKER, np.array(body, dtype=np.uint32).tobytes())
    tile.pc = ENTRY


def differences(fast: Tile, slow: Tile) -> list[int]:
    """Places of the state that differ, pointers, the remaining budget and scratch aside."""
    scratch = {state.BUDGET, state.RESULT0, state.RESULT1}
    places = np.flatnonzero(fast._state[: state.POINTERS] != slow._state[: state.POINTERS])
    return [int(place) for place in places if int(place) not in scratch]


def compare(make: Callable[[Tile], None], seed: int, control: int = 0) -> None:
    """Run the same program on both engines."""
    pair = [Tile(5, checks=Checks(poison=False)) for _ in range(2)]
    for tile in pair:
        fill(tile, seed)
        tile.set_csr(0x20, control)
        make(tile)
    fast, slow = pair
    fast.run(budget=10_000)
    run_plain(slow)
    assert differences(fast, slow) == []
    np.testing.assert_array_equal(fast.accumulators, slow.accumulators)
    np.testing.assert_array_equal(fast.memory, slow.memory)
    np.testing.assert_array_equal(fast.weights, slow.weights)


@pytest.mark.parametrize("control", [0, 1 << 16, 3 << 16, 1 << 19, 1 << 20])
def test_every_value_instruction(control: int) -> None:
    rng = np.random.default_rng(control)
    for form in VALUES:
        words = [word for _ in range(2) for word in encode(form, *operands_for(form, rng))]
        compare(lambda tile, words=words: program(tile, words), int(rng.integers(2**31)), control)


def pair_of_halves(rng: np.random.Generator, main: Form, aux: Form) -> list[int]:
    """A bundle whose halves write different registers: main works on M, aux on A."""
    first = encode(main, *operands_for(main, rng), coissue=True)
    second = encode(aux, *operands_for(aux, rng), coissue=True)
    return [*first, *second]


def test_random_bundles() -> None:
    rng = np.random.default_rng(11)
    main = [form for form in VALUES if form.pipeline == "main" and form.coissue]
    aux = [form for form in VALUES if form.pipeline == "aux" and form.coissue]
    for _ in range(60):
        words: list[int] = []
        for _ in range(6):
            words += pair_of_halves(rng, main[rng.integers(len(main))], aux[rng.integers(len(aux))])
        compare(lambda tile, words=words: program(tile, words), int(rng.integers(2**31)), 1 << 19)


def memory_program(rng: np.random.Generator, form: Form) -> Callable[[Tile], None]:
    """The form with base registers that point into memory (sometimes badly), offsets and strides small."""
    operands = operands_for(form, rng)
    main = [(operand, value) for operand, value in zip(form.operands, operands, strict=True)]
    registers: dict[int, int] = {}
    for operand, number in main:
        if operand.kind not in ("mreg", "mpair") or "Dst" in operand.name:
            continue
        if "Base" in operand.name or "Addr" in operand.name:
            base = int(rng.choice([DATA, DATA1])) + int(rng.integers(0, 64)) * 8 + int(rng.random() < 0.1)
            registers[number] = base
            if operand.kind == "mpair":
                registers[number + 1] = int(rng.choice([DATA1 + 0x8000, DATA + 0x4000])) | 0x16 << 21
        else:
            registers[number] = int(rng.integers(0, 4))
    contents = rng.integers(0, 256, 0x200, dtype=np.uint8)

    def make(tile: Tile) -> None:
        for begin in (DATA, DATA1, DATA1 + 0x8000, DATA + 0x4000):
            tile.load(begin, contents.tobytes(), len(contents))
        for number, value in registers.items():
            if number < 12:
                tile.m[1:, number] = value
        program(tile, [*encode(form, *operands), *encode(form, *operands)])

    return make


def test_every_memory_instruction() -> None:
    rng = np.random.default_rng(5)
    workers = [form for form in SIMULATED if form.mode != "supervisor"]
    forms = [form for form in workers if form.mnemonic.startswith(("ld", "st"))]
    for form in forms:
        for _ in range(4):
            compare(memory_program(rng, form), int(rng.integers(2**31)))


def test_all_simulated_forms_are_tested_here_or_are_control() -> None:
    covered: set[Any] = set(VALUES)
    rest = [form for form in SIMULATED if form not in covered and not form.flags]
    assert all(form.mnemonic.startswith(("ld", "st")) for form in rest)
