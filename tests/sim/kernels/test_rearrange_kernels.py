"""Transposition and permutation against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from guarded_runs import guarded
from kernel_runs import DATA, call, run, twice
from numpy.typing import NDArray

from tilewright.errors import UnsupportedError
from tilewright.ipu21.kernels import KERNELS, permute, transpose
from tilewright.ipu21.machine.memory import REGION1_BASE

pytestmark = pytest.mark.sim

SIDES = [0, 1, 2, 3, 4, 5, 6, 7]


class Tiles:
    """A transposition; `spare` further rows between panels, of x and of the result."""

    def __init__(
        self, rows: int, columns: int, spare: int = 0, *, out: int = DATA, x: int = REGION1_BASE
    ) -> None:
        random = np.random.default_rng(100 * rows + columns)
        # Any bits, NaNs among them: nothing is computed.
        self.held = random.integers(0, 1 << 16, (columns, 16 * rows + spare, 16), dtype=np.uint16)
        self.expected = transpose.reference(self.held[:, : 16 * rows].view(np.float16)).view(np.uint16)
        self.places = {"out": out, "x": x}
        self.strides = {"x_stride": 32 * (16 * rows + spare), "out_stride": 32 * (16 * columns + spare)}
        self.scalars = {"row_tiles": rows, "column_tiles": columns} | self.strides

    @property
    def apart(self) -> bool:
        return transpose.is_apart(self.places["x"], self.places["out"], **self.scalars)

    def check(self) -> None:
        out, stride = self.places["out"], self.strides["out_stride"]
        outputs = [(out + stride * index, panel.nbytes) for index, panel in enumerate(self.expected)]
        outcome = run(transpose.SYMBOL, self.places | self.scalars, [(self.places["x"], self.held)], outputs)
        for (begin, _), panel in zip(outputs, self.expected, strict=True):
            np.testing.assert_array_equal(outcome.array(begin, panel), panel)
        assert outcome.cycles == KERNELS[transpose.SYMBOL].cycles(**self.scalars, apart=self.apart)


@pytest.mark.parametrize("rows", SIDES)
@pytest.mark.parametrize("columns", SIDES)
def test_transposition(rows: int, columns: int) -> None:
    apart = Tiles(rows, columns)
    apart.check()
    Tiles(rows, columns, 5).check()
    near = Tiles(rows, columns, out=REGION1_BASE + 0x20008, x=REGION1_BASE + 0x14000 + 8)
    near.check()
    Tiles(rows, columns, 1, out=DATA + 8, x=DATA + 0x6000).check()
    if rows * columns:
        assert apart.apart
        assert not Tiles(rows, columns, out=DATA, x=DATA + 0x2000).apart


def test_large_transposition() -> None:
    Tiles(16, 4).check()
    Tiles(4, 16, out=REGION1_BASE, x=DATA).check()
    assert transpose.cycles(16, 16) <= 0.34 * 256 * 256


@pytest.mark.parametrize("count", [6, 8, 9, 12, 13, 19])
def test_tiles_in_a_line(count: int) -> None:
    for rows, columns in ((1, count), (count, 1)):
        Tiles(rows, columns).check()
        Tiles(rows, columns, 3, out=REGION1_BASE + 0x10000, x=DATA).check()


@pytest.mark.parametrize(("rows", "columns"), [(3, 2), (13, 2), (9, 3), (6, 6), (2, 6), (5, 6)])
def test_six_tiles_that_are_whole_rows_of_tiles(rows: int, columns: int) -> None:
    """Then a worker's tiles lie at equal steps, and all workers but the last few have as many of them."""
    for case in (Tiles(rows, columns), Tiles(rows, columns, 3, out=REGION1_BASE + 0x20000, x=DATA)):
        assert case.apart
        case.check()


def test_transposition_without_races() -> None:
    for case in (
        Tiles(3, 2),
        Tiles(5, 2),
        Tiles(3, 6),
        Tiles(1, 1),
        Tiles(2, 1),
        Tiles(1, 3),
        Tiles(5, 1),
        Tiles(3, 4),
        Tiles(2, 3, out=DATA, x=DATA + 0x3000),
    ):
        result = guarded(transpose.SYMBOL, case.places | case.scalars, [(case.places["x"], case.held)])
        found = result.read(case.places["out"], case.expected.shape, np.uint16)
        np.testing.assert_array_equal(found, case.expected)


def permutation(count: int, elements: int, zeros: float, seed: int = 1) -> tuple[NDArray[np.uint16], ...]:
    random = np.random.default_rng(seed + count)
    source = random.integers(0, 1 << 16, elements, dtype=np.uint16)
    table = random.integers(0, min(elements, permute.ZERO), count).astype(np.uint16)
    table[random.random(count) < zeros] = permute.ZERO
    return source, table


@pytest.mark.parametrize("count", [*range(0, 28, 2), 36, 38, 100, 1000])
@pytest.mark.parametrize("zeros", [0.0, 0.3, 1.0])
def test_permutation(count: int, zeros: float) -> None:
    for out, at, listed in ((DATA, REGION1_BASE + 2, DATA + 0x4002), (REGION1_BASE + 4, DATA, DATA + 0x4000)):
        source, table = permutation(count, 4000, zeros)
        expected = permute.reference(source, table)
        outcome = run(
            permute.SYMBOL,
            {"out": out, "source": at, "table": listed, "count": count},
            [(at, source), (listed, table)],
            [(out, 2 * count)],
        )
        np.testing.assert_array_equal(outcome.array(out, expected), expected)
        more = outcome.cycles - permute.cycles(count)
        assert more == 0 if zeros == 0 else 0 <= more <= 6 * permute.MORE_SLOTS * -(-count // 12)


def test_half_a_word_is_refused_as_it_cannot_be_stored() -> None:
    """The machine stores whole words, so a kernel would leave out the last of an odd number of elements."""
    places = {"out": DATA, "source": REGION1_BASE, "table": DATA + 0x4000}
    with pytest.raises(UnsupportedError, match="count"):
        KERNELS[permute.SYMBOL].contract.registers(**places, count=41)


def test_large_source() -> None:
    """Indices with the highest bit set are indices like others."""
    source, table = permutation(600, 65535, 0.1)
    assert (table[table != permute.ZERO] >= 0x8000).any()
    places = {"out": DATA, "source": REGION1_BASE, "table": DATA + 0x4000}
    inputs = [(REGION1_BASE, source), (DATA + 0x4000, table)]
    outcome = run(permute.SYMBOL, places | {"count": 600}, inputs, [(DATA, 1200)])
    np.testing.assert_array_equal(outcome.array(DATA, table), permute.reference(source, table))
    result = guarded(permute.SYMBOL, places | {"count": 600}, inputs)
    np.testing.assert_array_equal(result.read(DATA, 600, np.uint16), permute.reference(source, table))


def test_calls_do_not_depend_on_the_ones_before() -> None:
    cases = [Tiles(3, 2), Tiles(1, 4, out=DATA + 0x2000, x=REGION1_BASE + 0x8000)]
    image = twice(transpose.SYMBOL, [case.places | case.scalars for case in cases])
    inputs = [(case.places["x"], case.held) for case in cases]
    outputs = [(case.places["out"], case.expected.nbytes) for case in cases]
    outcome = call(image, "driver", {}, inputs, [*outputs, (0x58600, 0xE0)])
    for case in cases:
        np.testing.assert_array_equal(outcome.array(case.places["out"], case.expected), case.expected)
    source, table = permutation(50, 300, 0.2)
    calls = [
        {"out": DATA + at, "source": REGION1_BASE, "table": DATA + 0x4000, "count": 50} for at in (0, 256)
    ]
    inputs = [(REGION1_BASE, source), (DATA + 0x4000, table)]
    image = twice(permute.SYMBOL, calls)
    outcome = call(image, "driver", {}, inputs, [(DATA, 100), (DATA + 256, 100), (0x58600, 0xE0)])
    for at in (0, 256):
        np.testing.assert_array_equal(outcome.array(DATA + at, table), permute.reference(source, table))


def test_formulas_take_arrays() -> None:
    sides = np.array([0, 1, 5])
    assert transpose.cycles(sides, 3).tolist() == [int(transpose.cycles(int(n), 3)) for n in sides]
    counts = np.array([0, 2, 50])
    assert permute.cycles(counts).tolist() == [int(permute.cycles(int(n))) for n in counts]
