"""What moves ask of their busiest tiles, and what stages cost, added up piece by piece."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ipu21.kernels import KERNELS
from tilewright.ipu21.plan import cost
from tilewright.ipu21.plan.movement import COPY, FRAGMENT, Load, Traffic, load_of
from tilewright.ipu21.plan.receivers import PAIRED_LEAST

pytestmark = pytest.mark.unit


def traffic(*moves: tuple[int, int, list[int]], copies: tuple[tuple[int, int], ...] = ()) -> Traffic:
    """Fragments of (source, words, receivers), and copies of (tile, 64-bit words)."""
    fragments, tiles = np.zeros(len(moves), FRAGMENT), []
    for fragment, (source, words, receivers) in zip(fragments, moves, strict=True):
        fragment["source"], fragment["words"] = source, words
        fragment["first"], fragment["count"] = len(tiles), len(receivers)
        tiles += receivers
    local = np.zeros(len(copies), COPY)
    local["tile"], local["words"] = [tile for tile, _ in copies], [words for _, words in copies]
    return Traffic(fragments, np.array(tiles, dtype=np.int64), local)


@pytest.mark.parametrize(
    ("moves", "words", "pieces"),
    [
        # The busiest receiver counts, or the busiest sender.
        ([(0, 40, [3]), (1, 50, [3])], 90, 2),
        ([(0, 40, [3]), (0, 50, [5])], 90, 1),
        # Both tiles of a pair hear the same at two words an event.
        ([(0, 40, [4, 5])], 40, 1),
        ([(0, 40, [4, 5]), (1, 40, [4, 5])], 40, 2),
        ([(0, 41, [4, 5]), (1, 41, [4, 5])], 82, 2),
        # Not those of two pairs, nor what only one of them hears.
        ([(0, 40, [5, 6]), (1, 40, [5, 6])], 80, 2),
        ([(0, 40, [4]), (1, 40, [4, 6])], 80, 2),
        ([(0, 40, [4, 7]), (1, 40, [4, 7])], 80, 2),
        ([(0, 40, [4]), (1, 40, [5]), (2, 40, [4])], 80, 2),
        ([(0, 40, [2, 5]), (1, 40, [3, 5])], 80, 2),
        ([(0, 40, [4]), (1, 40, [5]), (2, 40, [5])], 80, 2),
        # Few words are sent one by one.
        ([(0, 6, [4, 5]), (1, 6, [4, 5])], 12, 2),
        ([(0, 8, [4, 5]), (1, 8, [4, 5])], 2 * PAIRED_LEAST, 2),
        ([(0, 12, [4, 5]), (1, 12, [4, 5])], 12, 2),
        ([(0, 8, [4, 5])], 8, 1),
    ],
)
def test_the_busiest_tile(moves: list[tuple[int, int, list[int]]], words: int, pieces: int) -> None:
    assert load_of([traffic(*moves)], 8) == Load(words, pieces, 0, 0)
    # The same in two moves of one phase.
    assert load_of([traffic(move) for move in moves], 8) == Load(words, pieces, 0, 0)


def test_copies_of_the_tile_that_copies_most() -> None:
    moves = [traffic(copies=((2, 10), (3, 30))), traffic(copies=((2, 11),))]
    assert load_of(moves, 4) == Load(0, 0, 1, 30)
    assert load_of([*moves, traffic(copies=((2, 14),))], 4) == Load(0, 0, 3, 12)
    assert load_of([], 0) == Load(0, 0, 0, 0)


def test_a_phase_without_words_is_none() -> None:
    assert cost.exchange(0, 0) == 0
    assert cost.move(Load(0, 0, 0, 0)) == 0
    assert cost.exchange(1000, 7) == cost.PHASE_FIXED + 1000 * cost.SCHEDULE_LENGTH + 7 * cost.FRAGMENT


def test_a_call_never_takes_less_than_nothing() -> None:
    """The formula counts the prologue, which the compiler executes: of the shortest call little is left."""
    for symbol in ("gemm_f16", "root_f16", "softmax_f16", "scale_f16", "copy_u64"):
        contract = KERNELS[symbol].contract
        least = {scalar.name: scalar.minimum for scalar in contract.scalars}
        most = {scalar.name: 48 * max(scalar.multiple, 1) + scalar.minimum for scalar in contract.scalars}
        assert cost.kernel(symbol, **least) >= 0
        assert 0 < KERNELS[symbol].cycles(**most) + cost._beside(symbol) == cost.kernel(symbol, **most)
