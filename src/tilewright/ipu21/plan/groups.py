"""Columns in groups: the heads of an attention operator, each padded to whole records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import align_up


@dataclass(frozen=True)
class Groups:
    """`count` groups of `width` columns, each padded to `padded`."""

    count: int
    width: int
    padded: int

    @property
    def columns(self) -> int:
        """Columns with padding."""
        return self.count * self.padded


def groups_of(count: int, width: int, unit: int) -> Groups | None:
    """Groups padded to a multiple of `unit`; None where nothing needs padding."""
    return Groups(count, width, align_up(width, unit)) if width % unit and count > 1 else None


def padded_columns(columns: int, groups: Groups | None) -> int:
    """Columns of a device matrix that holds `columns` columns."""
    return groups.columns if groups else columns


def pad(matrix: NDArray[Any], groups: Groups | None, axis: int) -> NDArray[Any]:
    """`matrix` with zeros between the groups of an axis."""
    if groups is None:
        return matrix
    axis %= matrix.ndim
    shape = matrix.shape
    split = matrix.reshape(*shape[:axis], groups.count, groups.width, *shape[axis + 1 :])
    widths = [(0, 0)] * split.ndim
    widths[axis + 1] = (0, groups.padded - groups.width)
    return np.pad(split, widths).reshape(*shape[:axis], groups.columns, *shape[axis + 1 :])
