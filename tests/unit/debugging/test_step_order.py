"""Steps of a run with its loops unrolled, against a plain nested count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.debugging.step_order import _unrolled
from tilewright.package.program_info import LoopInfo

pytestmark = pytest.mark.unit


def test_loops_one_after_another_and_inside_each_other() -> None:
    loops = [LoopInfo(1, 3, 2), LoopInfo(2, 2, 3), LoopInfo(5, 5, 2)]
    assert _unrolled(0, 7, loops) == [0, *([1, 2, 2, 2, 3] * 2), 4, 5, 5, 6]
    assert _unrolled(0, 2, []) == [0, 1]
    assert _unrolled(0, 2, [LoopInfo(0, 1, 2), LoopInfo(0, 1, 2)]) == [0, 1] * 4


tree = st.recursive(
    st.just("step"),
    lambda inner: st.tuples(st.integers(1, 3), st.lists(inner, min_size=1, max_size=4)),
    max_leaves=9,
)


@given(st.lists(tree, min_size=1, max_size=5))
def test_any_nesting(program: list[object]) -> None:
    loops: list[LoopInfo] = []
    count = 0

    def walk(items: list[object]) -> list[int]:
        nonlocal count
        result: list[int] = []
        for item in items:
            if isinstance(item, str):
                result.append(count)
                count += 1
                continue
            times, inner = item  # type: ignore[misc]
            loop = LoopInfo(count, count, times)
            loops.append(loop)
            body = walk(inner)
            loop.last = count - 1
            result += body * times
        return result

    expected = walk(program)
    assert _unrolled(0, count, loops) == expected
