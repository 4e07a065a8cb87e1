"""The fastest plan that fits: what memory is worth, by trying plans with the placer.

One price on all bytes gives a plan that fits. It makes some operations slower than they need be: constants
are there from beginning to end and need room beside each other, while what operations work with takes turns
in the same memory; and where one operation can keep its weights in place and another one cannot, both pay the
same price. So from there on working memory becomes cheaper, and then all memory for single operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter

import numpy as np

from ..compiler.numerics import Numerics
from ..errors import PlacementError, TilewrightError
from ..graph import Graph
from .emit.memory_map import data_start
from .emit.predict import slowed
from .emit.runtime_image import Runtime, runtime_with
from .kernels import attention_merge as merge
from .kernels import normalise, normalise_once, root
from .kernels.copy_spans import SYMBOL as COPY_SPANS
from .kernels.gemm_source import LISTED, SYMBOLS
from .kernels.gemm_tables import straight_of as panel_of
from .kernels.rounding import SET_ROUNDING
from .lower.calls import Call
from .lower.tile_work import Phase, TileWork, lower_plan
from .place.placement import Placement, place_work
from .place.request import NoRoomError
from .plan.planner import plan_graph
from .plan.price import Price, Prices
from .plan.steps import Plan
from .reasons import Fits, does_not_fit

PRICES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
"""Cycles worth one byte of tile memory, whatever it holds, tried in this order until the plan fits."""
NUMERICS = Numerics()
REFINEMENTS = 4
"""Prices tried between the last that was too low and the first that fits."""
WORKING = 1 / 16
"""What working memory may be worth beside what is kept."""
CHEAPER = (0.4, 0.1)
"""Parts of its price at which single operations are tried, one after the other."""
SINGLE = 6
"""How many operations are tried so, those first that take longest."""


@dataclass(frozen=True)
class Fitted:
    """A plan that fits, with its addresses.

    Attributes:
        prices: of tile memory, with which it was made.
    """

    work: TileWork
    placement: Placement
    runtime: Runtime
    prices: Prices

    @cached_property
    def cycles(self) -> float:
        """Predicted before exchange rows are known, from where operands lie."""
        return self.work.plan.cycles() + slowed(self.work, self.placement)


Attempt = Callable[[Prices], Fitted]
"""A plan at some prices, with addresses. Raises PlacementError."""


def fit(
    graph: Graph,
    tiles: int,
    reserves: Sequence[int],
    numerics: Numerics,
    *,
    known: Prices | None = None,
    explain: bool = True,
) -> Fitted:
    """The fastest plan that fits; when none does, an error that says why, and what would help.

    Args:
        reserves: bytes kept for programs and exchange rows; of several the most with which a plan fits.
        known: prices found with smaller reserves; if they still do, they are taken.
        explain: find out what would help.
    """
    attempt = partial(_try, graph, tiles, reserves, numerics)
    if known is not None and (again := _attempted(attempt, known)) is not None:
        return again
    failure: PlacementError | None = None
    too_cheap = 0.0
    for price in PRICES:
        work = _lowered(graph, tiles, _even(price), numerics)
        try:
            fitted = _placed(work, _even(price), reserves, numerics)
        except PlacementError as error:
            failure, too_cheap = error, price
            continue
        return _improved(attempt, fitted, too_cheap, price) if too_cheap else fitted
    assert failure is not None
    if not explain:
        raise failure
    raise _reasons(graph, work.plan, reserves, failure, numerics) from failure


def _even(price: float) -> Prices:
    """One price, whatever memory holds."""
    return Prices(Price(price, price))


def _improved(attempt: Attempt, fitted: Fitted, too_cheap: float, price: float) -> Fitted:
    """A faster plan than one that fits at an even price, where another one was too cheap."""
    best = _refined(attempt, fitted, too_cheap, price, 1.0)
    best = _refined(attempt, best, too_cheap, best.prices.general.kept, WORKING)
    plan = best.work.plan
    longest = sorted(
        (report for report in plan.reports if report.weighed), key=lambda report: -sum(report.cycles.values())
    )
    for report in longest[:SINGLE]:
        best = _cheaper(attempt, best, report.first)
    return best


def _refined(attempt: Attempt, best: Fitted, low: float, high: float, working: float) -> Fitted:
    """The best plan at prices between one that was too low and one that was not.

    Args:
        working: part of the price that working memory is worth.
    """
    for _ in range(REFINEMENTS):
        price = (low * high) ** 0.5
        made = _attempted(attempt, Prices(Price(price, working * price)))
        if made is None:
            low = price
        else:
            best, high = min(made, best, key=attrgetter("cycles")), price
    return best


def _cheaper(attempt: Attempt, best: Fitted, operation: str) -> Fitted:
    """A faster plan in which one operation pays less for memory, if there is one."""
    price = best.prices.of(operation)
    for part in CHEAPER:
        single = {**best.prices.single, operation: Price(part * price.kept, part * price.working)}
        made = _attempted(attempt, replace(best.prices, single=single))
        if made is None:
            break
        best = min(best, made, key=attrgetter("cycles"))
    return best


def _attempted(attempt: Attempt, prices: Prices) -> Fitted | None:
    try:
        return attempt(prices)
    except PlacementError:
        return None


def _try(graph: Graph, tiles: int, reserves: Sequence[int], numerics: Numerics, prices: Prices) -> Fitted:
    """A plan at some prices, with addresses. Raises PlacementError."""
    return _placed(_lowered(graph, tiles, prices, numerics), prices, reserves, numerics)


def _lowered(graph: Graph, tiles: int, prices: Prices, numerics: Numerics) -> TileWork:
    return lower_plan(plan_graph(graph, tiles=tiles, prices=prices, numerics=numerics))


def _placed(work: TileWork, prices: Prices, reserves: Sequence[int], numerics: Numerics) -> Fitted:
    """A lowered plan with addresses. Raises PlacementError, about the least of the reserves."""
    calls = [item for item in work.work if isinstance(item, Call)]
    kernels = {call.kernel for call in calls} | {name for call in calls for name in _straight(call)}
    if numerics.stochastic_rounding:
        kernels.add(SET_ROUNDING)
    if any(isinstance(item, Phase) and item.copies for item in work.work):
        kernels.add(COPY_SPANS)
    runtime = runtime_with(kernels)
    starts = sorted({data_start(runtime.program + reserved - 1) for reserved in reserves})
    while True:
        try:
            return Fitted(work, place_work(work, starts.pop()), runtime, prices)
        except PlacementError:
            if not starts:
                raise


def _straight(call: Call) -> list[str]:
    """The straight code that a call asks for, as far as there is some: of a product the middle panel of its
    busiest tile, of roots, merges and normalisations what takes as many parts and rows as a tile gets.
    """
    if call.kernel in (*SYMBOLS.values(), *LISTED.values()):
        repeating = call.active & (call.scalars["inner"] > 2)
        panel = panel_of(int(call.scalars["rows"][repeating].max(initial=0)))
        return [panel] if panel else []
    names = ("remote_count", "rows", "panels")
    if call.kernel == merge.OWN_SYMBOL:
        return _each(merge.straight_of, call, names[:2])
    if call.kernel == normalise.SYMBOL:
        return _each(normalise_once.straight_of, call, ("rows", "panels", "parts"))
    return (
        _each(partial(root.straight_of, call.kernel), call, names)
        if call.scalars.keys() >= set(names)
        else []
    )


def _each(straight_of: Callable[..., list[str]], call: Call, names: Sequence[str]) -> list[str]:
    """What any of the call's values of these scalars asks for."""
    shapes = np.unique(np.stack([call.scalars[name][call.active] for name in names]), axis=1)
    return sorted({symbol for shape in shapes.T.tolist() for symbol in straight_of(*shape)})


def _reasons(
    graph: Graph, plan: Plan, reserves: Sequence[int], failure: PlacementError, numerics: Numerics
) -> PlacementError:
    """The error for a graph that does not fit even by its most frugal plan, which `failure` is about."""

    def fits(changed: Graph, count: int, *, numerics: Numerics = numerics) -> bool:
        try:
            _try(changed, count, reserves, numerics, _even(PRICES[-1]))
        except TilewrightError:
            return False
        return True

    short = failure.__cause__
    if not isinstance(short, NoRoomError):
        return failure
    others: dict[str, Fits] = {}
    if numerics.precision != NUMERICS.precision:
        change = f"{NUMERICS.precision} instead of {numerics.precision}"
        others[change] = partial(fits, numerics=replace(numerics, precision=NUMERICS.precision))
    return does_not_fit(graph, plan.tiles, plan, short, failure.where or "", fits, others)
