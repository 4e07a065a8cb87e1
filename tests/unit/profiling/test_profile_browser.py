"""The page in a real Chromium: it loads fast, zooms, sorts, filters, and shows what the query prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, browser, find_chromium
from profile_sample import HOSTILE, hostile_profile, large_profile, looped_profile, sample_profile

from tilewright.profiling import Profile, query
from tilewright.profiling.page import render

CHROMIUM = find_chromium()
pytestmark = [
    pytest.mark.unit,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (Debian's package is `chromium`)"),
]
OPENING_LIMIT_MS = 3000


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    assert CHROMIUM is not None
    with browser(CHROMIUM) as made:
        yield made


def write(profile: Profile, folder: Path) -> Path:
    (folder / "p.html").write_bytes(render(profile))
    return folder / "p.html"


def table(page: Browser) -> dict[str, dict[str, float]]:
    """Numbers of the table by name, the total included."""
    rows = page.evaluate(
        "[...document.querySelectorAll('#table tbody tr, #table tfoot tr')].map((row) => [row.dataset.name,"
        "Object.fromEntries([...row.cells].filter((cell) => cell.dataset.value !== undefined)"
        ".map((cell) => [cell.dataset.key, Number(cell.dataset.value)]))])"
    )
    return dict(rows)


def choose(page: Browser, control: str, value: str) -> None:
    place = f"document.getElementById({json.dumps(control)})"
    page.evaluate(f"{place}.value = {json.dumps(value)}")
    page.evaluate(f"{place}.dispatchEvent(new Event('input')); {place}.dispatchEvent(new Event('change'))")
    page.settle()


def shown_time(page: Browser) -> tuple[float, float] | None:
    text = page.evaluate("new URLSearchParams(location.hash.slice(1)).get('time')")
    return None if text is None else tuple(map(float, text.split("-")))  # type: ignore[return-value]


@pytest.mark.parametrize("key", ["step", "operation", "kernel", "kind", "phase", "tile", "run", "expression"])
@pytest.mark.parametrize("looped", [False, True])
def test_the_table_shows_what_the_query_prints(
    chromium: Browser, tmp_path: Path, key: str, looped: bool
) -> None:
    profile = looped_profile(5) if looped else sample_profile(2)
    chromium.open(write(profile, tmp_path), f"#group={key}")
    shown = table(chromium)
    result = query(profile, key)
    assert set(shown) == {group.name for group in result.groups} | {"total"}
    for group in (*result.groups, result.total):
        assert shown[group.name] == {
            "critical": group.critical,
            "share": pytest.approx(group.share),
            "phase": group.phase,
            "work": group.work,
            "busy": group.busy,
            "used": pytest.approx(group.utilisation),
            "workersUsed": pytest.approx(group.worker_utilisation),
            "peak": pytest.approx(group.peak),
            "tiles": group.tiles,
        }
    assert list(shown)[:-1] == [group.name for group in result.groups], "in the same order"
    assert chromium.complaints() == [] and len(chromium.requests()) == 1


def test_sorting_filtering_and_the_time_shown(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(write(sample_profile(1), tmp_path), "#group=step")
    chromium.evaluate("document.querySelector('#table th[data-key=work]').click()")
    chromium.settle()
    work = [row["work"] for name, row in table(chromium).items() if name != "total"]
    assert work == sorted(work, reverse=True)
    choose(chromium, "filter", "GELU")
    assert set(table(chromium)) == {"3 gelu.gelu", "total"}
    choose(chromium, "filter", "")
    chromium.open(tmp_path / "p.html", "#group=step&scope=view&time=132-140")
    shown = table(chromium)
    # All three tiles set up `multiply` in those eight cycles.
    assert set(shown) == {"2 mm.multiply", "total"} and shown["total"]["work"] == 24


def test_zooming_panning_and_links(chromium: Browser, tmp_path: Path) -> None:
    path = write(sample_profile(2), tmp_path)
    chromium.open(path)
    assert shown_time(chromium) is None
    for key in "+++":
        chromium.key(key)
    low, high = shown_time(chromium) or (0, 0)
    assert high - low == pytest.approx(1240 * 0.75**3, rel=0.02)
    chromium.key("d")
    moved, _ = shown_time(chromium) or (0, 0)
    assert moved - low == pytest.approx(0.2 * (high - low), abs=2)
    chromium.key("0")
    assert shown_time(chromium) is None
    box = chromium.evaluate(
        "(({x, y, width, height}) => [x, y, width, height])(lanes.getBoundingClientRect())"
    )
    middle = {"x": box[0] + box[2] / 2, "y": box[1] + 40}
    chromium.command("Input.dispatchMouseEvent", type="mouseWheel", deltaX=0, deltaY=-400, **middle)
    chromium.settle()
    low, high = shown_time(chromium) or (0, 0)
    assert 0 < high - low < 1000
    # A link leads back to what it was taken from.
    place = chromium.evaluate("location.hash")
    chromium.open(path, place)
    chromium.settle()
    assert chromium.evaluate("location.hash") == place


def test_pointing_tells_and_clicking_chooses(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(write(sample_profile(1), tmp_path), "#tiles=")
    box = chromium.evaluate(
        "(({x, y, width, height}) => [x, y, width, height])(fall.getBoundingClientRect())"
    )
    # Cycle 150 of 240 on the last of three tiles: it computes.
    left = chromium.evaluate("document.getElementById('lanes').clientWidth < 600 ? 84 : 118")
    place = {"x": box[0] + left + (box[2] - left) * 150 / 240, "y": box[1] + box[3] * 0.9}
    chromium.command("Input.dispatchMouseEvent", type="mouseMoved", **place)
    chromium.wait_for("!document.getElementById('tip').hidden")
    tip = chromium.evaluate("document.getElementById('tip').textContent")
    assert "mm.multiply" in tip and "compute" in tip and "tile 70" in tip and "65" in tip
    for kind in ("mousePressed", "mouseReleased"):
        chromium.command("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)
    chromium.settle()
    assert chromium.evaluate("document.getElementById('tiles').value") == "70"


@pytest.mark.parametrize(("by", "colours"), [("step", 3), ("operation", 2), ("kernel", 3)])
def test_what_differs_has_another_colour(chromium: Browser, tmp_path: Path, by: str, colours: int) -> None:
    """The sample's three device steps: two operations, three kernels; waiting keeps its own colours."""
    chromium.open(write(sample_profile(1), tmp_path), f"#colour={by}")
    legend = chromium.evaluate(
        "[...document.querySelectorAll('#legend button')]"
        ".map((button) => [button.textContent, button.firstChild.style.background])"
    )
    waits = {"exchange.idle", "synchronisation", "host"}
    assert len(legend) == colours + len(waits) and waits < {name for name, _ in legend}
    assert len({colour for _, colour in legend}) == len(legend)


def test_the_search_and_the_theme(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(write(sample_profile(1), tmp_path))
    choose(chromium, "search", "tile 5")
    assert "5" in chromium.evaluate("document.getElementById('tiles').value").split(",")
    choose(chromium, "search", "gelu")
    press = "new KeyboardEvent('keydown', {key: 'Enter'})"
    chromium.evaluate(f"document.getElementById('search').dispatchEvent({press})")
    chromium.settle()
    low, high = shown_time(chromium) or (0, 0)
    assert low <= 210 < 230 <= high and high - low < 40, "where the critical path is in gelu"
    before = chromium.evaluate("getComputedStyle(document.body).backgroundColor")
    chromium.evaluate("document.getElementById('theme').click()")
    assert chromium.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_names_from_the_file_run_nothing(chromium: Browser, tmp_path: Path) -> None:
    path = write(hostile_profile(), tmp_path)
    changing = "document.querySelectorAll('#table *, #legend *, option').length"
    elements = f"document.querySelectorAll('*').length - {changing}"
    chromium.open(write(sample_profile(2), tmp_path))
    plain = chromium.evaluate(elements)
    path.write_bytes(render(hostile_profile()))
    for place in (
        "#group=step&colour=step",
        "#group=operation&colour=operation&search=%3Cimg",
        "#group=phase",
    ):
        chromium.open(path, place)
        assert chromium.evaluate("document.title") == f"{HOSTILE[0]} · Tilewright profile"
        assert chromium.evaluate("document.querySelectorAll('img, svg, iframe').length") == 0
        assert chromium.evaluate(elements) == plain
        assert chromium.complaints() == [] and len(chromium.requests()) == 1
    names = {name for name in table(chromium) if name != "total"}
    assert any(HOSTILE[1] in name for name in names), "shown as they are"


def test_the_policy_stops_a_script(chromium: Browser, tmp_path: Path) -> None:
    """The second wall: a handler that did become markup would not run."""
    chromium.open(write(sample_profile(1), tmp_path))
    chromium.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.owned=1\">')"
    )
    chromium.settle()
    assert chromium.evaluate("window.owned === undefined")
    assert chromium.complaints(), "and the browser says why"


def test_a_full_chip_opens_in_time(chromium: Browser, tmp_path: Path) -> None:
    """1,472 tiles through 90 operations: over two million intervals."""
    path = write(large_profile(90), tmp_path)
    chromium.open(path)
    took = float(chromium.evaluate("document.body.dataset.milliseconds"))
    print(f"{path.stat().st_size} bytes, drawn after {took:.0f} ms")
    assert took < OPENING_LIMIT_MS
    frame = chromium.evaluate(
        "(async () => { const times = []; for (let i = 0; i < 8; i++) { const t = performance.now();"
        "document.dispatchEvent(new KeyboardEvent('keydown', {key: '+'}));"
        "await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));"
        "times.push(performance.now() - t); } return times.sort((a, b) => a - b)[4]; })()"
    )
    print(f"{frame:.0f} ms from key to picture")
    assert frame < 300


def test_the_flame_view_divides_the_device_cycles(chromium: Browser, tmp_path: Path) -> None:
    profile = sample_profile(2)
    chromium.open(write(profile, tmp_path))
    text = "document.getElementById('flametext').textContent"
    assert chromium.evaluate(text).startswith(f"all: {profile.cycles:,} critical cycles, 100.0%.")
    operations = {group.name: group for group in query(profile, "operation").groups}
    chromium.open(write(profile, tmp_path), "#flame=mm")
    assert chromium.evaluate(text).startswith(f"mm: {operations['mm'].critical:,} critical cycles")
    choose(chromium, "flameby", "busy cycles of all tiles")
    assert chromium.evaluate(text).startswith(f"mm: {operations['mm'].busy:,} busy cycles of all tiles")
    # A click on the first row goes back to everything; one on the widest operation looks into it.
    click = (
        "(() => { const c = document.getElementById('flame'), box = c.getBoundingClientRect();"
        "c.dispatchEvent(new MouseEvent('click', {clientX: box.left + 3, clientY: box.top + %d})); })()"
    )
    chromium.evaluate(click % 5)
    chromium.settle()
    assert chromium.evaluate(text).startswith("all: ")
    chromium.evaluate(click % 26)
    chromium.settle()
    assert "flame=mm" in chromium.evaluate("location.hash") and chromium.complaints() == []


def test_hostile_names_in_the_flame_view_stay_text(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(write(hostile_profile(), tmp_path), "#flame=" + HOSTILE[0])
    assert chromium.evaluate("document.title") != "owned" and chromium.complaints() == []
    assert len(chromium.requests()) == 1
