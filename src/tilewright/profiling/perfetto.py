"""A profile as a Perfetto trace.

One track per run for the critical path, one group of tracks per tile with its supervisor and its workers. One
nanosecond of the trace is one cycle, so that nothing is rounded. Field numbers are those of Perfetto's public
message definitions (known; a test reads the result back with Perfetto's own message classes).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from tilewright.errors import UsageError

from .critical import critical_path
from .protobuf import data, number
from .query import Numbers, Rows, condition
from .records import KINDS, SUPERVISOR, Profile, Step

PACKET = 1
"""Trace: packet."""
TIMESTAMP, SEQUENCE, TRACK_EVENT, INTERNED, SEQUENCE_FLAGS, DESCRIPTOR = 8, 10, 11, 12, 13, 60
"""TracePacket."""
CLEARED, NEEDS_STATE = 1, 2
"""Bits of sequence_flags."""
TRACK_UUID, TRACK_NAME, TRACK_PARENT, TRACK_ORDERING, TRACK_RANK = 1, 2, 5, 11, 12
"""TrackDescriptor."""
EXPLICIT = 3
"""ChildTracksOrdering: by sibling_order_rank."""
EVENT_TYPE, EVENT_TRACK, EVENT_CATEGORY, EVENT_NAME, ANNOTATION = 9, 11, 3, 10, 4
"""TrackEvent: type, track_uuid, category_iids, name_iid, debug_annotations."""
BEGIN, END = 1, 2
CATEGORIES, NAMES = 1, 2
"""InternedData: event_categories, event_names; both hold iid = 1, name = 2."""
ANNOTATION_NAME, ANNOTATION_TEXT, ANNOTATION_NUMBER = 10, 6, 3
"""DebugAnnotation: name, string_value, uint_value."""
SEQUENCE_ID = 1
TRACKS_PER_TILE = 8


def encode_trace(profile: Profile, tiles: str | None = None) -> bytes:
    """The bytes of a trace. `tiles` (`0,4-7`) leaves other tiles out. Raises UsageError if none is left."""
    return b"".join(data(PACKET, packet) for packet in _packets(profile, tiles))


def _packets(profile: Profile, tiles: str | None) -> Iterator[bytes]:
    names = [f"{step.name} {kind}" for step in profile.steps for kind in KINDS]
    interned = b"".join(
        data(CATEGORIES, number(1, index + 1) + data(2, kind)) for index, kind in enumerate(KINDS)
    )
    interned += b"".join(
        data(NAMES, number(1, index + 1) + data(2, name)) for index, name in enumerate(names)
    )
    yield (
        number(SEQUENCE, SEQUENCE_ID)
        + number(SEQUENCE_FLAGS, CLEARED | NEEDS_STATE)
        + data(INTERNED, interned)
    )
    root = 1
    title = f"{profile.package or 'package'} on {profile.device}"
    yield _track(root, title, 0, 0, ordered=True)
    path_track, path = 2, critical_path(profile)
    yield _track(path_track, "critical path", root, 0)
    yield from _events(profile, path, np.full(len(path), path_track), details=True)
    chosen = np.concatenate([_of_tiles(profile, number, tiles) for number in range(len(profile.runs))])
    if not len(chosen):
        raise UsageError(f"the profile has none of the tiles {tiles}")
    for tile in np.unique(chosen["tile"]).tolist():
        base = (tile + 1) * TRACKS_PER_TILE
        yield _track(base + 7, f"tile {tile}", root, tile + 1, ordered=True)
        contexts = np.unique(chosen["context"][chosen["tile"] == tile]).tolist()
        for context in contexts:
            label = "supervisor" if context == SUPERVISOR else f"worker {context - 1}"
            yield _track(base + context, label, base + 7, context)
    tracks = (chosen["tile"].astype(np.int64) + 1) * TRACKS_PER_TILE + chosen["context"]
    yield from _events(profile, chosen, tracks, details=False)


def _of_tiles(profile: Profile, run: int, tiles: str | None) -> Rows:
    rows = profile.runs[run].intervals
    if tiles is None:
        return rows
    return rows[condition(profile, f"tile={tiles}")(rows, np.full(len(rows), run))]


def _track(uuid: int, name: str, parent: int, rank: int, *, ordered: bool = False) -> bytes:
    fields = number(TRACK_UUID, uuid) + data(TRACK_NAME, name)
    if parent:
        fields += number(TRACK_PARENT, parent)
    fields += number(TRACK_RANK, rank)
    if ordered:
        fields += number(TRACK_ORDERING, EXPLICIT)
    return number(SEQUENCE, SEQUENCE_ID) + data(DESCRIPTOR, fields)


def _events(profile: Profile, rows: Rows, tracks: Numbers, *, details: bool) -> Iterator[bytes]:
    """A begin and an end per interval; `details` adds the tile and what is known of the step."""
    tail = number(SEQUENCE, SEQUENCE_ID) + number(SEQUENCE_FLAGS, NEEDS_STATE)
    known = [_details(step) if details else b"" for step in profile.steps]

    @cache
    def begun(step: int, kind: int, tile: int) -> bytes:
        event = (
            number(EVENT_CATEGORY, kind + 1) + number(EVENT_NAME, step * len(KINDS) + kind + 1) + known[step]
        )
        if details:
            event += data(ANNOTATION, data(ANNOTATION_NAME, "tile") + number(ANNOTATION_NUMBER, tile))
        return number(EVENT_TYPE, BEGIN) + event

    ended = number(EVENT_TYPE, END)
    on = {track: number(EVENT_TRACK, track) for track in np.unique(tracks).tolist()}
    columns = (rows["step"], rows["kind"], rows["tile"], rows["begin"], rows["end"], tracks)
    for step, kind, tile, begin, end, track in zip(*(column.tolist() for column in columns), strict=True):
        event = begun(step, kind, tile if details else 0) + on[track]
        yield number(TIMESTAMP, begin) + data(TRACK_EVENT, event) + tail
        yield number(TIMESTAMP, end) + data(TRACK_EVENT, ended + on[track]) + tail


def _details(step: Step) -> bytes:
    pairs = (("operation", step.operation), ("kernel", step.kernel), *step.metadata)
    return b"".join(
        data(ANNOTATION, data(ANNOTATION_NAME, name) + data(ANNOTATION_TEXT, value))
        for name, value in pairs
        if value
    )
