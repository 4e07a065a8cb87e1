"""Memory reports count what a package holds, byte for byte; hostile names stay text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from browser import browser, find_chromium
from memory_sample import STEPS, memory_package
from profile_sample import HOSTILE
from rich.console import Console

from tilewright.cli.memory import show_memory, show_tile
from tilewright.errors import UsageError
from tilewright.ipu21.machine.memory import TILE_BYTES
from tilewright.profiling.memory_map import KINDS, MemoryMap, gaps, union
from tilewright.profiling.memory_page import render_memory
from tilewright.profiling.memory_report import memory_summary, tile_memory

pytestmark = pytest.mark.unit

LOADER, STACKS, CODE, TABLE = 16 + 1104, 0x600, 400, 24
FIXED = LOADER + STACKS + CODE + TABLE


def test_bytes_in_use_at_every_step() -> None:
    usage = MemoryMap(memory_package()).usage(0)
    # The image's zeros for y are part of the tables as long as y does not live there: they are y's place.
    assert usage.live.tolist() == [FIXED + 1000, FIXED + 1064, FIXED + 1064 + 128, FIXED + 1128]
    assert (usage.peak, usage.peak_step, usage.tiles, usage.group) == (FIXED + 1192, 2, 2, 0)
    assert usage.by_kind(2) == {
        "weight": 1000,
        "input": 64,
        "value": 128,
        "code": CODE,
        "table": TABLE,
        "stack": STACKS,
        "loader": LOADER,
    }
    assert usage.by_kind(0)["weight"] == 1000 and "value" not in usage.by_kind(0)


def test_what_is_used_and_what_is_free_make_up_the_tile() -> None:
    found = MemoryMap(memory_package())
    for tile in (0, 5, 7, 9):
        usage = found.usage(tile)
        for step in range(len(STEPS)):
            rows = usage.spans[(usage.spans["first"] <= step) & (step <= usage.spans["last"])]
            free = sum(end - begin for begin, end in gaps(usage.spans, step))
            assert union(rows) + free == TILE_BYTES
            assert union(rows) == usage.live[step], (tile, step)
        assert found.peaks[tile] == usage.peak
    assert found.usage(5).by_kind(0)["row"] == 40 and found.usage(5).by_kind(0)["code"] == CODE - 40


def test_the_summary_names_the_tightest_and_the_fragmentation() -> None:
    report = memory_summary(memory_package())
    assert report["peak_bytes"] == FIXED + 1192 and report["tiles"] == 3 and report["known"]
    assert [item["tile"] for item in report["tightest"][:3]] == [0, 5, 7]
    first = report["classes"][0]
    assert [region["peak_bytes"] for region in first["regions"]] == [
        16 + STACKS + CODE + TABLE + 64,
        1104 + 1000 + 128,
    ]
    free = [end - begin for begin, end in gaps(MemoryMap(memory_package()).usage(0).spans, 2)]
    assert first["largest_free_bytes"] == max(free)
    assert first["fragmentation"] == pytest.approx(1 - max(free) / sum(free), abs=1e-6)
    assert not first["overlaps"]


def test_an_overlap_is_shown() -> None:
    (overlap,) = memory_summary(memory_package(overlap=True))["classes"][0]["overlaps"]
    assert overlap == {"one": "w", "other": "y", "address": 0x80000, "bytes": 128, "step": 2}


def test_one_tile_and_tiles_that_do_not_exist() -> None:
    report = tile_memory(memory_package(), 5)
    assert [item["name"] for item in report["spans"] if item["kind"] == "row"] == ["mm.receive.row"]
    y = next(item for item in report["spans"] if item["name"] == "y")
    assert (y["address"], y["bytes"], y["owner"], y["first_step"], y["last_step"]) == (
        0x90000,
        128,
        "mm",
        2,
        3,
    )
    for tile in (-1, 1472):
        with pytest.raises(UsageError, match="there is no tile"):
            tile_memory(memory_package(), tile)


def test_a_package_that_says_less_has_its_regions() -> None:
    package = memory_package()
    package.debug = None
    report = memory_summary(package)
    assert not report["known"] and report["peak_bytes"] == LOADER + CODE + TABLE + 128


def test_hostile_names_are_printed_as_they_are() -> None:
    package = memory_package(names=(HOSTILE[0], "[bold]x[/bold]", HOSTILE[3]))
    out = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115 - nothing to close
    show_memory(out, memory_summary(package))
    show_tile(out, tile_memory(package, 0))
    assert "[bold]x[/bold]" in out.export_text()
    page = render_memory(package, HOSTILE[1])
    assert page.count(b"<script") == 3 and HOSTILE[0].encode() not in page


CHROMIUM = find_chromium()
PLANE = "document.getElementById('plane')"


def at_address(kind: str, down: int) -> str:
    """Script that sends a pointer event to the map, in the first step, `down` pixels from its top."""
    where = "{clientX: box.left + 90, clientY: box.top + " + str(down) + "}"
    return (
        f"{{ const box = {PLANE}.getBoundingClientRect();"
        f"{PLANE}.dispatchEvent(new PointerEvent('{kind}', {where})); }}"
    )


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (Debian's package is `chromium`)")
def test_the_page_shows_what_the_command_prints(tmp_path: Path) -> None:
    assert CHROMIUM is not None
    package = memory_package(names=(HOSTILE[0], HOSTILE[1], HOSTILE[2]))
    (tmp_path / "m.html").write_bytes(render_memory(package, HOSTILE[4]))
    with browser(CHROMIUM) as page:
        page.open(tmp_path / "m.html")
        rows = "[...document.querySelectorAll('#table tbody tr')]"
        read = f"Object.fromEntries({rows}.map((r) => [r.dataset.name, Number(r.cells[2].dataset.value)]))"
        shown = page.evaluate(read)
        expected: dict[str, int] = {}
        for item in tile_memory(package, 0)["spans"]:
            expected[item["name"]] = item["bytes"]
        assert shown == expected
        # Step 0 chosen: what does not live then is not listed.
        page.evaluate(f"{PLANE}.setPointerCapture = () => 0")
        for kind in ("pointerdown", "pointerup"):
            page.evaluate(at_address(kind, 60))
        page.settle()
        assert HOSTILE[2] not in page.evaluate(read) and HOSTILE[0] in page.evaluate(read)
        total = page.evaluate("Number(document.querySelector('#table tfoot td:nth-child(3)').dataset.value)")
        assert total == MemoryMap(package).usage(0).live[0]
        page.evaluate(at_address("pointermove", 21))
        tip = page.evaluate("document.getElementById('tip').textContent")
        assert "0x4c010" in tip and "400" in tip and "0 initialize" in tip
        assert page.evaluate("document.title") != "owned" and page.complaints() == []
        assert len(page.requests()) == 1


def test_the_report_is_plain_json() -> None:
    text = json.dumps([memory_summary(memory_package()), tile_memory(memory_package(), 7)])
    assert json.loads(text)[0]["classes"][0]["class"] == 0
    assert set(KINDS) >= set(json.loads(text)[0]["classes"][0]["by_kind"])
    assert np.asarray(json.loads(text)[1]["live_bytes"]).max() == json.loads(text)[1]["peak_bytes"]
