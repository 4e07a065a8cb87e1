"""Every step of the compiled loops against what it says, computed the long way."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from placements import START, request_sets

from tilewright.ipu21.machine.memory import (
    LOADABLE_END,
    REGION1_BASE,
    effective_element,
    next_element_boundary,
)
from tilewright.ipu21.place import first_fit, offset_search
from tilewright.ipu21.place.problem import (
    ALIGN,
    FIRST,
    HARD,
    LAST,
    MEETS,
    MEMORY,
    MUST,
    SIZE,
    SOFT,
    Problem,
    as_problem,
)
from tilewright.ipu21.place.request import Request

pytestmark = pytest.mark.unit

Ints = NDArray[np.int64]
LIMITS = np.array([START, REGION1_BASE, LOADABLE_END], dtype=np.int64)
ELEMENT, INTERLEAVED = 16 * 1024, 32 * 1024


def integers(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


def up(address: int, align: int) -> int:
    return -(-address // align) * align


@pytest.mark.parametrize("base", [START, REGION1_BASE - INTERLEAVED, REGION1_BASE, REGION1_BASE + ELEMENT])
@pytest.mark.parametrize("offset", [0, 1, ELEMENT - 1, ELEMENT])
def test_ends_of_elements(base: int, offset: int) -> None:
    address = base + offset
    begin = first_fit.element_begin(LIMITS, address)
    assert first_fit.element_end(LIMITS, address) == next_element_boundary(address)
    assert first_fit.element_end(LIMITS, address) == next_element_boundary(address)
    assert begin <= address and effective_element(begin) == effective_element(address)
    assert effective_element(begin - 1) != effective_element(address)


def crowd(requests: list[Request], seed: int) -> tuple[Problem, Ints]:
    """Requests with addresses anywhere, whatever the rules say."""
    random = np.random.default_rng(seed)
    at = random.integers(START // 32, (LOADABLE_END - 60_000) // 32, len(requests)) * 32
    return as_problem(requests), at.astype(np.int64)


@settings(max_examples=60)
@given(
    requests=request_sets(most=7, largest=200_000),
    seed=st.integers(0, 1 << 30),
    apart=st.sampled_from([SOFT, HARD]),
)
def test_the_lowest_address_that_is_free(requests: list[Request], seed: int, apart: int) -> None:
    problem, at = crowd(requests, seed)
    items, relations = problem.items, problem.relations
    placed = integers(*range(1, len(requests)))
    begin = START + 4

    def free(address: int) -> bool:
        for other in placed:
            low, high = int(at[other]), int(at[other] + items[other, SIZE])
            if relations[0, other] >= apart:
                low, high = first_fit.element_begin(LIMITS, low), next_element_boundary(high)
            if relations[0, other] and address < high and address + items[0, SIZE] > low:
                return False
        return True

    align = int(items[0, ALIGN])
    every = range(up(begin, align), LOADABLE_END + 300_000, align)
    expected = next(address for address in every if free(address))
    assert first_fit.lowest(items, relations, LIMITS, placed, len(placed), at, 0, begin, apart) == expected


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_what_is_entered_stays_sorted(order: tuple[int, ...]) -> None:
    at, placed = integers(500, 100, 900, 300), integers(-1, -1, -1, -1)
    for count, item in enumerate(order):
        first_fit.insert(placed, count, at, item)
        addresses = at[placed[: count + 1]].tolist()
        assert addresses == sorted(at[list(order[: count + 1])].tolist())


def find(requests: list[Request], at: list[int]) -> tuple[int, int]:
    """Where the first of the requests goes beside the others."""
    problem = as_problem(requests)
    placed = np.argsort(at[1:]).astype(np.int64) + 1
    return tuple(
        first_fit.find(problem.items, problem.relations, LIMITS, placed, len(placed), integers(*at), 0)
    )


def item(name: str, size: int, *, must: bool = False, prefer: bool = False, beside: str = "") -> Request:
    return Request(name, size, must, 0, 1, prefer_apart=frozenset(beside.split()), prefer_interleaved=prefer)


BELOW, ABOVE = REGION1_BASE - START, LOADABLE_END - REGION1_BASE
MIDDLE = REGION1_BASE + 200_000


@pytest.mark.parametrize(
    ("requests", "at", "expected"),
    [
        # Without wishes below, where there is room; else above; else nowhere, by so many bytes above.
        ([item("a", 64)], [0], (START, 0)),
        ([item("a", BELOW + 32)], [0], (REGION1_BASE, 0)),
        ([item("a", 64, must=True)], [0], (REGION1_BASE, 0)),
        ([item("a", ABOVE + 32)], [0], (-1, 32)),
        ([item("a", 64, prefer=True)], [0], (REGION1_BASE, 0)),
        ([item("a", 64, prefer=True), item("b", ABOVE - 32)], [0, REGION1_BASE], (START, 0)),
        # An element of its own is worth going above.
        ([item("a", 64, beside="b"), item("b", BELOW - 64)], [0, START], (REGION1_BASE, 0)),
        # To lie in region 1 is worth more than an element of its own.
        (
            [item("a", 64, prefer=True, beside="b"), item("b", ABOVE - 96)],
            [0, REGION1_BASE],
            (up(LOADABLE_END - 96, 32), 0),
        ),
        # Without room anywhere, the bytes lacking are those beside what it must not overlap only.
        (
            [item("a", 300_000, beside="b"), item("b", 64)],
            [0, MIDDLE],
            (-1, MIDDLE + 64 + 300_000 - LOADABLE_END),
        ),
    ],
)
def test_wishes_are_granted_in_their_order(
    requests: list[Request], at: list[int], expected: tuple[int, int]
) -> None:
    assert find(requests, at) == expected


UPPER, LOWER = REGION1_BASE + 10 * INTERLEAVED, START + 6 * ELEMENT


@pytest.mark.parametrize(
    ("requests", "at", "expected"),
    [
        # What has all it wishes stays where it is, although places further down are free.
        ([item("a", 64, prefer=True)], [UPPER], UPPER),
        ([item("a", 64)], [LOWER], LOWER),
        ([item("a", 64)], [UPPER], UPPER),
        ([item("a", 64, beside="b"), item("b", 64)], [LOWER, LOWER + ELEMENT], LOWER),
        ([item("a", 64, beside="b"), item("b", 64)], [LOWER, LOWER - ELEMENT], LOWER),
        # What has not moves.
        ([item("a", 64, prefer=True)], [LOWER], REGION1_BASE),
        ([item("a", 64, prefer=True, beside="b"), item("b", 64)], [LOWER, UPPER], REGION1_BASE),
        ([item("a", 64, beside="b"), item("b", 64)], [LOWER, LOWER + 64], START),
        ([item("a", 64, beside="b c"), item("b", 64), item("c", 64)], [LOWER, LOWER + 64, UPPER], START),
        ([item("a", 64, beside="b c"), item("b", 64), item("c", 64)], [LOWER, UPPER, LOWER + 64], START),
        # Without a better place it stays.
        ([item("a", 64, prefer=True), item("b", ABOVE - 32)], [START, REGION1_BASE], START),
    ],
)
def test_only_what_lacks_a_wish_moves(requests: list[Request], at: list[int], expected: int) -> None:
    problem, moved = as_problem(requests), integers(*at)
    first_fit.improve(problem.items, problem.relations, LIMITS, integers(*range(len(at))), moved)
    assert moved.tolist() == [expected, *at[1:]]


@pytest.mark.parametrize("must", [False, True])
@pytest.mark.parametrize("region1", [0x80000, 0x80020])
@pytest.mark.parametrize("floor", [START, START + 4, 0x7FF00, 0x80000 - 96, 0x80024, 0x80400])
def test_the_lowest_address_in_one_region(must: bool, region1: int, floor: int) -> None:
    request = Request("a", 96, must, 0, 0, alignment=64)
    allowed = (
        address
        for address in range(up(floor, 64), 0x90000, 64)
        if address >= region1 or (not must and address + 96 <= region1)
    )
    limits = integers(START, region1, LOADABLE_END)
    assert offset_search._settle(as_problem([request]).items, limits, 0, floor) == next(allowed)


@settings(max_examples=300)
@given(
    requests=request_sets(most=5, largest=300_000),
    seed=st.integers(0, 1 << 30),
    low=st.sampled_from([0, START, REGION1_BASE, REGION1_BASE + 200_000]),
    slack=st.sampled_from([0, 31, 100_000]),
)
def test_sections_without_hope(requests: list[Request], seed: int, low: int, slack: int) -> None:
    problem, floors = crowd(requests, seed)
    random = np.random.default_rng(seed)
    at = np.where(random.random(len(requests)) < 0.3, floors, -1)
    needed = 0
    for section in range(problem.sections):
        alive = (problem.items[:, FIRST] <= section) & (section <= problem.items[:, LAST]) & (at < 0)
        for chosen in (alive, alive & (problem.items[:, MEMORY] == MUST)):
            if chosen.any():
                bottom = max(int(floors[chosen].min()), low)
                needed = max(needed, bottom + int(problem.sizes[chosen].sum()) - slack)
    work = np.full(4 * problem.sections, 7, dtype=np.int64)
    for end in (needed, needed - 1):
        limits = integers(START, REGION1_BASE, end)
        arrays = (problem.items, problem.sizes, limits, floors, at)
        assert offset_search._hopeless(*arrays, low, slack, work) == (end < needed and bool((at < 0).any()))


@pytest.mark.parametrize(
    ("sizes", "floors", "hopeless"),
    [
        # Of what must lie in region 1 only, and of everything, at the very end of memory.
        ((64, 64), (LOADABLE_END - 128, LOADABLE_END - 100), False),
        ((64, 64), (LOADABLE_END - 127, LOADABLE_END - 100), True),
        ((64, 64), (LOADABLE_END - 100, LOADABLE_END - 127), True),
        ((64, 64), (START, LOADABLE_END - 63), True),
        ((64, 64), (START, LOADABLE_END - 64), False),
    ],
)
def test_hope_ends_with_the_memory(sizes: tuple[int, int], floors: tuple[int, int], hopeless: bool) -> None:
    # The first anywhere, the second in region 1.
    problem = as_problem([item("a", sizes[0]), item("b", sizes[1], must=True)])
    work = np.zeros(4 * problem.sections, dtype=np.int64)
    arrays = (problem.items, problem.sizes, LIMITS, integers(*floors), integers(-1, -1))
    assert offset_search._hopeless(*arrays, 0, 0, work) == hopeless


@pytest.mark.parametrize("seed", range(40))
def test_what_may_be_next(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 9))
    sizes = random.integers(1, 5 * 0x1000, count).tolist()
    problem = as_problem([Request(f"b{i}", size, False, 0, 1) for i, size in enumerate(sizes)])
    floors = START + 0x1000 * random.integers(0, 4, count)
    at = np.where(random.random(count) < 0.2, floors, -1)
    twins = integers(*(random.integers(-1, i) if i and random.random() < 0.3 else -1 for i in range(count)))
    closed, rank = random.integers(0, 2, count), random.permutation(count)
    low, last = START + 0x1000 * int(random.integers(0, 2)), int(random.integers(-1, count))
    open_items = [i for i in range(count) if at[i] < 0]
    ends = [int(floors[i] + problem.items[i, SIZE]) for i in range(count)]
    least = min((next_element_boundary(ends[i]) if closed[i] else ends[i] for i in open_items), default=0)
    expected = [
        i
        for i in sorted(open_items, key=lambda i: (floors[i], rank[i]))
        # Nothing fits below it whole; it comes behind the latest in the canonical order; its twin first.
        if floors[i] < least and (floors[i], i) >= (low, last) and not (twins[i] >= 0 and at[twins[i]] < 0)
    ]
    chosen = np.full(count, -1, dtype=np.int64)
    found = offset_search._candidates(
        problem.items, LIMITS, floors, at, twins, closed, rank, low, last, chosen
    )
    assert chosen[:found].tolist() == expected


KILO = 1024


def search(
    items: list[tuple[int, int, int]], hard: set[tuple[int, int]], room: int, budget: int
) -> tuple[int, list[int]]:
    """What the search says of items (KiB, first section, last section) in the first KiB of region 1, and
    where they are then, in KiB; those named earlier are tried first."""
    columns = integers(*range(len(items)))
    table = np.array([(size * KILO, 32, MUST, first, last) for size, first, last in items], dtype=np.int64)
    relations = np.zeros((len(items), len(items)), dtype=np.uint8)
    for i, j in itertools.combinations(range(len(items)), 2):
        if items[i][1] <= items[j][2] and items[j][1] <= items[i][2]:
            relations[i, j] = relations[j, i] = HARD if (i, j) in hard else MEETS
    limits = integers(START, REGION1_BASE, REGION1_BASE + room * KILO)
    at = np.zeros(len(items), dtype=np.int64)
    sections = 1 + max(last for _, _, last in items)
    found = offset_search.search(
        table, table[:, SIZE].copy(), relations, limits, 0 * columns - 1, columns, sections, 0, budget, at
    )
    return found, ((at - REGION1_BASE) // KILO).tolist()


ENDLESS = 1 << 40


def test_room_behind_an_item_in_its_element_is_none_for_what_must_keep_apart() -> None:
    # The first, second and fourth fill all 72 KiB in the last section, and only the fourth may lie next to
    # either of the others; so the third lies in the last element.
    items = [(16, 1, 2), (24, 2, 2), (4, 0, 0), (32, 0, 2)]
    found, at = search(items, {(0, 1), (2, 3)}, 72, ENDLESS)
    assert found == offset_search.FOUND
    assert at in ([0, 48, 64, 16], [56, 0, 64, 24])


def test_what_is_too_much_in_some_section_needs_no_search() -> None:
    items = [(8, 0, 1), (16, 1, 1), (20, 1, 2)]
    assert search(items, set(), 43, 0)[0] == offset_search.NONE
    assert search(items, set(), 44, 0)[0] == offset_search.GAVE_UP
    assert search(items, set(), 44, ENDLESS)[0] == offset_search.FOUND


def test_when_all_has_been_tried_there_is_no_placement() -> None:
    # They need an element each.
    items = [(1, 0, 0), (16, 0, 0)]
    assert search(items, {(0, 1)}, 33, ENDLESS) == (offset_search.FOUND, [32, 0])
    assert search(items, {(0, 1)}, 32, ENDLESS)[0] == offset_search.NONE


@pytest.mark.parametrize(
    ("items", "hard"),
    [
        # Behind the first the second begins with the next element, where there is no room for it.
        ([(1, 0, 0), (16, 0, 0), (1, 0, 0)], {(0, 1)}),
        # There is for each of two, but not for both.
        ([(1, 0, 0), (4, 0, 0), (8, 0, 0)], {(0, 1), (0, 2)}),
    ],
)
def test_what_leaves_no_room_for_others_is_taken_back_at_once(
    items: list[tuple[int, int, int]], hard: set[tuple[int, int]]
) -> None:
    # One step for the first item where it cannot stay, and one for each of the three. Work is looked at
    # before a step, and a step costs the items and the sections they live in.
    step = 3 + 3
    assert search(items, hard, 40, 3 * step)[0] == offset_search.FOUND
    assert search(items, hard, 40, 3 * step - 1)[0] == offset_search.GAVE_UP
