"""What operator plans write their stages with: buffers, exchanges and kernel calls appended to one plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..kernels import KERNELS
from ..kernels.gemm import LOOK_AHEAD
from . import cost
from .groups import Groups
from .layout import MICRO, Layout, Source, spread, uniform
from .movement import Traffic, gather, load_of, retile
from .price import Price
from .steps import (
    Buffer,
    Compute,
    Exchange,
    Fetch,
    Gather,
    Held,
    Listing,
    Loop,
    MemoryClass,
    Plan,
    Report,
    Retile,
    Role,
    WeightUse,
)

Move = Retile | Gather | Fetch

ADDRESS_BYTES = 4
WISHES = ("any", "preferred", "interleaved")
"""Memory classes, the strongest last."""


class Builder:
    """Appends to a plan.

    Attributes:
        price: what memory is worth to the operation that is being planned.
        element_bytes: of values on the device, 2 or 4.
    """

    def __init__(self, tiles: int, price: Price, element_bytes: int = 2) -> None:
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

    def listing(self, name: str, own: str, others: str, owner: str) -> str:
        """A buffer with the addresses of weight panels, of which a tile has its own in one buffer and the
        others in another.
        """
        layout = self.layout(others)
        panels = int(layout.bytes.max()) // layout.record_bytes
        buffer = self.add(name, uniform(layout.tiles, panels + LOOK_AHEAD, ADDRESS_BYTES), "table", owner)
        self.plan.listings[buffer] = Listing(own, others)
        return buffer

    # --- steps ---

    def exchange(self, name: str, moves: Iterable[Move], cycles: float | None = None) -> None:
        """One phase; nothing if there is nothing to move.

        Args:
            cycles: what it adds to the plan, where that is not simply what it takes.
        """
        moves = tuple(moves)
        if not moves:
            return
        if cycles is None:
            cycles = cost.move(load_of([traffic_of(self.plan, move) for move in moves], self.tiles))
        self.plan.steps.append(Exchange(name, moves, cycles))

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

    def sum_partials(
        self,
        owner: str,
        partial: str,
        result: Layout,
        parts: int,
        stride: int,
        cycles: float,
        *,
        name: str,
        role: Role,
        moves: Iterable[Move] = (),
        kernel: str = "root_f16",
        addend: str | None = None,
    ) -> str:
        """Add up float16 partial sums at the roots of their pieces; the buffer of the sums.

        Args:
            parts, stride: see `Gather`.
            cycles: of the root kernel.
            name, role: of the buffer.
            moves: what else comes with the partial sums.
            kernel: of the roots; addend: buffer of what it adds.
        """
        gathered = self.add(f"{owner}.gathered", result, "scratch", owner, slots=parts - 1)
        out = self.add(name, result, role, owner)
        self.exchange(f"{owner}.partials", [Gather(partial, gathered, out, parts, stride), *moves])
        operands = (out, partial, gathered, None, addend)
        self.call(f"{owner}.root", kernel, operands, cycles, {"remote": parts - 1})
        return out

    def current(self, weights: str, owner: str) -> str:
        """This iteration's constants, copied to where they are in every iteration."""
        layout = self.layout(weights)
        current = self.add(f"{owner}.current", layout, "scratch", owner)
        cycles = float(cost.kernel("copy_u64", words=int(layout.bytes.max()) // 8))
        self.call(f"{owner}.current", "copy_u64", (current, weights), cycles)
        return current

    def clear_padding(self, buffer: str) -> None:
        """Zeros in the rows that only fill up the last block of an operand: what they are multiplied with is
        0, but 0 times what memory happens to hold need not be.
        """
        layout = self.layout(buffer)
        if layout.order != "a16" or not layout.pads_rows:
            return
        cycles = float(cost.kernel("fill_u64", words=4 * (MICRO - 1)))
        for panel in range(layout.column.largest() // MICRO):
            self.call(f"{buffer}.clear", "fill_u64", (buffer,), cycles, {"panel": panel})

    def loop(self, first: int, count: int) -> None:
        """Everything from step `first` on is the body of a loop."""
        self.plan.loops.append(Loop(first, len(self.plan.steps), count))

    def report(self, report: Report) -> None:
        self.plan.reports.append(report)

    # --- values ---

    def held(self, buffer: str, *, column: int = 0, groups: Groups | None = None, columns: int = 0) -> Held:
        """A value that is a buffer, or columns of it."""
        return Held(buffer, column, columns or self.layout(buffer).column.extent, groups)

    def source(self, held: Held) -> Source:
        """A value's place, as searches see it."""
        return Source(self.layout(held.buffer), held.column, held.columns)

    def bring(self, held: Held, layout: Layout, name: str, owner: str) -> tuple[str, list[Move]]:
        """The value in `layout`: where it lies if that is the layout, otherwise a new buffer and the move."""
        if self.source(held).lies_in(layout):
            return held.buffer, []
        buffer = self.add(name, layout, "scratch", owner)
        return buffer, [Retile(held.buffer, buffer, held.column)]

    def receive(self, held: Held, layout: Layout, operand: str, owner: str) -> Held:
        """The value in `layout`, by an exchange of its own if it does not lie so already."""
        buffer, moves = self.bring(held, layout, f"{owner}.{operand}", owner)
        self.exchange(f"{owner}.receive", moves)
        return Held(buffer, 0, held.columns, held.groups)


def traffic_of(plan: Plan, move: Move) -> Traffic:
    """Fragments, receivers and local copies of a move."""
    if isinstance(move, Fetch):
        return move.traffic
    source = plan.buffers[move.source].layout
    if isinstance(move, Gather):
        return gather(source, plan.buffers[move.result].layout, move.parts, move.stride, move.own)
    destination = plan.buffers[move.destination].layout
    if move.part == "all":
        return retile(source, destination, move.column)
    if move.part == "others":
        return retile(source, destination, move.column, hearing="none").sent
    traffic = retile(source, destination, move.column, hearing="paired")
    return traffic.sent if move.part == "sent" else traffic.kept
