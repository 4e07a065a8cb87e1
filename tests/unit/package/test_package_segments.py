"""Rules that look at the segments of all images at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from package_sample import make_package

from tilewright.errors import PackageError
from tilewright.package import validate
from tilewright.package.rules.segments import Segments, Spans


def test_a_fault_is_reported_where_it_is() -> None:
    package = make_package()
    place = len(package.images[0].segments), len(package.images[1].segments)
    package.images[1].segments[place[1] - 1].flags = 9
    with pytest.raises(PackageError, match=f"image 1, segment {place[1] - 1}: unknown flags 0x9"):
        validate(package)
    segments = Segments(package)
    assert segments.image.tolist() == [0] * place[0] + [1] * place[1]
    assert segments.number.tolist() == [*range(place[0]), *range(place[1])]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("blob", -1.0, "blob is -1.0, not an integer"),
        ("blob", -2, "blob -2 is outside"),
        ("blob_offset", 0.0, "blob offset is 0.0, not an integer"),
        ("flags", True, "flags is True, not an integer"),
        ("file_size", "4", "file size is '4', not an integer"),
        ("address", -4, "address -4 is outside"),
        ("memory_size", 1 << 32, "memory size 4294967296 is outside"),
    ],
)
def test_numbers_of_segments_are_integers_that_fit(field: str, value: Any, message: str) -> None:
    package = make_package()
    setattr(package.images[0].segments[-1], field, value)
    with pytest.raises(PackageError, match=f"image 0, segment .*: {message}"):
        validate(package)


def test_numpy_integers_are_integers() -> None:
    package = make_package()
    for image in package.images:
        for part in image.segments:
            part.blob, part.address = np.int64(part.blob), np.uint32(part.address)  # type: ignore[assignment]
    validate(package)


def test_an_offset_no_blob_reaches_does_not_wrap() -> None:
    package = make_package()
    part = next(part for part in package.images[0].segments if part.file_size)
    part.blob_offset = (1 << 64) - part.file_size
    with pytest.raises(PackageError, match=f"bytes {part.blob_offset}..{1 << 64} of blob"):
        validate(package)


RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 5)), max_size=8)


@given(RANGES, st.lists(st.tuples(st.integers(0, 45), st.integers(1, 6)), max_size=8))
def test_spans_hold_and_meet_as_sets_of_bytes_do(parts: list[tuple[int, int]], asked: Any) -> None:
    kept: list[set[int]] = []
    for begin, size in parts:
        span = set(range(begin, begin + size))
        if not any(span & other for other in kept):
            kept.append(span)
    spans = Spans(
        np.array([min(span) for span in kept], np.int64), np.array([max(span) + 1 for span in kept], np.int64)
    )
    begin = np.array([low for low, _ in asked], np.int64)
    end = begin + np.array([size for _, size in asked], np.int64)
    wanted = [set(range(low, low + size)) for low, size in asked]
    assert spans.hold(begin, end).tolist() == [any(want <= span for span in kept) for want in wanted]
    assert spans.meet(begin, end).tolist() == [any(want & span for span in kept) for want in wanted]
