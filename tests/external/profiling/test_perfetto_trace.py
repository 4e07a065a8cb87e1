"""Our traces read with the message classes of the `perfetto` package, which nobody here wrote."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tilewright.errors import UsageError
from tilewright.profiling.critical import critical_path
from tilewright.profiling.perfetto import encode_trace
from tilewright.profiling.protobuf import varint
from tilewright.profiling.records import KINDS

sys.path.insert(0, str(Path(__file__).parents[2] / "unit" / "profiling"))
from profile_sample import HOSTILE, hostile_profile, sample_profile

pytestmark = pytest.mark.external

messages = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="the package `perfetto` is not installed"
)


def read(data: bytes) -> tuple[dict[int, Any], dict[str, list[tuple[str, str, int, int]]]]:
    """Track descriptors by uuid, and per track path its slices: name, category, begin, end."""
    trace = messages.Trace()
    assert trace.ParseFromString(data) == len(data) and trace.SerializeToString() != b""
    names: dict[int, str] = {}
    categories: dict[int, str] = {}
    tracks: dict[int, Any] = {}
    slices: dict[str, list[tuple[str, str, int, int]]] = defaultdict(list)
    open_slices: dict[int, tuple[str, str, int]] = {}
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id == 1
        names |= {entry.iid: entry.name for entry in packet.interned_data.event_names}
        categories |= {entry.iid: entry.name for entry in packet.interned_data.event_categories}
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        if event.type == messages.TrackEvent.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in open_slices
            category = categories[event.category_iids[0]]
            open_slices[event.track_uuid] = (names[event.name_iid], category, packet.timestamp)
        else:
            assert event.type == messages.TrackEvent.TYPE_SLICE_END
            name, category, begin = open_slices.pop(event.track_uuid)
            slices[path(tracks, event.track_uuid)].append((name, category, begin, packet.timestamp))
    assert not open_slices
    return tracks, slices


def path(tracks: dict[int, Any], uuid: int) -> str:
    track = tracks[uuid]
    return f"{path(tracks, track.parent_uuid)}/{track.name}" if track.parent_uuid else track.name


def test_every_interval_is_a_slice() -> None:
    profile = sample_profile(2)
    _, slices = read(encode_trace(profile))
    root = "sample.ipuexe on sim"
    expected: dict[str, list[tuple[str, str, int, int]]] = defaultdict(list)
    for run in profile.runs:
        for row in run.intervals:
            context = "supervisor" if row["context"] == 0 else f"worker {row['context'] - 1}"
            kind = KINDS[row["kind"]]
            name = f"{profile.steps[row['step']].name} {kind}"
            place = f"{root}/tile {row['tile']}/{context}"
            expected[place].append((name, kind, int(row["begin"]), int(row["end"])))
    for row in critical_path(profile):
        kind = KINDS[row["kind"]]
        name = f"{profile.steps[row['step']].name} {kind}"
        expected[f"{root}/critical path"].append((name, kind, int(row["begin"]), int(row["end"])))
    assert slices == expected


def test_the_critical_path_tells_of_its_steps() -> None:
    trace = messages.Trace.FromString(encode_trace(sample_profile(1)))
    events = [
        p.track_event for p in trace.packet if p.HasField("track_event") and p.track_event.track_uuid == 2
    ]
    annotations = [
        {note.name: note.string_value or note.uint_value for note in event.debug_annotations}
        for event in events
        if event.type == messages.TrackEvent.TYPE_SLICE_BEGIN
    ]
    assert {
        "operation": "mm",
        "kernel": "gemm_f16",
        "expression": "matmul(%x, %w)",
        "multiply-adds": "4,992",
        "tile": 70,
    } in annotations


def test_tiles_are_chosen() -> None:
    tracks, _ = read(encode_trace(sample_profile(1), "5-69"))
    assert {track.name for track in tracks.values() if track.name.startswith("tile")} == {"tile 5"}
    with pytest.raises(UsageError, match="none of the tiles 3"):
        encode_trace(sample_profile(1), "3")


def test_hostile_names_arrive_unchanged() -> None:
    _, slices = read(encode_trace(hostile_profile()))
    names = {name.rsplit(" ", 1)[0] for rows in slices.values() for name, *_ in rows}
    assert names == set(HOSTILE)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**32, 2**63 - 1, 2**64 - 1])
def test_numbers_are_encoded_as_protobuf_does(value: int) -> None:
    from google.protobuf.internal.encoder import _VarintBytes

    assert varint(value) == _VarintBytes(value)
