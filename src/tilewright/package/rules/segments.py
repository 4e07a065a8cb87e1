"""The segments of all images at once: tens of thousands in a package for all tiles."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import PackageError

from ..records import EXECUTE, NO_BLOB, Package, Segment
from .values import U32, first, integers

_NUMBERS = (
    ("address", "address", U32),
    ("memory_size", "memory size", U32),
    ("file_size", "file size", U32),
    ("blob_offset", "blob offset", (1 << 64) - 1),
    ("flags", "flags", U32),
)


class Segments:
    """Columns over the segments of all images, in the order of the package. Addresses and sizes are int64.

    Attributes:
        parts: the segments themselves. image, number: which segment of which image each is.
        blob_offset: at most 2**62; what is above that lies in no blob.
        blob: `NO_BLOB` or the number of a blob that exists; see `rules.images`.

    Raises PackageError for a number that is none or that the file has no room for.
    """

    def __init__(self, package: Package) -> None:
        counts = [len(image.segments) for image in package.images]
        self.parts: list[Segment] = [part for image in package.images for part in image.segments]
        self.image = np.repeat(np.arange(len(counts)), counts)
        self.number = np.arange(len(self.parts)) - np.repeat(np.cumsum([0, *counts])[:-1], counts)
        columns = {field: self._integers(field, name, most) for field, name, most in _NUMBERS}
        self.address, self.memory_size = columns["address"], columns["memory_size"]
        self.file_size, self.flags = columns["file_size"], columns["flags"]
        self.blob_offset = columns["blob_offset"]
        self.blob = self._integers("blob", "blob", U32 - 1, none=NO_BLOB)
        self.end = self.address + self.memory_size

    def _integers(self, field: str, name: str, most: int, none: int = 0) -> NDArray[np.int64]:
        values = list(map(attrgetter(field), self.parts))
        return integers(values, name, self.where, maximum=most, none=none)

    def where(self, index: int) -> str:
        """What messages call a segment."""
        return f"image {self.image[index]}, segment {self.number[index]}"

    def refuse(
        self, mask: NDArray[np.bool_], what: Callable[[Segment], str], hint: str | None = None
    ) -> None:
        """Raises PackageError for the first segment in a mask, if there is one."""
        hit = first(mask)
        if hit is not None:
            raise PackageError(what(self.parts[hit]), where=self.where(hit), hint=hint)

    @property
    def executable(self) -> NDArray[np.bool_]:
        chosen: NDArray[np.bool_] = (self.flags & EXECUTE) != 0
        return chosen

    def key(self, address: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of the image and an address of each segment: rises with both."""
        return self.image.astype(np.int64) << 32 | address

    def spans(self, chosen: NDArray[np.bool_], size: NDArray[np.int64]) -> Spans:
        """The first `size` bytes of each chosen segment; sizes are given of all."""
        begin = self.key(self.address)[chosen]
        return Spans(begin, begin + size[chosen])


class Spans:
    """Parts of the memory of images, none of which overlap, sorted.

    Args:
        begin, end: as `Segments.key` makes them.
    """

    def __init__(self, begin: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        order = np.argsort(begin, kind="stable")
        self.begin, self.end = begin[order], end[order]

    def hold(self, begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some ranges lie in one span."""
        last = np.searchsorted(self.begin, begin, side="right") - 1
        return (last >= 0) & (end <= self._end(last))

    def meet(self, begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some ranges have something in common with a span."""
        # Spans do not overlap, so only the last that starts before a range ends can reach it.
        last = np.searchsorted(self.begin, end, side="left") - 1
        return (last >= 0) & (self._end(last) > begin)

    def _end(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.end[np.maximum(index, 0)] if len(self.end) else np.zeros(len(index), np.int64)
