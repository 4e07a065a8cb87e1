"""What grids a search looks at: all that can be best, none that the machine cannot have."""

from __future__ import annotations

from dataclasses import replace
from itertools import product as pairs

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.arithmetic import ceil_div
from tilewright.ipu21.plan import attention_choice, attention_grid, attention_work, batched, matmul
from tilewright.ipu21.plan.grids import Grid, Shape, left_layout, stored_left_layout
from tilewright.ipu21.plan.layout import MICRO, Source, is_fewest, spread
from tilewright.ipu21.plan.price import Price
from tilewright.ipu21.plan.turns import Turns

pytestmark = pytest.mark.unit

TILES = st.sampled_from([1, 2, 3, 7, 36, 200])


def fewest(blocks: int) -> set[int]:
    """Cuts of so many blocks; of those that leave the same in the largest part the one with the fewest."""
    least: dict[int, int] = {}
    for parts in range(blocks, 0, -1):
        least[-(-blocks // parts)] = parts
    return set(least.values())


@given(blocks=st.integers(1, 60), parts=st.integers(1, 70))
def test_fewest_parts(blocks: int, parts: int) -> None:
    assert is_fewest(blocks, parts) == (parts in fewest(blocks))
    even = parts in fewest(blocks) or (parts % 2 == 0 and parts - 1 in fewest(blocks))
    assert matmul._is_fewest_even(blocks, parts) == even
    assert matmul._cuts(blocks) == sorted(fewest(blocks))


@settings(max_examples=60)
@given(
    batch=st.integers(1, 5),
    heads=st.integers(1, 4),
    queries=st.integers(1, 40),
    keys=st.sampled_from([1, 16, 33, 100, 600]),
    tiles=TILES,
)
def test_grids_of_attention(batch: int, heads: int, queries: int, keys: int, tiles: int) -> None:
    problem = attention_work.Problem(batch, heads, queries, keys, 20, 24)
    found = attention_choice._grids(problem, tiles)
    blocks = ceil_div(keys, MICRO)
    assert found and len(set(found)) == len(found)
    fits = [grid.key_rows().largest() <= attention_choice.BLOCK_KEYS for grid in found]
    assert all(fits) or not any(fits)
    for grid in found:
        assert grid.tiles <= tiles and grid.turns.batch == batch
        assert 1 <= grid.turns.side <= batch and 1 <= grid.query_parts <= queries
        assert grid.head_parts in fewest(heads) and grid.key_parts in fewest(blocks)
        assert grid.head_parts == 1 or grid.turns.count == 1, "turns have no part of the heads left"
        assert replace(grid, shares_keys=not grid.shares_keys) in found


def test_attention_may_be_cut_as_finely_as_there_are_tiles() -> None:
    problem = attention_work.Problem(2, 3, 4, 40, 16, 16)
    whole = attention_grid.Grid(problem, 3, 4, 3, Turns(2, 2))
    assert whole.tiles == 72
    assert whole in attention_choice._grids(problem, 72) and whole in attention_choice._grids(problem, 500)
    assert attention_grid.Grid(problem, 1, 1, 1, Turns(2, 1)) in attention_choice._grids(problem, 1)
    # Rows of a tile grow by 0, 1, 2, 4, 8, 16.
    alone = [
        grid
        for grid in attention_choice._grids(attention_work.Problem(1, 1, 40, 16, 16, 16), 40)
        if not grid.shares_keys
    ]
    assert [grid.query_parts for grid in alone] == [40, 20, 14, 8, 5, 3]


@settings(max_examples=60)
@given(
    batch=st.integers(1, 5),
    m=st.integers(1, 40),
    k=st.sampled_from([1, 16, 33, 100]),
    n=st.sampled_from([1, 16, 33, 100]),
    tiles=TILES,
)
def test_grids_of_batched_products(batch: int, m: int, k: int, n: int, tiles: int) -> None:
    problem = batched.Problem(batch, m, k, n, stored_by_columns=False)
    found = batched._grids(problem, tiles)
    assert found and len(set(found)) == len(found)
    for grid in found:
        assert grid.tiles <= tiles and 1 <= grid.r <= m
        assert grid.turns == Turns(batch, min(batch, tiles))
        assert grid.c in fewest(ceil_div(n, MICRO)) and grid.k in fewest(ceil_div(k, MICRO))
    room = tiles // min(batch, tiles)
    cuts = pairs(fewest(ceil_div(n, MICRO)), fewest(ceil_div(k, MICRO)))
    assert {(grid.c, grid.k) for grid in found} == {(c, k) for c, k in cuts if c * k <= room}


def test_rows_of_batched_products_double() -> None:
    problem = batched.Problem(1, 40, 16, 16, stored_by_columns=False)
    assert [grid.r for grid in batched._grids(problem, 40)] == [40, 20, 10, 5, 3, 2, 1]
    assert [grid.r for grid in batched._grids(problem, 25)] == [20, 10, 5, 3, 2, 1]


@settings(max_examples=60)
@given(
    m=st.integers(1, 200), k=st.sampled_from([1, 33, 100, 2000]), n=st.sampled_from([1, 33, 100]), tiles=TILES
)
def test_grids_of_products(m: int, k: int, n: int, tiles: int) -> None:
    found = {tuple(map(int, triple)) for triple in zip(*matmul._triples(Shape(m, k, n), tiles), strict=True)}
    k_groups, n_groups = ceil_div(k, MICRO), ceil_div(n, MICRO)
    inner = fewest(k_groups) if k_groups <= 64 else set(range(1, k_groups + 1))
    columns = {c for c in range(1, n_groups + 1) if matmul._is_fewest_even(n_groups, c)}
    assert {(c, k) for _, c, k in found} == {(c, k) for c, k in pairs(columns, inner) if c * k <= tiles}
    for r, c, k in found:
        assert 1 <= r <= m and r * c * k <= tiles
    most = min(m, tiles)
    assert (ceil_div(m, ceil_div(m, most)), 1, 1) in found
    # The least rows that fit, one more, two more; later an eighth more each time.
    rows = ceil_div(m, most)
    for step in range(matmul.ROW_CHOICES):
        more = max(rows + step, int(rows * 1.125**step))
        assert (ceil_div(m, more), 1, 1) in found


def query(m: int, k: int, n: int, source: Source | None = None, **changes: object) -> matmul.Query:
    asked = matmul.Query(Shape(m, k, n), source, "root_f16", "root_f16", "", False, False, 1, False)
    return replace(asked, **changes)  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(
    m=st.integers(1, 100),
    k=st.sampled_from([1, 33, 100]),
    n=st.sampled_from([1, 33, 100]),
    tiles=TILES,
    residual=st.booleans(),
)
def test_turned_grids_of_products(m: int, k: int, n: int, tiles: int, residual: bool) -> None:
    r, c, k_parts, *_, across, _, _, _, turned = matmul._turned_form(query(m, k, n, residual=residual), tiles)
    found = set(zip(r.tolist(), c.tolist(), k_parts.tolist(), strict=True))
    m_groups, k_groups, n_groups = (ceil_div(extent, MICRO) for extent in (m, k, n))

    def divisors(k: int) -> list[int]:
        return [part for part in range(1, k + 1) if k % part == 0]

    def every_root_has_some(r: int, c: int, across: int, down: int) -> bool:
        return n_groups // c >= across and m_groups // r >= down

    expected = {
        (r, c, k)
        for r in fewest(m_groups)
        for c in range(1, n_groups + 1)
        for k in fewest(k_groups)
        if r * c * k <= tiles and matmul._is_fewest_even(n_groups, c)
        # Behind a residual every root wants a part of every row.
        if not residual or any(every_root_has_some(r, c, cut, k // cut) for cut in divisors(k))
    }
    assert found == expected and turned.all()
    for rows, columns, parts, cut in zip(r, c, k_parts, across, strict=True):
        sizes = {
            ways: ceil_div(ceil_div(n_groups, columns), ways)
            * ceil_div(ceil_div(m_groups, rows), parts // ways)
            for ways in divisors(parts)
            if not residual or every_root_has_some(rows, columns, ways, parts // ways)
        }
        least = min(sizes.values())
        assert cut == min(ways for ways, size in sizes.items() if size == least)


@pytest.mark.parametrize("rows", [16, 40, 200])
@pytest.mark.parametrize("residual", [False, True])
def test_closed_forms_of_turned_grids_finish_where_their_stages_do(rows: int, residual: bool) -> None:
    plain = query(rows, 128, 192, iterations=3, residual=residual)
    finishing = {"finish": "root_f16_bias_tanh", "biased": True}
    asked = replace(plain, **finishing, turned="" if residual else "root_f16_addend_tanh")
    found, without = (matmul._turned_form(each, 48) for each in (asked, plain))
    first = 0
    columns = [found[index].tolist() for index in (0, 1, 2, 5)]
    for r, c, k, across, more, kept in zip(
        *columns, found[6] - without[6], found[8] - without[8], strict=True
    ):
        grid = Grid((r,), c, k, across=across, turned=True)
        judged, base = matmul.judge(asked, grid), matmul.judge(plain, grid)
        early = asked.before_turning(grid)
        first += bool(early)
        assert ("finish" in judged.cycles) == (not early)
        assert more == pytest.approx(judged.total - base.total)
        assert kept == judged.kept - base.kept == (judged.bytes - base.bytes)
        assert bool(kept) == bool(early)
    assert (first > 0) == (not residual)


@pytest.mark.parametrize(
    ("c", "chunks", "anywhere", "in_place"),
    [(1, 1, False, False), (2, 1, True, True), (1, 2, True, True)],
)
def test_operands_that_must_be_received(c: int, chunks: int, anywhere: bool, in_place: bool) -> None:
    grid = Grid((4,), c, 1, chunks=chunks)
    shape = Shape(8, 64, 64)
    assert matmul.must_receive(query(8, 64, 64), grid) == anywhere
    stored = stored_left_layout(shape, grid, dealt=False)
    there = Source(left_layout(shape, grid) if chunks == 1 else stored, 0, 64)
    assert matmul.must_receive(query(8, 64, 64, there), grid) == (chunks > 1)
    elsewhere = Source(spread(8, 64, 3), 0, 64)
    assert matmul.must_receive(query(8, 64, 64, elsewhere), grid)


def test_turned_grids_take_the_place_of_few_others() -> None:
    every = matmul.candidates(query(64, 256, 512), 64)
    order = [grid for grid, _, _ in every.ranking(Price(), len(every.cycles))]
    straight = [grid for grid in order if not grid.turned]
    most = 0
    for count in range(1, 40):
        found = every.promising(Price(), count)
        turned = sum(grid.turned for grid in order[: count + matmul.TURNED])
        last = found[-1]
        assert found == [
            grid for grid in order[: order.index(last) + 1] if grid.turned or grid in straight[:count]
        ]
        assert sum(not grid.turned for grid in found) == count + min(matmul.TURNED - turned, 0)
        assert sum(grid.turned for grid in found) == turned
        most = max(most, turned)
    assert most > matmul.TURNED


def test_a_ranking_has_the_best_of_all() -> None:
    every = matmul.candidates(query(96, 256, 256), 64)
    even, uneven = Price(0.01, 0.01), Price(1.0, 0.01)
    score = np.sort(every.cycles + even.of(every.bytes, every.kept))
    for count in (1, 5, len(score)):
        ranked = every.ranking(even, count)
        assert [cycles + even.of(held, 0) for _, cycles, held in ranked] == score[:count].tolist()
    score = every.cycles + 1.0 * every.kept + 0.01 * (every.bytes - every.kept)
    (best,) = every.ranking(uneven, 1)
    least = int(np.argmin(score))
    assert best[1:] == (every.cycles[least], every.bytes[least])
    assert best[1:] != every.ranking(even, 1)[0][1:]
