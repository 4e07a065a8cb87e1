"""Row sums, layer norm and length normalisation against NumPy and against double precision."""

from __future__ import annotations

import numpy as np
import pytest
from guarded_runs import guarded
from kernel_runs import DATA, call, halves, run, twice
from numpy.typing import NDArray

from tilewright.ipu21.kernels import KERNELS, l2_normalise, link_kernels, normalise, normalise_once, row_sums
from tilewright.ipu21.machine.memory import REGION1_BASE

pytestmark = pytest.mark.sim

OUT, X, SUMS, AFFINE = DATA, REGION1_BASE, REGION1_BASE + 0x20000, REGION1_BASE + 0x40000
WORKER_STACKS = (0x58000, 0x6E0)
ROWS = [1, 2, 3, 5, 6, 7, 9, 12, 13, 20]
SYMBOLS = [normalise.SYMBOL, l2_normalise.SYMBOL]


def bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


@pytest.mark.parametrize("rows", [0, *ROWS])
@pytest.mark.parametrize("panels", [0, 1, 2, 3, 9])
def test_row_sums(rows: int, panels: int) -> None:
    for spare, at in ((0, X), (3, DATA + 0x8008)):
        held = halves(rows, panels, rows + spare, 16, scale=3)
        expected = row_sums.reference(held[:, :rows])
        scalars = {"rows": rows, "panels": panels, "x_stride": 32 * (rows + spare)}
        outcome = run(
            row_sums.SYMBOL, {"out": OUT, "x": at} | scalars, [(at, held)], [(OUT, expected.nbytes)]
        )
        found = outcome.array(OUT, expected)
        np.testing.assert_array_equal(found, expected)
        assert outcome.cycles == row_sums.cycles(**scalars)
        wide = held[:, :rows].astype(np.float64)
        np.testing.assert_allclose(found[:, 1], (wide**2).sum(axis=(0, 2)), rtol=1e-6)
        np.testing.assert_allclose(found[:, 0], wide.sum(axis=(0, 2)), atol=1e-6 * np.abs(wide).sum())


class Case:
    """Operands of one call; the row sums are cut into `parts` shares at random."""

    def __init__(
        self,
        symbol: str,
        rows: int,
        panels: int,
        parts: int,
        *,
        shift: int = 0,
        out: int = OUT,
        x: int = X,
        straight: bool = False,
    ) -> None:
        random = np.random.default_rng(100 * rows + panels)
        self.symbol = symbol
        self.linked = normalise_once.straight_of(rows, panels, parts) if straight else []
        self.x = (
            random.standard_normal((panels, rows, 16)) * 2 + random.uniform(-9, 9, (1, rows, 1))
        ).astype(np.float16)
        wide = self.x.astype(np.float64)
        whole = np.stack([wide.sum(axis=(0, 2)), (wide**2).sum(axis=(0, 2))], axis=-1)
        shares = random.dirichlet(np.ones(parts)) if parts > 1 else np.ones(1)
        self.sums = (shares[:, None, None] * whole).astype(np.float32)
        self.affine = halves(panels, panels, 2, 16)
        self.places = {"out": out + shift, "x": x + shift, "sums": SUMS + shift}
        epsilon = 1e-5 if symbol == normalise.SYMBOL else 1e-3
        self.scalars = {"rows": rows, "panels": panels, "parts": parts}
        self.scalars |= {"inverse": bits(1 / max(16 * panels, 1)), "epsilon": bits(epsilon)}
        self.inputs: list[tuple[int, NDArray[np.generic]]] = [
            (self.places["x"], self.x),
            (self.places["sums"], self.sums),
        ]
        if symbol == normalise.SYMBOL:
            self.places["affine"] = AFFINE + shift
            self.inputs.append((AFFINE + shift, self.affine))

    @property
    def expected(self) -> NDArray[np.float16]:
        if self.symbol == l2_normalise.SYMBOL:
            return l2_normalise.reference(self.x, self.sums, self.scalars["epsilon"])
        ends = self.scalars["inverse"], self.scalars["epsilon"]
        return normalise.reference(self.x, self.sums, self.affine, *ends)

    def check(self) -> None:
        out, expected = self.places["out"], self.expected
        registers = KERNELS[self.symbol].contract.registers(**self.places, **self.scalars)
        image = link_kernels([self.symbol, *self.linked], {})
        outcome = call(image, self.symbol, registers, self.inputs, [(out, expected.nbytes), *self.scratch])
        np.testing.assert_array_equal(outcome.array(out, expected), expected)
        assert outcome.cycles == self.cycles

    @property
    def scratch(self) -> list[tuple[int, int]]:
        return [WORKER_STACKS] if self.linked else []

    @property
    def cycles(self) -> int:
        straight = {"straight": bool(self.linked)} if self.symbol == normalise.SYMBOL else {}
        return int(KERNELS[self.symbol].cycles(**self.scalars, **straight))

    def check_thoroughly(self) -> None:
        """Nothing unwritten is read, and no races."""
        image = link_kernels([self.symbol, *self.linked], {})
        result = guarded(self.symbol, self.places | self.scalars, self.inputs, image)
        found = result.read(self.places["out"], self.x.shape, np.float16)
        np.testing.assert_array_equal(found, self.expected)


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("rows", ROWS)
def test_shapes(symbol: str, rows: int) -> None:
    for panels in (1, 2, 3, 9):
        for parts in (1, 2, 24):
            Case(symbol, rows, panels, parts).check()
        Case(symbol, rows, panels, 3, out=X).check()
        Case(symbol, rows, panels, 3, x=DATA + 0x8008, out=REGION1_BASE).check()


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_no_work(symbol: str) -> None:
    for rows, panels in ((0, 0), (0, 3), (7, 0)):
        Case(symbol, rows, panels, 2).check()


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_no_races_and_nothing_unwritten(symbol: str) -> None:
    for rows, panels, out in ((7, 1, OUT), (13, 3, X), (2, 2, X)):
        Case(symbol, rows, panels, 5, out=out).check_thoroughly()
    for rows, panels in ((7, 3), (1, 1), (2, 1), (3, 1)):
        x = halves(1, panels, rows, 16)
        arguments = {"out": OUT, "x": X, "rows": rows, "panels": panels, "x_stride": rows * 32}
        found = guarded(row_sums.SYMBOL, arguments, [(X, x)]).read(OUT, (rows, 2), np.float32)
        np.testing.assert_array_equal(found, row_sums.reference(x))


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_code_for_rows_and_parts(rows: int) -> None:
    """Exact cycles show that it is what runs."""
    for parts in (1, 2, 3, 4, 7, 24, normalise_once.PARTS.stop - 1):
        case = Case(normalise.SYMBOL, rows, 1, parts, straight=True)
        case.check()
        assert case.cycles < Case(normalise.SYMBOL, rows, 1, parts).cycles
        for out, x in ((X, X), (REGION1_BASE, DATA + 0x8008)):
            Case(normalise.SYMBOL, rows, 1, parts, out=out, x=x, straight=True).check()
        Case(normalise.SYMBOL, rows, 1, parts, straight=True).check_thoroughly()
        Case(normalise.SYMBOL, rows, 1, parts, out=X, straight=True).check_thoroughly()
    case = Case(normalise.SYMBOL, rows, 1, 5, straight=True)
    case.x[:, 0], case.sums[:, 0] = 3, (0, 0)
    case.sums[0, 0] = (48, 144)
    case.check()


@pytest.mark.parametrize(
    ("rows", "panels", "parts"), [(4, 1, 2), (3, 2, 2), (3, 1, 33), (0, 1, 2), (3, 0, 2)]
)
def test_code_for_rows_and_parts_is_left_alone(rows: int, panels: int, parts: int) -> None:
    """By calls with more rows, panels or parts, and by those without work."""
    assert normalise_once.straight_of(rows, panels, parts) == []
    case = Case(normalise.SYMBOL, rows, panels, parts)
    registers = KERNELS[case.symbol].contract.registers(**case.places, **case.scalars)
    every = [normalise_once.once_name(r, p) for r in (1, 2, 3) for p in (1, 2, 31, 32)]
    image = link_kernels([case.symbol, *every], {})
    outcome = call(image, case.symbol, registers, case.inputs, [(case.places["out"], case.expected.nbytes)])
    np.testing.assert_array_equal(outcome.array(case.places["out"], case.expected), case.expected)
    assert outcome.cycles == case.cycles == normalise.cycles(rows, panels, parts)


def test_code_for_rows_and_parts_does_not_depend_on_the_call_before() -> None:
    cases = [Case(normalise.SYMBOL, 2, 1, 9, straight=True, shift=shift) for shift in (0, 0x4000)]
    cases[1].x += np.float16(1)
    image = twice(normalise.SYMBOL, [case.places | case.scalars for case in cases], cases[0].linked)
    inputs = [item for case in cases for item in case.inputs]
    outputs = [(case.places["out"], case.x.nbytes) for case in cases]
    outcome = call(image, "driver", {}, inputs, [*outputs, WORKER_STACKS])
    for case in cases:
        np.testing.assert_array_equal(outcome.array(case.places["out"], case.x), case.expected)


def test_layer_norm_against_double() -> None:
    """Half an ulp each for the centred value, 1 / sqrt, their product, times gamma and plus beta."""
    case = Case(normalise.SYMBOL, 20, 9, 4)
    x = case.x.astype(np.float64)
    mean, variance = x.mean(axis=(0, 2), keepdims=True), x.var(axis=(0, 2), keepdims=True)
    scaled = (x - mean) / np.sqrt(variance + 1e-5) * case.affine[:, None, 0].astype(np.float64)
    exact = scaled + case.affine[:, None, 1].astype(np.float64)
    bound = 2.0**-11 * (4.1 * np.abs(scaled) + np.abs(exact)) + 2.0**-11 * 0.05
    assert np.all(np.abs(case.expected - exact) <= bound)


def test_length_against_double() -> None:
    case = Case(l2_normalise.SYMBOL, 20, 9, 4)
    x = case.x.astype(np.float64)
    exact = x / np.sqrt((x**2).sum(axis=(0, 2), keepdims=True))
    assert np.all(np.abs(case.expected - exact) <= 2.0**-10.9 * np.abs(exact) + 2.0**-24 * np.abs(x))


def test_rows_of_zeros_and_of_one_value() -> None:
    for symbol in SYMBOLS:
        case = Case(symbol, 7, 2, 2)
        case.x[:, 2] = 0
        case.x[:, 4] = 3
        case.sums[:, 2] = 0
        case.sums[:, 4] = (48, 144)
        case.check()
        assert np.all(np.isfinite(case.expected))
        if symbol == l2_normalise.SYMBOL:
            assert np.all(case.expected[:, 2] == 0)


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_a_call_does_not_depend_on_the_one_before(symbol: str) -> None:
    cases = [Case(symbol, 7, 3, 3), Case(symbol, 2, 1, 2, shift=0x4000)]
    image = twice(symbol, [case.places | case.scalars for case in cases])
    inputs = [item for case in cases for item in case.inputs]
    outputs = [(case.places["out"], case.x.nbytes) for case in cases]
    outcome = call(image, "driver", {}, inputs, [*outputs, WORKER_STACKS])
    for case in cases:
        np.testing.assert_array_equal(outcome.array(case.places["out"], case.x), case.expected)


def test_formulas_take_arrays() -> None:
    rows = np.array([0, 1, 7, 60])
    for symbol in SYMBOLS:
        cycles = KERNELS[symbol].cycles
        each = [int(cycles(rows=int(r), panels=3, parts=24)) for r in rows]
        assert cycles(rows=rows, panels=3, parts=24).tolist() == each
    each = [int(row_sums.cycles(int(r), 3)) for r in rows]
    assert row_sums.cycles(rows, 3).tolist() == each
