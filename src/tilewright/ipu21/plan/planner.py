"""From a graph to a plan: one pass over its tasks, each choosing the cheapest way for what it finds.

The right choice for one task depends little on the others, because every value is stored once, in AMP
records, on the tiles that computed it: on the product that takes its result (`ahead`), and on memory. That
coupling are the `prices`: cycles one is ready to pay for a byte per tile. The pipeline raises them until the
placer finds room.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...compiler.numerics import Numerics
from ...graph import Graph, Operation, Region, Value
from ...graph.uses import dependencies
from ...operators.parameter import flag, integer
from . import attention, batched, cost, normalise, pointwise, softmax, views
from .ahead import Consumer, consumer_of
from .builder import WISHES, Builder, Move
from .groups import Groups, padded_columns
from .layout import Layout, matrix_view
from .price import Prices
from .product import plan_product
from .steps import Compute, Exchange, Gather, Held, Plan, Retile, Step, results, sources
from .support import check_supported
from .tasks import Product, Task, count_uses, name_of, tasks_of
from .views import View

TRIALS = 4
"""How often the body of a loop is planned at most before its carried values have found their places."""

HANDLERS: dict[str, Callable[[Planner, Operation], None]] = {
    "add": pointwise.plan_add,
    "gelu": pointwise.plan_gelu,
    "layer_norm": normalise.plan_layer_norm,
    "l2_normalize": normalise.plan_l2_normalize,
    "softmax": softmax.plan_softmax,
    "attention": attention.plan_attention,
    "matmul": batched.plan_matmul,
    "repeat": lambda planner, operation: planner.repeat(operation),
    **dict.fromkeys(views.VIEWS, views.plan_view),
}


def plan_graph(
    graph: Graph, *, tiles: int, prices: Prices | None = None, numerics: Numerics | None = None
) -> Plan:
    """Plan a graph on logical tiles 0..tiles-1.

    Args:
        prices: of tile memory; larger ones give smaller, slower plans, none the fastest.

    Raises UnsupportedError listing everything that has no plan.
    """
    numerics = numerics or Numerics()
    check_supported(graph, set(HANDLERS), numerics)
    prices = Prices() if prices is None else prices
    first = Planner(graph, tiles, prices, numerics)
    plan = first.whole()
    if first.would_gain():
        other = Planner(graph, tiles, prices, numerics, first.entered).whole()
        plan = min(plan, other, key=Plan.cycles)
    return plan


class Planner:
    """What is known while planning: where values lie, who still needs them.

    Attributes:
        builder: takes the stages.
        entered: how values lie in the loops that they enter, where they are brought there first.
    """

    def __init__(
        self,
        graph: Graph,
        tiles: int,
        prices: Prices,
        numerics: Numerics,
        entered: Mapping[int, Layout] | None = None,
    ) -> None:
        self.builder = Builder(tiles, prices.general, numerics.element_bytes)
        self.entered: dict[int, Layout] = {}
        self._hints = entered or {}
        self._spread: dict[int, Layout] = {}
        self._prices = prices
        self._graph = graph
        self._constants = {value.id: (value.name, 1) for value, _ in graph.constants}
        self._inputs = {value.id for value in graph.inputs}
        self._held: dict[int, Held] = {}
        self._last: dict[int, int] = {}
        self._views: dict[int, View] = {}
        self._inside: set[int] = set()
        self._position = 0
        self._tasks: Sequence[Task] = ()
        self._carried: dict[int, Value] = {}
        self._fresh = 0
        self._wanted = _wanted_groups(graph.body)
        self._uses = count_uses(graph.body)

    def whole(self) -> Plan:
        """The plan of the whole graph."""
        self.region(self._graph.body)
        for name, value in self._graph.outputs:
            self.builder.plan.outputs[name] = self.needed(value, self.groups_as_held(value))
        for value in self._graph.inputs:
            # An input nobody uses still arrives: the caller gives it at every run.
            self.needed(value, self.groups_as_held(value))
        return self.builder.plan

    def would_gain(self) -> bool:
        """True if inputs had better be stored as the loops want them that they enter normalised."""
        return any(
            normalise.expected(layout) < normalise.expected(self._spread[identity]) + cost.PHASE_FIXED
            for identity, layout in self.entered.items()
            if identity in self._spread
        )

    def spread_for(self, value: Value, layout: Layout) -> Layout:
        """How an input is stored that `value` is made of where it lies: in `layout`, or as the loop wants it
        that the value enters, if that is known.
        """
        self._spread[value.id] = layout
        hint = self._hints.get(value.id)
        return layout if hint is None else hint

    # --- values ---

    def view(self, value: Value) -> tuple[int, int]:
        """Rows and columns of a value seen as a matrix, without padding."""
        return matrix_view(value.type.shape)

    def lies(self, value: Value) -> Held | None:
        """Where a value lies; None for an input that has no place yet."""
        if value.id in self._held:
            return self._held[value.id]
        if value.id in self._views or value.id in self._constants:
            return self.needed(value, self.wanted_groups(value))
        if value.id not in self._inputs:
            raise AssertionError(f"{value.name} is used before it is computed")
        return None

    def is_free_input(self, value: Value) -> bool:
        """True for an input that can still be stored as its user wants it."""
        return value.id in self._inputs and value.id not in self._held

    def lies_or_view(self, value: Value) -> Held | View | None:
        """Where a value lies, or what it is a view of; None for an input or a constant without a place."""
        return self._views.get(value.id) or self._held.get(value.id)

    def leave_view(self, value: Value, view: View) -> None:
        """Record a result that is a view of others, which stay until it is not needed any more."""
        self._views[value.id] = view
        for base in view.bases:
            self.keep(base, value)

    def keep(self, base: Value, value: Value) -> None:
        """A value is needed as long as another is that shares its elements."""
        self._last[base.id] = max(self._last.get(base.id, -1), self._last.get(value.id, -1))

    def alias(self, value: Value, other: Value) -> None:
        """A value that is another under a shape with the same rows and columns."""
        self._held[value.id] = self.needed(other, self.groups_as_held(other))
        self._last[value.id] = self._last.get(other.id, -1)

    def fresh_id(self) -> int:
        """An id that no value of the graph has."""
        self._fresh -= 1
        return self._fresh

    def is_used_once(self, value: Value) -> bool:
        """True if one operand of one operation is this value, and no result."""
        return self._uses[value.id] == 1

    def groups_as_held(self, value: Value) -> Groups | None:
        """How a value's columns are padded where it lies."""
        held = self._held.get(value.id)
        return held.groups if held else self.wanted_groups(value)

    def place_input(self, value: Value, layout: Layout, groups: Groups | None) -> Held:
        """Give an input its place."""
        buffer = self.builder.add(value.name, layout, "input", value.name)
        held = self.builder.held(buffer, groups=groups)
        self._held[value.id] = held
        self.builder.plan.inputs[value.name] = held
        return held

    def needed(self, value: Value, groups: Groups | None) -> Held:
        """Where a value lies, with its columns padded in the given way.

        A free input is spread over all tiles; another padding costs a rearrangement; a constant is stored.
        """
        if value.id in self._constants:
            return views.stored_constant(self, value, groups)
        if value.id in self._views:
            view = self._views.pop(value.id)
            self.leave(value, views.materialise(self, value, view, groups))
        if self.is_free_input(value):
            rows, columns = self.view(value)
            stored = groups or self.wanted_groups(value)
            layout = self.builder.spread(rows, padded_columns(columns, stored))
            self.place_input(value, layout, stored)
        held = self._held[value.id]
        if held.groups != groups and _real(held.groups) != _real(groups):
            return views.regrouped(self, value, groups)
        return held

    def matrix(self, value: Value, owner: str) -> Held:
        """Where a value lies, as a whole buffer of A16 records without padding of rows, its columns padded as
        they are.
        """
        known = self._held.get(value.id)
        held = self.needed(value, known.groups if known else self.wanted_groups(value))
        source = self.builder.source(held)
        if source.whole and source.layout.order == "a16" and not source.layout.pads_rows:
            return held
        wanted = self.builder.spread(source.layout.row.extent, held.columns)
        return self.builder.receive(held, wanted, "operand", owner)

    def leave(self, value: Value, held: Held) -> None:
        """Record where a result lies, after the last step written so far."""
        self._held[value.id] = held
        self._inside.add(value.id)
        self.builder.plan.values[value.name] = (held, len(self.builder.plan.steps) - 1)

    def output_like(self, operation: Operation, source: Held) -> str:
        """A buffer for a result laid out as an operand: the operand's own if nobody needs it any more."""
        if self._may_overwrite(source.buffer):
            return source.buffer
        layout = self.builder.layout(source.buffer)
        name = operation.results[0].name
        return self.builder.add(name, layout, "value", name)

    def _may_overwrite(self, buffer: str) -> bool:
        if self.builder.plan.buffers[buffer].role == "weight":
            return False
        for identity, held in self._held.items():
            if held.buffer != buffer:
                continue
            if identity not in self._inside or self._last.get(identity, -1) > self._position:
                return False
        return True

    # --- constants ---

    def is_constant(self, value: Value) -> bool:
        return value.id in self._constants

    def constant(self, value: Value) -> str:
        """Name of the graph's constant behind a value."""
        return self._constants[value.id][0]

    def iterations_of(self, value: Value) -> int:
        """How many slices of a constant one loop walks through; 1 for what does not change."""
        return self._constants[value.id][1] if value.id in self._constants else 1

    def wanted_groups(self, value: Value) -> Groups | None:
        """How the consumers of a value want its columns padded."""
        return self._wanted.get(value.id)

    # --- tasks ---

    def region(self, region: Region) -> None:
        """Plan everything in a region, in order."""
        constants = set(self._constants)
        iterated = {identity for identity, (_, count) in self._constants.items() if count > 1}
        tasks = tasks_of(region, constants, constants | self._right_inputs(), iterated)
        last: dict[int, int] = {}
        for index, task in enumerate(tasks):
            for value in _operands(task):
                last[value.id] = index
        for value in region.results:
            last[value.id] = len(tasks)
        self._last = last
        carried = {}
        if region is not self._graph.body:
            carried = {
                result.id: value for result, value in zip(region.results, region.arguments, strict=False)
            }
        for index, task in enumerate(tasks):
            self._position, self._last, self._tasks, self._carried = index, last, tasks, carried
            self.builder.price = self._prices.of(name_of(task))
            if isinstance(task, Product):
                plan_product(self, task)
            else:
                HANDLERS[task.name](self, task)
        self._position, self._last = len(tasks), last

    def consumer_of(self, value: Value) -> Consumer | None:
        """The product that will take what the present task computes as its left operand."""
        return consumer_of(self._tasks, self._position, value, self._carried)

    def _right_inputs(self) -> set[int]:
        """Inputs that nothing uses but one product, as its right operand."""
        found = set()
        for operation in self._graph.body.operations:
            if operation.name == "matmul" and not flag(operation.attributes, "transpose_b"):
                right = operation.operands[1]
                if self.is_free_input(right) and self.is_used_once(right) and right.type.rank == 2:
                    found.add(right.id)
        return found

    # --- loops ---

    def repeat(self, operation: Operation) -> None:
        """A loop: the carried values lie at its head where an iteration leaves them.

        The body is planned several times: first to learn where its results end up, then from there, until
        they stay where they were.
        """
        (region,) = operation.regions
        carried = len(operation.results)
        count = integer(operation.attributes, "count")
        for value in dependencies(operation):
            # What is a view outside is rearranged once, not in every iteration.
            if value.id in self._views:
                self.needed(value, self.groups_as_held(value))
        operands = operation.operands[:carried]
        initial = [self.needed(value, self.groups_as_held(value)) for value in operands]
        places: list[_Place] = []
        for _ in range(TRIALS):
            trial = self._fork()
            entries = trial._entries(operation, places) if places else initial
            trial._body(region, operation, entries, count)
            known, places = places, [trial._place(held) for held in trial._leaving(region)]
            if places == known:
                break
        initial = [self.needed(value, place.groups) for value, place in zip(operands, places, strict=True)]
        entries = self._entries(operation, places, initial)
        moves: list[Move] = [
            Retile(held.buffer, entry.buffer, held.column)
            for held, entry in zip(initial, entries, strict=True)
            if held.buffer != entry.buffer
        ]
        for value, held, entry in zip(operands, initial, entries, strict=True):
            if held.groups == entry.groups and held.columns == entry.columns and value.id in self._last:
                self.entered[value.id] = self.builder.layout(entry.buffer)
        self.builder.exchange(f"{operation.results[0].name}.enter", moves)
        first = len(self.builder.plan.steps)
        outer = (self._position, self._last, set(self._inside))
        self._body(region, operation, entries, count)
        self._next(operation, entries, first)
        self.builder.loop(first, count)
        self._position, self._last, self._inside = outer
        for value, entry in zip(operation.results, entries, strict=True):
            self.leave(value, entry)

    def _next(self, operation: Operation, entries: list[Held], first: int) -> None:
        """Bring what an iteration leaves to where the next one expects it."""
        (region,) = operation.regions
        name = operation.results[0].name
        left = [
            self.needed(value, entry.groups) for value, entry in zip(region.results, entries, strict=True)
        ]
        for index, entry in enumerate(entries):
            held = left[index]
            others = {other.buffer for other in left[:index] + left[index + 1 :]}
            if entry.buffer not in others and self._unify(held, entry, first):
                left = [replace(h, buffer=entry.buffer) if h.buffer == held.buffer else h for h in left]
        waiting = [(held, entry) for held, entry in zip(left, entries, strict=True) if held != entry]
        written = {entry.buffer for _, entry in waiting}
        aside: dict[str, str] = {}
        for held, _ in waiting:
            # Carried values that change places must not overwrite each other.
            if held.buffer in written and held.buffer not in aside:
                layout = self.builder.layout(held.buffer)
                aside[held.buffer] = self.builder.add(f"{name}.aside", layout, "scratch", name)
        self.builder.exchange(f"{name}.aside", [Retile(old, new) for old, new in aside.items()])
        moves = [
            Retile(aside.get(held.buffer, held.buffer), entry.buffer, held.column) for held, entry in waiting
        ]
        self.builder.exchange(f"{name}.next", moves)

    def _place(self, held: Held) -> _Place:
        return _Place(self.builder.source(held).layout_of_its_own(), held.columns, held.groups)

    def _entries(
        self, operation: Operation, places: list[_Place], initial: Sequence[Held] = ()
    ) -> list[Held]:
        """Buffers for the carried values of a loop: those of `initial` that already lie as they should and
        are not needed any more, new ones for others.
        """
        entries: list[Held] = []
        for index, (value, place) in enumerate(zip(operation.results, places, strict=True)):
            if initial and self._is_entry(initial[index], place) and initial[index] not in entries:
                entries.append(initial[index])
                continue
            buffer = self.builder.add(value.name, place.layout, "value", value.name)
            entries.append(Held(buffer, 0, place.columns, place.groups))
        return entries

    def _is_entry(self, held: Held, place: _Place) -> bool:
        """True if a loop may carry a value where it lies."""
        layout = self.builder.layout(held.buffer)
        lies = (layout, held.column, held.columns, held.groups) == (
            place.layout,
            0,
            place.columns,
            place.groups,
        )
        return lies and self._may_overwrite(held.buffer)

    def _fork(self) -> Planner:
        """A planner that knows the same and whose steps are thrown away."""
        other = copy.copy(self)
        other.builder = self.builder.fork()
        other._held, other._constants = dict(self._held), dict(self._constants)
        other._inside, other._views = set(self._inside), dict(self._views)
        return other

    def _body(self, region: Region, operation: Operation, entries: list[Held], count: int) -> None:
        carried = len(entries)
        self._inside = set()
        for argument, held in zip(region.arguments[:carried], entries, strict=True):
            self._held[argument.id] = held
            self._inside.add(argument.id)
        for argument, value in zip(region.arguments[carried:], operation.operands[carried:], strict=True):
            self._constants[argument.id] = (self._constants[value.id][0], count)
        self.region(region)

    def _leaving(self, region: Region) -> list[Held]:
        """Where the results of a region lie."""
        return [self.needed(value, self.groups_as_held(value)) for value in region.results]

    def _unify(self, held: Held, entry: Held, first: int) -> bool:
        """Let an iteration leave a value where the next one expects it, if that is possible in place."""
        if held == entry:
            return True
        plan = self.builder.plan
        steps = plan.steps[first:]
        old, new = plan.buffers[held.buffer], plan.buffers[entry.buffer]
        begins = [index for index, step in enumerate(steps) if held.buffer in results(step)]
        if (
            held.column
            or old.layout != new.layout
            or not begins
            or any(held.buffer in [*results(step), *sources(step)] for step in plan.steps[:first])
            or any(entry.buffer in sources(step) for step in steps[begins[0] + 1 :])
            or _reads_both(steps[begins[0]], entry.buffer)
        ):
            return False
        plan.steps[first:] = [_renamed(step, held.buffer, entry.buffer) for step in steps]
        plan.buffers[entry.buffer] = replace(
            new,
            memory=max(old.memory, new.memory, key=WISHES.index),
            tail=max(old.tail, new.tail),
        )
        del plan.buffers[held.buffer]
        for name, (place, step) in plan.values.items():
            if place.buffer == held.buffer:
                plan.values[name] = (replace(place, buffer=entry.buffer), step)
        for identity, place in self._held.items():
            if place.buffer == held.buffer:
                self._held[identity] = replace(place, buffer=entry.buffer)
        return True


@dataclass(frozen=True)
class _Place:
    """How a carried value lies at the head of a loop."""

    layout: Layout
    columns: int
    groups: Groups | None


def _reads_both(step: Step, buffer: str) -> bool:
    """True if a step reads a buffer at other places than it writes."""
    if isinstance(step, Compute):
        return buffer in step.read and step.kernel != "normalise_f16"
    return buffer in sources(step)


def _renamed(step: Step, old: str, new: str) -> Step:
    def name(buffer: str) -> str:
        return new if buffer == old else buffer

    if isinstance(step, Exchange):
        moves: list[Move] = []
        for move in step.moves:
            source, destination = name(move.source), name(move.destination)
            if isinstance(move, Gather):
                moves.append(replace(move, source=source, destination=destination, result=name(move.result)))
            else:
                moves.append(replace(move, source=source, destination=destination))
        return replace(step, moves=tuple(moves))
    return replace(
        step,
        operands=tuple(None if buffer is None else name(buffer) for buffer in step.operands),
        written=tuple(name(buffer) for buffer in step.written),
        apart=tuple((name(a), name(b)) for a, b in step.apart),
        prefer_apart=tuple((name(a), name(b)) for a, b in step.prefer_apart),
    )


def _operands(task: Task) -> list[Value]:
    if isinstance(task, Product):
        extra = [value for value in (*task.biases, task.residual) if value is not None]
        return [task.left, *task.rights, *extra]
    return dependencies(task)


def _real(groups: Groups | None) -> Groups | None:
    """Groups that put padding between columns; padding behind the last column makes no difference."""
    return groups if groups is not None and groups.count > 1 else None


def _wanted_groups(region: Region) -> dict[int, Groups]:
    """How attention wants the columns of its operands padded, by value; what it says itself of its result
    comes with the result.
    """
    wanted: dict[int, Groups] = {}
    for operation in region.operations:
        if operation.name == "attention":
            narrow, wide = attention.head_groups(operation)
            for value, groups in zip(operation.operands, (narrow, narrow, wide), strict=False):
                if groups is not None:
                    wanted.setdefault(value.id, groups)
        for inner in operation.regions:
            wanted |= _wanted_groups(inner)
    return wanted
