"""How attention is weighed, and which stages it becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.arithmetic import ceil_div
from tilewright.compiler.pipeline import plan_only
from tilewright.ipu21.plan import attention_choice, cost
from tilewright.ipu21.plan.attention_grid import Grid
from tilewright.ipu21.plan.attention_work import Problem, Sources
from tilewright.ipu21.plan.layout import Source, spread
from tilewright.ipu21.plan.movement import Load, load_of
from tilewright.ipu21.plan.price import FREE
from tilewright.ipu21.plan.steps import Compute, Exchange, Plan, Retile
from tilewright.ipu21.plan.turns import Turns

pytestmark = pytest.mark.unit


# --- grids ---


def grid_of(queries: int, keys: int, *, query_parts: int, key_parts: int, heads: int = 1) -> Grid:
    """Heads of 20 and 40 columns, all of them on every tile."""
    return Grid(Problem(1, heads, queries, keys, 20, 40), 1, query_parts, key_parts, Turns(1, 1))


def test_heads_begin_with_records() -> None:
    grid = grid_of(4, 16, query_parts=1, key_parts=1, heads=3)
    assert (grid.problem.width, grid.problem.value_width) == (32, 48)
    assert grid.query().view == (4, 96) and grid.value().view == (16, 144)


@pytest.mark.parametrize(
    ("columns", "spare"), [(1, 1), (8, 1), (9, 0), (16, 0), (17, 1), (24, 1), (25, 0), (72, 1), (64, 0)]
)
def test_half_panels_of_padding_are_not_merged(columns: int, spare: int) -> None:
    problem = Problem(1, 1, 64, 64, 16, columns)
    assert problem.spare == spare
    for heads, kernel, parts in (
        (1, "attention_merge_own_f16", {"remote_count": 3}),
        (2, "attention_merge_f16", {"parts": 4}),
    ):
        grid = Grid(replace(problem, heads=heads), 1, 1, 4, Turns(1, 1))
        halves = 2 * ceil_div(columns, 16) - spare
        wanted = cost.kernel(kernel, rows=16, halves=halves, **parts)
        assert attention_choice._compute(grid)["merge"] == heads * wanted


@pytest.mark.parametrize("query_parts", [2, 3])
@pytest.mark.parametrize("key_parts", [2, 3])
def test_neighbours_hear_what_they_share_in_half_the_time(query_parts: int, key_parts: int) -> None:
    grid = grid_of(12, 96, query_parts=query_parts, key_parts=key_parts, heads=2)
    queries = 2 * (12 // query_parts) * 32 // 2
    keys = 2 * (96 // key_parts) * (32 + 48) // 2
    less = attention_choice._closed_form(grid, FREE) - attention_choice._closed_form(
        replace(grid, shares_keys=True), FREE
    )
    # An odd number of neighbours leaves one whose partner needs something else.
    saved = (keys / 2 if query_parts == 2 else 0) - (queries / 2 if key_parts == 2 else 0)
    assert less == pytest.approx(cost.SCHEDULE_LENGTH * saved)


def words_received(grid: Grid, sources: Sources) -> list[list[int]]:
    """Words that each tile of a grid takes of queries, keys and values."""
    moves = attention_choice._receive_traffic(grid, sources)
    owners = [np.repeat(move.fragments["words"], move.fragments["count"]) for move in moves]
    return [
        np.bincount(move.tiles, words, grid.tiles).astype(int).tolist()
        for move, words in zip(moves, owners, strict=True)
    ]


ON_FOUR = grid_of(8, 64, query_parts=2, key_parts=2)
"""Every tile needs 4 queries and 32 keys, and another tile needs the same."""


def test_inputs_come_from_where_they_will_be_stored_others_from_where_they_lie() -> None:
    # Of what two tiles need each stores half.
    assert words_received(ON_FOUR, Sources(None, None, None)) == [[2 * 16] * 4, [16 * 16] * 4, [16 * 24] * 4]
    elsewhere = Sources(
        Source(spread(8, 20, 1), 0, 20), Source(spread(64, 20, 1), 0, 20), Source(spread(64, 40, 1), 0, 40)
    )
    # Tile 0 has everything.
    queries, keys, values = words_received(ON_FOUR, elsewhere)
    assert queries == [0, *[4 * 16] * 3] and keys == [0, *[32 * 16] * 3] and values == [0, *[32 * 24] * 3]


def test_what_lies_where_it_is_needed_takes_no_time() -> None:
    grid = grid_of(8, 64, query_parts=2, key_parts=1)
    nothing = Sources(None, None, None)
    # Two tiles with 4 queries each: these are in place, of keys and values each stores half.
    assert words_received(grid, nothing) == [[32 * 16] * 2, [32 * 24] * 2]
    keys, values = (Source(layout, 0, layout.column.extent) for layout in (grid.key(), grid.value()))
    assert words_received(grid, Sources(None, keys, values)) == []
    assert attention_choice.judge(grid, Sources(None, keys, values)).cycles["receive"] == 0


LONE = grid_of(256, 144, query_parts=1, key_parts=5)
"""One of five tiles has no partner, and 16 keys where others have 32."""
NOTHING = Sources(None, None, None)


def test_the_lone_tile_has_half_of_the_queries_and_the_fewest_keys() -> None:
    # Two groups, for two sequences; the second begins with an odd tile.
    grid = replace(LONE, problem=replace(LONE.problem, batch=2), turns=Turns(2, 2), lone_half=True)
    lone = [4, 5]
    stored, keys = grid.stored_query().shards["rows"], grid.key().shards["rows"]
    assert stored[lone].tolist() == [128, 128] and np.delete(stored, lone).tolist() == [32] * 8
    assert keys[lone].tolist() == [16, 16] and np.delete(keys, lone).tolist() == [32] * 8
    # It takes the other half; the others take everything, two words at a time.
    (queries, *_) = words_received(grid, NOTHING)
    everything = 256 * 32 // 2
    assert [queries[tile] for tile in lone] == [everything // 2] * 2
    assert np.delete(queries, lone).tolist() == [everything] * 8
    assert load_of(attention_choice._receive_traffic(grid, NOTHING), 10).copied == 128 * 4


SUMMED = Grid(Problem(1, 2, 256, 256, 24, 24), 2, 1, 4, Turns(1, 1))
"""Half a panel of each head is padding, and a tile has four groups of 16 keys."""


@pytest.mark.parametrize(
    ("problem", "grid", "summed"),
    [
        ({}, {}, True),
        # Less than half a panel, or none.
        ({"value_columns": 25}, {}, False),
        ({"value_columns": 32}, {}, False),
        # The only head has no padding.
        ({"heads": 1}, {"head_parts": 1}, False),
        ({"causal": True}, {}, False),
        # Eight groups of keys have a column each, nine have not.
        ({"keys": 512}, {}, True),
        ({"keys": 576}, {}, False),
        # Without a merge nobody would clear the columns.
        ({"keys": 64}, {"key_parts": 1}, False),
        # Of a single row the sum is no work.
        ({"queries": 1}, {}, False),
    ],
)
def test_exponentials_are_summed_by_the_product_where_that_is_possible_and_faster(
    problem: dict[str, Any], grid: dict[str, Any], summed: bool
) -> None:
    changed = replace(SUMMED, problem=replace(SUMMED.problem, **problem), **grid)
    assert attention_choice.summed_by_product(changed) == summed
    cycles = attention_choice.judge(changed, NOTHING).cycles
    assert ("sums" in cycles) == ("ones" in cycles) == summed
    if not summed and changed.key_parts > 1 and problem:
        plain = attention_choice._key_block(changed, changed.key_rows().largest() // 16, False)
        assert cycles["softmax"] == plain["softmax"]


def test_copies_of_the_lone_tile_count_as_far_as_they_make_it_later() -> None:
    grid = replace(LONE, lone_half=True)
    assert not attention_choice.summed_by_product(grid)
    most, least = (sum(attention_choice._key_block(grid, blocks, False).values()) for blocks in (2, 1))
    assert attention_choice._late(grid, most - least) == 0
    assert attention_choice._late(grid, most - least + 100) == 100
    # As many keys everywhere: no time to make up.
    assert attention_choice._late(replace(grid, problem=replace(grid.problem, keys=160)), 100) == 100
    judged = attention_choice.judge(grid, NOTHING)
    assert judged.cycles["own"] == 0 < judged.cycles["receive"]
    even = replace(grid, problem=replace(grid.problem, keys=160))
    copies = cost.copies(Load(0, 0, 2, 128 * 4))
    assert attention_choice.judge(even, NOTHING).cycles["own"] == copies
    # What is stored evenly is copied only where there is time for it.
    assert attention_choice.judge(LONE, NOTHING).cycles["own"] == 0
    assert "own" not in attention_choice.judge(replace(even, lone_half=False), NOTHING).cycles


def test_lone_tiles_do_not_hear_themselves() -> None:
    """A sender that hears itself beside a single pair would keep that from hearing two words at a time."""
    queries, *_ = attention_choice._receive_traffic(LONE, NOTHING)
    assert set(queries.copies["tile"].tolist()) == {4}
    owner = np.repeat(queries.fragments["source"], queries.fragments["count"])
    assert 4 not in queries.tiles[owner == 4] and all(
        tile in queries.tiles[owner == tile] for tile in range(4)
    )
    # With as many keys as others it has no time to copy.
    even = replace(LONE, problem=replace(LONE.problem, keys=160))
    queries, *_ = attention_choice._receive_traffic(even, NOTHING)
    assert not len(queries.copies)
    # Queries that are where they are needed are not copied, whatever comes first of what moves.
    place = Source(LONE.query(), 0, LONE.query().column.extent)
    assert "own" not in attention_choice.judge(LONE, Sources(place, None, None)).cycles
    elsewhere = Source(spread(LONE.query().row.extent, place.columns, 10), 0, place.columns)
    assert "own" in attention_choice.judge(LONE, Sources(elsewhere, None, None)).cycles


@pytest.mark.parametrize(
    ("grid", "copies"),
    [
        # Pairs share keys: the partner of no tile wants the same queries.
        (replace(LONE, query_parts=2, shares_keys=True), False),
        # Four tiles are two pairs, in which everybody hears what all do.
        (replace(LONE, problem=replace(LONE.problem, keys=112), key_parts=4), False),
        # Of two tiles each sends the other its half, and copies its own meanwhile.
        (replace(LONE, problem=replace(LONE.problem, keys=48), key_parts=2), True),
    ],
)
def test_only_lone_tiles_copy_behind_the_exchange(grid: Grid, copies: bool) -> None:
    keys = grid.key_rows()
    assert keys.smallest() == 1 and keys.largest() == 32
    queries, *_ = attention_choice._receive_traffic(grid, NOTHING)
    assert bool(len(queries.copies)) == copies
    assert "own" not in attention_choice.judge(grid, NOTHING).cycles


def test_the_lone_tile_of_every_group_has_the_fewest_keys() -> None:
    grid = replace(LONE, problem=replace(LONE.problem, batch=2), turns=Turns(2, 2))
    assert grid.key().shards["rows"].tolist() == [32, 32, 32, 32, 16, 16, 32, 32, 32, 32]
    assert grid.query().shards["row"].tolist() == [0] * 5 + [256] * 5


@pytest.mark.parametrize(
    ("parts", "shares_keys", "counted"),
    [((2, 3), False, True), ((2, 4), False, False), ((3, 2), True, True), ((2, 3), True, False)],
)
def test_words_count_for_more_where_some_tiles_are_alone(
    parts: tuple[int, int], shares_keys: bool, counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = replace(LONE, query_parts=parts[0], key_parts=parts[1], shares_keys=shares_keys)
    more = attention_choice.judge(grid, NOTHING).cycles["receive"]
    monkeypatch.setattr(attention_choice, "LONE_WORDS", 1.0)
    assert (more > attention_choice.judge(grid, NOTHING).cycles["receive"]) == counted


def test_queries_are_stored_for_lone_tiles_where_that_is_faster_and_possible() -> None:
    problem = Problem(1, 2, 256, 144, 24, 24)
    grids = attention_choice.choose(problem, NOTHING, 10, FREE)
    assert grids[0].grid.lone_half and "half of the queries stored on lone tiles" in grids[0].grid.describe()
    same = [one for one in grids if replace(one.grid, lone_half=True) == grids[0].grid]
    assert len(same) == 2 and same[1].total > same[0].total
    assert all(one.grid.lone for one in grids if one.grid.lone_half)
    # Not where queries lie somewhere already.
    placed = Source(spread(256, 48, 10), 0, 48)
    assert not any(
        one.grid.lone_half for one in attention_choice.choose(problem, Sources(placed, None, None), 10, FREE)
    )


def test_what_is_known_of_lone_tiles_before_they_are_judged() -> None:
    # Half of the queries take no time; where all tiles have as many keys, copies of them do.
    saved = cost.SCHEDULE_LENGTH * (256 * 32 // 4)
    assert attention_choice._closed_form(LONE, FREE) - attention_choice._closed_form(
        replace(LONE, lone_half=True), FREE
    ) == pytest.approx(saved)
    even = replace(LONE, problem=replace(LONE.problem, keys=160))
    copies = cost.copies(Load(0, 0, 2, 256 * 2))
    assert attention_choice._closed_form(even, FREE) - attention_choice._closed_form(
        replace(even, lone_half=True), FREE
    ) == pytest.approx(saved - copies)


@pytest.mark.parametrize(
    ("grid", "lone"),
    [
        (LONE, True),
        (replace(LONE, shares_keys=True), False),
        (replace(LONE, key_parts=4), False),
        (replace(LONE, key_parts=1), False),
    ],
)
def test_lone_tiles_are_those_of_groups_with_an_odd_number_of_tiles(grid: Grid, lone: bool) -> None:
    assert grid.lone == lone


def test_tiles_that_only_one_side_has_are_judged_too() -> None:
    wide, narrow = Source(spread(8, 20, 8), 0, 20), Source(spread(64, 20, 1), 0, 20)
    assert Sources(None, None, None).tiles == 0
    assert Sources(None, narrow, None).tiles == 1
    assert Sources(wide, narrow, None).tiles == 8
    # Tile 2 hears 4 queries from tiles 4 to 7 with its partner, and half of its keys and values, panel by
    # panel; tile 0 has one of its queries, and the other half.
    received, pieces = 4 * 16 // 2 + 16 * (16 + 24), 4 * 2 + 2 + 3
    copies, copied = 2 + 2 + 3, 8 + 16 * 8 + 16 * 12
    load = Load(received, pieces, copies, ceil_div(copied, copies))
    assert attention_choice.judge(ON_FOUR, Sources(wide, None, None)).cycles["receive"] == cost.move(load)
    # Tile 0 sends all 64 keys, half of its queries and of its values, and has the other half.
    sent, pieces = 64 * 16 + 2 * 16 + 16 * 24, 2 + 2 + 3
    copies, copied = 2 + 2 + 3, 32 * 8 + 2 * 8 + 16 * 12
    load = Load(sent, pieces, copies, ceil_div(copied, copies))
    assert attention_choice.judge(ON_FOUR, Sources(None, narrow, None)).cycles["receive"] == cost.move(load)


# --- stages ---


def plan_of(network: Callable[..., Any], *names: str, columns: int = 16, tiles: int = 1) -> Plan:
    """The plan for a function of matrices with 16 rows."""
    graph = tw.trace(network, **{name: tw.TensorType((16, columns)) for name in names})
    return plan_only(graph, tiles=tiles).work.plan


def kernels(plan: Plan) -> list[str]:
    return [step.kernel for step in plan.steps if isinstance(step, Compute)]


@pytest.mark.parametrize("heads", [1, 2])
def test_sums_over_all_keys_are_divided_without_a_merge(heads: int) -> None:
    called = kernels(
        plan_of(lambda q, k, v: tw.ops.attention(q, k, v, heads=heads), *"qkv", columns=16 * heads)
    )
    assert called.count("scale_rows_f16") == heads
    assert not any(kernel.startswith("attention_merge") for kernel in called)


def test_values_that_nobody_else_wants_arrive_transposed() -> None:
    plan = plan_of(lambda q, k, v: tw.ops.attention(q, k, v, heads=1), *"qkv")
    assert "transpose_f16" not in kernels(plan)
    assert plan.buffers[plan.inputs["v"].buffer].layout.order == "a16t"


@pytest.mark.parametrize(
    "network",
    [
        # Wanted by others, as they are.
        lambda q, k, v: tw.ops.attention(q, k, v, heads=1) + v,
        # Computed, and so stored.
        lambda q, k, v: tw.ops.attention(q, k, tw.ops.gelu(v), heads=1),
    ],
)
def test_values_that_lie_as_others_want_them_are_transposed(network: Callable[..., Any]) -> None:
    plan = plan_of(network, *"qkv")
    assert kernels(plan).count("transpose_f16") == 1
    assert plan.buffers[plan.inputs["v"].buffer].layout.order == "a16"


def test_ones_are_written_before_and_sums_taken_behind_the_products() -> None:
    types = {"q": tw.TensorType((256, 144)), "k": tw.TensorType((144, 144)), "v": tw.TensorType((144, 144))}
    graph = tw.trace(lambda q, k, v: tw.ops.attention(q, k, v, heads=6), **types)
    plan = plan_only(graph, tiles=4).work.plan
    steps = [step for step in plan.steps if isinstance(step, Compute)]
    ones = [dict(step.parameters) for step in steps if "block" in step.parameters]
    blocks = max(one["block"] for one in ones) + 1
    # Three heads on a tile, each with a column for every group of 16 keys behind its own 24.
    assert ones == [
        {"block": b, "column": 32 * head + 24 + b} for head in range(3) for b in range(int(blocks))
    ]
    names = [step.kernel for step in steps if "block" not in step.parameters]
    each = ["gemm_f16", "softmax_unsummed_f16", "gemm_f16", "half_sums_f16"]
    at = names.index("gemm_f16")
    assert (
        names[at : at + 12] == each * 3 and steps.index(next(s for s in steps if s.kernel == "gemm_f16")) >= 3
    )
    sums = [step for step in steps if step.kernel == "half_sums_f16"]
    assert [step.windows for step in sums] == [{0: (h, 1), 1: (32 * h, 32)} for h in range(3)]
    merges = [step for step in steps if step.kernel == "attention_merge_f16"]
    assert len(merges) == 3 and all(step.parameters["spare"] == 1 for step in merges)


def test_the_lone_tile_copies_its_queries_behind_the_exchange() -> None:
    types = {"q": tw.TensorType((256, 48)), "k": tw.TensorType((144, 48)), "v": tw.TensorType((144, 48))}
    graph = tw.trace(lambda q, k, v: tw.ops.attention(q, k, v, heads=2), **types)
    plan = plan_only(graph, tiles=10).work.plan
    received, copied = plan.steps[:2]
    assert isinstance(received, Exchange) and isinstance(copied, Exchange)
    (sent,), (kept,) = received.moves, copied.moves
    assert isinstance(sent, Retile) and (sent.source, sent.part) == ("q", "sent")
    assert kept == replace(sent, part="kept")
    assert copied.cycles == 0


def test_an_input_that_is_several_operands_has_one_place() -> None:
    plan = plan_of(lambda x: tw.ops.attention(x, x, x, heads=1), "x", tiles=4)
    inputs = [name for name, buffer in plan.buffers.items() if buffer.role == "input"]
    assert inputs == [plan.inputs["x"].buffer]


@pytest.mark.parametrize(
    ("heads", "scale", "factors"),
    [
        (1, 0.0, {0.125}),  # 1 / sqrt(64)
        (4, 0.0, {0.25}),  # 1 / sqrt(16)
        (4, 0.5, {0.5}),
        (1, 1.0, set()),
    ],
)
def test_scores_are_scaled_as_asked_or_by_the_width_of_a_head(
    heads: int, scale: float, factors: set[float]
) -> None:
    plan = plan_of(lambda q, k, v: tw.ops.attention(q, k, v, heads=heads, scale=scale), *"qkv", columns=64)
    calls = [step for step in plan.steps if isinstance(step, Compute) and step.kernel == "scale_f16"]
    assert {call.parameters["factor"] for call in calls} == factors


# --- result pieces ---


def test_result_pieces_cut_rows_and_columns() -> None:
    """11 queries over 8 tiles: two whole rows at most, or halves of three."""
    grid = Grid(Problem(1, 12, 11, 128, 32, 32), 12, 1, 8, Turns(1, 1))
    assert grid.result_piece() == (2, 2)
    halved = replace(grid, across=2)
    assert halved.result_piece() == (3, 1)
    shards = halved.result().shards[:8]
    assert shards["row"].tolist() == [0, 0, 3, 3, 6, 6, 9, 9]
    assert shards["column"].tolist() == [0, 16] * 4
    assert halved.result().shards[8]["column"] == 32, "the next head"
    states = halved.result_state().shards[:8]
    assert states["row"].tolist() == shards["row"].tolist() and set(states["rows"]) == {3, 2}
    covered = np.zeros((11, 12 * 32), dtype=int)
    for shard in halved.result().shards:
        rows, columns = slice(shard["row"], shard["row"] + shard["rows"]), shard["column"]
        covered[rows, columns : columns + shard["columns"]] += 1
    assert (covered == 1).all()


def test_the_result_is_cut_by_columns_where_that_is_shorter() -> None:
    problem = Problem(1, 12, 128, 128, 32, 32)
    best = attention_choice.choose(problem, NOTHING, 1152, FREE)[0].grid
    assert isinstance(best, Grid) and best.across == 2
    plain, halved = (attention_choice.judge(replace(best, across=parts), NOTHING).cycles for parts in (1, 2))
    assert halved["merge"] < plain["merge"] and halved["partials"] < plain["partials"]


def test_only_the_only_head_is_cut_and_only_in_pairs_of_tiles() -> None:
    grid = Grid(Problem(1, 2, 64, 128, 16, 64), 2, 2, 8, Turns(1, 1))
    assert [one.across for one in attention_choice._merged(grid)] == [1, 2, 4]
    assert [one.across for one in attention_choice._merged(replace(grid, key_parts=6))] == [1, 2]
    assert [one.across for one in attention_choice._merged(replace(grid, head_parts=1))] == [1]
    odd = replace(grid, key_parts=4, problem=replace(grid.problem, value_columns=48))
    assert [one.across for one in attention_choice._merged(odd)] == [1]
    three = replace(odd, key_parts=3)
    assert three.lone and [one.across for one in attention_choice._merged(three)] == [1]
    assert [one.across for one in attention_choice._merged(replace(three, shares_keys=True))] == [1, 3]
