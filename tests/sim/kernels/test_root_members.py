"""Both root families against NumPy: every member, shapes around the workers' split, places, aliases."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import call
from root_cases import (
    PLAIN,
    SHAPES,
    WIDE,
    WIDE_RESIDUAL,
    Case,
    check_member,
    check_no_work,
    check_over,
    check_races,
    check_two_calls,
    member_named,
)

from tilewright.ipu21.kernels import KERNELS, link_kernels
from tilewright.ipu21.kernels.root import straight_of
from tilewright.ipu21.kernels.root_f32_worker import MEMBERS as SINGLES
from tilewright.ipu21.kernels.root_frame import NONE, Member
from tilewright.ipu21.kernels.root_straight import Straight, straight_slots
from tilewright.ipu21.kernels.root_worker import STRAIGHT_COUNTS, Variant
from tilewright.ipu21.kernels.root_worker import VARIANTS as HALVES
from tilewright.ipu21.machine.memory import REGION1_BASE

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


@pytest.mark.parametrize("member", HALVES, ids=lambda member: member.symbol)
def test_code_for_a_number_of_partials(member: Member) -> None:
    """Exact cycles show that it is what ran where all operands allow it, and not elsewhere."""
    for places in (WIDE, PLAIN, WIDE_RESIDUAL, WIDE | {"residual": REGION1_BASE + 0x30008}):
        check_member(member, places, straight=True)
    check_races(member, straight=True)
    for over in ("own", "residual"):
        check_over(member, over, straight=True)
    slower, faster = (Case(member, 7, 3, 4, WIDE, straight=straight).cycles for straight in (False, True))
    assert faster < slower


@pytest.mark.parametrize(
    "symbol",
    [
        "root_f16",
        "root_f16_bias",
        "root_f16_residual",
        "root_f16_exact",
        "root_f16_bias_exact",
        "root_f16_bias_residual_tanh",
        "root_f16_addend_exact",
    ],
)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_shapes_of_code_for_a_number_of_partials(symbol: str, count: int) -> None:
    """The first half row of all, others, other panels', and none."""
    for rows, panels in [*SHAPES, (0, 1), (1, 0)]:
        Case(member_named(HALVES, symbol), rows, panels, count, WIDE, straight=True).check()


@pytest.mark.parametrize("member", HALVES, ids=lambda member: member.symbol)
def test_code_for_few_half_rows(member: Member) -> None:
    """Exact cycles show that it is what runs where all operands allow it, and not elsewhere."""
    for rows in range(1, 11):
        for count in (1, 2, 3, STRAIGHT_COUNTS - 1):
            for places in (WIDE, WIDE_RESIDUAL, WIDE | {"residual": REGION1_BASE + 0x30008}):
                Case(member, rows, 1, count, places, straight=True).check()
        Case(member, rows, 1, 2, PLAIN, straight=True).check()
        Case(member, rows, 1, STRAIGHT_COUNTS, WIDE, straight=True).check()
        Case(member, rows, 1, 2, WIDE_RESIDUAL, straight=True).check_thoroughly()
    for over in ("own", "residual"):
        for rows in (3, 5, 7, 8):
            if over == "own" or member.residual:
                case = Case(member, rows, 1, 3, WIDE | {"out": WIDE[over]}, spare=0, straight=True)
                case.check()
                case.check_thoroughly()
    for rows in (3, 6, 9):
        faster, slower = (
            Case(member, rows, 1, 2, WIDE, straight=straight).cycles for straight in (True, False)
        )
        assert faster < slower


def test_code_for_every_number_of_partials() -> None:
    member = member_named(HALVES, "root_f16_bias_residual")
    for count in (*range(1, 5), STRAIGHT_COUNTS - 1):
        Case(member, 5, 2, count, WIDE, straight=True).check()
        Case(member, 5, 2, count, WIDE_RESIDUAL, straight=True).check()
    assert straight_of(member.symbol, STRAIGHT_COUNTS, 5, 2) == []
    assert straight_of(member.symbol, 2, 0, 2) == straight_of(member.symbol, 2, 5, 0) == []
    for places in (WIDE, WIDE_RESIDUAL):
        Case(member, 5, 2, STRAIGHT_COUNTS, places, straight=True).check()
    case = Case(member, 7, 2, 3, WIDE_RESIDUAL, straight=True)
    case.check_thoroughly()
    assert case.cycles < Case(member, 7, 2, 3, WIDE, straight=True).cycles


def test_code_for_another_number_of_partials_is_left_alone() -> None:
    case = Case(member_named(HALVES, "root_f16_bias"), 6, 3, 3, WIDE)
    slow = case.cycles
    image = link_kernels([case.member.symbol, "root_f16_bias_of_2"], {})
    output = (WIDE["out"], case.expected.nbytes)
    outcome = call(image, case.member.symbol, case.registers, case.inputs, [output])
    np.testing.assert_array_equal(outcome.array(WIDE["out"], case.expected), case.expected)
    assert outcome.cycles == slow


@pytest.mark.parametrize("variant", HALVES, ids=lambda variant: variant.symbol)
def test_what_is_put_off_to_the_end_of_the_first_half_row_takes_no_slot(
    variant: Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    activated = variant.activation != NONE
    for wide in variant.straight_ways:
        for count in variant.straight_counts:
            slots = straight_slots(variant, count, wide)
            with monkeypatch.context() as patched:
                patched.setattr(Straight, "deferred", ())
                *others, first = straight_slots.__wrapped__(variant, count, wide)
            # Result pointer and count of panels, and with an activation that of rows, if there is room, and
            # the step to the next partials.
            room = variant.bias or variant.residual or count > 1
            loads = 0 if variant.bias and not activated else 2 + (activated and room + (count > 1))
            assert slots == (*others, first - loads)


@pytest.mark.parametrize(("rows", "panels"), [(0, 0), (0, 1), (0, 5), (1, 0), (9, 0)])
def test_no_work(rows: int, panels: int) -> None:
    for member in MEMBERS:
        check_no_work(member, rows, panels)


def test_a_call_does_not_depend_on_the_one_before() -> None:
    for member in MEMBERS:
        check_two_calls(member)


@pytest.mark.parametrize("symbol", [variant.symbol for variant in HALVES if variant.residual])
def test_a_residual_is_wanted_where_it_is_loaded_faster(symbol: str) -> None:
    """With code for the number of remote partials."""
    kernel = KERNELS[symbol]
    (residual,) = (operand for operand in kernel.contract.operands if operand.name == "residual")
    fast, slow = (
        int(kernel.cycles(rows=60, panels=2, remote_count=3, wide_residual=wide)) for wide in (True, False)
    )
    assert residual.prefers_interleaved == (fast < slow)
