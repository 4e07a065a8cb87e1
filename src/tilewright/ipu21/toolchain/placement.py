"""Addresses for sections: in input order, never going back, each at its absolute alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import LinkError
from ..machine.memory import REGION1_BASE, TILE_BASE, TILE_END
from .objects import ObjectFile, ObjectSection
from .resolution import SectionId

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Placed:
    """A section with its address; `interval` is the end of the interval it lies in."""

    id: SectionId
    section: ObjectSection
    address: int
    interval: int

    @property
    def size(self) -> int:
        return self.section.size if self.section.nobits else len(self.section.data)

    @property
    def end(self) -> int:
        return self.address + self.size


def check_intervals(intervals: Sequence[Interval], limit: int, what: str) -> None:
    """Raise LinkError unless the half-open intervals are non-empty, rising and end by `limit`."""
    if not intervals:
        raise LinkError(f"there is no {what} interval to link into")
    last = TILE_BASE
    for begin, end in intervals:
        if not begin < end:
            raise LinkError(f"{what} interval {begin:#x}..{end:#x} is empty")
        if begin < last:
            raise LinkError(
                f"{what} interval {begin:#x}..{end:#x} starts below {last:#x}",
                hint="give them in rising order",
            )
        if end > limit:
            raise LinkError(f"{what} interval {begin:#x}..{end:#x} reaches beyond {limit:#x}")
        last = end


class Cursor:
    """Hands out addresses from intervals in order."""

    def __init__(self, intervals: Sequence[Interval]) -> None:
        self._intervals = tuple(intervals)
        self._index = 0
        self._next = self._intervals[0][0]

    @property
    def interval(self) -> int:
        """End of the interval the latest address came from."""
        return self._intervals[self._index][1]

    def take(self, size: int, alignment: int, name: str) -> int:
        """An aligned address with room for `size` bytes. Raises LinkError when no interval is left that has
        it.
        """
        while self._index < len(self._intervals):
            begin, end = self._intervals[self._index]
            address = -(-max(self._next, begin) // alignment) * alignment
            if address + size <= end:
                self._next = address + size
                return address
            self._index += 1
            if self._index < len(self._intervals):
                self._next = self._intervals[self._index][0]
        listed = ", ".join(f"{begin:#x}..{end:#x} ({end - begin} bytes)" for begin, end in self._intervals)
        raise LinkError(
            f"section {name} of {size} bytes, aligned to {alignment}, does not fit",
            hint=f"intervals: {listed}",
        )


def place_sections(
    objects: Sequence[ObjectFile],
    kept: Sequence[SectionId],
    intervals: Sequence[Interval],
    data_intervals: Sequence[Interval] | None,
) -> list[Placed]:
    """Addresses of the kept sections. Without `data_intervals` data goes between the code.

    Raises LinkError for intervals outside memory, code outside the executable region, or lack of room.
    """
    check_intervals(intervals, REGION1_BASE, "executable")
    code = Cursor(intervals)
    data = code
    if data_intervals is not None:
        check_intervals(data_intervals, TILE_END, "data")
        data = Cursor(data_intervals)
        for begin, end in data_intervals:
            for other_begin, other_end in intervals:
                if begin < other_end and other_begin < end:
                    code_range = f"{other_begin:#x}..{other_end:#x}"
                    raise LinkError(f"data interval {begin:#x}..{end:#x} overlaps executable {code_range}")
    placed = []
    for number, index in kept:
        section = objects[number].sections[index]
        if section.alignment & (section.alignment - 1) or section.alignment < 1:
            raise LinkError(
                f"section {section.name} has alignment {section.alignment}", where=objects[number].name
            )
        size = section.size if section.nobits else len(section.data)
        if size:
            cursor = code if section.executable else data
            address = cursor.take(size, section.alignment, f"{section.name} ({objects[number].name})")
            placed.append(Placed((number, index), section, address, cursor.interval))
        else:
            placed.append(
                Placed((number, index), section, 0, 0)
            )  # nothing is stored, but a label may point there
    end = max((item.end for item in placed if item.size), default=intervals[0][0])
    return [item if item.size else Placed(item.id, item.section, end, 0) for item in placed]
