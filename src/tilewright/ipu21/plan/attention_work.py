"""What there is to do for an attention, what tiles hold for it, and what a head costs: the same however
queries, keys and heads are dealt to tiles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ...arithmetic import align_up
from . import cost
from .layout import MICRO, Axis, Layout, Level, Source
from .softmax import STATE_BYTES


@dataclass(frozen=True)
class Problem:
    """Extents: sequences, heads, queries, keys, columns of a head of queries/keys and of values.

    Attributes:
        causal: a query sees no later keys.
    """

    batch: int
    heads: int
    queries: int
    keys: int
    columns: int
    value_columns: int
    causal: bool = False

    @property
    def width(self) -> int:
        """Columns of a head of queries and keys in memory."""
        return align_up(self.columns, MICRO)

    @property
    def value_width(self) -> int:
        """Columns of a head of values in memory."""
        return align_up(self.value_columns, MICRO)

    @property
    def spare(self) -> int:
        """Half panels of a head of values that hold nothing but padding."""
        return (self.value_width - self.value_columns) // (MICRO // 2)


@dataclass(frozen=True)
class Sources:
    """Where queries, keys and values lie; None for inputs still without a place."""

    query: Source | None
    key: Source | None
    value: Source | None

    @property
    def tiles(self) -> int:
        """Tiles that hold any of them."""
        return max((s.layout.tiles for s in (self.query, self.key, self.value) if s), default=0)


class Work(ABC):
    """What every tile works on: some queries and keys of some heads of a sequence."""

    problem: Problem

    @property
    @abstractmethod
    def tiles(self) -> int:
        """Tiles that take part."""

    @abstractmethod
    def query_rows(self, *further: Level) -> Axis:
        """The cut of the queries of all sequences."""

    @abstractmethod
    def key_rows(self, *further: Level) -> Axis:
        """The cut of the keys of all sequences, in groups of 16."""

    @abstractmethod
    def head_columns(self, width: int, columns: int) -> Axis:
        """The cut of the columns of all heads, `columns` each, in memory `width`."""

    def _narrow(self) -> Axis:
        return self.head_columns(self.problem.width, self.problem.columns)

    def _wide(self) -> Axis:
        return self.head_columns(self.problem.value_width, self.problem.value_columns)

    def query(self) -> Layout:
        return Layout("a16", self.query_rows(), self._narrow(), self.tiles)

    def key(self) -> Layout:
        return Layout("a16", self.key_rows(), self._narrow(), self.tiles)

    def value(self, order: str = "a16") -> Layout:
        return Layout(order, self.key_rows(), self._wide(), self.tiles)

    def scores(self) -> Layout:
        return Layout("a16", self.query_rows(), self.key_rows(), self.tiles)

    def state(self, *further: Level) -> Layout:
        return Layout("plain", self.query_rows(*further), self.head_columns(1, 1), self.tiles, STATE_BYTES)

    def output(self, *further: Level) -> Layout:
        return Layout("a16", self.query_rows(*further), self._wide(), self.tiles)


def head_cycles(problem: Problem, rows: Any, keys: int, *, summed: bool = False) -> dict[str, Any]:
    """Kernel cycles of one head, from scores to values.

    Args:
        rows: queries, an integer or an array; keys: groups of 16.
        summed: exponentials are summed by the product.
    """
    width, value_width = problem.width // MICRO, problem.value_width // MICRO
    softmax = "softmax_unsummed_f16" if summed else "softmax_f16"
    each = {
        "scores": cost.gemm(rows, width, keys),
        "softmax": cost.kernel(softmax, rows=rows, panels=keys, valid=keys * MICRO),
        "values": cost.gemm(rows, keys, value_width),
    }
    if summed:
        each["ones"] = keys * cost.kernel("fill_u64", words=4)
        each["sums"] = cost.kernel("half_sums_f16", rows=rows)
    return each
