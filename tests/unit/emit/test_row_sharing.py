"""Rows that take turns in one place: what is put in before each runs gives exactly its words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.errors import ScheduleError
from tilewright.ipu21.emit.choose_shared import choose_shared
from tilewright.ipu21.emit.lines import words_of
from tilewright.ipu21.emit.ready_row import ready_row
from tilewright.ipu21.emit.row_use import RowUse, exchange_block
from tilewright.ipu21.emit.shared_rows import SharedRow, routine, row_sets, sharable
from tilewright.ipu21.isa import build

pytestmark = pytest.mark.unit

Words = NDArray[np.uint32]
CODE, ROW = 0x5C000, 0x60000


def row(*words: int) -> Words:
    filler = [build.delayxpic(number, 0, 0x640) for number in range(30)]
    return np.array([*words, *filler, build.br(10)], np.uint32)


def example(sends: list[list[int]], pointers: list[list[int]]) -> dict[int, dict[int, Words]]:
    """Rows of steps 0, 1, ... on tiles 0 and 1, tile 1 with other words around the same addresses."""
    rows: dict[int, dict[int, Words]] = {}
    for step, (sent, stored) in enumerate(zip(sends, pointers, strict=True)):
        own = [build.send(3, address >> 2, 1) for address in sent]
        own += [build.delaypic(60, 0, address >> 2) for address in stored]
        other = [build.send(7, (address + 64) >> 2, 2) for address in sent[:1]]
        rows[step] = {0: row(*own), 1: row(build.delay(step * 0 + 5), *other)}
    return rows


def code_of(use: RowUse | None) -> list[int]:
    block = exchange_block(use)
    return words_of([*block.setup, *block.body])


def as_run(shared: SharedRow, tile: int, step: int) -> Words:
    """A tile's row as a step runs it, by following the emitted code."""
    use = shared.placed(ROW)[step]
    code = code_of(use)
    memory = {CODE + 4 * place: word for place, word in enumerate(code)}
    if use.patch is not None:
        words = words_of(routine(shared.rewrites[tile], ROW, shared.arguments))
        memory |= {use.patch + 4 * place: word for place, word in enumerate(words)}
    ready = ready_row(memory.__getitem__, CODE)
    assert ready.row == ROW
    return ready.row_words(shared.rows[tile])


def judge(rows: Mapping[int, Mapping[int, Words]], shared: SharedRow) -> None:
    for step, own in rows.items():
        for tile in (0, 1):
            np.testing.assert_array_equal(as_run(shared, tile, step), own[tile])


def only(rows: Mapping[int, Mapping[int, Words]]) -> SharedRow:
    (shared,) = sharable(row_sets([0, 1], rows))
    judge(rows, shared)
    return shared


def test_what_moves_together_costs_registers_only() -> None:
    rows = example(
        [[0x80000, 0x80100], [0x84000, 0x84100], [0x82000, 0x82100]], [[0x70000], [0x70000], [0x71000]]
    )
    shared = only(rows)
    assert not shared.patched and shared.routine_bytes == 0
    assert [use.outgoing for use in shared.uses.values()] == [0, 0x4000, 0x2000]
    assert [use.incoming for use in shared.uses.values()] == [0, 0, 0x1000]


def test_what_does_not_is_rewritten() -> None:
    rows = example([[0x80000, 0x90000], [0x84000, 0x91000], [0x82000, 0x90000]], [[0x70000, 0x72000]] * 3)
    shared = only(rows)
    assert shared.patched and [len(rewrite.position) for rewrite in shared.rewrites] == [1, 0]
    assert shared.saved == sum(each.bytes for each in shared.sets) - shared.row_bytes - (
        shared.routine_bytes + shared.code_bytes
    )


def test_many_words_with_few_distances() -> None:
    sends = [
        [0x80000 + 0x100 * place + 0x40 * step * (place % 5) for place in range(20)] for step in range(4)
    ]
    shared = only(example(sends, [[0x70000]] * 4))
    assert shared.arguments == 4 and len(shared.rewrites[0].position) == 16


def test_too_many_distances_stay_apart() -> None:
    sends = [[0x80000 + 0x100 * place + 0x40 * step * place for place in range(20)] for step in range(4)]
    assert sharable(row_sets([0, 1], example(sends, [[0x70000]] * 4))) == []


def test_rows_of_other_times_or_sources_stay_apart() -> None:
    rows = example([[0x80000], [0x84000]], [[0x70000]] * 2)
    rows[1][1] = rows[1][1].copy()
    rows[1][1][0] = build.delay(6)
    assert sharable(row_sets([0, 1], rows)) == []


def test_equal_rows_are_one_set() -> None:
    rows = example([[0x80000], [0x80000], [0x84000]], [[0x70000]] * 3)
    assert [each.steps for each in row_sets([0, 1], rows)] == [(0, 1), (2,)]


def test_no_more_is_shared_than_is_needed_and_the_cheapest_first() -> None:
    cheap = example([[0x80000], [0x84000], [0x88000]], [[0x70000]] * 3)
    dear = example([[0x80000, 0x90000], [0x84000, 0x91000], [0x82000, 0x90000]], [[0x70000]] * 3)
    rows = {**{step + 3: own for step, own in dear.items()}, **cheap}
    offers = [sharable(row_sets([0, 1], rows))]
    freed = {shared.patched: shared.freed for shared in offers[0]}
    assert choose_shared(offers, [0], {}) == [[]]
    (few,) = choose_shared(offers, [freed[False]], {})
    assert [shared.patched for shared in few] == [False]
    (all_,) = choose_shared(offers, [10_000], {})
    assert [shared.patched for shared in all_] == [False, True]
    # The cheap rows are in a loop: now they cost more.
    (other,) = choose_shared(offers, [freed[True]], {0: 1000, 1: 1000, 2: 1000})
    assert [shared.patched for shared in other] == [True]


def test_code_that_is_no_preparation_is_refused() -> None:
    with pytest.raises(ScheduleError, match="mul has no place before a row"):
        ready_row({CODE: build.mul(1, 1, 1)}.__getitem__, CODE)
    with pytest.raises(ScheduleError, match="no row within"):
        ready_row(lambda _: build.setzi(0, 0), CODE)
    words = row(build.send(3, 0x20000, 1))
    memory = {CODE + 4 * place: word for place, word in enumerate(code_of(None))}
    ready = ready_row(memory.__getitem__, CODE)
    assert ready.row == 0 and np.array_equal(ready.row_words(words), words)
