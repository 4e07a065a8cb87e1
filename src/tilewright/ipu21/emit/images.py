"""Tile images: the segments each tile is loaded with, equal bytes stored once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ...package.blobs import BlobStore
from ...package.records import EXECUTE, MARK, NO_BLOB, NO_MARKS, READ, WRITE, Image, Segment, TileImage
from ..lower.tile_work import TileClass, TileWork
from ..machine.memory import ENTRY_POINT
from ..machine.topology import TILES
from ..place.placement import Placement
from .lines import words_of
from .memory_map import SCRATCH, SCRATCH_BYTES, STAGING, STAGING_BYTES, TABLES
from .runtime_image import Runtime
from .steps_profile import INITIALIZE, INPUT
from .tile_programs import PlacedRow, Programs, TileProgram

CODE = READ | EXECUTE
DATA = READ | WRITE


class ImageBlobs(BlobStore):
    """The blobs of a package, and segments made of them."""

    def segment(self, address: int, data: bytes, flags: int) -> Segment:
        return Segment(address, len(data), self.add(data), 0, len(data), flags)

    def words(self, address: int, words: Iterable[int], flags: int) -> Segment:
        return self.segment(address, np.fromiter(words, dtype="<u4").tobytes(), flags)


def zeros(address: int, size: int) -> Segment:
    """A segment of zeros."""
    return Segment(address, size, NO_BLOB, 0, 0, DATA)


class ImageSet:
    """Images of all tiles; tiles with equal images share one."""

    def __init__(self) -> None:
        self.images: list[Image] = []
        self.tiles: list[TileImage] = []
        self._index: dict[tuple[object, ...], int] = {}

    def add(self, tile: int, segments: list[Segment], mark_table: int) -> None:
        segments = sorted(segments, key=lambda segment: segment.address)
        key = (mark_table, *((s.address, s.memory_size, s.blob, s.file_size, s.flags) for s in segments))
        if key not in self._index:
            self._index[key] = len(self.images)
            self.images.append(Image(ENTRY_POINT, 0, 0, segments, mark_table))
        self.tiles.append(TileImage(tile, self._index[key]))


def build_images(
    programs: Programs,
    data: Mapping[int, Sequence[Segment]],
    output_step: int,
    runtime: Runtime,
    store: ImageBlobs,
) -> tuple[ImageSet, list[NDArray[np.void]]]:
    """Images of physical tiles 0..1471 and the mark tables they name.

    Args:
        data: per physical tile with a class, segments of its data memory that hold something before the
            program
            runs.
        output_step: profile step of the output phases.
    """
    images = ImageSet()
    active_code = [store.segment(s.address, s.data, CODE) for s in runtime.active.segments]
    idle_code = [store.segment(s.address, s.data, CODE) for s in runtime.idle.segments]
    step_code = [store.words(programs.steps_address, code.words, CODE) for code in programs.classes]
    frames = [
        [store.segment(programs.frames_address, words.astype("<u4").tobytes(), DATA)] if len(words) else []
        for words in programs.frames
    ]
    tables: dict[tuple[int, int], int] = {}
    mark_tables: list[NDArray[np.void]] = []
    for tile in range(TILES):
        if tile in programs.idle:
            program = programs.idle[tile]
            segments = [
                *idle_code,
                store.words(programs.start, program.opening, CODE),
                *_host_segments(program, store),
            ]
            images.add(tile, segments, NO_MARKS)
            continue
        program, index = programs.tiles[tile], programs.class_of[tile]
        segments = [
            *active_code,
            step_code[index],
            *(frames[index] if frames else []),
            *data[tile],
            store.words(programs.start, program.opening, CODE),
            store.words(programs.closing_address, program.closing, CODE),
            *(
                store.segment(row.address, row.words.tobytes(), CODE | WRITE if row.rewritten else CODE)
                for row in _rows(programs, tile)
            ),
            *(store.words(one.address, words_of(one.lines), CODE) for one in programs.routines[tile]),
            *_host_segments(program, store),
        ]
        key = (index, program.loop_address)
        if key not in tables:
            tables[key] = len(mark_tables)
            mark_tables.append(_marks(programs, index, program.loop_address, output_step))
        images.add(tile, segments, tables[key])
    return images, mark_tables


def _rows(programs: Programs, tile: int) -> list[PlacedRow]:
    """Distinct rows of a tile: steps may share one."""
    return list({row.address: row for row in programs.rows[tile]}.values())


def _host_segments(program: TileProgram, store: ImageBlobs) -> list[Segment]:
    segments = []
    if program.tables.words:
        segments.append(store.words(TABLES, program.tables.words, DATA))
        segments.append(zeros(SCRATCH, SCRATCH_BYTES))
    if program.reads:
        segments.append(zeros(STAGING, STAGING_BYTES))
    return segments


def _marks(programs: Programs, index: int, loop_address: int, output_step: int) -> NDArray[np.void]:
    begin = programs.steps_address
    marks = [(programs.start, INITIALIZE), (loop_address, INPUT)]
    marks += [(begin + offset, step) for offset, step in programs.classes[index].marks]
    marks.append((programs.closing_address, output_step))
    # Steps without code on this class begin where the next one does: only the last of them can be seen.
    seen = dict(marks)
    return np.array(sorted(seen.items()), dtype=MARK)


def initial_zeros(work: TileWork, placement: Placement, tile_class: TileClass) -> list[Segment]:
    """Zeros for bytes that kernels may read although no step writes them: padding rows and access tails."""
    plan = work.plan
    written = {*(held.buffer for held in plan.inputs.values()), *plan.weights, *plan.tables, *plan.listings}
    spans = []
    for name, placed in placement.classes[tile_class.index].items():
        buffer = plan.buffers[name]
        tail_start = placed.address + tile_class.bytes[name]
        if buffer.tail:
            spans.append((tail_start, placed.end))
        shard = buffer.layout.shards[tile_class.representative]
        if name not in written and shard["rows"] < shard["padded_rows"]:
            spans.append((placed.address, tail_start))
    return [zeros(begin, end - begin) for begin, end in merge(spans)]


def merge(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Union of half-open spans, rising, adjacent ones joined."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged
