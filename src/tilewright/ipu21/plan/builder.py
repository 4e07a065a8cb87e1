"""What operator plans write their stages with: buffers, exchanges and kernel calls appended to one plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..kernels import KERNELS
from . import cost
from .groups import Groups
from .layout import Layout, spread
from .movement import Traffic, gather, load_of, retile
from .steps import (
    Buffer,
    Compute,
    Exchange,
    Fetch,
    Gather,
    Held,
    Loop,
    MemoryClass,
    Plan,
    Report,
    Retile,
    Role,
    WeightUse,
)

Move = Retile | Gather | Fetch

WISHES = ("any", "preferred", "interleaved")
"""Memory classes, the strongest last."""


class Builder:
    """Appends to a plan.

    Attributes:
        price: cycles worth one byte of tile memory.
        element_bytes: of values on the device, 2 or 4.
    """

    def __init__(self, tiles: int, price: float, element_bytes: int = 2) -> None:
        self.plan = Plan(tiles=tiles)
        self.price = price
        self.element_bytes = element_bytes
        self._names: dict[str, int] = {}

    @property
    def tiles(self) -> int:
        return self.plan.tiles

    def fork(self) -> Builder:
        """A builder that knows the same and whose steps are thrown away."""
        other = Builder(self.tiles, self.price, self.element_bytes)
        other._names = dict(self._names)
        other.plan.buffers = dict(self.plan.buffers)
        return other

    def spread(self, rows: int, columns: int) -> Layout:
        """A matrix stored once, its rows dealt over all tiles."""
        return replace(spread(rows, columns, self.tiles), element_bytes=self.element_bytes)

    def family(self, name: str) -> str:
        """A kernel family in the element type of this plan."""
        return f"{name}_f{8 * self.element_bytes}"

    # --- buffers ---

    def add(
        self, name: str, layout: Layout, role: Role, owner: str, *, slots: int = 1, iterations: int = 1
    ) -> str:
        """A new buffer; its name is made unique."""
        count = self._names.get(name, 0) + 1
        self._names[name] = count
        unique = name if count == 1 else f"{name}@{count}"
        self.plan.buffers[unique] = Buffer(unique, layout, role, owner, slots=slots, iterations=iterations)
        return unique

    def layout(self, name: str) -> Layout:
        return self.plan.buffers[name].layout

    def weight(self, name: str, use: WeightUse, layout: Layout, owner: str) -> str:
        """A buffer that holds constants."""
        buffer = self.add(name, layout, "weight", owner, iterations=use.iterations)
        self.plan.weights[buffer] = use
        return buffer

    # --- steps ---

    def exchange(self, name: str, moves: Iterable[Move]) -> None:
        """One phase; nothing if there is nothing to move."""
        moves = tuple(moves)
        if moves:
            self.plan.steps.append(Exchange(name, moves, self.exchange_cycles(moves)))

    def exchange_cycles(self, moves: Iterable[Move]) -> float:
        """Predicted cycles of a phase that carries out all of `moves`."""
        traffic = []
        for move in moves:
            traffic.append(traffic_of(self.plan, move))
        return cost.move(load_of(traffic, self.tiles))

    def call(
        self,
        name: str,
        kernel: str,
        operands: tuple[str | None, ...],
        cycles: float,
        parameters: Mapping[str, int | float] | None = None,
        windows: Mapping[int, tuple[int, int]] | None = None,
    ) -> None:
        """Append a kernel call, and give its buffers what the kernel's contract asks for."""
        contract = KERNELS[kernel].contract
        named = dict(zip((operand.name for operand in contract.operands), operands, strict=True))
        for operand in contract.operands:
            buffer = named[operand.name]
            if buffer is None:
                continue
            held = self.plan.buffers[buffer]
            wish: MemoryClass = "preferred" if operand.prefers_interleaved else "any"
            self.plan.buffers[buffer] = replace(
                held,
                memory="interleaved" if operand.interleaved else max(held.memory, wish, key=WISHES.index),
                tail=max(held.tail, operand.access_tail),
            )
        written = tuple(
            dict.fromkeys(
                named[o.name] for o in contract.operands if o.role == "out" and named[o.name] is not None
            )
        )
        apart = tuple(
            (named[one], named[other])
            for one, other in (*contract.apart, *contract.apart_in_standard)
            if named[one] is not None and named[other] is not None and named[one] != named[other]
        )
        faster = tuple(
            (named[one], named[other])
            for one, other in contract.faster_apart
            if named[one] is not None and named[other] is not None
        )
        self.plan.steps.append(
            Compute(name, kernel, operands, written, cycles, parameters or {}, windows or {}, apart, faster)  # type: ignore[arg-type]
        )

    def loop(self, first: int, count: int) -> None:
        """Everything from step `first` on is the body of a loop."""
        self.plan.loops.append(Loop(first, len(self.plan.steps), count))

    def report(self, report: Report) -> None:
        self.plan.reports.append(report)

    # --- values ---

    def held(self, buffer: str, *, column: int = 0, groups: Groups | None = None, columns: int = 0) -> Held:
        """A value that is a buffer, or columns of it."""
        return Held(buffer, column, columns or self.layout(buffer).column.extent, groups)

    def bring(self, held: Held, layout: Layout, name: str, owner: str) -> tuple[str, list[Move]]:
        """The value in `layout`: where it lies if that is the layout, otherwise a new buffer and the move."""
        whole = held.column == 0 and held.columns == self.layout(held.buffer).column.extent
        if whole and self.layout(held.buffer).same_shards(layout):
            return held.buffer, []
        buffer = self.add(name, layout, "scratch", owner)
        return buffer, [Retile(held.buffer, buffer, held.column)]


def traffic_of(plan: Plan, move: Move) -> Traffic:
    """Fragments, receivers and local copies of a move."""
    if isinstance(move, Fetch):
        return move.traffic
    source = plan.buffers[move.source].layout
    if isinstance(move, Gather):
        return gather(source, plan.buffers[move.result].layout, move.parts, move.stride, move.own)
    return retile(source, plan.buffers[move.destination].layout, move.column)
