"""Dropping what no result needs: operations, and what a loop carries or iterates in vain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .graph import Operation, Region, Value
from .loop import REPEAT, Loop


def prune(operations: Sequence[Operation], wanted: set[Value]) -> list[Operation]:
    """Operations that some value of `wanted` depends on, in order. Adds all that they use to `wanted`."""
    kept: list[Operation] = []
    for operation in reversed(operations):
        if wanted.isdisjoint(operation.results):
            continue
        if operation.name == REPEAT:
            operation = _prune_loop(Loop(operation), wanted)
        wanted.update(operation.operands)
        kept.append(operation)
    kept.reverse()
    return kept


def _prune_loop(loop: Loop, wanted: set[Value]) -> Operation:
    """The loop with only the carried values that are wanted after it or by those that are."""
    live = {index for index, value in enumerate(loop.results) if value in wanted}
    while True:
        inside = {loop.leaving[index] for index in live}
        operations = prune(loop.region.operations, inside)
        grown = live | {index for index, value in enumerate(loop.entering) if value in inside}
        if grown == live:
            break
        live = grown
    wanted.update(inside)
    carried = sorted(live)
    iterated = [index for index, value in enumerate(loop.slices) if value in inside]
    region = Region(
        [*(loop.entering[index] for index in carried), *(loop.slices[index] for index in iterated)],
        operations,
        [loop.leaving[index] for index in carried],
    )
    return replace(
        loop.operation,
        operands=(*(loop.initial[index] for index in carried), *(loop.iterated[index] for index in iterated)),
        results=tuple(loop.results[index] for index in carried),
        regions=(region,),
    )
