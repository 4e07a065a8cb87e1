"""Why a model does not fit, and the smallest changes with which it would, each tried before it is named.

The pipeline raises what `does_not_fit` makes when every price on memory has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import PlacementError, TilewrightError
from ..graph import Graph, Loop, Region, TensorType, Value
from ..graph.trace import trace_function
from ..operators import operator
from .machine.memory import LOADABLE_END, REGION1_BASE
from .machine.topology import TILES
from .place.request import NoRoomError, Request
from .plan.steps import Plan

LISTED = 10
"""Buffers that an error lists by name."""
PRECISION = 16
"""A tile count is found to one part in this."""
TRIALS = 3
"""Plans made at most to find a smaller batch, or a shorter sequence."""
REPEAT = "repeat"

Fits = Callable[[Graph, int], bool]
"""Whether the most frugal plan of a graph on so many tiles can be placed."""


def does_not_fit(
    graph: Graph,
    tiles: int,
    plan: Plan,
    error: NoRoomError,
    where: str,
    fits: Fits,
    others: Mapping[str, Fits] | None = None,
) -> PlacementError:
    """The error for the user: what is over, by how much, when, the largest buffers, and what would help.

    Args:
        plan: the most frugal one. error: what the placer said about it. where: the tile class.
        others: further changes by name, each with its own way to try it.
    """
    lines = [_summary(plan, error), *largest_buffers(plan, error)]
    changes = smallest_changes(graph, tiles, fits)
    changes += [name for name, tried in (others or {}).items() if tried(graph, tiles)]
    hint = "; or ".join(changes)
    return PlacementError("\n  ".join(lines), where=where, hint=hint)


def _summary(plan: Plan, error: NoRoomError) -> str:
    interleaved = LOADABLE_END - REGION1_BASE
    short = error.interleaved_is_short or error.request.interleaved
    kind = "interleaved memory" if short else "memory"
    step, peak = error.peak()
    found = "" if error.proven else " (no arrangement was found, though one may exist)"
    return (
        f"no room in {kind} for {error.request.name} ({error.request.bytes:,} bytes): {peak:,} bytes live at "
        f"{step_name(plan, step)}, {error.room:,} available, {interleaved:,} of them interleaved; "
        f"{error.over:,} bytes over{found}; largest:"
    )


def largest_buffers(plan: Plan, error: NoRoomError, count: int = LISTED) -> list[str]:
    """One line for each of the largest buffers live at the worst moment, and one for the others together."""
    live = error.largest(len(error.requests))
    lines = [_buffer(plan, request) for request in live[:count]]
    rest = live[count:]
    if rest:
        lines.append(f"{len(rest):,} more, {sum(request.bytes for request in rest):,} bytes together")
    return lines


def _buffer(plan: Plan, request: Request) -> str:
    layout = f", {plan.buffers[request.name].layout.describe()}" if request.name in plan.buffers else ""
    lives = f"{step_name(plan, request.first)} to {step_name(plan, request.last)}"
    owner = f" for {request.owner}" if request.owner else ""
    return f"{request.name} {request.bytes:,} bytes{owner}, {lives}{layout}"


def step_name(plan: Plan, index: int) -> str:
    """What a person calls a step of a plan; `input` and `output` around them."""
    if index < 0:
        return "input"
    return plan.steps[index].name if index < len(plan.steps) else "output"


# Changes that would help ------------------------------------------------------------------------------


def smallest_changes(graph: Graph, tiles: int, fits: Fits) -> list[str]:
    """Changes of one thing each after which the graph fits, tried by planning and placing.

    The first is about tiles, and says so when no number of them is enough.
    """
    enough = enough_tiles(graph, tiles, fits)
    found = [f"{enough:,} tiles would do" if enough else f"even {TILES:,} tiles would not do"]
    for axis, name in ((0, "a batch of"), (1, "a sequence of")):
        extent = _shared_extent(graph, axis)
        if extent is None:
            continue
        smaller = _largest_that_fits(graph, tiles, axis, extent, fits)
        if smaller is not None:
            found.append(f"{name} {smaller:,} instead of {extent:,}")
    return found


def enough_tiles(graph: Graph, tiles: int, fits: Fits) -> int | None:
    """The smallest tile count above `tiles`, to one part in 16, on which the graph fits, or None."""
    low, high = tiles, min(2 * tiles, TILES)
    while high > low and not fits(graph, high):
        low, high = high, min(2 * high, TILES)
    if high <= low:
        return None
    while high - low > max(1, high // PRECISION):
        middle = (low + high) // 2
        low, high = (low, middle) if fits(graph, middle) else (middle, high)
    return high


def _shared_extent(graph: Graph, axis: int) -> int | None:
    """The extent of an axis if all inputs that have it agree and more than one element is left to take away.

    The last axis of an input is its features, which no change of a batch or a sequence touches.
    """
    extents = {value.type.shape[axis] for value in graph.inputs if value.type.rank > axis + 1}
    if len(extents) != 1:
        return None
    extent = extents.pop()
    return extent if extent > 1 else None


def _largest_that_fits(graph: Graph, tiles: int, axis: int, extent: int, fits: Fits) -> int | None:
    def possible(count: int) -> bool:
        changed = resized(graph, axis, count)
        return changed is not None and fits(changed, tiles)

    # Halved until it fits, then the largest between, as far as the trials go: each is a whole plan.
    low, high, left = 0, extent, TRIALS
    while low == 0 and high > 1 and left:
        count, left = high // 2, left - 1
        low, high = (count, high) if possible(count) else (low, count)
    while low and left and high - low > max(1, high // PRECISION):
        middle, left = (low + high) // 2, left - 1
        low, high = (middle, high) if possible(middle) else (low, middle)
    return low or None


def resized(graph: Graph, axis: int, extent: int) -> Graph | None:
    """The same computation on inputs with another extent of an axis; None where operators do not allow it.

    Inputs that do not have the axis beside their features stay as they are.
    """
    before = _shared_extent(graph, axis)

    def changed(type_: TensorType) -> TensorType:
        shape = list(type_.shape)
        if len(shape) > axis + 1 and shape[axis] == before:
            shape[axis] = extent
        return TensorType(tuple(shape), type_.dtype)

    types = {value.name: changed(value.type) for value in graph.inputs}
    try:
        found = trace_function(lambda **inputs: _replay(graph, inputs), types, name=graph.name)
    except TilewrightError:
        return None
    # Broadcasting may have kept an output as large as it was: then something else is computed.
    wanted = [(name, changed(value.type)) for name, value in graph.outputs]
    return found if [(name, value.type) for name, value in found.outputs] == wanted else None


def _replay(graph: Graph, inputs: dict[str, Any]) -> dict[str, Any]:
    """The graph's operations once more, on what the inputs are now."""
    held: dict[Value, Any] = dict(graph.constants)
    held |= {value: inputs[value.name] for value in graph.inputs}
    _walk(graph.body, held)
    return {name: held[value] for name, value in graph.outputs}


def _walk(region: Region, held: dict[Value, Any]) -> None:
    for operation in region.operations:
        operands = [held[value] for value in operation.operands]
        if operation.name != REPEAT:
            held[operation.result] = operator(operation.name)(*operands, **operation.attributes)
            continue
        held.update(zip(operation.results, _loop(Loop(operation), operands, held), strict=True))


def _loop(loop: Loop, operands: Sequence[Any], held: dict[Value, Any]) -> Iterator[Any]:
    from .. import ops

    def body(*arguments: Any) -> tuple[Any, ...]:
        inner = held | dict(zip(loop.region.arguments, arguments, strict=True))
        _walk(loop.region, inner)
        return tuple(inner[value] for value in loop.leaving)

    carried = len(loop.results)
    yield from ops.repeat(body, loop.count, tuple(operands[:carried]), tuple(operands[carried:]))
