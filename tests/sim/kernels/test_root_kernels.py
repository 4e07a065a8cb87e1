"""The root family against NumPy: every member, shapes around the workers' split, places, aliases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from guarded_runs import guarded
from kernel_runs import DATA, call, halves, run, twice
from numpy.typing import NDArray

from tilewright.errors import UnsupportedError
from tilewright.ipu21.kernels import KERNELS, root
from tilewright.ipu21.kernels.root_source import is_wide
from tilewright.ipu21.kernels.root_worker import EXACT, VARIANTS, Variant
from tilewright.ipu21.machine.memory import REGION1_BASE

pytestmark = pytest.mark.sim

Halves = NDArray[np.float16]

WIDE = {
    "own": REGION1_BASE,
    "remote": REGION1_BASE + 0x20000,
    "bias": DATA,
    "residual": DATA + 0x1000,
    "out": REGION1_BASE + 0x10000,
}
PLAIN = {
    "own": DATA,
    "remote": DATA + 0x4008,
    "bias": REGION1_BASE + 0x4008,
    "residual": REGION1_BASE + 8,
    "out": DATA + 0x1F008,
}
SHAPES = [(rows, panels) for rows in (1, 2, 3, 5, 6, 7, 9, 20) for panels in (1, 2, 3, 4, 7)]


class Case:
    """Operands of one call and what it must give."""

    def __init__(
        self, variant: Variant, rows: int, panels: int, count: int, places: dict[str, int], spare: int = 3
    ) -> None:
        seed = 100 * rows + panels
        self.variant, self.places = variant, places
        self.own = halves(seed, panels, rows + spare, 16)
        self.remote = halves(seed + 1, count, panels, rows, 16)
        self.bias = halves(seed + 2, panels, 16)
        self.residual = halves(seed + 3, panels, rows, 16)
        self.scalars = {
            "rows": rows,
            "panels": panels,
            "own_stride": 32 * (rows + spare),
            "remote_count": count,
            "remote_stride": 32 * rows * panels,
        }
        optional = {"bias": variant.bias, "residual": variant.residual}
        self.names = ["own", "remote", *(name for name in optional if optional[name])]
        self.inputs = [(places[name], getattr(self, name)) for name in self.names]
        addends = {name: getattr(self, name) for name in self.names[2:]}
        self.expected = root.reference(variant, self.own[:, :rows], self.remote, **addends)

    @property
    def arguments(self) -> dict[str, int]:
        return {name: self.places[name] for name in ("out", *self.names)} | self.scalars

    @property
    def wide(self) -> bool:
        scalars = [self.scalars[name] for name in ("own_stride", "remote_stride", "remote_count")]
        return is_wide(self.places["own"], self.places["remote"], *scalars)

    def check(self) -> None:
        out = self.places["out"]
        outcome = run(self.variant.symbol, self.arguments, self.inputs, [(out, self.expected.nbytes)])
        np.testing.assert_array_equal(outcome.array(out, self.expected), self.expected)
        assert outcome.cycles == KERNELS[self.variant.symbol].cycles(**self.scalars, wide=self.wide)


def variant_named(symbol: str) -> Variant:
    return next(variant for variant in VARIANTS if variant.symbol == symbol)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.symbol)
@pytest.mark.parametrize("places", [WIDE, PLAIN], ids=["wide", "plain"])
def test_every_member(variant: Variant, places: dict[str, int]) -> None:
    for rows, panels, count in ((1, 1, 0), (2, 1, 1), (9, 2, 3), (5, 4, 2), (1, 7, 5), (20, 3, 0)):
        Case(variant, rows, panels, count, places).check()


@pytest.mark.parametrize(
    "symbol", ["root_f16", "root_f16_bias", "root_f16_tanh", "root_f16_exact", "root_f16_bias_residual_exact"]
)
@pytest.mark.parametrize("count", [0, 1, 4])
def test_shapes(symbol: str, count: int) -> None:
    for rows, panels in SHAPES:
        Case(variant_named(symbol), rows, panels, count, WIDE).check()


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.symbol)
def test_no_races_and_nothing_unwritten(variant: Variant) -> None:
    for places in (WIDE, PLAIN):
        for rows, panels, count in ((7, 1, 2), (3, 5, 0), (7, 3, 0)):
            case = Case(variant, rows, panels, count, places)
            result = guarded(variant.symbol, case.arguments, case.inputs)
            found = result.read(places["out"], case.expected.shape, np.float16)
            np.testing.assert_array_equal(found, case.expected)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.symbol)
@pytest.mark.parametrize("over", ["own", "residual"])
def test_result_over_an_operand(variant: Variant, over: str) -> None:
    if over == "residual" and not variant.residual:
        return
    for rows, panels, count in ((7, 1, 2), (4, 5, 0), (1, 2, 1)):
        places = WIDE | {"out": WIDE[over]}
        case = Case(variant, rows, panels, count, places, spare=0)
        case.check()
        guarded(variant.symbol, case.arguments, case.inputs)


@pytest.mark.parametrize(("rows", "panels"), [(0, 0), (0, 1), (0, 5), (1, 0), (9, 0)])
def test_no_work(rows: int, panels: int) -> None:
    for variant in VARIANTS:
        case = Case(variant, rows, panels, 1, WIDE)
        outcome = run(variant.symbol, case.arguments, [], [])
        assert outcome.cycles == KERNELS[variant.symbol].cycles(**case.scalars)


def test_large_piece() -> None:
    Case(variant_named("root_f16"), 100, 4, 2, WIDE).check()
    Case(variant_named("root_f16"), 1, 200, 2, WIDE).check()
    Case(variant_named("root_f16"), 3, 1, 300, WIDE).check()


def test_one_rounding() -> None:
    """Many small addends that vanish one by one in half precision."""
    case = Case(variant_named("root_f16_bias_residual"), 1, 1, 8, WIDE)
    inputs = [(WIDE["own"], np.full(16, 2048, np.float16)), (WIDE["remote"], np.full(128, 0.5, np.float16))]
    inputs += [(WIDE["bias"], np.full(16, 1, np.float16)), (WIDE["residual"], np.full(16, 3, np.float16))]
    outcome = run("root_f16_bias_residual", case.arguments, inputs, [(WIDE["out"], 32)])
    assert np.all(outcome.array(WIDE["out"], case.expected) == 2056)


def exact(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """GeLU with the complementary error function, which keeps the negative tail."""
    return np.array([value / 2 * math.erfc(-value / math.sqrt(2)) for value in x])


def finite_halves() -> Halves:
    every = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    return every[np.isfinite(every)]


def test_exact_activation_of_every_half() -> None:
    x = finite_halves()
    expected = exact(x.astype(np.float64))
    error = np.abs(root.exact_gelu(x).astype(np.float64) - expected)
    assert np.all(error <= root.EXACT_ERROR * np.maximum(np.abs(expected), 0.25))
    # A shape of 61 rows x 65 panels, the first 16 values over again at the end.
    tile = np.resize(x, (65, 61, 16))
    arguments: dict[str, Any] = {"out": DATA, "own": REGION1_BASE, "remote": 0, "rows": 61, "panels": 65}
    arguments |= {"own_stride": 61 * 32, "remote_count": 0, "remote_stride": 0}
    outcome = run("root_f16_exact", arguments, [(REGION1_BASE, tile)], [(DATA, tile.nbytes)])
    np.testing.assert_array_equal(outcome.array(DATA, tile), root.exact_gelu(tile))


def test_a_call_does_not_depend_on_the_one_before() -> None:
    for variant in VARIANTS:
        cases = [
            Case(variant, rows, panels, count, {name: at + 0x800 * number for name, at in WIDE.items()})
            for number, (rows, panels, count) in enumerate([(7, 2, 2), (2, 3, 1)])
        ]
        image = twice(variant.symbol, [case.arguments for case in cases])
        inputs = [item for case in cases for item in case.inputs]
        outputs = [(case.places["out"], case.expected.nbytes) for case in cases]
        outcome = call(image, "driver", {}, inputs, [*outputs, (0x58600, 0xE0)])
        for case in cases:
            np.testing.assert_array_equal(outcome.array(case.places["out"], case.expected), case.expected)


def test_goals() -> None:
    """8 bytes of partials per cycle for large pieces."""
    cycles = KERNELS["root_f16"].cycles(rows=60, panels=9, own_stride=0, remote_count=7, remote_stride=0)
    assert 8 * 60 * 9 * 32 / cycles >= 8
    rows = np.array([1, 9, 60, 0])
    each = [int(root.cycles(VARIANTS[0], int(r), 3, 2)) for r in rows]
    assert root.cycles(VARIANTS[0], rows, 3, 2).tolist() == each


def test_arguments_are_packed() -> None:
    case = Case(variant_named("root_f16_exact"), 9, 2, 3, WIDE)
    registers = KERNELS["root_f16_exact"].contract.registers(**case.arguments)
    assert registers[5] == registers[6] == 0
    assert registers[7] == 9 | 2 << 16
    assert registers[8] == 32 * 12 | 3 << 20
    assert registers[9] == 32 * 18
    with pytest.raises(UnsupportedError, match="remote_count"):
        KERNELS["root_f16_exact"].contract.registers(**case.arguments | {"remote_count": 4096})
    assert EXACT in {variant.activation for variant in VARIANTS}
