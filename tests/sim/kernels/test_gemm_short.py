"""The form of the float16 matrix kernels for workers whose accumulators do not survive their exit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from test_gemm_kernel import SHAPES, Case

from tilewright.ipu21.kernels import KERNELS, gemm, gemm_source
from tilewright.ipu21.kernels.gemm_frame import ADD, CHUNK_ROWS, FEW_ROWS, MODES, NEAR_ROWS
from tilewright.ipu21.machine.memory import IMAGE_BASE
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.single import Result, run_function
from tilewright.ipu21.toolchain import LinkedImage, assemble, link

pytestmark = pytest.mark.sim

SCRAMBLE = "  f16v4hihov4amp $a0:1, $a2:3, $a4:5, TAMP_F16V4_E4_P0\n" * 3


@cache
def image(symbol: str, survive: bool, scrambled: bool) -> LinkedImage:
    """The kernel; if `scrambled`, workers leave nonsense in their accumulators when they exit."""
    source = gemm_source.source(survive)
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
        found = result.read(case.where["c"], case.expected.shape, np.float16)
        np.testing.assert_array_equal(found, case.expected)
        if not scrambled:
            assert result.cycles == gemm.cycles_of(case.mode, **case.shape, wide=case.wide, survive=False)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", range(1, 41))
def test_result_is_exact(mode: str, rows: int) -> None:
    for inner, columns in SHAPES:
        check(Case(rows, inner, columns, mode))
        if mode == ADD:
            check(Case(rows, inner, columns, mode, in_place=True))
    check(Case(rows, 2, 2, mode, standard=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", [NEAR_ROWS, NEAR_ROWS + 1, CHUNK_ROWS, CHUNK_ROWS + FEW_ROWS, 1000])
def test_large_row_counts_are_exact(mode: str, rows: int) -> None:
    for inner, columns in ((1, 2), (2, 1), (3, 2)):
        check(Case(rows, inner, columns, mode))


def test_the_usual_form_needs_its_accumulators() -> None:
    """Otherwise the tests above would not show anything."""
    case = Case(24, 3, 2)
    result = run(case, True, True)
    assert not np.array_equal(result.read(case.where["c"], case.expected.shape, np.float16), case.expected)


def test_a_panel_takes_little_more_than_the_published_one() -> None:
    """Four cycles per row and 162; the published kernel is fitted by 235."""
    for rows in (18, 60, 120):
        more = gemm.cycles_of("zero", rows, 9, 1, survive=False) - gemm.cycles_of(
            "zero", rows, 8, 1, survive=False
        )
        assert more == 4 * rows + 162
