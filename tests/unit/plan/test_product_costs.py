"""What grids of a product are expected to take, counted by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilewright.ipu21.plan import cost, matmul
from tilewright.ipu21.plan.grids import Grid, Shape, partial_layout, result_layout
from tilewright.ipu21.plan.layout import Source, spread
from tilewright.ipu21.plan.movement import Load
from tilewright.ipu21.plan.price import FREE

pytestmark = pytest.mark.unit


def query(m: int, k: int, n: int, source: Source | None = None, **changes: object) -> matmul.Query:
    asked = matmul.Query(Shape(m, k, n), source, "root_f16", "root_f16", "", False, False, 1, False)
    return replace(asked, **changes)  # type: ignore[arg-type]


ON_FOUR = Grid((2,), 2, 1)
"""Two tiles need the same 4 of 8 rows."""


@pytest.mark.parametrize(
    ("source", "load"),
    [
        # Stored in halves, in 4 panels each: the other half comes, the own one is copied.
        (None, Load(2 * 4 * 8, 4, 4, 2 * 4)),
        # A row on each of 8 tiles: two need 4 from others, both the same, and two have one of theirs.
        (Source(spread(8, 64, 8), 0, 64), Load(4 * 4 * 8 // 2, 4 * 4, 4, 4)),
        # All on the first tile, which sends half of it to one tile and half to two.
        (Source(spread(8, 64, 1), 0, 64), Load(8 * 4 * 8, 4, 4, 4 * 4)),
    ],
)
def test_receiving_the_left_operand(source: Source | None, load: Load) -> None:
    assert matmul._received(query(8, 64, 64, source), ON_FOUR) == cost.move(load)


@pytest.mark.parametrize(
    ("beside", "load"),
    [
        # 4 rows of the other's partial sums.
        (None, Load(4 * 8, 1, 0, 0)),
        # And the last 4 rows of the residual from as many tiles, or from the first tile, which sends the
        # other 4 rows of its partial sums too.
        (Source(spread(8, 16, 8), 0, 16), Load(2 * 4 * 8, 1 + 4, 1, 4)),
        (Source(spread(8, 16, 1), 0, 16), Load(2 * 4 * 8, 1 + 1, 1, 4 * 4)),
    ],
)
def test_bringing_partial_sums_and_a_residual(beside: Source | None, load: Load) -> None:
    asked, grid = query(8, 64, 16, beside=beside), Grid((1,), 1, 2)
    layouts = partial_layout(asked.shape, grid), result_layout(asked.shape, grid)
    assert matmul._partials(asked, grid, *layouts) == cost.move(load)
    # One that lies nobody knows where is expected to come at full speed.
    unknown = replace(asked, beside=None, residual=True)
    alone = cost.move(Load(4 * 8, 1, 0, 0))
    assert matmul._partials(unknown, grid, *layouts) == alone + cost.SCHEDULE_LENGTH * 4 * 8


def closed(
    asked: matmul.Query, r: int, c: int, k: int, chunks: int = 1, *, streamed: bool = False
) -> tuple[float, int, int]:
    """(cycles, into how many parts pieces cut the columns, bytes) of a grid; weights lie in place or are
    streamed."""
    arrays = (np.array([value], dtype=np.int64) for value in (r, c, k))
    form = matmul._closed_form(asked, *arrays, chunks, streamed)
    return float(form[6][0]), int(form[5][0]), int(form[7][0])


@pytest.mark.parametrize(
    ("c", "chunks", "words", "fragments"),
    [
        (1, 1, 0, 0),
        # Of 8 rows in 4 panels; both tiles of a pair hear the same; a panel comes from 2 tiles at least.
        (2, 1, 8 * 4 * 8 // 2, 4 * 2),
        (3, 1, 8 * 4 * 8, 4 * 3),
        (4, 1, 8 * 4 * 8 // 2, 4 * 4),
        (1, 2, 8 * 4 * 8, 4 * 2),
    ],
)
def test_closed_form_of_receiving(c: int, chunks: int, words: int, fragments: int) -> None:
    cycles, _, _ = closed(query(8, 64, 192), 1, c, 1, chunks)
    received = chunks * cost.exchange(words / chunks, fragments / chunks)
    assert cycles == pytest.approx(received + chunks * cost.gemm(8, 4 // chunks, 12 // c))
    # What is received takes room beside what is stored.
    stored = 8 * 4 * 32 // c if c > 1 or chunks > 1 else 0
    weights = 4 * 12 // c * 512
    assert (
        closed(query(8, 64, 192), 1, c, 1, chunks)[2] == weights + 8 * (4 // chunks + 12 // c) * 32 + stored
    )


@pytest.mark.parametrize(
    ("chunks", "changes", "listed"),
    [
        (1, {}, True),
        (2, {}, False),
        (1, {"iterations": 2}, False),
        (1, {"shape": Shape(8, 64, 192, 4)}, False),
    ],
)
def test_closed_form_of_streamed_weights(chunks: int, changes: dict[str, object], listed: bool) -> None:
    """Where panels are listed, a quarter of them is there already."""
    asked = replace(query(8, 64, 192), **changes)  # type: ignore[arg-type]
    cycles, _, _ = closed(asked, 4, 1, 1, chunks, streamed=True)
    element = asked.shape.element_bytes
    weights = 4 * 12 * 128 * (3 if listed else 4) // 4
    words = element // 2 * (weights + (2 * 4 * 8 if chunks > 1 else 0))
    fragments = 4 * 12 // 2 + 1 + (4 * 2 if chunks > 1 else 0)
    expected = chunks * cost.exchange(words / chunks, fragments / chunks)
    expected += chunks * cost.gemm(2, 4 // chunks, 12, element, listed=listed)
    if asked.iterations > 1:
        # Its own part of an iteration's is copied to where all of them have theirs.
        expected += cost.kernel("copy_u64", words=4 * 12 * 512 // 4 // 8)
    assert cycles == pytest.approx(expected)


def test_only_weights_that_are_stored_once_are_found_by_a_list() -> None:
    asked, grid = query(8, 64, 192), Grid((4,), 1, 1)
    assert matmul.judge(asked, grid).cycles["multiply"] == cost.gemm(2, 4, 12)
    streamed = matmul.judge(asked, replace(grid, streamed=True)).cycles["multiply"]
    assert streamed == cost.gemm(2, 4, 12, listed=True) > cost.gemm(2, 4, 12)


@pytest.mark.parametrize(
    ("r", "c", "k", "by_columns"),
    # 8 rows and 4 panels: along columns where a root would have no row but would have a panel.
    [
        (1, 1, 4, False),
        (2, 1, 4, False),
        (4, 1, 4, True),
        (4, 2, 4, False),
        (4, 2, 2, False),
        (8, 2, 2, True),
    ],
)
def test_closed_form_of_pieces(r: int, c: int, k: int, by_columns: bool) -> None:
    assert closed(query(8, 64, 64), r, c, k)[1] == (k if by_columns else 1)


@pytest.mark.parametrize(("c", "paired", "fragments"), [(1, 1, 2), (2, 2, 2), (3, 1, 3), (4, 2, 4)])
def test_closed_form_of_turned_grids(c: int, paired: int, fragments: int) -> None:
    r, columns, k, *_, cycles, _, _, _ = matmul._turned_form(query(32, 64, 192), 8)
    (index,) = np.flatnonzero((r == 1) & (columns == c) & (k == 1))
    # 2 panels of 16 rows, 4 panels of inner elements.
    received = cost.exchange(2 * 16 * 4 * 8 // paired, 4 * fragments)
    computed = cost.gemm(12 // c * 16, 4, 2) + cost.transpose(12 // c, 2)
    assert cycles[index] == pytest.approx(received + computed)


def test_a_ranking_of_more_than_there_are_has_all() -> None:
    every = matmul.candidates(query(2, 16, 16), 1)
    assert len(every.ranking(FREE, 1000)) == len(every.cycles)


EXTENTS = [1, 2, 3, 4, 6]


def cuts(panels: int, blocks: int, k: int) -> list[int]:
    """Into how many parts k roots can cut the columns so that each has some."""
    return [
        across for across in range(1, k + 1) if k % across == 0 and across <= blocks and k // across <= panels
    ]


@pytest.mark.parametrize("k", range(1, 13))
def test_roots_that_all_can_have_some(k: int) -> None:
    for panels in EXTENTS:
        for blocks in EXTENTS:
            assert matmul._fills(panels, blocks, k) == bool(cuts(panels, blocks, k))


@pytest.mark.parametrize("residual", [False, True])
def test_roots_take_pieces_that_are_small_and_long(residual: bool) -> None:
    cases = [
        (panels, blocks, k)
        for panels in EXTENTS
        for blocks in EXTENTS
        for k in EXTENTS
        if not residual or cuts(panels, blocks, k)
    ]
    expected = []
    for panels, blocks, k in cases:
        allowed = cuts(panels, blocks, k) if residual else cuts(k, k, k)
        expected.append(min(allowed, key=lambda cut: -(-blocks // cut) * -(-panels * cut // k)))
    columns = tuple(np.array(column, dtype=np.int64) for column in zip(*cases, strict=True))
    with np.errstate(all="raise"):
        found = matmul._across(*columns, columns[:2] if residual else None)
    assert found.tolist() == expected


def test_turned_grids_that_can_be_best() -> None:
    def choices(asked: matmul.Query, tiles: int = 64) -> list[set[int]]:
        return [set(column.tolist()) for column in matmul._turned_form(asked, tiles)[:3]]

    # Of 6 blocks of columns 5 parts leave as many as 3; 4 do too, but pairs share what they hear.
    assert choices(query(16, 16, 96)) == [{1}, {1, 2, 3, 4, 6}, {1}]
    assert choices(query(16, 16, 96), 3) == [{1}, {1, 2, 3}, {1}]
    # With one block and a residual there is one root.
    assert choices(query(16, 64, 16)) == [{1}, {1}, {1, 2, 4}]
    assert choices(query(16, 64, 16, residual=True)) == [{1}, {1}, {1}]


def test_sums_are_finished_where_they_meet_if_a_root_has_one_panel() -> None:
    plain = query(64, 64, 64, finish="root_f16_bias_tanh")
    r, c, k, _, _, across, cycles, *_ = matmul._turned_form(plain, 64)
    _, _, _, _, _, _, early, *_ = matmul._turned_form(replace(plain, turned="root_f16_addend_tanh"), 64)
    kinds = set()
    for place, parts in enumerate(k.tolist()):
        panels = -(-(4 // int(r[place])) // (parts // int(across[place])))
        blocks = -(-(4 // int(c[place])) // int(across[place]))
        saved = 0.0
        if parts > 1 and panels == 1:
            saved = cost.root("root_f16", 16 * blocks, 1, parts - 1)
            saved += cost.root("root_f16_bias_tanh", 16, blocks, 0)
            saved -= cost.root("root_f16_addend_tanh", 16 * blocks, 1, parts - 1)
        assert cycles[place] - early[place] == pytest.approx(saved)
        kinds.add((parts > 1, panels == 1))
    assert kinds == {(False, False), (False, True), (True, False), (True, True)}


def test_grids_worth_judging() -> None:
    turned = [False, True, False, True, True, False, True]
    ranked = [(SimpleNamespace(turned=kind, place=place), 0.0, 0) for place, kind in enumerate(turned)]
    every: Any = SimpleNamespace(ranking=lambda price, count: ranked[:count])
    assert matmul.TURNED == 4
    assert [grid.place for grid in matmul.Candidates.promising(every, FREE, 1)] == [0, 1, 3, 4]
    assert [grid.place for grid in matmul.Candidates.promising(every, FREE, 2)] == [0, 1, 2, 3, 4]
    assert [grid.place for grid in matmul.Candidates.promising(every, FREE, 3)] == list(range(7))
