"""Contracts are sound: a call that a contract accepts does the same wherever its operands lie.

What a call does is told by the simulated machine: which addresses it faults at, which accesses collide in a
memory element. Every operand is moved off its alignment, into the other kind of memory, and beside each other
operand; either the contract refuses, or memory must hold afterwards what the call leaves with every operand
in an element of its own. Numbers that the contract accepts must be told from each other by the registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_runs import DATA, background, image_of, run_among_leftovers
from numpy.typing import NDArray

from tilewright.errors import PlacementError, SimulationError, UnsupportedError
from tilewright.ipu21.kernels import KERNELS
from tilewright.ipu21.kernels.kernel import Contract, Operand, Scalar
from tilewright.ipu21.kernels.root_worker import VARIANTS
from tilewright.ipu21.lower.calls import _LOWERINGS
from tilewright.ipu21.machine.memory import (
    ELEMENT_BYTES,
    INTERLEAVED_ELEMENT_BYTES,
    REGION1_BASE,
    TILE_BASE,
    TILE_END,
)
from tilewright.ipu21.simulator.single import Result

pytestmark = pytest.mark.sim

BLOCK = 0x1800
"""Bytes that each operand of these calls has; less than half a memory element, and more than calls use."""
FEW, MANY = 5, 26
"""Rows, such that matrix kernels take both of their ways."""

Places = Mapping[str, int]
Blocks = dict[str, NDArray[np.uint8]]


def scalars_of(symbol: str, rows: int) -> dict[str, int]:
    """A call whose operands are dense and fit `BLOCK` bytes, remote partials and parts included."""
    record = 64 if symbol.startswith("root_f32") else 32
    inner = 2 if symbol.startswith("gemm") else 1
    known = {
        "rows": rows,
        "panels": 2,
        "halves": 4 if rows == FEW else 3,
        "inner": inner,
        "columns": 2,
        "words": 40 if rows == FEW else 150,
        "w_inner_stride": 512,
        "w_column_stride": 512 * inner,
        "x_stride": 32 * rows,
        "own_stride": record * rows,
        "remote_count": 1,
        "remote_stride": 2 * record * rows,
        "parts": 2,
        "panel_stride": 32 * rows,
        "part_stride": 64 * rows,
        "state_stride": 8 * rows,
        "valid": 21,
        "diagonal": 3,
        "row_tiles": 2,
        "column_tiles": 2,
        "out_stride": 32 * 32,
        "count": 2 * rows,
        "factor": 0x3F000000,
        "inverse": 0x3D000000,
        "epsilon": 0x3A000000,
        "low": 1,
        "high": 2,
    }
    if symbol == "reduce_f16":
        known |= {"words": 4 * rows, "own_stride": 32 * rows, "remote_stride": BLOCK // 2}
    if symbol == "transpose_f16":
        known |= {"x_stride": 32 * 32}
    return {scalar.name: known[scalar.name] for scalar in KERNELS[symbol].contract.scalars}


def operands_of(symbol: str) -> list[Operand]:
    return [operand for operand in KERNELS[symbol].contract.operands if operand.role != "unused"]


def home(symbol: str) -> dict[str, int]:
    """Every operand in an element of its own, in interleaved memory."""
    names = [operand.name for operand in operands_of(symbol)]
    return {name: REGION1_BASE + INTERLEAVED_ELEMENT_BYTES * at for at, name in enumerate(names)}


@cache
def content(symbol: str, name: str) -> NDArray[np.uint8]:
    random = np.random.default_rng(len(symbol) + 7 * len(name))
    if name == "table":
        return random.integers(0, 700, BLOCK // 2, dtype=np.uint16).view(np.uint8)
    if name in ("sums", "state", "states", "own_state"):
        return random.uniform(1, 2, BLOCK // 4).astype(np.float32).view(np.uint8)
    return random.uniform(-1, 1, BLOCK // 2).astype(np.float16).view(np.uint8)


def content_at(symbol: str, name: str, places: Places) -> NDArray[np.uint8]:
    """The same; a list of weight panels takes them in turns from both arrays, wherever these are."""
    if name == "w" and "own" in places:
        panels = np.arange(8)
        both = np.array([places["own"], places["others"]])
        words = content(symbol, name).view(np.uint32).copy()
        words[: len(panels)] = both[panels % 2] + PANEL * (panels // 2)
        return words.view(np.uint8)
    return content(symbol, name)


PANEL = 512
"""Bytes of a weight panel."""


def outcome(symbol: str, places: Places, scalars: Mapping[str, int]) -> Result:
    """A call in memory full of noise but for its operands. Raises SimulationError."""
    contract = KERNELS[symbol].contract
    image = image_of(symbol)
    code_end = max(segment.address + len(segment.data) for segment in image.segments)
    memory = background(1, [(place, content_at(symbol, name, places)) for name, place in places.items()])
    registers = unchecked(contract, {**places, **scalars})
    return run_among_leftovers(image, symbol, registers, {code_end: memory[code_end - TILE_BASE :].tobytes()})


def blocks_after(symbol: str, places: Places, scalars: Mapping[str, int]) -> Blocks:
    """What every operand's block holds after the call. Raises SimulationError."""
    result = outcome(symbol, places, scalars)
    after = np.array(result.tile.memory, dtype=np.uint8)
    return {name: after[at - TILE_BASE : at - TILE_BASE + BLOCK].copy() for name, at in places.items()}


def unchecked(contract: Contract, values: Mapping[str, int]) -> dict[int, int]:
    """Registers of a call, whether the contract would accept it or not."""
    packed = {high: (low, shift) for low, high, shift in contract.packed}
    words = {name: value for name, value in values.items() if name not in packed}
    for high, (low, shift) in packed.items():
        words[low] |= values[high] << shift
    names = [operand.name for operand in contract.operands]
    names += [scalar.name for scalar in contract.scalars if scalar.name not in packed]
    return {2 + index: words.get(name, 0) & 0xFFFFFFFF for index, name in enumerate(names)}


def accepted(symbol: str, places: Places, scalars: Mapping[str, int]) -> bool:
    contract = KERNELS[symbol].contract
    try:
        contract.registers(**places, **scalars)
        contract.check_placement({name: (at, at + BLOCK) for name, at in places.items()})
    except (PlacementError, UnsupportedError):
        return False
    return True


def check(symbol: str, places: Places, rows: int) -> bool:
    """Fail if the call is accepted and does not do what it does at home; whether it is accepted."""
    scalars = scalars_of(symbol, rows)
    if not accepted(symbol, places, scalars):
        return False
    found, expected = blocks_after(symbol, places, scalars), _at_home(symbol, rows)
    for name in places:
        wanted = content_at(symbol, name, places) if name == "w" and "own" in places else expected[name]
        assert np.array_equal(found[name], wanted), (name, {n: hex(at) for n, at in places.items()})
    return True


@cache
def _at_home(symbol: str, rows: int) -> Blocks:
    scalars = scalars_of(symbol, rows)
    assert accepted(symbol, home(symbol), scalars)
    return blocks_after(symbol, home(symbol), scalars)


SIGNED = {"diagonal"}
"""Scalars that kernels take as signed numbers."""


def field(contract: Contract, name: str) -> tuple[int, int]:
    """(bits, shift) of a scalar in its register."""
    for low, high, shift in contract.packed:
        if name == low:
            return shift, 0
        if name == high:
            return 32 - shift, shift
    return 32, 0


@pytest.mark.parametrize("symbol", KERNELS)
@given(data=st.data())
def test_registers_hold_every_number_that_is_accepted(symbol: str, data: st.DataObject) -> None:
    contract = KERNELS[symbol].contract
    scalars, far = scalars_of(symbol, FEW), home(symbol)
    chosen = data.draw(st.sampled_from([scalar.name for scalar in contract.scalars]))
    bits, shift = field(contract, chosen)
    edges = [1 << bits, (1 << bits) - 16, 1 << 32, (1 << 40) - 16, -1, -16, -(1 << 31) - 16]
    value = data.draw(st.one_of(st.sampled_from(edges), st.integers(-(1 << 41), 1 << 41)))
    try:
        registers = contract.registers(**far, **scalars | {chosen: value})
    except UnsupportedError:
        return
    low = next((low for low, high, _ in contract.packed if high == chosen), chosen)
    inside = {high for _, high, _ in contract.packed}
    names = [operand.name for operand in contract.operands]
    names += [scalar.name for scalar in contract.scalars if scalar.name not in inside]
    held = (registers[2 + names.index(low)] & 0xFFFFFFFF) >> shift & ((1 << bits) - 1)
    if chosen in SIGNED:
        held -= (held >> 31) << 32
    assert held == value


def moved(symbol: str) -> Iterator[tuple[str, int]]:
    """(operand, address) of operands that may be moved: into region 0, and off every alignment."""
    for name, place in home(symbol).items():
        for base in (place, DATA):
            for shift in (0, 2, 4, 8, 16, 48):
                yield name, base + shift


@pytest.mark.parametrize("rows", [FEW, MANY])
@pytest.mark.parametrize("symbol", KERNELS)
def test_any_place_that_is_accepted_will_do(symbol: str, rows: int) -> None:
    taken = [check(symbol, home(symbol) | {name: at}, rows) for name, at in moved(symbol)]
    assert any(taken)


ALONE = {variant.symbol: {"straight": False} for variant in VARIANTS}
"""Further arguments of cycles for kernels that more could be linked with than is here."""


@pytest.mark.parametrize("rows", [FEW, MANY])
@pytest.mark.parametrize("symbol", [name for name, kernel in KERNELS.items() if kernel.way])
def test_cycles_follow_from_the_way_that_the_addresses_lead_to(symbol: str, rows: int) -> None:
    kernel, scalars = KERNELS[symbol], scalars_of(symbol, rows)
    assert kernel.way is not None
    for name, at in moved(symbol):
        places = home(symbol) | {name: at}
        if accepted(symbol, places, scalars):
            ways = kernel.way({**places, **scalars}) | ALONE.get(symbol, {})
            expected = kernel.cycles(**scalars, **ways)
            assert outcome(symbol, places, scalars).cycles == expected, (name, hex(at))


@pytest.mark.parametrize("symbol", KERNELS)
def test_no_operand_may_lie_at_an_odd_address_or_outside_memory(symbol: str) -> None:
    """The host writes whole 32-bit words, so nothing ever begins at an odd byte."""
    scalars = scalars_of(symbol, FEW)
    for name, place in home(symbol).items():
        assert not accepted(symbol, home(symbol) | {name: place + 1}, scalars)
        for outside in (TILE_BASE - 64, TILE_END - BLOCK + 64):
            assert not accepted(symbol, home(symbol) | {name: outside}, scalars)


def neighbours(symbol: str) -> Iterator[dict[str, int]]:
    """Two operands in one memory element, of either kind, also where their words have another parity."""
    far = home(symbol)
    for one, other in permutations(far, 2):
        for base in (DATA // ELEMENT_BYTES * ELEMENT_BYTES, REGION1_BASE + 8 * INTERLEAVED_ELEMENT_BYTES):
            for apart in (BLOCK, BLOCK + 8, 2 * BLOCK):
                if base >= REGION1_BASE or apart + BLOCK <= ELEMENT_BYTES:
                    yield {**far, one: base, other: base + apart}


@pytest.mark.parametrize("rows", [FEW, MANY])
@pytest.mark.parametrize("symbol", [name for name in KERNELS if len(operands_of(name)) > 1])
def test_operands_may_be_neighbours_where_that_is_accepted(symbol: str, rows: int) -> None:
    for places in neighbours(symbol):
        check(symbol, places, rows)


NOTICED, SERIOUS = 1.05, 1.5
"""Times as many cycles from which a contract must say that a place is slow: outside interleaved memory, and
in the memory element of another operand."""


@pytest.mark.parametrize("symbol", _LOWERINGS)
def test_contracts_say_which_places_are_slow(symbol: str) -> None:
    scalars, far = scalars_of(symbol, MANY), home(symbol)
    fast = outcome(symbol, far, scalars).cycles
    contract = KERNELS[symbol].contract
    for operand in operands_of(symbol):
        moved = far | {operand.name: DATA}
        if not operand.interleaved and outcome(symbol, moved, scalars).cycles > NOTICED * fast:
            assert operand.prefers_interleaved, operand.name
    for one, other in combinations((operand.name for operand in operands_of(symbol)), 2):
        near = far | {one: far[one], other: far[one] + 2 * BLOCK}
        if accepted(symbol, near, scalars) and outcome(symbol, near, scalars).cycles > SERIOUS * fast:
            assert (one, other) in contract.faster_apart or (other, one) in contract.faster_apart


@pytest.mark.parametrize("symbol", KERNELS)
def test_an_operand_may_be_another_one_only_where_that_is_said(symbol: str) -> None:
    contract, far = KERNELS[symbol].contract, home(symbol)
    scalars = scalars_of(symbol, MANY)
    assert {name for pair in contract.may_alias for name in pair} <= far.keys()
    for output in (operand.name for operand in contract.operands if operand.role == "out"):
        for name in far:
            if name == output:
                continue
            same = far | {output: far[name]}
            if accepted(symbol, same, scalars):
                assert (output, name) in contract.may_alias
                expected = _at_home(symbol, MANY)[output]
                used = expected != content(symbol, output)
                found = blocks_after(symbol, same, scalars)[output]
                assert np.array_equal(found[used], expected[used])
            for apart in (16, -16, BLOCK - 16, 16 - BLOCK):
                overlapping = far | {output: far[name] + apart}
                assert overlapping[output] < TILE_BASE or not accepted(symbol, overlapping, scalars)


@pytest.mark.parametrize("symbol", KERNELS)
def test_a_stride_that_is_accepted_leads_to_no_fault(symbol: str) -> None:
    """Loads take whole 8-byte words; kernels that keep strides in words would cut off the rest in silence."""
    for rows in (FEW, MANY):
        scalars = scalars_of(symbol, rows)
        scalars |= {"remote_count": 2} if "remote_count" in scalars else {}
        for name in (name for name in scalars if name.endswith("_stride")):
            for more in (1, 2, 4):
                assert not accepted(symbol, home(symbol), scalars | {name: scalars[name] + more})
            for more in (8, 16):
                trial = scalars | {name: scalars[name] + more}
                if accepted(symbol, home(symbol), trial):
                    try:
                        blocks_after(symbol, home(symbol), trial)
                    except SimulationError as error:
                        pytest.fail(f"{name} = {trial[name]}: {error}")


TWO = Contract(
    (Operand("out", "words", "out"), Operand("x", "words", "in", access_tail=64)),
    (Scalar("n", "words", 0, 9),),
)


def test_arguments_are_those_of_the_contract() -> None:
    assert TWO.registers(out=DATA, x=DATA + 64, n=3) == {2: DATA, 3: DATA + 64, 4: 3}
    for wrong in ({"out": DATA, "x": DATA + 64}, {"out": DATA, "x": DATA + 64, "n": 3, "m": 1}):
        with pytest.raises(UnsupportedError, match="wanted"):
            TWO.registers(**wrong)


def test_an_access_tail_lies_inside_memory() -> None:
    spans = {"out": (DATA, DATA + 64), "x": (TILE_END - 128, TILE_END - 64)}
    TWO.check_placement(spans)
    with pytest.raises(PlacementError, match=r"x at .* lies outside"):
        TWO.check_placement(spans | {"x": (TILE_END - 120, TILE_END - 56)})
    TWO.check_placement({"out": (TILE_END - 64, TILE_END), "x": (DATA, DATA + 64)})
