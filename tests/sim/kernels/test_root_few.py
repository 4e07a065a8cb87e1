"""Code of roots for a number of partials and of half rows: what results of single calls do not show."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tilewright.ipu21.kernels import root_few
from tilewright.ipu21.kernels.pack import pack
from tilewright.ipu21.kernels.root import straight_of
from tilewright.ipu21.kernels.root_few import few_sources
from tilewright.ipu21.kernels.root_worker import VARIANTS
from tilewright.ipu21.kernels.text import Pair

pytestmark = pytest.mark.sim


def test_a_call_asks_for_code_of_its_own_member() -> None:
    for variant in VARIANTS:
        names = straight_of(variant.symbol, 2, 1, 1)
        ways = variant.straight_ways
        assert names == [variant.straight_name(2, wide=wide, half_rows=1) for wide in ways]


def test_half_of_the_sums_is_taken_out_by_a_factor_that_the_code_has_set() -> None:
    """A worker's $TAS may be what another kernel has left there."""
    for symbol, source in few_sources().items():
        before, mix, _ = source().partition("f16v4mix")
        assert not mix or "uput $TAS" in before, symbol


def test_no_slot_is_asked_for_to_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[str] = []

    def recorded(lines: Sequence[str]) -> list[Pair]:
        packed.extend(lines)
        return pack(lines)

    monkeypatch.setattr(root_few, "pack", recorded)
    for variant in VARIANTS:
        root_few._one(variant, 2, variant.straight_ways[0])
    assert packed and not {"nop", "fnop"} & set(packed)
