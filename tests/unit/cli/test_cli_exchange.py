"""`tilewright exchange`: each command on a small package, and every way to ask for something else."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from tilewright.cli.exchange_page import phase_page
from tilewright.cli.exchange_report import bar
from tilewright.cli.main import app
from tilewright.ipu21.exchange.flows import follow
from tilewright.ipu21.exchange.phases import list_phases
from tilewright.ipu21.fabric.schedule import schedule
from tilewright.ipu21.selftest.random_trials import random_trial
from tilewright.ipu21.selftest.trial import Exchange
from tilewright.ipu21.selftest.trial_package import trial_package
from tilewright.package import load_package, save_package

pytestmark = pytest.mark.unit

TRIAL = random_trial(3, 6)
"""Steps: exchange_0, compute_1, exchange_2."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exchange") / "trial.ipuexe"
    save_package(trial_package(TRIAL, {}), path)
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["exchange", *map(str, arguments)])


def report(*arguments: str | Path) -> dict[str, Any]:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def messages(step: int) -> Exchange:
    exchange = TRIAL.steps[step]
    assert isinstance(exchange, Exchange)
    return exchange


def test_rows_come_out_of_the_package_as_they_went_in(package: Path) -> None:
    phases = list_phases(load_package(package))
    assert [(phase.name, phase.step) for phase in phases] == [("exchange_0", 2), ("exchange_2", 4)]
    for phase, step in zip(phases, (0, 2), strict=True):
        expected = schedule(*messages(step).arrays()).rows
        assert list(phase.rows) == sorted(expected)
        for tile, words in expected.items():
            np.testing.assert_array_equal(phase.rows[tile], words)


def test_phases_are_listed(package: Path) -> None:
    listed = report("inspect", package)["phases"]
    expected = [schedule(*messages(step).arrays()) for step in (0, 2)]
    assert [phase["length"] for phase in listed] == [schedule_.horizon for schedule_ in expected]
    assert [phase["row_bytes"] for phase in listed] == [4 * len(schedule_.words) for schedule_ in expected]
    text = run("inspect", package).stdout
    assert "exchange_0" in text and max(map(len, text.splitlines())) <= 80


def test_a_phase_shows_its_tiles(package: Path) -> None:
    shown = report("inspect", package, "--phase", "exchange_0")
    sent: dict[int, int] = {}
    received: dict[int, int] = {}
    for message in messages(0).messages:
        for tile, _ in message.receivers:
            received[tile] = received.get(tile, 0) + message.words
        sent[message.source] = sent.get(message.source, 0) + message.words
    for tile in shown["tiles"]:
        assert tile["words_received"] == received.get(tile["tile"], 0)
        assert tile["words_sent"] >= sent.get(tile["tile"], 0)  # more if a multicast was divided
    assert shown["words"] == sum(received.values())
    text = run("inspect", package, "--phase", "2").stdout
    assert max(map(len, text.splitlines())) <= 80


def test_a_tile_shows_its_row_and_its_timeline(package: Path) -> None:
    for tile in TRIAL.tiles:
        shown = report("inspect", package, "--phase", "exchange_2", "--tile", str(tile))
        wanted = [m for m in messages(2).messages if m.source == tile]
        assert {to for send in shown["sends"] for to in send["to"]} == {
            to for message in wanted for to, _ in message.receivers
        }
        assert sum(item["items"] * item["item_bytes"] for item in shown["receives"]) == 4 * sum(
            message.words for message in messages(2).messages for to, _ in message.receivers if to == tile
        )
        assert shown["row"][-1]["event"] == shown["events"] <= shown["length"]
        text = run("inspect", package, "--phase", "exchange_2", "--tile", str(tile)).stdout
        assert max(map(len, text.splitlines())) <= 80
        assert "end of the row" in text and "Timeline" in text


def test_bars_show_where_events_are() -> None:
    assert bar([(0, 5), (9, 10)], 10, 10) == "#####    #"
    assert bar([(0, 1)], 1000, 10)[0] in ".:" and bar([], 10, 10) == " " * 10


def test_saved_phases_are_scheduled_again(package: Path, tmp_path: Path) -> None:
    done = run("save", package, "--phase", "exchange_0", "-o", tmp_path / "a.npz")
    assert (done.exit_code, done.stdout) == (0, "")
    again = report("replay", tmp_path / "a.npz")
    words = sum(message.words * len(message.receivers) for message in messages(0).messages)
    assert again["words_received"] == words
    assert again["length"] >= again["bound"] > 0
    assert again["ratio"] == pytest.approx(again["length"] / again["bound"], abs=1e-4)
    assert again["row_bytes_max"] <= again["row_bytes"]
    text = run("replay", tmp_path / "a.npz").stdout
    assert "no schedule is shorter" in text and max(map(len, text.splitlines())) <= 80


class Page(HTMLParser):
    """Elements of a page in order: tag and text directly behind its start; and everything it would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[list[str]] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append([tag, ""])
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        if self.elements:
            self.elements[-1][1] += data

    def texts(self, tag: str) -> list[str]:
        return [text.strip() for name, text in self.elements if name == tag]


def test_pages_hold_the_phase_and_fetch_nothing(package: Path, tmp_path: Path) -> None:
    assert run("html", package, "--phase", "exchange_0", "-o", tmp_path / "a.html").exit_code == 0
    page = Page((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert page.links == [] and page.texts("title") == ["Exchange phase exchange_0"]
    data = json.loads(page.texts("script")[0])
    traffic = follow(list_phases(load_package(package))[0].rows)
    assert data["tiles"] == traffic.tiles and data["length"] == traffic.horizon
    assert len(data["flows"]) == len(traffic.flows)
    for source, destination, send, store, _, words, read, write in data["flows"]:
        flow = (data["tiles"][source], data["tiles"][destination], words, send, store, read, write)
        assert (
            flow
            in traffic.flows[["source", "destination", "words", "send", "store", "read", "write"]].tolist()
        )


def test_names_in_pages_stay_names() -> None:
    rows = schedule(*messages(0).arrays()).rows
    hostile = '</script><img src=x onerror="alert(1)">&@DATA@'
    page = Page(phase_page(hostile, hostile, follow(rows)))
    assert not page.texts("img") and len(page.texts("script")) == 2
    assert page.texts("h1") == [hostile]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "PACKAGE", "--phase", "nothing"], "there is no exchange phase 'nothing'"),
        (["inspect", "PACKAGE", "--phase", "3"], "there is no exchange phase '3'"),
        (["inspect", "PACKAGE", "--tile", "0"], "which of 2 phases?"),
        (["inspect", "PACKAGE", "--phase", "2", "--tile", "9999"], "tile 9999 has no row"),
        (["inspect", "PACKAGE", "--phase", "2", "--tile", "-1"], "tile -1 has no row"),
        (["inspect", "missing.ipuexe"], "missing.ipuexe"),
        (["inspect", "JUNK"], "not a package"),
        (["html", "PACKAGE", "--phase", "2", "-o", "FOLDER/no/a.html"], "cannot write"),
        (["html", "PACKAGE", "--phase", "?", "-o", "FOLDER/a.html"], "there is no exchange phase '?'"),
        (["save", "PACKAGE", "--phase", "?", "-o", "FOLDER/a.npz"], "there is no exchange phase '?'"),
        (["save", "PACKAGE", "-o", "FOLDER/a.npz"], "which of 2 phases?"),
        (["replay", "missing.npz"], "cannot read"),
        (["replay", "JUNK"], "not a saved set of transfers"),
        (["replay", "PACKAGE"], "not a saved set of transfers"),
        (["replay", "CUT"], "not a saved set of transfers"),
    ],
)
def test_mistakes_end_in_one_line(arguments: list[str], message: str, package: Path, tmp_path: Path) -> None:
    assert run("save", package, "--phase", "2", "-o", tmp_path / "whole.npz").exit_code == 0
    names = {"PACKAGE": package, "JUNK": tmp_path / "junk", "CUT": tmp_path / "cut.npz"}
    names["JUNK"].write_bytes(b"\x13" * 999)
    names["CUT"].write_bytes((tmp_path / "whole.npz").read_bytes()[:-30])
    given = [str(names.get(a, a)).replace("FOLDER", str(tmp_path)) for a in arguments]
    before = sorted(tmp_path.iterdir())
    done = run(*given)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr and len(done.stderr.splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


def test_packages_without_phases_say_so(package: Path, tmp_path: Path) -> None:
    content = load_package(package)
    content.regions = []
    save_package(content, tmp_path / "bare.ipuexe")
    assert report("inspect", tmp_path / "bare.ipuexe") == {"phases": []}
    done = run("inspect", tmp_path / "bare.ipuexe", "--phase", "2")
    assert done.exit_code == 2 and "no exchange phase" in done.stderr
