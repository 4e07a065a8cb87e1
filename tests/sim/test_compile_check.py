"""The compile-time check of exchange rows: silent on what the compiler makes, loud on a row that is off."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import ScheduleError
from tilewright.ipu21 import compile as passes
from tilewright.ipu21.emit.tile_programs import Programs

pytestmark = pytest.mark.sim


def network() -> tw.Graph:
    generator = np.random.default_rng(0)
    w = generator.standard_normal((48, 80)).astype(np.float32)
    v = generator.standard_normal((80, 40)).astype(np.float32)
    return tw.trace(lambda x: tw.ops.gelu(x @ w) @ v, x=tw.TensorType((70, 48)))


@pytest.mark.parametrize("tiles", [7, 24, 97])
def test_what_the_compiler_makes_passes(tiles: int) -> None:
    assert tw.compile(network(), tiles=tiles, check=True).images


def test_a_row_that_is_one_event_late_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    original = passes.assemble_programs

    def late(*arguments: object, **keywords: object) -> Programs:
        programs = original(*arguments, **keywords)  # type: ignore[arg-type]  # passed through
        tile = next(tile for tile, rows in sorted(programs.rows.items()) if rows)
        row = programs.rows[tile][0]
        words = row.words.copy()
        delays = np.flatnonzero((words & 0xFFF80000) == 0x40A00000)
        words[delays[0]] += 1
        programs.rows[tile][0] = row._replace(words=words)
        return programs

    monkeypatch.setattr(passes, "assemble_programs", late)
    with pytest.raises(ScheduleError, match=r"gelu_0\.\w+: \d+ conflicts\n    tile \d+, event \d+"):
        tw.compile(network(), tiles=24, check=True)
