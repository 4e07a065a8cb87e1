"""Addresses for all tile classes of a lowered plan, or an error that names what does not fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import PlacementError
from ..lower.tile_work import Phase, TileClass, TileWork
from ..machine.memory import LOADABLE_END, REGION1_BASE
from ..plan.steps import Compute, Plan, touched
from .placer import place
from .request import NoRoomError, Placed, Request


@dataclass
class Placement:
    """Where every buffer of every class lies.

    Attributes:
        classes: per class index, buffer name -> placed buffer.
        standard_start: first byte of region 0 used for data.
    """

    classes: list[dict[str, Placed]]
    standard_start: int

    def address(self, tile_class: int, buffer: str) -> int:
        return self.classes[tile_class][buffer].address


def place_work(work: TileWork, standard_start: int) -> Placement:
    """Place every class; classes that ask for the same share their addresses.

    Raises PlacementError naming class, peak, largest buffers and their lifetimes.
    """
    lifetimes = work.plan.lifetimes()
    levels = [_separations(work, strict) for strict in (True, False)]
    known: dict[tuple[tuple[str, int], ...], dict[str, Placed]] = {}
    classes: list[dict[str, Placed]] = []
    for tile_class in work.classes:
        sizes = tuple(tile_class.bytes.items())
        while sizes not in known:
            apart, prefer = levels[0]
            requests = [
                Request(
                    name=name,
                    bytes=size + work.plan.buffers[name].tail,
                    interleaved=work.plan.buffers[name].memory == "interleaved",
                    prefer_interleaved=work.plan.buffers[name].memory == "preferred",
                    first=lifetimes[name][0],
                    last=lifetimes[name][1],
                    apart=frozenset(apart.get(name, ())),
                    prefer_apart=frozenset(prefer.get(name, ())),
                    owner=work.plan.buffers[name].owner,
                )
                for name, size in sizes
            ]
            try:
                known[sizes] = place(requests, standard_start, like=classes[-1] if classes else None)
            except NoRoomError as error:
                if len(levels) == 1:
                    raise _explain(error, work, tile_class) from error
                # What one class has no room for, the others need not try: the longest row is what counts.
                del levels[0]
        classes.append(known[sizes])
    return Placement(classes, standard_start)


def _separations(work: TileWork, strict: bool) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Pairs that must and pairs that should lie in different elements.

    A tile that receives its own multicast reads and writes at the same time, so there the rule is hard.
    Where a tile sends and receives different things, words wait for each other in a shared element, and the
    phase may take twice as long; `strict` makes that rule hard too.
    """
    apart: dict[str, set[str]] = {}
    prefer: dict[str, set[str]] = {}
    for step, item in zip(work.plan.steps, work.work, strict=True):
        if isinstance(step, Compute):
            for a, b in step.apart:
                apart.setdefault(a, set()).add(b)
            for a, b in step.prefer_apart:
                prefer.setdefault(a, set()).add(b)
        if isinstance(item, Phase) and item.words:
            for source, destination, traffic in item.moves:
                senders = np.repeat(traffic.fragments["source"], traffic.fragments["count"])
                rule = apart if strict or bool(np.any(senders == traffic.tiles)) else prefer
                rule.setdefault(source, set()).add(destination)
            if strict:
                for source, _, _ in item.moves:
                    apart[source] |= {destination for _, destination, _ in item.moves}
    return apart, prefer


NAMED = 5
"""Buffers that an error lists; the rest it sums up."""


def _explain(error: NoRoomError, work: TileWork, tile_class: TileClass) -> PlacementError:
    plan, step = work.plan, error.step
    interleaved = LOADABLE_END - REGION1_BASE
    live = error.largest(len(error.requests))
    largest = "; ".join(
        f"{r.name} {r.bytes:,} bytes for {r.owner}, {_lifetime(plan, r.first, r.last)}" for r in live[:NAMED]
    )
    if len(live) > NAMED:
        largest += f"; {len(live) - NAMED} more, {sum(r.bytes for r in live[NAMED:]):,} bytes"
    kind = "interleaved memory" if error.interleaved_is_short or error.request.interleaved else "memory"
    found = "" if error.proven else ", and no arrangement found that fits"
    return PlacementError(
        f"no room in {kind} for {error.request.name} ({error.request.bytes:,} bytes): "
        f"{error.peak()[1]:,} bytes live at {_step_name(plan, step)}, {error.room:,} available, "
        f"{interleaved:,} of them interleaved; {error.over:,} bytes over{found}; largest: {largest}",
        where=f"tile class {tile_class.index} ({len(tile_class.tiles)} tiles)",
    )


def _step_name(plan: Plan, index: int) -> str:
    if index < 0:
        return "input"
    return plan.steps[index].name if index < len(plan.steps) else "output"


def _lifetime(plan: Plan, first: int, last: int) -> str:
    return f"{_step_name(plan, first)} to {_step_name(plan, last)}"


def live_at_steps(plan: Plan) -> list[list[str]]:
    """Names of the buffers alive during each step, for reports."""
    lifetimes = plan.lifetimes()
    return [
        sorted(
            {name for name, (first, last) in lifetimes.items() if first <= index <= last} | set(touched(step))
        )
        for index, step in enumerate(plan.steps)
    ]
