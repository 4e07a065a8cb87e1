"""The project's kernels leave the same tile behind on both engines, and run natively."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_programs import differences

from tilewright.ipu21.kernels import KERNELS, link_kernels
from tilewright.ipu21.machine.memory import REGION1_BASE
from tilewright.ipu21.simulator.batch import run_tiles
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.single import prepare
from tilewright.ipu21.simulator.stops import StopKind
from tilewright.ipu21.simulator.tile import Tile
from tilewright.ipu21.simulator.translate.tiles import run_translated, translator

pytestmark = pytest.mark.sim

LEFT, RIGHT, OTHER = 0x5C000, REGION1_BASE, REGION1_BASE + 0x40000


def gemm(rows: int, inner: int, columns: int) -> dict[str, int]:
    strides = {"w_inner_stride": 512, "w_column_stride": 512 * inner}
    return {"c": RIGHT, "a": LEFT, "w": OTHER, "rows": rows, "inner": inner, "columns": columns, **strides}


CASES: list[tuple[str, dict[str, int]]] = [
    ("gemm_f16", gemm(48, 4, 3)),
    ("gemm_f16", gemm(200, 2, 2)),
    ("gemm_f16", gemm(800, 3, 2)),
    ("gemm_f16", gemm(19, 1, 2)),
    ("gemm_f16", gemm(7, 3, 2)),
    ("gemm_row_f16", {**gemm(26, 3, 2), "start": OTHER + 0x10000}),
    ("gemm_add_f16", {**gemm(3, 3, 2), "start": OTHER + 0x10000}),
    ("add_f16", {"c": LEFT, "a": RIGHT, "b": OTHER, "words": 1000}),
    ("add_f16", {"c": RIGHT, "a": RIGHT + 0x10000, "b": OTHER, "words": 333}),
    ("add_row_f16", {"c": RIGHT, "a": RIGHT, "row": LEFT, "rows": 50, "columns": 5}),
    ("add_row_f16", {"c": LEFT, "a": LEFT, "row": RIGHT, "rows": 5, "columns": 50}),
    ("gelu_f16", {"out": RIGHT, "x": RIGHT, "words": 777}),
    ("copy_u64", {"destination": LEFT, "source": RIGHT, "words": 999}),
]


def tile_for(symbol: str, values: dict[str, int], scale: float, checks: Checks | None = None) -> Tile:
    image = link_kernels([symbol], {})
    wide = np.random.default_rng(5).standard_normal(0x8C000 // 2) * scale
    data = np.clip(wide, -65504, 65504).astype(np.float16)
    data[::97] = np.float16(60000)
    registers = KERNELS[symbol].contract.registers(**values)
    tile = prepare(image, symbol, registers, {LEFT: data}, checks=checks)
    tile.accumulators[...] = np.random.default_rng(6).standard_normal((6, 32))
    return tile


@pytest.mark.parametrize(("symbol", "values"), CASES)
@pytest.mark.parametrize("control", [0, 1 << 20, 1 << 19, 2 << 16])
@pytest.mark.parametrize("avoid_fast", [False, True])
def test_kernel(
    symbol: str, values: dict[str, Any], control: int, avoid_fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator().forget()
    monkeypatch.setattr(translator(), "avoid_fast", avoid_fast)
    one, other = tile_for(symbol, values, 0.5), tile_for(symbol, values, 0.5)
    for tile in (one, other):
        tile.set_csr(0x20, control)
        for worker in range(6):
            tile.set_csr(0x103, 12345 + worker, worker + 1)
    before = translator().statistics()
    stop, stop_too = run_tiles([one])[0], run_translated([other])[0]
    assert stop.kind is StopKind.ENDED
    assert stop == stop_too
    assert differences(one, other) == []
    after = translator().statistics()
    # Fast code gives way to plain code at the first overflow, which these operands contain.
    assert after.launches > before.launches or not avoid_fast
    assert after.races == before.races


def test_infinities_lead_to_plain_code() -> None:
    translator().forget()
    values = {"c": LEFT, "a": RIGHT, "b": OTHER, "words": 100}
    launches = []
    for _ in range(3):
        one, other = tile_for("add_f16", values, 40000.0), tile_for("add_f16", values, 40000.0)
        for tile in (one, other):
            data = np.full(400, 60000, np.float16)
            tile.write(RIGHT, data.tobytes())
            tile.write(OTHER, data.tobytes())
        before = translator().statistics().launches
        assert run_tiles([one])[0] == run_translated([other])[0]
        assert differences(one, other) == []
        launches.append(translator().statistics().launches - before)
    assert launches == [0, 1, 1]


def test_enabled_floating_point_exceptions_stop_at_the_same_place() -> None:
    values = {"c": LEFT, "a": RIGHT, "b": OTHER, "words": 1000}
    one, other = tile_for("add_f16", values, 30000.0), tile_for("add_f16", values, 30000.0)
    for tile in (one, other):
        tile.set_csr(0x20, 4)
    stop, stop_too = run_tiles([one])[0], run_translated([other])[0]
    assert stop.kind is StopKind.EXCEPTION
    assert stop == stop_too
    assert differences(one, other) == []


def test_kernels_run_natively_with_thorough_checks() -> None:
    values = {"c": LEFT, "a": RIGHT, "b": OTHER, "words": 60}
    tile = tile_for("add_f16", values, 1.0, Checks.thorough())
    before = translator().statistics()
    assert run_translated([tile])[0].kind is StopKind.ENDED
    after = translator().statistics()
    assert after.issues > before.issues and after.undone == before.undone
