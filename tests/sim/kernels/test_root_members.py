"""Both root families against NumPy: every member, shapes around the workers' split, places, aliases."""

from __future__ import annotations

import pytest
from root_cases import (
    PLAIN,
    SHAPES,
    WIDE,
    Case,
    check_member,
    check_no_work,
    check_over,
    check_races,
    check_two_calls,
    member_named,
)

from tilewright.ipu21.kernels.root_f32_worker import MEMBERS as SINGLES
from tilewright.ipu21.kernels.root_frame import Member
from tilewright.ipu21.kernels.root_worker import VARIANTS as HALVES

pytestmark = pytest.mark.sim

MEMBERS: tuple[Member, ...] = (*HALVES, *SINGLES)


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.symbol)
@pytest.mark.parametrize("places", [WIDE, PLAIN], ids=["wide", "plain"])
def test_every_member(member: Member, places: dict[str, int]) -> None:
    check_member(member, places)


@pytest.mark.parametrize(
    "symbol",
    [
        "root_f16",
        "root_f16_bias",
        "root_f16_tanh",
        "root_f16_exact",
        "root_f16_bias_residual_exact",
        "root_f16_addend_tanh",
        "root_f32",
        "root_f32_bias",
        "root_f32_bias_residual_tanh",
        "root_f32_exact",
    ],
)
@pytest.mark.parametrize("count", [0, 1, 4])
def test_shapes(symbol: str, count: int) -> None:
    for rows, panels in SHAPES:
        Case(member_named(MEMBERS, symbol), rows, panels, count, WIDE).check()


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.symbol)
def test_no_races_and_nothing_unwritten(member: Member) -> None:
    check_races(member)


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.symbol)
@pytest.mark.parametrize("over", ["own", "residual"])
def test_result_over_an_operand(member: Member, over: str) -> None:
    check_over(member, over)


@pytest.mark.parametrize(("rows", "panels"), [(0, 0), (0, 1), (0, 5), (1, 0), (9, 0)])
def test_no_work(rows: int, panels: int) -> None:
    for member in MEMBERS:
        check_no_work(member, rows, panels)


def test_a_call_does_not_depend_on_the_one_before() -> None:
    for member in MEMBERS:
        check_two_calls(member)
