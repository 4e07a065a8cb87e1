"""Frames of the workers that make a phase's local copies, for all tile classes that make any."""

from __future__ import annotations

from dataclasses import dataclass

from ..kernels.copy_spans import Span, frame, frame_words, shared_out
from ..lower.tile_work import Phase, TileWork, copies_of
from ..machine.timing import WORKER_SLOTS
from ..place.placement import Placement


@dataclass(frozen=True)
class Launch:
    """How a tile starts workers whose frames lie ready.

    Attributes:
        entry: their code; base: their frames; stride: words from one frame to the next.
        cycles: from `runall` to the release of `sync 2`.
    """

    entry: int
    base: int
    stride: int
    cycles: int


@dataclass(frozen=True)
class CopyFrames:
    """The frames of one phase.

    Attributes:
        offset: of the first frame in the area of frames, in bytes.
        stride: words of a frame, the same on all classes.
        workers: per class, the spans of each worker.
    """

    offset: int
    stride: int
    workers: dict[int, list[list[Span]]]

    @property
    def bytes(self) -> int:
        return 4 * WORKER_SLOTS * self.stride

    def words(self) -> dict[int, list[int]]:
        """The words of each class."""
        return {
            index: [word for own in workers for word in frame(own, self.stride)]
            for index, workers in self.workers.items()
        }


def copy_frames(phase: Phase, work: TileWork, placement: Placement, offset: int) -> CopyFrames:
    """Frames for the copies of a phase, to lie at an offset of the area of frames."""
    workers: dict[int, list[list[Span]]] = {}
    for tile_class in work.classes:
        index = tile_class.index
        spans = [
            (words, placement.address(index, source) + taken, placement.address(index, destination) + put)
            for source, destination, taken, put, words in copies_of(phase, tile_class.representative)
        ]
        if spans:
            workers[index] = shared_out(spans)
    most = max(len(own) for each in workers.values() for own in each)
    return CopyFrames(offset, frame_words(most), workers)
