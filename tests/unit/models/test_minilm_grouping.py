"""Sentences into programs: each once, in the shortest program that holds it, in few and full batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.models.minilm.grouping import LENGTHS, MAX_BATCH, group, length_for

pytestmark = pytest.mark.unit

limits = st.sampled_from([2, 16, 24, 128, 256, 300, 512])


@given(limits.flatmap(lambda n: st.tuples(st.just(n), st.lists(st.integers(1, n), max_size=60))),
       st.none() | st.integers(1, 20))  # fmt: skip
def test_groups(given_: tuple[int, list[int]], batch: int | None) -> None:
    limit, lengths = given_
    groups = group(lengths, limit, batch)
    members = [index for one in groups for run in one.runs for index in run]
    assert sorted(members) == list(range(len(lengths)))
    assert len({one.tokens for one in groups}) == len(groups)
    for one in groups:
        assert one.tokens <= limit
        assert one.batch == batch or (batch is None and one.batch in (1, 2, 4, 8))
        assert all(len(run) == one.batch for run in one.runs[:-1])
        assert 1 <= len(one.runs[-1]) <= one.batch
        assert one.sentences == sum(map(len, one.runs))
        if batch is None and len(one.runs) == 1:
            assert one.batch < 2 * one.sentences
        for run in one.runs:
            assert list(run) == sorted(run)
            for index in run:
                assert one.tokens == length_for(lengths[index], limit)


@pytest.mark.parametrize(
    ("tokens", "limit", "length"),
    [(1, 256, 16), (16, 256, 16), (17, 256, 32), (128, 256, 128), (129, 256, 256), (256, 256, 256),
     (3, 10, 10), (300, 512, 512), (200, 200, 200), (250, 300, 256), (257, 300, 300)],
)  # fmt: skip
def test_lengths(tokens: int, limit: int, length: int) -> None:
    assert length_for(tokens, limit) == length


def test_the_limits_are_those_documented() -> None:
    assert LENGTHS == (16, 32, 64, 128, 256) and MAX_BATCH == 8
    assert [one.batch for one in group([5] * 9 + [20] * 3 + [40], 256)] == [8, 4, 1]
