"""Heads in a line: how it is dealt to tiles, weighed, and which stages it becomes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler.pipeline import plan_only
from tilewright.ipu21.plan import attention, attention_choice, head_line
from tilewright.ipu21.plan.attention_work import Problem, Sources
from tilewright.ipu21.plan.head_line import HeadLine, judge_line, line_of
from tilewright.ipu21.plan.layout import Line, Source, spread
from tilewright.ipu21.plan.price import FREE

pytestmark = pytest.mark.unit

SIXTY_FOUR = Problem(64, 12, 128, 128, 32, 32)
"""MiniLM's attention for 64 sequences."""


def busiest(problem: Problem, cuts: tuple[int, ...]) -> float:
    """Kernel cycles of the busiest tile."""
    return sum(head_line._compute(HeadLine(problem, Line(problem.heads, problem.queries, cuts))).values())


@pytest.mark.parametrize(("heads", "queries", "parts"), [(2, 9, 2), (3, 7, 4), (3, 8, 2), (2, 12, 3)])
def test_no_other_cuts_are_better(heads: int, queries: int, parts: int) -> None:
    problem = Problem(1, heads, queries, 32, 16, 16)
    line = line_of(problem, parts)
    assert line is not None and line.parts <= parts
    total = heads * queries
    every = ((0, *inner, total) for count in range(parts) for inner in combinations(range(1, total), count))
    assert busiest(problem, line.line.cuts) == min(busiest(problem, cuts) for cuts in every)


def test_a_tile_with_two_heads_has_fewer_queries() -> None:
    line = line_of(SIXTY_FOUR, 1472)
    assert line is not None and (line.parts, line.runs, line.tiles) == (22, 2, 1408)
    rows = head_line._rows(line)
    one = (rows > 0).sum(axis=0) == 1
    assert rows.sum() == 12 * 128
    assert rows.sum(axis=0)[~one].max() < rows.sum(axis=0)[one].max()
    # Not even with a part more do equal ones take less.
    for parts in (22, 23):
        equal = tuple(int(cut) for cut in np.linspace(0, 12 * 128, parts + 1))
        assert busiest(SIXTY_FOUR, line.line.cuts) < busiest(SIXTY_FOUR, equal)


@pytest.mark.parametrize(("batch", "heads", "tiles"), [(4, 1, 64), (4, 3, 7), (8, 12, 8)])
def test_without_several_heads_and_tiles_there_is_no_line(batch: int, heads: int, tiles: int) -> None:
    assert line_of(Problem(batch, heads, 16, 16, 16, 16), tiles) is None


def test_more_tiles_than_queries_are_not_asked_for() -> None:
    line = line_of(Problem(2, 3, 4, 16, 16, 16), 100)
    assert line is not None and line.parts <= 12


def test_every_stage_is_weighed() -> None:
    line = line_of(SIXTY_FOUR, 1472)
    assert line is not None
    judged = judge_line(line, Sources(None, None, None))
    assert list(judged.cycles) == [
        "receive",
        "transpose",
        "scores",
        "softmax",
        "values",
        "merge",
        "collect",
    ]
    assert all(cycles > 0 for cycles in judged.cycles.values())
    # On some tile of two heads: queries, keys, values twice, scores and the result of each.
    rows = head_line._rows(line)
    for tile in np.flatnonzero((rows > 0).all(axis=0)):
        held = sum(int(n) * (32 + 128 + 64) + 128 * (32 + 64) for n in rows[:, tile])
        assert judged.bytes >= 2 * held


def test_keys_are_held_whole_and_padded() -> None:
    problem = Problem(1, 2, 6, 20, 16, 16)
    judged = judge_line(HeadLine(problem, Line(2, 6, (0, 6, 12))), Sources(None, None, None))
    assert judged.bytes == 2 * (6 * 16 + 32 * (16 + 32) + 6 * (32 + 32))


def test_operands_come_from_where_they_lie() -> None:
    problem = Problem(2, 2, 6, 20, 16, 16)
    line = HeadLine(problem, Line(2, 6, (0, 6, 12)))
    unknown = judge_line(line, Sources(None, None, None)).cycles["receive"]
    rows, columns = 2 * 20, 2 * 16
    (run,) = line.each()
    keys, queries = (Source(layout, 0, columns) for layout in (run.key(), run.query()))
    # Only values move.
    values = Source(spread(rows, columns, 10), 0, columns)
    less = judge_line(line, Sources(queries, keys, values)).cycles["receive"]
    assert less < unknown
    from_one = Source(spread(rows, columns, 1), 0, columns)
    assert judge_line(line, Sources(queries, keys, from_one)).cycles["receive"] > less


def test_a_line_is_chosen_where_blocks_leave_tiles_idle() -> None:
    first, *others = attention_choice.choose(SIXTY_FOUR, Sources(None, None, None), 1472, FREE)
    assert isinstance(first.grid, HeadLine)
    assert others and first.total < min(other.total for other in others)


def test_large_blocks_of_keys_are_avoided_as_with_grids() -> None:
    def lines(keys: int, tiles: int) -> int:
        problem = Problem(2, 3, 64, keys, 16, 16)
        judged = attention_choice.choose(problem, Sources(None, None, None), tiles, FREE)
        return sum(isinstance(item.grid, HeadLine) for item in judged)

    assert lines(attention_choice.BLOCK_KEYS, 64) == 1
    assert lines(attention_choice.BLOCK_KEYS + 16, 64) == 0, "there are tiles for more blocks"
    assert lines(8 * attention_choice.BLOCK_KEYS, 4) == 1, "no grid has small blocks either"


def test_runs_come_by_one_exchange_and_are_collected_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def choose(problem: Problem, sources: Sources, tiles: int, price: object) -> object:
        line = line_of(problem, tiles)
        assert line is not None
        return (judge_line(line, sources),)

    monkeypatch.setattr(attention, "choose", choose)
    graph = tw.trace(
        lambda x, m: {"y": tw.ops.attention(x, x, x, m, heads=3)},
        x=tw.TensorType((2, 20, 48)),
        m=tw.TensorType((2, 20)),
    )
    plan = plan_only(graph, tiles=10).work.plan
    names = [step.name for step in plan.steps]
    assert [name for name in names if "receive" in name or "collect" in name] == [
        "attention_0.receive",
        "attention_0.collect",
    ]
    for stage in ("scores", "softmax", "values", "divide"):
        assert [name for name in names if stage in name] == [
            f"attention_0.{stage}.0",
            f"attention_0.{stage}.1",
        ]
    roles = {name: buffer.role for name, buffer in plan.buffers.items()}
    assert [roles[f"attention_0{run}"] for run in ("", ".0", ".1")] == ["value", "scratch", "scratch"]


def test_partial_results_of_key_blocks_are_no_values() -> None:
    graph = tw.trace(lambda x: {"y": tw.ops.attention(x, x, x, heads=2)}, x=tw.TensorType((144, 48)))
    buffers = plan_only(graph, tiles=10).work.plan.buffers
    assert (buffers["attention_0.partial"].role, buffers["attention_0"].role) == ("scratch", "value")
