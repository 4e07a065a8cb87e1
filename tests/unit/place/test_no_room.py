"""What an error about memory can say: step, bytes over, the largest buffers, whether it is certain."""

from __future__ import annotations

import pytest

from tilewright.ipu21.machine.memory import LOADABLE_END, REGION1_BASE
from tilewright.ipu21.place import placer
from tilewright.ipu21.place.placer import place
from tilewright.ipu21.place.problem import HARD, as_problem
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


@pytest.mark.parametrize("must", [False, True])
def test_what_is_surely_too_much_is_not_looked_for(must: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    monkeypatch.setattr(placer, "_repaired", lambda *problem: looked.append(problem))
    size = (REGION1_BYTES if must else ALL_BYTES) // 64 * 32
    assert refusal([Request(name, size + 64, must, 0, 1) for name in "ab"]).proven
    assert looked == []


def test_element_rules_that_do_not_fit_are_counted_as_bytes_lacking() -> None:
    names = [f"b{i}" for i in range(14)]
    requests = [Request(name, 64, True, 0, 1, apart=frozenset(names) - {name}) for name in names]
    error = refusal(requests)
    assert error.proven, "thirteen elements, fourteen buffers"
    # The fourteenth would begin where the 32 KiB of the thirteenth end.
    assert error.over == REGION1_BASE + 13 * 32768 + 64 - LOADABLE_END


def error_of(requests: list[Request], start: int = START, lacking: int = 7) -> NoRoomError:
    return NoRoomError(requests[0], requests, start, lacking, proven=False)


def test_room_is_what_lies_above_the_start() -> None:
    small = [Request("a", 64, False, 0, 1)]
    assert error_of(small, LOADABLE_END - 100).room == REGION1_BYTES
    assert error_of(small).room == ALL_BYTES
    assert error_of(small).over == 7, "what was lacking, where the sum fits"


def test_bytes_over_count_the_memory_that_is_short() -> None:
    both = [Request("a", REGION1_BYTES, True, 0, 1), Request("b", ALL_BYTES, False, 0, 1)]
    assert error_of(both).over == REGION1_BYTES
    must = [Request("a", REGION1_BYTES, True, 0, 1), Request("b", 100, True, 0, 1)]
    assert error_of(must).over == 100


def test_the_largest_are_those_that_live_at_the_peak() -> None:
    spans = {"before": (0, 2), "from": (3, 6), "at": (3, 3), "until": (1, 3), "behind": (4, 6)}
    requests = [Request(name, 100, False, *ends) for name, ends in spans.items()]
    assert error_of(requests).peak() == (3, 300)
    assert [r.name for r in error_of(requests).largest()] == ["at", "from", "until"]


def test_names_that_are_not_asked_for_need_not_be_apart() -> None:
    gone = frozenset({"gone", "b"})
    requests = [Request("a", 64, False, 0, 1, gone, gone), Request("b", 64, False, 0, 1)]
    assert as_problem(requests).relations.tolist() == [[0, HARD], [HARD, 0]]
