"""What a compiler knows about the program in a package, kept for people: memory reports and debuggers.

Part of the debug section: no run depends on it. Steps are profile steps, tiles physical ids, addresses byte
addresses in tile memory. `rules/program.py` holds what is checked of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .records import Binding

BUFFER_ROLES = ("input", "weight", "value", "scratch", "table")

PLACED = np.dtype(
    [
        ("buffer", "<u4"),
        ("address", "<u4"),
        ("size", "<u4"),
        ("tail", "<u4"),
        ("first", "<u2"),
        ("last", "<u2"),
    ]
)
"""A buffer on the tiles of a class: index into `ProgramInfo.buffers`, `size` bytes at `address`, `tail` bytes
more that a kernel may read behind them; its contents matter in profile steps first..last."""


def no_placed() -> NDArray[np.void]:
    return np.zeros(0, PLACED)


@dataclass
class BufferInfo:
    """Something that tiles hold. `role` is one of `BUFFER_ROLES`, `owner` the operation (or graph input) that
    asked for it, `layout` a line for people."""

    name: str
    role: str
    owner: str = ""
    layout: str = ""


@dataclass(eq=False)
class ClassInfo:
    """Tiles (physical ids, uint16) that hold the same buffers at the same addresses."""

    tiles: NDArray[np.uint16]
    buffers: NDArray[np.void] = field(default_factory=no_placed)


@dataclass
class StepInfo:
    """What a profile step does: for which operation, by which kernel, in how many cycles as predicted."""

    operation: str = ""
    kernel: str = ""
    cycles: float = 0.0
    detail: str = ""


@dataclass
class OperationInfo:
    """An operation of the graph: how it is done, in lines, and over how many partial sums at most.

    `part_of`: the operation whose steps do this one as well, if it has none of its own.
    """

    name: str
    plan: list[str] = field(default_factory=list)
    splits: int = 1
    part_of: str = ""


@dataclass(eq=False)
class ValueInfo:
    """Where a value of the graph lies once profile step `step` is over, and until something overwrites it.

    `binding` names the value and holds a slice for every tile with a part. `copy`: it was brought there for
    `owner`, rather than made there.
    """

    binding: Binding
    step: int
    buffer: int
    owner: str = ""
    copy: bool = False


@dataclass
class ConstantInfo:
    """Where a constant of the graph is in the matrix of a weight binding.

    The binding's rows are `iterations` matrices below each other. In each, `rows` and `columns` (first,
    number of groups, width of a group, its width with padding; empty: all) cut out a matrix, to be transposed
    if `transposed`. All of them, in row-major order, are the constant broadcast to `broadcast` (empty: to
    `shape`, its own).
    """

    binding: str
    constant: str
    shape: tuple[int, ...]
    iterations: int = 1
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    transposed: bool = False
    broadcast: tuple[int, ...] = ()


@dataclass
class LoopInfo:
    """Profile steps first..last are done `count` times."""

    first: int
    last: int
    count: int


@dataclass
class AreaInfo:
    """Memory that every tile with a program keeps for something that is no buffer: stacks, staging."""

    name: str
    address: int
    size: int


@dataclass(eq=False)
class ProgramInfo:
    """How the program came about. `steps` has one entry per profile step."""

    buffers: list[BufferInfo] = field(default_factory=list)
    classes: list[ClassInfo] = field(default_factory=list)
    steps: list[StepInfo] = field(default_factory=list)
    operations: list[OperationInfo] = field(default_factory=list)
    values: list[ValueInfo] = field(default_factory=list)
    constants: list[ConstantInfo] = field(default_factory=list)
    loops: list[LoopInfo] = field(default_factory=list)
    areas: list[AreaInfo] = field(default_factory=list)

    def doing(self, operation: str) -> str:
        """The operation whose steps do an operation: itself, or the one that it is part of."""
        known = next((item for item in self.operations if item.name == operation), None)
        return (known.part_of or known.name) if known is not None else operation

    def splits(self) -> dict[str, int]:
        """Partial sums by operation, of what it is part of included."""
        own = {item.name: max(item.splits, 1) for item in self.operations}
        return {item.name: max(own[item.name], own.get(item.part_of, 1)) for item in self.operations}
