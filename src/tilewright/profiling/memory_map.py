"""What lies where in the memory of every tile over the life of a program, from a package alone.

Two sources: the images that the loader fills (code, rows, tables), and what the compiler has said about
buffers. A package without the latter still has its data regions, which then count as live all the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import UsageError
from tilewright.ipu21.machine.memory import IMAGE_BASE, LOADABLE_END, REGION1_BASE, TILE_BASE, TILE_END
from tilewright.package.program_info import BufferInfo
from tilewright.package.records import ALL_TILES, EXECUTE, Image, Package

KINDS = (
    "weight",
    "input",
    "value",
    "scratch",
    "code",
    "row",
    "table",
    "stack",
    "loader",
    "data",
)
"""Kinds of use, by number:

weight, input, value, scratch   buffers, by role
code, row                       programs; timed rows of exchange phases
table                           what the image holds besides code: host request words, zeros
stack                           stacks and staging that every tile with a program keeps
loader                          bytes that no package can fill
data                            buffers of a package that does not say more
"""

SPAN = np.dtype(
    [("begin", "<u4"), ("end", "<u4"), ("kind", "u1"), ("label", "<u4"), ("first", "<u2"), ("last", "<u2")]
)
"""Bytes begin..end-1 used in profile steps first..last; `label` is an index into `MemoryMap.labels`."""

REGIONS = (("region 0", TILE_BASE, REGION1_BASE), ("region 1", REGION1_BASE, TILE_END))
"""Region 0 can be executed; region 1 is interleaved, for 128-bit accesses."""


@dataclass(frozen=True)
class Overlap:
    """Two uses of the same bytes at the same time."""

    one: str
    other: str
    address: int
    size: int
    step: int


@dataclass(frozen=True, eq=False)
class Usage:
    """Memory of one tile.

    Attributes:
        tile: physical id. group: its class, -1 for tiles without buffers. tiles: how many the class has.
        spans: SPAN rows by address.
        live: bytes in use per profile step, [steps]. peak_step: the first step with the most.
        free: (begin, end) of what is free then, by address.
    """

    tile: int
    group: int
    tiles: int
    spans: NDArray[np.void]
    live: NDArray[np.int64]
    peak_step: int
    free: list[tuple[int, int]]

    @property
    def peak(self) -> int:
        return int(self.live[self.peak_step])

    @property
    def largest_free(self) -> int:
        """Bytes of the largest free span at the peak."""
        return max((end - begin for begin, end in self.free), default=0)

    @property
    def free_bytes(self) -> int:
        """Bytes free at the peak."""
        return sum(end - begin for begin, end in self.free)

    def by_kind(self, step: int) -> dict[str, int]:
        """Bytes in use during a step, by kind."""
        rows = self.spans[(self.spans["first"] <= step) & (step <= self.spans["last"])]
        return {
            name: union(rows[rows["kind"] == kind])
            for kind, name in enumerate(KINDS)
            if (rows["kind"] == kind).any()
        }

    def in_region(self, begin: int, end: int) -> int:
        """Most bytes in use at once between two addresses."""
        rows = self.spans[(self.spans["begin"] < end) & (self.spans["end"] > begin)].copy()
        rows["begin"], rows["end"] = np.maximum(rows["begin"], begin), np.minimum(rows["end"], end)
        return int(live_bytes(rows, len(self.live)).max(initial=0))


class MemoryMap:
    """The memory of all tiles.

    Attributes:
        steps: names of the profile steps.
        labels: what spans are called: buffers first, then fixed uses.
        buffers: the buffers' records, in the order of their labels; empty if the package says nothing.
        class_of: class per physical tile, -1 for tiles without buffers.
    """

    def __init__(self, package: Package) -> None:
        self._package = package
        self.program = package.program
        self.steps = [step.name for step in package.profile.steps] or ["run"]
        self.buffers: list[BufferInfo] = list(self.program.buffers) if self.program is not None else []
        self.labels: list[str] = [buffer.name for buffer in self.buffers]
        self._label: dict[str, int] = {}
        self.class_of = np.full(len(package.tiles), -1, np.int64)
        for number, group in enumerate(self.program.classes if self.program is not None else []):
            self.class_of[group.tiles] = number
        self._regions: dict[int, list[tuple[str, int, int]]] = {}
        for region in package.regions:
            self._regions.setdefault(region.physical_tile, []).append(
                (region.name, region.address, region.address + region.size)
            )

    @cached_property
    def classes(self) -> list[NDArray[np.int64]]:
        """Physical tiles of each class; without debug information, tiles with equal images."""
        if self.program is not None and self.program.classes:
            return [group.tiles.astype(np.int64) for group in self.program.classes]
        images = np.array([tile.image for tile in self._package.tiles], np.int64)
        return [np.flatnonzero(images == image) for image in np.unique(images)]

    def usage(self, tile: int) -> Usage:
        """Memory of a physical tile. Raises UsageError for one that does not exist."""
        if not 0 <= tile < len(self._package.tiles):
            raise UsageError(f"there is no tile {tile}", hint=f"tiles are 0..{len(self._package.tiles) - 1}")
        spans = self._spans(tile)
        live = live_bytes(spans, len(self.steps))
        peak = int(np.argmax(live))
        group = int(self.class_of[tile])
        tiles = int(np.count_nonzero(self.class_of == group))
        return Usage(tile, group, tiles, spans, live, peak, gaps(spans, peak))

    @cached_property
    def peaks(self) -> NDArray[np.int64]:
        """Most bytes in use at once, per physical tile."""
        steps = len(self.steps)
        moving: dict[int, NDArray[np.int64]] = {}
        still: dict[tuple[object, ...], NDArray[np.int64]] = {}
        result = np.zeros(len(self._package.tiles), np.int64)
        for tile, entry in enumerate(self._package.tiles):
            group = int(self.class_of[tile])
            if group not in moving:
                moving[group] = live_bytes(self._buffers(group), steps)
            mine = tuple(self._regions.get(tile, ()))
            key = (entry.image, group, mine)
            if key not in still:
                still[key] = live_bytes(self._fixed(tile), steps)
            result[tile] = int((moving[group] + still[key]).max())
        return result

    def fullest(self) -> list[Usage]:
        """Of each class the tile with the highest peak, the fullest class first."""
        chosen = [int(tiles[np.argmax(self.peaks[tiles])]) for tiles in self.classes]
        return [self.usage(tile) for tile in sorted(chosen, key=lambda tile: (-int(self.peaks[tile]), tile))]

    def overlaps(self, usage: Usage) -> list[Overlap]:
        """Buffers of a tile that share bytes with anything else at the same time."""
        rows = usage.spans[np.argsort(usage.spans["begin"], kind="stable")]
        found = []
        for index, row in enumerate(rows):
            following = rows[
                index + 1 : index + 1 + int(np.count_nonzero(rows["begin"][index + 1 :] < row["end"]))
            ]
            together = (following["first"] <= row["last"]) & (row["first"] <= following["last"])
            for other in following[together]:
                # Zeros that an image keeps for a buffer are the buffer.
                if max(int(row["label"]), int(other["label"])) >= len(self.buffers):
                    continue
                size = min(int(row["end"]), int(other["end"])) - int(other["begin"])
                step = max(int(row["first"]), int(other["first"]))
                found.append(Overlap(self.name(row), self.name(other), int(other["begin"]), size, step))
        return found

    def name(self, span: NDArray[np.void]) -> str:
        """What a span is called."""
        return self.labels[int(span["label"])]

    def buffer(self, span: NDArray[np.void]) -> BufferInfo | None:
        """The buffer that a span is, or None."""
        label = int(span["label"])
        return self.buffers[label] if label < len(self.buffers) else None

    # Spans ------------------------------------------------------------------------------------------------

    def _spans(self, tile: int) -> NDArray[np.void]:
        rows = np.concatenate([self._buffers(int(self.class_of[tile])), self._fixed(tile)])
        return rows[np.lexsort((rows["first"], rows["begin"]))]

    def _buffers(self, group: int) -> NDArray[np.void]:
        if group < 0 or self.program is None:
            return np.zeros(0, SPAN)
        placed = self.program.classes[group].buffers
        kinds = np.array([KINDS.index(buffer.role) for buffer in self.buffers], np.uint8)
        rows = np.zeros(len(placed), SPAN)
        rows["begin"], rows["label"] = placed["address"], placed["buffer"]
        rows["end"] = placed["address"] + placed["size"] + placed["tail"]
        rows["kind"] = kinds[placed["buffer"]] if len(placed) else 0
        rows["first"], rows["last"] = placed["first"], placed["last"]
        return rows

    def _fixed(self, tile: int) -> NDArray[np.void]:
        """What a tile's memory holds all the time. Later entries of a place give way to earlier ones."""
        image = self._package.images[self._package.tiles[tile].image]
        entries: list[tuple[int, int, str, str]] = [
            (TILE_BASE, IMAGE_BASE, "loader", "reserved by the loader"),
            (LOADABLE_END, TILE_END, "loader", "beyond the loader's reach"),
        ]
        for name, begin, end in [*self._regions.get(tile, ()), *self._regions.get(ALL_TILES, ())]:
            if name.endswith(".row"):
                entries.append((begin, end, "row", name))
            elif self.program is None:
                entries.append((begin, end, "data", name))
        if self.program is not None and self.class_of[tile] >= 0:
            entries += [(a.address, a.address + a.size, "stack", a.name) for a in self.program.areas]
        entries += _segments(image)
        held = self._buffers(int(self.class_of[tile]))
        taken = [(int(row["begin"]), int(row["end"])) for row in held]
        pieces = []
        for begin, end, kind, name in entries:
            for low, high in _without(begin, end, taken if kind == "table" else taken[len(held) :]):
                pieces.append((low, high, KINDS.index(kind), self._labelled(name), 0, len(self.steps) - 1))
            taken.append((begin, end))
        return np.array(pieces, SPAN) if pieces else np.zeros(0, SPAN)

    def _labelled(self, name: str) -> int:
        if name not in self._label:
            self._label[name] = len(self.labels)
            self.labels.append(name)
        return self._label[name]


def _segments(image: Image) -> list[tuple[int, int, str, str]]:
    return [
        (
            part.address,
            part.address + part.memory_size,
            "code" if part.flags & EXECUTE else "table",
            "program" if part.flags & EXECUTE else "host tables and zeros",
        )
        for part in image.segments
    ]


def _without(begin: int, end: int, taken: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """A span less others."""
    left = [(begin, end)]
    for low, high in taken:
        left = [
            piece
            for one, other in left
            for piece in ((one, min(other, low)), (max(one, high), other))
            if piece[0] < piece[1]
        ]
    return left


def live_bytes(spans: NDArray[np.void], steps: int) -> NDArray[np.int64]:
    """Bytes in use per step, [steps]. What overlaps counts twice."""
    change = np.zeros(steps + 1, np.int64)
    size = spans["end"].astype(np.int64) - spans["begin"]
    np.add.at(change, spans["first"], size)
    np.add.at(change, np.minimum(spans["last"].astype(np.int64) + 1, steps), -size)
    return np.asarray(np.cumsum(change[:steps]))


def union(spans: NDArray[np.void]) -> int:
    """Bytes covered by at least one span."""
    covered = reached = 0
    for begin, end in sorted(zip(spans["begin"].tolist(), spans["end"].tolist(), strict=True)):
        covered += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return covered


def gaps(spans: NDArray[np.void], step: int) -> list[tuple[int, int]]:
    """What is free during a step, by address."""
    rows = spans[(spans["first"] <= step) & (step <= spans["last"])]
    found = []
    reached = TILE_BASE
    for begin, end in sorted(zip(rows["begin"].tolist(), rows["end"].tolist(), strict=True)):
        if begin > reached:
            found.append((reached, begin))
        reached = max(reached, end)
    if reached < TILE_END:
        found.append((reached, TILE_END))
    return found
