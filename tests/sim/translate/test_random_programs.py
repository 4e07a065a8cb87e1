"""Both engines agree on random worker code. For the full counts run `random_programs.py` beside this file."""

from __future__ import annotations

import pytest
from random_programs import FAMILIES, judge

pytestmark = pytest.mark.sim


@pytest.mark.parametrize("seed", [10_000, 20_000])
def test_straight_code_of_every_form(seed: int) -> None:
    verdict = judge(40, 40, loops=False, first_seed=seed)
    assert verdict.failure == ""
    assert verdict.native > verdict.programs // 5


@pytest.mark.parametrize("seed", [30_000, 40_000])
def test_loops_repeats_and_branches(seed: int) -> None:
    verdict = judge(60, 12, loops=True, first_seed=seed)
    assert verdict.failure == ""
    assert verdict.native > verdict.programs // 3


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", [50_000, 60_000])
def test_families_that_run_natively(family: str, seed: int) -> None:
    verdict = judge(40, 24, loops=True, first_seed=seed, family=family)
    assert verdict.failure == ""
    assert verdict.native > verdict.programs // 20


@pytest.mark.parametrize("family", ["", *FAMILIES])
def test_engines_that_check_see_the_same(family: str) -> None:
    """Programs that meet unwritten memory and one another, of which others run natively to their end."""
    verdict = judge(60, 12, loops=True, first_seed=70_000, family=family, checked=True)
    assert verdict.failure == ""
    assert verdict.native > verdict.programs // 20


def test_sums_of_several_nans_read_as_raw_words() -> None:
    """Which NaN a sum delivers must not depend on the order in which an engine adds."""
    verdict = judge(1, 40, loops=False, first_seed=2886)
    assert verdict.failure == ""
    assert verdict.native == 1


def test_the_cycle_counter_beside_an_instruction_of_several_slots() -> None:
    verdict = judge(1, 40, loops=False, first_seed=4548)
    assert verdict.failure == ""
    assert verdict.native == 1


def test_packed_addresses_out_of_registers_that_are_no_storage() -> None:
    assert judge(1, 12, loops=True, first_seed=1073749408).failure == ""
