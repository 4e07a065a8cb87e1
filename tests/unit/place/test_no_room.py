"""What an error about memory can say: step, bytes over, the largest buffers, whether it is certain."""

from __future__ import annotations

import pytest

from tilewright.ipu21.machine.memory import LOADABLE_END, REGION1_BASE
from tilewright.ipu21.place.placer import place
from tilewright.ipu21.place.request import NoRoomError, Request

pytestmark = pytest.mark.unit

START = 0x60000
REGION1_BYTES = LOADABLE_END - REGION1_BASE
ALL_BYTES = LOADABLE_END - START


def refusal(requests: list[Request]) -> NoRoomError:
    with pytest.raises(NoRoomError) as caught:
        place(requests, START)
    return caught.value


def test_interleaved_memory_that_is_short_is_told_from_the_rest() -> None:
    a = Request("a", 300_000, True, 0, 5)
    b = Request("b", 200_000, True, 3, 4)
    c = Request("c", 100_000, False, 0, 9)
    error = refusal([a, c, b])
    assert error.request.name == "b" and error.proven and error.interleaved_is_short
    assert error.peak() == (3, 500_000) and error.step == 3
    assert error.over == 500_000 - REGION1_BYTES
    assert [r.name for r in error.largest()] == ["a", "b"]


def test_all_memory_counts_when_interleaved_memory_would_do() -> None:
    requests = [Request(f"b{i}", 50_000 - i, i == 11, 2, 7) for i in range(12)]
    error = refusal(requests)
    assert error.proven and not error.interleaved_is_short
    assert error.room == ALL_BYTES
    assert error.over == sum(r.bytes for r in requests) - ALL_BYTES
    assert [r.name for r in error.largest()] == [f"b{i}" for i in range(10)]


def test_element_rules_that_do_not_fit_are_counted_as_bytes_lacking() -> None:
    names = [f"b{i}" for i in range(14)]
    requests = [Request(name, 64, True, 0, 1, apart=frozenset(names) - {name}) for name in names]
    error = refusal(requests)
    assert error.proven, "thirteen elements, fourteen buffers"
    # The fourteenth would begin where the 32 KiB of the thirteenth end.
    assert error.over == REGION1_BASE + 13 * 32768 + 64 - LOADABLE_END
