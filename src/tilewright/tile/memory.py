"""Where the operands of one tile's code lie: named buffers, placed by hand or automatically."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.arithmetic import align_up
from tilewright.errors import UsageError
from tilewright.ipu21.machine.memory import (
    IMAGE_BASE,
    REGION1_BASE,
    TILE_END,
    effective_element,
    next_element_boundary,
)

DTYPES: dict[str, str] = {
    "f16": "<f2",
    "f32": "<f4",
    "f8": "u1",
    "u8": "u1",
    "i8": "i1",
    "u16": "<u2",
    "i16": "<i2",
    "u32": "<u4",
    "i32": "<i4",
    "u64": "<u8",
    "i64": "<i8",
}
"""Element type names; `f8` is the raw byte, as NumPy has no such type."""

MINIMUM_ALIGNMENT = 8


def dtype_of(name: str) -> np.dtype[Any]:
    """The NumPy type of `f16`, `u32`, ... Raises UsageError."""
    if name not in DTYPES:
        raise UsageError(f"there is no element type {name!r}", hint=f"there are {', '.join(DTYPES)}")
    return np.dtype(DTYPES[name])


def fitting_float(value: float, dtype: np.dtype[Any], *, named: bool) -> float:
    """`value`, if the type can hold it; infinity only if it was `named` so. Raises ValueError."""
    with np.errstate(over="ignore"):
        infinite = bool(np.isinf(np.array(value).astype(dtype)))
    if infinite and not named:
        raise ValueError(f"{value} is out of range")
    return value


def word_of(value: int, what: str) -> int:
    """A signed or unsigned number as 32 bits. Raises UsageError naming `what`."""
    if not -(1 << 31) <= value < 1 << 32:
        raise UsageError(f"{value:#x} does not fit the 32 bits of {what}")
    return value & 0xFFFFFFFF


@dataclass(frozen=True)
class Buffer:
    """Named memory of a tile: `shape` elements of `dtype` at a byte address, row-major."""

    name: str
    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def end(self) -> int:
        return self.address + self.size

    def array(self, data: bytes) -> NDArray[Any]:
        """Its elements from its bytes (a copy)."""
        return np.frombuffer(data, dtype=self.dtype).reshape(self.shape).copy()


class Space:
    """What of a tile's memory is taken."""

    def __init__(self, taken: Iterable[tuple[int, int]]) -> None:
        """`taken` are (begin, end) address ranges."""
        self._taken = sorted((begin, end) for begin, end in taken if end > begin)

    def take(self, begin: int, size: int) -> None:
        """Note a range as taken; it may overlap others."""
        if size > 0:
            self._taken = sorted([*self._taken, (begin, begin + size)])

    def is_free(self, begin: int, size: int) -> bool:
        """True if nothing of a range is taken."""
        return all(end <= begin or begin + size <= first for first, end in self._taken)

    def find(
        self, size: int, alignment: int = MINIMUM_ALIGNMENT, *, region: int | None = None, spread: bool = True
    ) -> int:
        """Take `size` free bytes and return their address.

        Args:
            region: 0 or 1; by default region 1 (where every access is allowed), then region 0.
            spread: begin in a memory element that holds nothing else, as long as there is one, so that the
                paced instructions, which refuse two accesses to one element, work on any two buffers.

        Raises:
            UsageError: there is no such room.
        """
        if alignment < 1 or alignment & (alignment - 1):
            raise UsageError(f"alignment {alignment} is no power of two")
        ranges = {0: (IMAGE_BASE, REGION1_BASE), 1: (REGION1_BASE, TILE_END)}
        order = (1, 0) if region is None else (region,)
        for fresh in (True, False) if spread else (False,):
            for number in order:
                address = self._fit(*ranges[number], max(size, 1), alignment, fresh)
                if address is not None:
                    self.take(address, max(size, 1))
                    return address
        where = "tile memory" if region is None else f"region {region}"
        raise UsageError(f"no room for {size} bytes in {where}")

    def _fit(self, begin: int, end: int, size: int, alignment: int, fresh: bool) -> int | None:
        cursor = begin
        while True:
            address = align_up(cursor, alignment)
            if address + size > end:
                return None
            blocker = self._blocker(address, size, fresh)
            if blocker is None:
                return address
            cursor = max(next_element_boundary(cursor + 1), address + 1) if fresh else blocker

    def _blocker(self, address: int, size: int, fresh: bool) -> int | None:
        """End of a taken range in the way, or None. With `fresh` sharing an element is in the way too."""
        last = effective_element(address + size - 1)
        for begin, end in self._taken:
            if begin < address + size and address < end:
                return end
            if fresh and end > REGION1_BASE * (address >= REGION1_BASE):
                shared = range(effective_element(begin), effective_element(end - 1) + 1)
                if effective_element(address) <= shared[-1] and shared[0] <= last:
                    return end
        return None


@dataclass(frozen=True)
class VertexField:
    """One field of a vertex state: an element type and a number, or a pointer to a buffer."""

    dtype: np.dtype[Any]
    value: float | int

    @property
    def bytes(self) -> bytes:
        return np.array([self.value], dtype=self.dtype).tobytes()


def state_bytes(fields: Sequence[VertexField]) -> bytes:
    """A vertex state: fields in order at their natural alignment, padded to whole words."""
    data = bytearray()
    for item in fields:
        data += bytes(-len(data) % item.dtype.itemsize)
        data += item.bytes
    return bytes(data) + bytes(-len(data) % 4)
