"""Object files between processes: what is kept comes back as it was, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.native.objects import keep, kept

pytestmark = pytest.mark.sim


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    place = tmp_path / "folder" / "code.o"
    assert kept(place) is None
    keep(place, b"some code")
    assert kept(place) == b"some code"


@pytest.mark.parametrize("change", [lambda data: b"", lambda data: data[:-1], lambda data: data[1:] + b"x"])
def test_what_was_changed_does_not(tmp_path: Path, change: object) -> None:
    place = tmp_path / "code.o"
    keep(place, b"some code")
    assert callable(change)
    place.write_bytes(change(place.read_bytes()))
    assert kept(place) is None


def test_where_nothing_can_be_kept_nothing_happens(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    keep(tmp_path / "file" / "code.o", b"some code")
    assert kept(tmp_path / "file" / "code.o") is None
