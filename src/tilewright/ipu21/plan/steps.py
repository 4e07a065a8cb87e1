"""The stages of a plan, in the one form that cost, memory, lowering and reports all walk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .layout import Layout

MemoryClass = Literal["any", "interleaved"]
Role = Literal["input", "weight", "value", "scratch"]


@dataclass(frozen=True)
class Buffer:
    """Something every tile of a layout holds in memory, still without an address.

    Attributes:
        name: unique within the plan.
        layout: who holds which part.
        role: inputs and weights come from the host; weights live for ever.
        memory: "interleaved" must lie in region 1 (128-bit accesses), "any" may lie anywhere.
        slots: copies of the shard kept side by side (gathered partial sums).
        tail: bytes past the end that a kernel may read, contents irrelevant.
        owner: the operation (or graph input) that asked for it, for messages.
    """

    name: str
    layout: Layout
    role: Role
    owner: str
    memory: MemoryClass = "any"
    slots: int = 1
    tail: int = 0

    def shard_bytes(self) -> NDArray[np.int64]:
        """Bytes needed by each logical tile, tail excluded."""
        return self.layout.bytes * self.slots


@dataclass(frozen=True)
class Retile:
    """Move a matrix into another layout of the same order."""

    source: str
    destination: str


@dataclass(frozen=True)
class Gather:
    """Bring the partial sums of one result piece to its root.

    `source` holds on each tile a partial sum of a block; tiles whose index differs only in
    `(t // stride) % parts` hold partial sums of the same block. `destination` holds on each root the
    others' partial sums of its own piece, one slot per other tile in rising order.
    """

    source: str
    destination: str
    result: str
    parts: int
    stride: int


@dataclass(frozen=True)
class Exchange:
    """One phase of inter-tile traffic."""

    name: str
    moves: tuple[Retile | Gather, ...]
    cycles: float


@dataclass(frozen=True)
class Compute:
    """One kernel call on every tile that holds a part of `output`.

    Attributes:
        kernel: name in the kernel registry.
        output, inputs: buffer names.
        apart: pairs of buffer names that must not share a memory element during the call.
        parameters: plan-time facts the lowering of this kernel needs.
    """

    name: str
    kernel: str
    output: str
    inputs: tuple[str, ...]
    cycles: float
    apart: tuple[tuple[str, str], ...] = ()
    parameters: dict[str, int] = field(default_factory=dict)


Step = Exchange | Compute


@dataclass(frozen=True)
class WeightUse:
    """A constant as one operation wants it: under `binding` on the host side, broadcast to `shape`."""

    constant: str
    binding: str
    shape: tuple[int, ...]


@dataclass
class Plan:
    """Everything decided about a graph: buffers, steps in order, and what the host gives and takes.

    Attributes:
        buffers: by name.
        steps: in the order every tile executes them.
        inputs: graph input name -> buffer name.
        weights: buffer name -> the constant it holds.
        outputs: output name -> buffer name.
        grids: operation name -> its grid in words, for reports.
        tiles: tiles the plan may use (logical 0..tiles-1).
    """

    tiles: int
    buffers: dict[str, Buffer] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    weights: dict[str, WeightUse] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    grids: dict[str, str] = field(default_factory=dict)

    def cycles(self) -> float:
        """Predicted device cycles of one run."""
        return sum(step.cycles for step in self.steps)

    def lifetimes(self) -> dict[str, tuple[int, int]]:
        """First and last step index during which each buffer's contents matter.

        -1 is the arrival of the inputs, len(steps) the departure of the outputs.
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
            if buffer.role == "weight":
                begin, end = -1, last
            if buffer.role == "input":
                begin = -1
            if name in self.outputs.values():
                end = last
            result[name] = (begin, max(begin, end))
        return result


def touched(step: Step) -> list[str]:
    """Names of the buffers a step reads or writes."""
    if isinstance(step, Compute):
        return [step.output, *step.inputs]
    names: list[str] = []
    for move in step.moves:
        names += [move.source, move.destination]
        if isinstance(move, Gather):
            names.append(move.result)
    return names
