"""`copy_spans`: workers that move spans of 8-byte words, each those that its frame lists.

Code of workers only: whoever knows all spans beforehand writes the frames and starts the workers. A frame
lists (words, source, destination) of each span, then 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...arithmetic import ceil_div
from ..machine.timing import RUN_LAUNCH, RUN_RELEASE, WORKER_SLOTS
from .text import bundle, section, size_of

SYMBOL = "copy_spans"

Span = tuple[int, int, int]
"""8-byte words, source, destination."""

_BEGIN = [
    "mov $m0, $mvertex_base",
    "ld32step $m1, $mzero, $m0+=, 1",
    "brz $m1, .Lcopy_spans_exit",
]
_SPAN = [
    "ld32step $m2, $mzero, $m0+=, 1",
    "ld32step $m3, $mzero, $m0+=, 1",
    bundle("rpt $m1, 1"),
]
_WORD = [
    bundle("ld64step $a0:1, $mzero, $m2+=, 1"),
    bundle("st64step $a0:1, $mzero, $m3+=, 1"),
]
_NEXT = [
    "ld32step $m1, $mzero, $m0+=, 1",
    "brnz $m1, .Lcopy_spans_next",
]


def source() -> str:
    """The whole routine."""
    front = ["nop"] if size_of([*_BEGIN, *_SPAN]) % 8 else []
    loop = [".Lcopy_spans_next:", *_SPAN, *_WORD, *_NEXT, ".Lcopy_spans_exit:", "exitz $m15"]
    return section(SYMBOL, [*_BEGIN, *loop], front=front)


def shared_out(spans: Sequence[Span]) -> list[list[Span]]:
    """The spans of each of the six workers, which get equally many words as far as possible."""
    share = ceil_div(sum(words for words, _, _ in spans), WORKER_SLOTS)
    result: list[list[Span]] = [[]]
    room = share
    for words, origin, target in spans:
        while words:
            if not room:
                result.append([])
                room = share
            part = min(words, room)
            result[-1].append((part, origin, target))
            words, origin, target, room = words - part, origin + 8 * part, target + 8 * part, room - part
    return result + [[] for _ in range(WORKER_SLOTS - len(result))]


def frame_words(spans: int) -> int:
    """Words of the frame of a worker with so many spans."""
    return 3 * spans + 1


def frame(spans: Sequence[Span], words: int) -> list[int]:
    """The frame of one worker, in `words` words."""
    listed = [value for span in spans for value in span]
    return listed + [0] * (words - len(listed))


def cycles(workers: Sequence[Sequence[Span]]) -> int:
    """Cycles from `runall` to the release of `sync 2` behind it (exact on the simulator)."""
    return _cycles(max(_slots(len(own), sum(words for words, _, _ in own)) for own in workers))


def expected(count: int, words: int) -> int:
    """The same for `count` spans of `words` words, about."""
    share = ceil_div(count * words, WORKER_SLOTS)
    spans = ceil_div(share, words) + (WORKER_SLOTS % count != 0)
    return _cycles(_slots(spans, share))


def _slots(spans: int, words: int) -> int:
    """Slots that a worker takes for its spans, which have so many words together."""
    return spans * len([*_SPAN, *_NEXT]) + words * len(_WORD)


def _cycles(slots: int) -> int:
    """See `cycles`; `slots` are those of the busiest worker's spans."""
    return RUN_LAUNCH + RUN_RELEASE + WORKER_SLOTS * (len(_BEGIN) + slots + 1)
