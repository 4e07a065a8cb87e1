"""The page as text: complete in itself, its policy strict, its data what the profile holds."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest
from profile_sample import HOSTILE, hostile_profile, sample_profile

from tilewright.profiling import page
from tilewright.profiling.page import render

pytestmark = pytest.mark.unit


class Elements(HTMLParser):
    """Tags with their attributes, and the text of each script and style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style") and data.strip():
            self.texts.append((self.tags[-1][1].get("id") or self.tags[-1][0], data))


def parts(text: str) -> dict[str, str]:
    return dict(Elements(text).texts)


def test_nothing_comes_from_elsewhere() -> None:
    text = render(sample_profile()).decode()
    for tag, attributes in Elements(text).tags:
        assert not {"src", "href", "action"} & set(attributes), tag
        assert not any(name.startswith("on") for name in attributes), "no handlers as attributes"
        assert "style" not in attributes
    assert not re.search(
        r"https?://|//[a-z]+\.|@import|url\(|fetch\(|XMLHttp|import\(|eval\(|innerHTML", text
    )


def test_the_policy_names_the_script_and_the_style() -> None:
    text = render(sample_profile()).decode()
    policy = next(a["content"] for tag, a in Elements(text).tags if a.get("http-equiv"))
    found = parts(text)
    for name in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(found[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in str(policy)
    assert str(policy).startswith("default-src 'none';") and "unsafe" not in str(policy)


def test_hostile_names_stay_data() -> None:
    text = render(hostile_profile()).decode()
    found = parts(text)
    assert not any(character in found["header"] for character in "<>&")
    header = json.loads(found["header"])
    assert [step["name"] for step in header["steps"]] == HOSTILE and header["package"] == HOSTILE[0]
    tags = [tag for tag, _ in Elements(text).tags]
    assert tags == [tag for tag, _ in Elements(render(sample_profile()).decode()).tags]


def columns(text: str) -> dict[str, np.ndarray]:
    found = parts(text)
    data = zlib.decompress(base64.b64decode(found["data"]))
    kinds = {"u1": "u1", "u2": "<u2", "u4": "<u4", "f8": "<f8"}
    return {
        name: np.frombuffer(data, kinds[kind], count, offset)
        for name, kind, offset, count in json.loads(found["header"])["columns"]
    }


def test_columns_hold_the_profile() -> None:
    profile = sample_profile(2)
    found = columns(render(profile).decode())
    rows = np.concatenate([run.intervals for run in profile.runs])
    for prefix, mine in (("s_", rows["context"] == 0), ("w_", rows["context"] > 0)):
        assert np.array_equal(found[prefix + "begin"], rows["begin"][mine] - 1000)
        assert np.array_equal(found[prefix + "length"], (rows["end"] - rows["begin"])[mine])
        for name in ("tile", "kind", "step", "instance"):
            assert np.array_equal(found[prefix + name], rows[name][mine])
    assert int(found["p_length"].sum()) == profile.cycles


def test_times_beyond_32_bits() -> None:
    profile = sample_profile(2)
    profile.runs[1].intervals["begin"] += 1 << 33
    profile.runs[1].intervals["end"] += 1 << 33
    profile.runs[1].barriers["last"] += 1 << 33
    profile.runs[1].barriers["release"] += 1 << 33
    found = columns(render(profile).decode())
    assert found["s_begin"].dtype == np.float64
    assert found["s_begin"].max() == profile.runs[1].intervals["begin"].max() - 1000


def test_too_many_worker_intervals_are_left_out_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MAX_WORKER_ROWS", 10)
    text = render(sample_profile()).decode()
    assert len(columns(text)["w_begin"]) == 0
    assert "too many intervals of workers" in json.loads(parts(text)["header"])["note"]
