"""The stages of a plan, in the one form that cost, memory, lowering and reports all walk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .groups import Groups
from .layout import Layout
from .movement import Traffic

MemoryClass = Literal["any", "preferred", "interleaved"]
Role = Literal["input", "weight", "value", "scratch", "table"]


@dataclass(frozen=True)
class Buffer:
    """Something every tile of a layout holds in memory, still without an address.

    Attributes:
        name: unique within the plan.
        layout: who holds which part.
        role: inputs come from the host at every run; weights and tables are there before the first and live
            for ever.
        memory: "interleaved" must lie in region 1 (128-bit accesses), "preferred" is read faster there,
            "any" may lie anywhere.
        slots: copies of the shard kept side by side (gathered partial sums).
        iterations: shards kept side by side, one per iteration of the loop that reads them.
        tail: bytes past the end that a kernel may read, contents irrelevant.
        owner: the operation (or graph input) that asked for it, for messages.
    """

    name: str
    layout: Layout
    role: Role
    owner: str
    memory: MemoryClass = "any"
    slots: int = 1
    iterations: int = 1
    tail: int = 0

    def shard_bytes(self) -> NDArray[np.int64]:
        """Bytes needed by each logical tile, tail excluded."""
        return self.layout.bytes * self.slots * self.iterations


@dataclass(frozen=True)
class Retile:
    """Move a matrix, or columns of it, into another layout of the same order.

    Attributes:
        column: column of the source that is column 0 of the destination.
        part: all of it, or one of two steps: "sent" is all that travels, and a tile whose partner does not
            receive what it holds does not hear itself; "kept" is what stays on its tile, and is copied. Or
            "others": what tiles do not hold themselves, and nothing else.
    """

    source: str
    destination: str
    column: int = 0
    part: Literal["all", "sent", "kept", "others"] = "all"


@dataclass(frozen=True)
class Gather:
    """Bring the partial sums of one result piece to its root.

    `source` holds on each tile a partial sum of a block; tiles whose index differs only in
    `(t // stride) % parts` hold partial sums of the same block. `destination` holds on each root the
    others' partial sums of its own piece, one slot per other tile in rising order; with `own`, one slot per
    tile, its own among them.
    """

    source: str
    destination: str
    result: str
    parts: int
    stride: int
    own: bool = False


@dataclass(frozen=True, eq=False)
class Fetch:
    """Move single words, as listed."""

    source: str
    destination: str
    traffic: Traffic


@dataclass(frozen=True)
class Exchange:
    """One phase of inter-tile traffic behind local copies of what need not leave its tile, or only these."""

    name: str
    moves: tuple[Retile | Gather | Fetch, ...]
    cycles: float


@dataclass(frozen=True)
class Compute:
    """One kernel call on every tile that holds a part of its first operand.

    Attributes:
        kernel: name in the kernel registry.
        operands: buffer names in the order of the kernel's operands; None where it has one too many.
        written: those of them that the kernel writes.
        parameters: plan-time facts the lowering of this kernel needs.
        windows: operand position -> (first, number of) columns of each tile's shard that are meant; all of
            them if absent. Tiles whose shard has no such columns sit the call out.
        apart: pairs of buffer names that must not share a memory element during the call.
        prefer_apart: pairs that had better not.
    """

    name: str
    kernel: str
    operands: tuple[str | None, ...]
    written: tuple[str, ...]
    cycles: float
    parameters: Mapping[str, int | float] = field(default_factory=dict)
    windows: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    apart: tuple[tuple[str, str], ...] = ()
    prefer_apart: tuple[tuple[str, str], ...] = ()

    @property
    def output(self) -> str:
        """The first operand, which says who takes part."""
        assert self.operands[0] is not None
        return self.operands[0]

    @property
    def read(self) -> tuple[str, ...]:
        """Buffers whose contents the kernel needs. An operand it both reads and writes stands in both
        places.
        """
        first_seen = dict.fromkeys(name for name in self.operands if name is not None)
        several = [name for name in first_seen if self.operands.count(name) > 1]
        return tuple(name for name in first_seen if name not in self.written or name in several)


Step = Exchange | Compute


@dataclass(frozen=True)
class Loop:
    """Steps first .. end-1 run `count` times."""

    first: int
    end: int
    count: int


@dataclass(frozen=True)
class WeightUse:
    """Constants as one operation wants them: one matrix, or one per iteration.

    Attributes:
        constants: names; their matrices stand beside each other, or below each other if `stacked`; "" is
            zeros.
        shape: the matrix, [rows, columns], without padding of groups.
        stacked: every constant is one row.
        repeated: every constant is one row, which stands in all rows.
        transposed: every constant is stored as [columns, rows].
        row_groups: the groups whose padding the rows have on the device.
        column_groups: the same for the columns of each constant; empty for none.
        widths: columns of each constant, where some are zeros.
        broadcast: shape the constant is broadcast to before it is seen as a matrix.
        iterations: leading extent of the constants, 1 without a loop.
        turned: the device holds the transpose, [columns, rows] with all padding.
    """

    constants: tuple[str, ...]
    shape: tuple[int, int]
    stacked: bool = False
    repeated: bool = False
    transposed: bool = False
    row_groups: Groups | None = None
    column_groups: tuple[Groups | None, ...] = ()
    widths: tuple[int, ...] = ()
    broadcast: tuple[int, ...] = ()
    iterations: int = 1
    turned: bool = False


@dataclass(frozen=True)
class Listing:
    """The addresses of all panels of a shard of weights, in order, and some more of any bytes.

    Attributes:
        own: buffer with those that each tile holds.
        others: buffer that has a place for every panel, to which the others' are brought.
    """

    own: str
    others: str


@dataclass(frozen=True)
class Held:
    """Where a value lies.

    Attributes:
        buffer: its buffer.
        column: column of the buffer's matrix where the value begins.
        columns: its columns, padding of groups included.
        groups: how its columns are padded, if they are.
    """

    buffer: str
    column: int
    columns: int
    groups: Groups | None = None


@dataclass
class Report:
    """What was decided about one operation, for people.

    Attributes:
        operation: result names.
        chosen: the plan in words.
        cycles: predicted, by stage.
        bytes: on the fullest tile.
        weighed: other plans in words with their predicted cycles and bytes.
    """

    operation: str
    chosen: str
    cycles: dict[str, float]
    bytes: int
    weighed: list[tuple[str, float, int]] = field(default_factory=list)

    @property
    def first(self) -> str:
        """The name of the first result."""
        return self.operation.split(",")[0]


@dataclass
class Plan:
    """Everything decided about a graph: buffers, steps in order, and what the host gives and takes.

    Attributes:
        tiles: tiles the plan may use (logical 0..tiles-1).
        buffers: by name.
        steps: in program order.
        loops: disjoint, rising.
        inputs: graph input name -> where it lies.
        weights: buffer name -> the constants it holds.
        tables: buffer name -> bytes of each logical tile that has the buffer.
        listings: buffer name -> what it lists.
        outputs: output name -> where it lies.
        values: result name of an operation -> where it lies, and the step after which all of it is there.
        reports: one per operation.
    """

    tiles: int
    buffers: dict[str, Buffer] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    inputs: dict[str, Held] = field(default_factory=dict)
    weights: dict[str, WeightUse] = field(default_factory=dict)
    tables: dict[str, dict[int, bytes]] = field(default_factory=dict)
    listings: dict[str, Listing] = field(default_factory=dict)
    outputs: dict[str, Held] = field(default_factory=dict)
    values: dict[str, tuple[Held, int]] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)

    def times(self) -> list[int]:
        """How often each step runs."""
        counts = [1] * len(self.steps)
        for loop in self.loops:
            counts[loop.first : loop.end] = [loop.count] * (loop.end - loop.first)
        return counts

    def cycles(self) -> float:
        """Predicted device cycles of one run."""
        return sum(step.cycles * count for step, count in zip(self.steps, self.times(), strict=True))

    def lifetimes(self) -> dict[str, tuple[int, int]]:
        """First and last step index during which each buffer's contents matter.

        -1 is the arrival of the inputs, len(steps) the departure of the outputs. What a loop reads before it
        writes it lives through the whole loop, and so does what is used inside and outside.
        """
        last = len(self.steps)
        first_use: dict[str, int] = {}
        last_use: dict[str, int] = {}
        for index, step in enumerate(self.steps):
            for name in touched(step):
                first_use.setdefault(name, index)
                last_use[name] = index
        result = {}
        for name, buffer in self.buffers.items():
            begin, end = first_use.get(name, last), last_use.get(name, -1)
            if buffer.role in ("weight", "table"):
                begin, end = -1, last
            if buffer.role == "input":
                begin = -1
            result[name] = (begin, max(begin, end))
        for held in self.outputs.values():
            result[held.buffer] = (result[held.buffer][0], last)
        for loop in self.loops:
            carried = self._read_first(loop)
            for name, (begin, end) in result.items():
                inside = begin < loop.end and end >= loop.first
                if inside and (begin < loop.first or end >= loop.end or name in carried):
                    result[name] = (min(begin, loop.first), max(end, loop.end - 1))
        return result

    def _read_first(self, loop: Loop) -> set[str]:
        """Buffers that an iteration reads before it writes them."""
        written: set[str] = set()
        found: set[str] = set()
        for step in self.steps[loop.first : loop.end]:
            found |= set(sources(step)) - written
            written |= set(results(step))
        return found


def sources(step: Step) -> list[str]:
    """Names of the buffers a step reads."""
    if isinstance(step, Compute):
        return list(step.read)
    return [move.source for move in step.moves]


def results(step: Step) -> list[str]:
    """Names of the buffers a step writes."""
    if isinstance(step, Compute):
        return list(step.written)
    return [move.destination for move in step.moves]


def touched(step: Step) -> list[str]:
    """Names of the buffers a step reads or writes."""
    return [*results(step), *sources(step)]
