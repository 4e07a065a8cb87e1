"""Arguments of calls, tile by tile, from steps of hand-made plans."""

from __future__ import annotations

import pytest

from tilewright.errors import UnsupportedError
from tilewright.ipu21.kernels import KERNELS
from tilewright.ipu21.lower import calls
from tilewright.ipu21.lower.calls import lower_call
from tilewright.ipu21.lower.tile_work import lower_plan
from tilewright.ipu21.plan.layout import Axis, Layout, Level, spread
from tilewright.ipu21.plan.steps import Buffer, Compute, Plan

pytestmark = pytest.mark.unit


def plan_of(**layouts: Layout) -> Plan:
    """A plan with these buffers, on one more tile than the largest has."""
    plan = Plan(1 + max(layout.tiles for layout in layouts.values()))
    for name, layout in layouts.items():
        plan.buffers[name] = Buffer(name, layout, "value", name)
    return plan


def cut(rows: int, columns: int, tiles: int = 3) -> Layout:
    """Blocks of 16 rows over tiles."""
    return Layout("a16", Axis(rows, 16, (Level(tiles, 1),)), Axis(columns, 16), tiles)


def test_an_argument_out_of_range_names_the_step() -> None:
    plan = plan_of(out=spread(1, 16, 1), x=spread(1, 16, 1))
    step = Compute("y.scale", "scale_f16", ("out", "x"), ("out",), 1.0, {"factor": 1.0})
    lower_call(plan, step)
    most = next(s.maximum for s in KERNELS["scale_f16"].contract.scalars if s.name == "words")
    rows = most // 4 + 1
    plan = plan_of(out=spread(rows, 16, 1), x=spread(rows, 16, 1))
    with pytest.raises(UnsupportedError) as caught:
        lower_call(plan, step)
    assert caught.value.where == "y.scale"


def test_buffers_that_a_loop_walks_through_have_strides() -> None:
    plan = plan_of(c=spread(2, 16, 1), a=spread(2, 16, 1), w=Layout("b16", Axis(16, 16), Axis(16, 16), 1))
    plan.buffers["w"] = Buffer("w", plan.buffers["w"].layout, "weight", "w", iterations=3)
    step = Compute("y", "gemm_f16", ("c", "a", "w", None), ("c",), 1.0)
    assert {position: stride.tolist() for position, stride in lower_call(plan, step).strides.items()} == {
        2: [512, 0]
    }


@pytest.mark.parametrize(("panel", "active"), [(0, [False, True, False, False]), (2, [False] * 4)])
def test_padding_is_cleared_where_there_is_some(panel: int, active: list[bool]) -> None:
    # 16 and 8 rows of 2 panels, no rows, no shard.
    plan = plan_of(x=cut(24, 32))
    call = lower_call(plan, Compute("x.clear", "fill_u64", ("x",), ("x",), 1.0, {"panel": panel}))
    assert call.active.tolist() == active
    assert call.scalars["words"].tolist()[1] == 8 * 4
    # Behind the rows of the panel.
    assert call.operands[0][1].tolist()[1] == (16 * panel + 8) * 32


@pytest.mark.parametrize(
    ("block", "column", "active"),
    [
        (0, 24, [True, True, True, False, False]),
        (0, 47, [True, False, True, False, False]),
        (1, 24, [True, True, False, False, False]),
        (2, 24, [False] * 5),
    ],
)
def test_ones_are_written_where_there_are_such_keys_and_such_a_column(
    block: int, column: int, active: list[bool]
) -> None:
    # 24 and 16 keys of three and two heads of 16 columns, and tiles without keys.
    rows, columns = Axis(40, 16, (Level(2, 2),)), Axis(80, 16, (Level(2, 1),))
    plan = plan_of(v=Layout("a16t", rows, columns, 4))
    parameters = {"block": block, "column": column}
    call = lower_call(plan, Compute("v.ones", "fill_u64", ("v",), ("v",), 1.0, parameters))
    assert call.active.tolist() == [*active[:2], *active[2:3], active[1] and active[2], False]
    assert {name: set(values.tolist()) for name, values in call.scalars.items()} == {
        "words": {4},
        "low": {0x3C003C00},
        "high": {0x3C003C00},
    }
    offsets = call.operands[0][1]
    assert offsets[:2].tolist() == [32 * (48 * block + column), 32 * (32 * block + column)]


def test_sums_are_those_of_the_last_half_panel_of_a_head() -> None:
    # Tile 0 has two heads of 32 columns, tile 1 one; seven rows.
    columns = Axis(96, 32, (Level(2, 1),))
    state = Layout("plain", Axis(7), Axis(3, 1, (Level(2, 1),)), 2, 8)
    plan = plan_of(state=state, output=Layout("a16", Axis(7), columns, 2))
    windows = {0: (1, 1), 1: (32, 32)}
    step = Compute("y.sums", "half_sums_f16", ("state", "output"), ("state",), 1.0, windows=windows)
    call = lower_call(plan, step)
    assert call.active.tolist() == [True, False, False]
    assert call.scalars["rows"].tolist()[0] == 7
    # Behind a head of states; behind three panels and half a record.
    assert [offset[0] for _, offset in call.operands] == [7 * 8, 3 * 7 * 32 + 16]


@pytest.mark.parametrize(("spare", "halves"), [(0, [4, 2]), (1, [4, 1])])
def test_half_panels_of_padding_are_not_merged(spare: int, halves: list[int]) -> None:
    # 32 columns and the last 16 of a head, and a tile without any.
    out = Layout("a16", Axis(7), Axis(48, 16, (Level(2, 1),)), 2)
    state = Layout("plain", Axis(7), Axis(1), 2, 8)
    plan = plan_of(out=out, partial=out, state=state)
    parameters = {"parts": 2, "spare": spare, "width": 48}
    step = Compute("y.merge", "attention_merge_f16", ("out", "partial", "state"), ("out",), 1.0, parameters)
    call = lower_call(plan, step)
    assert call.active.tolist() == [True, True, False]
    assert call.scalars["halves"].tolist()[:2] == halves


def test_every_kernel_is_lowered_by_the_rules_of_its_family() -> None:
    for name, lowering in calls._LOWERINGS.items():
        if name.startswith("gemm_listed"):
            assert lowering is calls._gemm_listed
        elif name.startswith("gemm"):
            assert lowering is calls._gemm
        if name.startswith("root"):
            assert lowering is calls._root
    for family in ("gemm", "root"):
        assert {name for name in KERNELS if name.startswith(family)} <= calls._LOWERINGS.keys()
    # Plans never call kernels that others do the work of.
    assert KERNELS.keys() - calls._LOWERINGS.keys() == {"add_f16", "add_row_f16", "gelu_f16", "reduce_f16"}


def test_a_class_of_tiles_has_the_buffers_of_which_it_holds_a_part() -> None:
    plan = plan_of(x=cut(24, 32), y=spread(2, 16, 1))
    plan.steps.append(Compute("x.clear", "fill_u64", ("x",), ("x",), 1.0, {"panel": 0}))
    work = lower_plan(plan)
    sizes = {tile: work.classes[int(index)].bytes for tile, index in enumerate(work.class_of)}
    assert sizes == {0: {"x": 1024, "y": 64}, 1: {"x": 1024}, 2: {}, 3: {}}
