"""`copy_spans`: workers that move spans of 8-byte words, each those that its frame lists.

Code of workers only: whoever knows all spans beforehand writes the frames and starts the workers. A frame
lists (words less one, source, destination) of each span whose words one instruction may store while it loads
the next, then -1, then (words, source, destination) of the others, then 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...arithmetic import ceil_div
from ..machine.memory import effective_elements, is_interleaved
from ..machine.timing import RUN_LAUNCH, RUN_RELEASE, WORKER_SLOTS
from .text import bundle, section, size_of

SYMBOL = "copy_spans"

Span = tuple[int, int, int]
"""8-byte words, source, destination."""


def _load(register: str) -> str:
    return f"ld32step {register}, $mzero, $m0+=, 1"


_BEGIN = [
    "mov $m0, $mvertex_base",
    _load("$m1"),
    "brneg $m1, .Lcopy_spans_others",
]
_PACED = [
    _load("$m2"),
    _load("$m3"),
    "ld64step $a0:1, $mzero, $m2+=, 1",
    "tapack $m4:5, $m2, $mzero, $m3",
    bundle("rpt $m1, 0"),
]
_PACED_WORD = [bundle("ldst64pace $a0:1, $a0:1, $m4:5+=, $mzero, 0")]
_PACED_NEXT = [
    "st64pace $a0:1, $m4:5+=, $mzero, 0",
    _load("$m1"),
    "brpos $m1, .Lcopy_spans_paced",
]
_OTHERS = [
    bundle(_load("$m1")),
    "brz $m1, .Lcopy_spans_exit",
]
_SPAN = [
    _load("$m2"),
    _load("$m3"),
    bundle("rpt $m1, 1"),
]
_WORD = [
    bundle("ld64step $a0:1, $mzero, $m2+=, 1"),
    bundle("st64step $a0:1, $mzero, $m3+=, 1"),
]
_NEXT = [
    _load("$m1"),
    "brnz $m1, .Lcopy_spans_next",
]


def source() -> str:
    """The whole routine; both bodies that are repeated begin at an even word."""
    front = ["nop"] if size_of([*_BEGIN, *_PACED]) % 8 else []
    lines = [*_BEGIN, ".Lcopy_spans_paced:", *_PACED, *_PACED_WORD, *_PACED_NEXT]
    lines += [".Lcopy_spans_others:", *_OTHERS, ".Lcopy_spans_next:", *_SPAN, *_WORD, *_NEXT]
    return section(SYMBOL, [*lines, ".Lcopy_spans_exit:", "exitz $m15"], front=front)


def is_paced(span: Span) -> bool:
    """True if a word may be stored while the next is loaded: they lie in different elements."""
    words, origin, target = span
    read, written = (effective_elements(begin, begin + 8 * words) for begin in (origin, target))
    if not set(read) & set(written):
        return True
    return is_interleaved(origin) and is_interleaved(target) and (origin - target) % 16 == 0


def shared_out(spans: Sequence[Span]) -> list[list[Span]]:
    """The spans of each of the six workers, which have equally much to do as far as possible."""
    share = ceil_div(sum(_weight(span) * span[0] for span in spans), WORKER_SLOTS)
    result: list[list[Span]] = [[]]
    room = share
    for span in spans:
        weight = _weight(span)
        words, origin, target = span
        while words:
            if room <= 0:
                result.append([])
                room = share
            part = min(words, ceil_div(room, weight))
            result[-1].append((part, origin, target))
            words, origin, target, room = (
                words - part,
                origin + 8 * part,
                target + 8 * part,
                room - weight * part,
            )
    return result + [[] for _ in range(WORKER_SLOTS - len(result))]


def _weight(span: Span) -> int:
    """Slots for a word."""
    return len(_PACED_WORD if is_paced(span) else _WORD)


def frame_words(spans: int) -> int:
    """Words of the frame of a worker with so many spans."""
    return 3 * spans + 2


def frame(spans: Sequence[Span], words: int) -> list[int]:
    """The frame of one worker, in `words` words."""
    paced, others = _sorted(spans)
    listed = [value for words, *places in paced for value in (words - 1, *places)]
    listed += [0xFFFFFFFF, *(value for span in others for value in span)]
    return listed + [0] * (words - len(listed))


def _sorted(spans: Sequence[Span]) -> tuple[list[Span], list[Span]]:
    """Paced spans and others."""
    return [span for span in spans if is_paced(span)], [span for span in spans if not is_paced(span)]


def cycles(workers: Sequence[Sequence[Span]]) -> int:
    """Cycles from `runall` to the release of `sync 2` behind it (exact on the simulator)."""

    def slots(spans: Sequence[Span], paced: bool) -> int:
        return _slots(len(spans), sum(words for words, _, _ in spans), paced)

    return _cycles(max(sum(map(slots, _sorted(own), (True, False))) for own in workers))


def expected(count: int, words: int) -> int:
    """The same for `count` spans of `words` words, about."""
    share = ceil_div(count * words, WORKER_SLOTS)
    spans = ceil_div(share, words) + (count > 1 and words % share != 0)
    return _cycles(_slots(spans, share, True))


def _slots(spans: int, words: int, paced: bool) -> int:
    """Slots that a worker takes for so many spans of one kind, which have so many words together."""
    if paced:
        return spans * len([*_PACED, *_PACED_NEXT]) + (words - spans) * len(_PACED_WORD)
    return spans * len([*_SPAN, *_NEXT]) + words * len(_WORD)


def _cycles(slots: int) -> int:
    """See `cycles`; `slots` are those of the busiest worker's spans."""
    return RUN_LAUNCH + RUN_RELEASE + WORKER_SLOTS * (len([*_BEGIN, *_OTHERS]) + slots + 1)
