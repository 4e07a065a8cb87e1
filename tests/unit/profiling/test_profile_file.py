"""Profile files: what is written comes back; everything else is refused with one line."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profile_sample import hostile_profile, sample_profile

from tilewright.errors import ProfileError, UsageError
from tilewright.profiling import (
    Profile,
    Run,
    Step,
    load_profile,
    looks_like_profile,
    read_profile,
    save_profile,
    wire,
    write_profile,
)

pytestmark = pytest.mark.unit


def same(a: Profile, b: Profile) -> bool:
    plain = [replace(profile, runs=[]) for profile in (a, b)]
    fields = [{name: getattr(profile, name) for name in plain[0].__dataclass_fields__} for profile in plain]
    runs = zip(a.runs, b.runs, strict=True)
    return fields[0] == fields[1] and all(
        x.cycles == y.cycles
        and np.array_equal(x.intervals, y.intervals)
        and np.array_equal(x.barriers, y.barriers)
        for x, y in runs
    )


@pytest.mark.parametrize("profile", [sample_profile(1), sample_profile(3), hostile_profile()])
def test_round_trip(profile: Profile, tmp_path: Path) -> None:
    data = write_profile(profile)
    assert same(read_profile(data), profile) and looks_like_profile(data)
    assert write_profile(read_profile(data)) == data
    save_profile(profile, tmp_path / "p.twprof")
    assert same(load_profile(tmp_path / "p.twprof"), profile)


def test_every_truncation_is_refused() -> None:
    data = write_profile(sample_profile(1))
    for length in range(0, len(data), 7):
        with pytest.raises(ProfileError):
            read_profile(data[:length])
    for length in range(len(data) - 40, len(data)):
        with pytest.raises(ProfileError):
            read_profile(data[:length])
    with pytest.raises(ProfileError, match="follow the end"):
        read_profile(data + bytes(8))


@settings(max_examples=150)
@given(st.binary(max_size=300))
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(ProfileError) as caught:
        read_profile(data, name="f.twprof")
    assert "\n" not in str(caught.value) and str(caught.value).startswith("f.twprof")
    assert not looks_like_profile(data)


@settings(max_examples=300)
@given(st.data())
def test_a_changed_byte_is_refused_or_harmless(data: st.DataObject) -> None:
    """Whatever one byte becomes: an error of the right kind, or a profile that keeps every rule."""
    original = bytearray(write_profile(sample_profile(1)))
    place = data.draw(st.integers(0, len(original) - 1))
    original[place] ^= data.draw(st.integers(1, 255))
    try:
        changed = read_profile(bytes(original))
    except ProfileError as error:
        assert "\n" not in str(error)
    else:
        assert same(read_profile(write_profile(changed)), changed)


def test_other_files_are_named() -> None:
    with pytest.raises(ProfileError, match="not a profile but an ELF file"):
        read_profile(b"\x7fELF" + bytes(60))
    with pytest.raises(UsageError, match="cannot read"):
        load_profile("/nonexistent/p.twprof")


def message(**changes: Any) -> bytes:
    """The sample's message with some fields set to something else."""
    data = write_profile(sample_profile(1))
    with wire._open(data, len(data) // 8) as root:
        builder = root.as_builder()
    for name, value in changes.items():
        setattr(builder, name, value)
    result: bytes = builder.to_bytes()
    return result


def column(values: Any, codec: int = 0, size: int | None = None) -> dict[str, Any]:
    data = np.asarray(values).tobytes()
    return {
        "sha256": hashlib.sha256(data).digest(),
        "size": len(data) if size is None else size,
        "codec": codec,
        "data": data,
    }


ROWS = len(sample_profile(1).runs[0].intervals)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"version": 2}, "format version 2, this reader knows 1"),
        ({"format": "something else"}, "not a profile"),
        ({"packageDigest": b"123"}, "digest"),
        ({"clockHz": 0}, "clock of 0 Hz"),
        ({"packageName": "a\nb"}, "cannot be printed"),
        ({"packageName": "a\u202eb"}, "cannot be printed"),
        ({"device": "x" * 5000}, "longer than"),
        ({"barriers": b"123"}, "no whole number"),
        ({"tile": column(np.zeros(3, "<u2"))}, "different lengths"),
        ({"tile": column(np.zeros(1, "u1"))}, "no whole number"),
        ({"tile": column(np.full(ROWS, 1472, "<u2"))}, "tile 1472 is outside 0..1471"),
        ({"tile": column(np.zeros(ROWS, "<u2"))}, "overlap or are not sorted"),
        ({"context": column(np.full(ROWS, 7, "u1"))}, "context 7 is outside"),
        ({"context": column(np.full(ROWS, 1, "u1"))}, "overlap or are not sorted"),
        ({"kind": column(np.full(ROWS, 11, "u1"))}, "kind 11 is outside"),
        ({"step": column(np.full(ROWS, 5, "<u2"))}, "step 5 is outside"),
        ({"instance": column(np.full(ROWS, 1 << 31, "<u4"))}, "instance 2147483648"),
        ({"begin": column(np.full(ROWS, -1, "<i8"))}, "does not end after its begin"),
        ({"begin": column(np.full(ROWS, 1 << 40, "<i8"))}, "does not end after its begin"),
        ({"end": column(np.full(ROWS, 2**63 - 1, "<i8"))}, "does not end after its begin"),
        ({"end": column(np.full(ROWS, 1 << 50, "<i8"))}, "longer than"),
        ({"end": column(np.zeros(ROWS, "<i8"), codec=1)}, "damaged zstd data|holds"),
        ({"end": column(np.zeros(ROWS, "<i8"), codec=9)}, "unknown codec 9"),
        ({"end": column(np.zeros(ROWS, "<i8"), size=1 << 60)}, "over the limit"),
        ({"end": column(np.zeros(ROWS, "<i8"), size=5)}, "instead of the 5"),
        ({"end": column(np.zeros(ROWS, "<i8")) | {"sha256": bytes(32)}}, "SHA-256"),
        ({"runs": []}, "follow those of the last run"),
        ({"runs": [{"cycles": 217, "intervalEnd": 1 << 40, "barrierEnd": 1}]}, "do not cut"),
        ({"runs": [{"cycles": 218, "intervalEnd": ROWS, "barrierEnd": 1}]}, "states 218 device cycles"),
        ({"runs": [{"cycles": 217, "intervalEnd": ROWS, "barrierEnd": 0}]}, "follow those of the last run"),
        ({"steps": []}, "at least one of each"),
        ({"steps": [{"name": "", "kind": "host"}] * 5}, "name is empty"),
        ({"steps": [{"name": "a", "kind": "magic"}] * 5}, "kind 'magic' is none of"),
        ({"steps": [{"name": "a", "kind": "host"}] * 5}, "without any device step"),
    ],
)
def test_every_rule_of_the_file(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ProfileError, match=text):
        read_profile(message(**changes))


def test_a_bomb_is_refused_before_it_expands() -> None:
    import zstandard

    packed = zstandard.ZstdCompressor().compress(bytes(400 << 20))
    bomb = {"sha256": bytes(32), "size": 400 << 20, "codec": 1, "data": packed}
    with pytest.raises(ProfileError, match="more than 1024 to 1"):
        read_profile(message(begin=bomb))


def test_the_writer_keeps_the_rules_too() -> None:
    plain = sample_profile(1)
    wrong = replace(plain, runs=[Run(1, plain.runs[0].intervals, plain.runs[0].barriers)])
    with pytest.raises(ProfileError, match="states 1 device cycles"):
        write_profile(wrong)
    many = Step("x", "compute", metadata=(("a", "b"),) * 65)
    with pytest.raises(ProfileError, match="65 metadata entries"):
        write_profile(replace(plain, steps=[many, *plain.steps[1:]]))
