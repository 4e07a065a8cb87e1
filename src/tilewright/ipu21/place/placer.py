"""Addresses for the buffers of one tile class.

Buffers whose lifetimes do not meet may share memory. Two buffers that must stay apart never share an
effective memory element while both live, since one instruction (or the exchange and a `send`) may touch both
in one cycle.

First fit, largest first, is the answer wherever it fits. Where it does not, other orders follow, then orders
in which whoever found no place moves forward, and at last a search that can also prove that nothing fits. All
of it depends on the requests only, and its work is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..machine.memory import LOADABLE_END, REGION1_BASE
from .first_fit import first_fit, improve
from .offset_search import FOUND, NONE, search
from .problem import ANY, HARD, MEMORY, MUST, PREFER, SIZE, SPAN, Problem, as_problem
from .request import NoRoomError, Placed, Request

REPAIRS = 500
"""Orders tried that move forward what found no place."""
SEARCH_WORK = 40_000_000
"""Steps of all searches of a class together; some tenths of a second."""

Ints = NDArray[np.int64]


def place(
    requests: Sequence[Request], standard_start: int, *, like: Mapping[str, Placed] | None = None
) -> dict[str, Placed]:
    """Addresses for all buffers of one tile class, by name.

    Args:
        standard_start: first byte of region 0 that is free for data (the start of an element).
        like: how a similar class was placed; its order is tried too when first fit fails.

    Raises NoRoomError.
    """
    problem = as_problem(requests)
    limits = np.array([min(standard_start, REGION1_BASE), REGION1_BASE, LOADABLE_END], dtype=np.int64)
    at = np.empty(len(requests), dtype=np.int64)
    failed, lacking = -1, 0
    for attempt, (items, order) in enumerate(_orders(problem, like)):
        stuck, missing = first_fit(items, problem.relations, limits, order, at)
        if attempt == 0:
            failed, lacking = stuck, missing
        if stuck < 0:
            break
        if attempt == 0 and _surely_too_much(problem, limits):
            raise NoRoomError(requests[failed], requests, standard_start, lacking, proven=True)
    else:
        attempt += 1
        if not _repaired(problem, limits, at):
            found, proven = _searched(problem, limits, at)
            if not found:
                raise NoRoomError(requests[failed], requests, standard_start, lacking, proven)
    if attempt:
        wishes = np.lexsort((-problem.items[:, SIZE], problem.items[:, MEMORY] != PREFER))
        improve(problem.items, problem.relations, limits, wishes, at)
    at = _spanned(problem, limits, at)
    addresses = at.tolist()
    return {request.name: Placed(request, addresses[i]) for i, request in enumerate(requests)}


def _spanned(problem: Problem, limits: Ints, at: Ints) -> Ints:
    """Addresses, or better ones: where region 1 has no room for all that prefers it, the largest of what may
    lie anywhere takes region 0 as a whole and goes on into region 1.
    """
    size, memory = problem.items[:, SIZE], problem.items[:, MEMORY]
    anywhere = np.where(memory == ANY, size, 0)
    denied = (memory == PREFER) & (at < limits[1])
    if not denied.any() or int(anywhere.max()) <= limits[1] - limits[0]:
        return at
    items = problem.items.copy()
    items[int(np.argmax(anywhere)), MEMORY] = SPAN
    # No room is left below for what prefers to lie above: if all fits, all wishes are granted.
    rank = np.array([3, 1, 2, 0])[items[:, MEMORY]]
    spanned = np.empty_like(at)
    stuck, _ = first_fit(items, problem.relations, limits, _by(problem, rank, -size), spanned)
    return spanned if stuck < 0 else at


def _surely_too_much(problem: Problem, limits: Ints) -> bool:
    """True if in some section the live buffers are larger than the memory."""
    slack = problem.unit - 1
    must = problem.items[:, MEMORY] == MUST
    begin, region1, end = limits.tolist()
    for chosen, room in ((must, end - region1), (np.ones_like(must), end - begin)):
        if int(problem.live(chosen).max(initial=0)) - slack > room:
            return True
    return False


def _wishless(problem: Problem) -> Ints:
    """The items, none of which prefers a region."""
    items = problem.items.copy()
    items[items[:, MEMORY] == PREFER, MEMORY] = ANY
    return items


def _by(problem: Problem, *keys: Ints) -> Ints:
    """The items sorted by keys, the first counting most; at last by name."""
    names = np.argsort(np.argsort(np.array([request.name for request in problem.requests])))
    return np.lexsort((names, *reversed(keys)))


def _orders(problem: Problem, like: Mapping[str, Placed] | None) -> Iterator[tuple[Ints, Ints]]:
    """(items, order) pairs to try first fit with, until one fits."""
    items, requests = problem.items, problem.requests
    size, duration = items[:, SIZE], problem.duration
    lived = np.array([request.last - request.first for request in requests], dtype=np.int64)
    if (items[:, MEMORY] == PREFER).any():
        # First those that must lie in region 1, then those that should, then the others.
        rank = np.array([4, 0, 3])[items[:, MEMORY]]
        yield items, _by(problem, rank, -size, -lived)
        # What stays for ever in between: behind the largest of those that must, which mostly share a place,
        # and with the small ones, which must keep apart from these, behind it.
        must, stays = items[:, MEMORY] == MUST, lived == lived.max()
        small = must & (2 * size < size[must].max(initial=0))
        yield items, _by(problem, rank + 2 * small - 2 * (stays & (rank == 3)), -size, -lived)
        yield items, _by(problem, -size, -lived)
    plain = _wishless(problem)
    yield plain, _by(problem, -size, -lived)
    if like is not None:
        known = [like[request.name].address if request.name in like else 1 << 30 for request in requests]
        yield plain, _by(problem, np.array(known, dtype=np.int64))
    rules = (problem.relations == HARD).sum(axis=1)
    yield plain, _by(problem, plain[:, MEMORY] != MUST, -size)
    yield plain, _by(problem, -size * duration)
    yield plain, _by(problem, -duration, -size)
    yield plain, _by(problem, -rules, -size)


def _repaired(problem: Problem, limits: Ints, at: Ints) -> bool:
    """Fill `at` by first fit in orders in which what found no place moves forward. True if all find one."""
    items = _wishless(problem)
    for key in (-items[:, SIZE], -items[:, SIZE] * problem.duration):
        order = _by(problem, key)
        for _ in range(REPAIRS):
            stuck, _ = first_fit(items, problem.relations, limits, order, at)
            if stuck < 0:
                return True
            place = int(np.flatnonzero(order == stuck)[0])
            if place == 0:
                break
            order = np.insert(np.delete(order, place), place // 2, stuck)
    return False


def _searched(problem: Problem, limits: Ints, at: Ints) -> tuple[bool, bool]:
    """(true if `at` holds addresses for all, true if there are none for sure), by search."""
    items = _wishless(problem)
    size, duration = items[:, SIZE], problem.duration
    preferences = (-size * duration, -size, -duration)
    for key in preferences:
        rank = np.empty(len(at), dtype=np.int64)
        rank[_by(problem, key, -size)] = np.arange(len(at))
        result = search(
            items,
            problem.sizes,
            problem.relations,
            limits,
            problem.twins(),
            rank,
            problem.sections,
            problem.unit - 1,
            SEARCH_WORK // len(preferences),
            at,
        )
        if result in (FOUND, NONE):
            return result == FOUND, result == NONE
    return False, False
