"""Rounding to minus infinity is simulated, and told of once, however a program asks for it."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ipu21.simulator.choice import REFERENCE, TRANSLATED
from tilewright.ipu21.simulator.doubts import warn_of_rounding_down
from tilewright.tile import TileBench, TileProgram

pytestmark = pytest.mark.sim

SOURCE = """
.worker
.globl narrow
narrow:
    ld32 $m0, $mvertex_base, $mzero, 0
    ld32 $a0, $mvertex_base, $mzero, 1
    ld32 $a1, $mvertex_base, $mzero, 2
    brz $m1, keep
    uput $FP_CTL, $a1
keep:
    f32tof16 $a0, $a0
    setzi $a1, 0
    brz $m1, last
    uput $FP_CTL, $a1
last:
    st32 $a0, $m0, $mzero, 0
    exitz $mzero
"""
VALUE = 1 + 3 * 2.0**-12
"""Between 1 and the next half above, nearer to that."""
BELOW, ABOVE = 1.0, 1 + 2.0**-10


@pytest.fixture
def program() -> TileProgram:
    warn_of_rounding_down.cache_clear()
    return TileProgram.from_source(SOURCE)


def rounded(program: TileProgram, engines: str, mode: int, value: float, *, by_supervisor: bool) -> float:
    bench = TileBench(program, engines=engines)
    bench.put("y", np.zeros(2, np.float16))
    state = bench.vertex_state("y", ("f32", value), mode << 16)
    csrs = {"FP_ICTL": mode << 16} if by_supervisor else {}
    bench.run_vertex("narrow", state, registers={"m1": int(not by_supervisor)}, csrs=csrs)
    return float(bench.array("y")[0])


@pytest.mark.parametrize("by_supervisor", [True, False])
@pytest.mark.parametrize("engines", [REFERENCE, TRANSLATED])
def test_minus_infinity(
    program: TileProgram, engines: str, by_supervisor: bool, caplog: pytest.LogCaptureFixture
) -> None:
    for mode, value, expected in (
        (0, VALUE, ABOVE), (1, VALUE, ABOVE), (3, VALUE, BELOW), (1, -VALUE, -BELOW), (3, -VALUE, -BELOW),
    ):  # fmt: skip
        assert rounded(program, engines, mode, value, by_supervisor=by_supervisor) == expected
    assert not caplog.records
    assert rounded(program, engines, 2, VALUE, by_supervisor=by_supervisor) == BELOW
    assert rounded(program, engines, 2, -VALUE, by_supervisor=by_supervisor) == -ABOVE
    (record,) = caplog.records
    assert record.levelname == "WARNING" and "$FP_CTL.RND = 2" in record.getMessage()
