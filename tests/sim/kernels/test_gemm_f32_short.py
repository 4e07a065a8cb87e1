"""The form of the float32 matrix kernels for workers whose accumulators do not survive their exit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from test_gemm_f32 import SHAPES, C, Case

from tilewright.ipu21.kernels import KERNELS, gemm_f32, gemm_f32_source
from tilewright.ipu21.kernels.gemm_frame import ADD, CHUNK_ROWS, MODES
from tilewright.ipu21.machine.memory import IMAGE_BASE
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.single import Result, run_function
from tilewright.ipu21.toolchain import LinkedImage, assemble, link

pytestmark = pytest.mark.sim

SCRAMBLE = "  f32sisov2amp $a0:1, $a6, $a4:5, TAMP_F32_E4_P0\n" * 3


@cache
def image(symbol: str, survive: bool, scrambled: bool) -> LinkedImage:
    """The kernel; if `scrambled`, workers leave nonsense in their accumulators when they exit."""
    source = gemm_f32_source.source(survive)
    if scrambled:
        source = source.replace("  exitz $m15\n", SCRAMBLE + "  exitz $m15\n")
    return link([assemble(source, filename="gemm.S")], intervals=((IMAGE_BASE, 0x54000),), roots=[symbol])


def run(case: Case, survive: bool, scrambled: bool) -> Result:
    """On a tile that faults on bytes nobody wrote and on words that two workers share."""
    registers = KERNELS[case.symbol].contract.registers(**case.arguments)
    linked = image(case.symbol, survive, scrambled)
    return run_function(linked, case.symbol, registers, dict(case.inputs), checks=Checks.thorough())


def check(case: Case) -> None:
    for scrambled in (False, True):
        result = run(case, False, scrambled)
        np.testing.assert_array_equal(result.read(C, case.expected.shape, np.float32), case.expected)
        if not scrambled:
            expected = gemm_f32.cycles_of(case.mode, **case.shape, wide=case.wide, survive=False)
            assert result.cycles == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", [*range(1, 8), 12, *range(17, 20), 24, 25, 40])
def test_result_is_exact(mode: str, rows: int) -> None:
    for inner, columns in SHAPES:
        check(Case(rows, inner, columns, mode))
    check(Case(rows, 2, 2, mode, standard=True))
    if mode == ADD:
        check(Case(rows, 4, 2, mode, in_place=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", [152, CHUNK_ROWS, CHUNK_ROWS + 1])
def test_large_row_counts_are_exact(mode: str, rows: int) -> None:
    check(Case(rows, 2, 2, mode))


def test_the_usual_form_needs_its_accumulators() -> None:
    """Otherwise the tests above would not show anything."""
    for rows in (7, 24):
        case = Case(rows, 4, 2)
        result = run(case, True, True)
        assert not np.array_equal(result.read(C, case.expected.shape, np.float32), case.expected)


def test_a_panel_takes_eight_cycles_per_row_and_228() -> None:
    for rows in (18, 60, 120):
        more, less = (gemm_f32.cycles_of("zero", rows, inner, 1, survive=False) for inner in (8, 6))
        assert more - less == 2 * (8 * rows + 228)
