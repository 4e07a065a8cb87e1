"""Exchange phases as plain data, and as text of at most 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from tilewright.errors import UsageError
from tilewright.ipu21.exchange.flows import Traffic, follow
from tilewright.ipu21.exchange.listing import list_row
from tilewright.ipu21.exchange.phases import Phase
from tilewright.ipu21.machine.topology import to_logical

from .console import count
from .tables import facts, listing

if TYPE_CHECKING:
    from rich.console import Console

BAR = 64
"""Columns of a timeline drawn as text."""
SHADES = " .:-=+*#"
SHOWN_TILES = 4
"""Partners of a message that are named; further ones are counted."""
SHOWN_LINES = 400
"""Lines of rows and timelines that are shown; `--json` prints all of them."""


def describe_phases(phases: Sequence[Phase]) -> dict[str, Any]:
    """All phases of a package, without following their words."""
    return {
        "phases": [
            {
                "step": phase.step,
                "name": phase.name,
                "tiles": len(phase.rows),
                "row_bytes": phase.row_bytes,
                "row_bytes_max": max(words.nbytes for words in phase.rows.values()),
                "length": phase.length,
            }
            for phase in phases
        ]
    }


def describe_phase(phase: Phase) -> dict[str, Any]:
    """One phase and its tiles."""
    traffic = follow(phase.rows)
    tiles = {
        tile: {
            "tile": tile,
            "logical": int(to_logical(tile)),
            "address": phase.addresses[tile],
            "row_bytes": phase.rows[tile].nbytes,
            "events": end,
            "sends": len(sends),
            "words_sent": sum(items * size // 4 for _, items, size, _ in sends),
            "receives": 0,
            "words_received": 0,
        }
        for tile, end, sends in zip(traffic.tiles, traffic.ends, traffic.sends, strict=True)
    }
    for flow in traffic.flows.tolist():
        tiles[flow[1]]["receives"] += 1
        tiles[flow[1]]["words_received"] += flow[2]
    return {**_head(phase, traffic), "tiles": list(tiles.values())}


def describe_tile(phase: Phase, tile: int) -> dict[str, Any]:
    """Row and timeline of one tile in a phase. Raises UsageError for a tile without a row."""
    if tile not in phase.rows:
        have = ", ".join(map(str, list(phase.rows)[:8])) + (", ..." if len(phase.rows) > 8 else "")
        raise UsageError(f"tile {tile} has no row in {phase.name!r}", hint=f"tiles with one: {have}")
    traffic = follow(phase.rows)
    place = traffic.tiles.index(tile)
    flows = traffic.flows
    sent = [
        {
            "event": event,
            "items": items,
            "item_bytes": size,
            "address": address,
            "to": sorted(
                set(
                    flows["destination"][
                        (flows["source"] == tile) & (flows["send"] >= event) & (flows["send"] < event + items)
                    ].tolist()
                )
            ),
        }
        for event, items, size, address in traffic.sends[place]
    ]
    mine = flows[flows["destination"] == tile]
    received = [
        {
            "event": store,
            "items": items,
            "item_bytes": 4 * words // items,
            "address": write,
            "from": source,
            "left": send,
        }
        for source, _, words, items, send, store, _, write in mine.tolist()
    ]
    return {
        **_head(phase, traffic),
        "tile": tile,
        "logical": int(to_logical(tile)),
        "address": phase.addresses[tile],
        "events": traffic.ends[place],
        "row": [
            {
                "address": line.address,
                "words": list(line.words),
                "event": line.event,
                "events": line.events,
                "instruction": line.text,
                "effects": list(line.effects),
            }
            for line in list_row(phase.rows[tile], phase.addresses[tile], tile=tile)
        ],
        "sends": sent,
        "receives": sorted(received, key=lambda item: item["event"]),
    }


def _head(phase: Phase, traffic: Traffic) -> dict[str, Any]:
    return {
        "phase": phase.name,
        "step": phase.step,
        "active_tiles": len(traffic.tiles),
        "length": traffic.horizon,
        "messages": sum(map(len, traffic.sends)),
        "words": int(traffic.flows["words"].sum(dtype="int64")),
        "row_bytes": phase.row_bytes,
    }


def show_phases(out: Console, report: Mapping[str, Any]) -> None:
    """The phases of a package."""
    if not report["phases"]:
        out.print("the package has no exchange phase that it names the rows of")
        return
    listing(
        out,
        "Exchange phases",
        (">step", "name", ">tiles", ">events", ">row bytes", ">largest row"),
        [
            (
                str(phase["step"]),
                phase["name"],
                count(phase["tiles"]),
                count(phase["length"]),
                count(phase["row_bytes"]),
                count(phase["row_bytes_max"]),
            )
            for phase in report["phases"]
        ],
        limit=len(report["phases"]),
    )


def show_phase(out: Console, report: Mapping[str, Any]) -> None:
    """The tiles of a phase, longest row first."""
    facts(out, _head_facts(report))
    listing(
        out,
        "Tiles, longest first",
        (">tile", ">logical", ">events", ">sends", ">words", ">receives", ">words", ">row bytes", "at"),
        [
            (
                str(tile["tile"]),
                str(tile["logical"]),
                count(tile["events"]),
                count(tile["sends"]),
                count(tile["words_sent"]),
                count(tile["receives"]),
                count(tile["words_received"]),
                count(tile["row_bytes"]),
                f"{tile['address']:#x}",
            )
            for tile in sorted(report["tiles"], key=lambda tile: (-tile["events"], tile["tile"]))
        ],
    )


def show_tile(out: Console, report: Mapping[str, Any]) -> None:
    """Row and timeline of one tile."""
    tile = f"{report['tile']} physical, {report['logical']} logical"
    facts(out, [*_head_facts(report), ("tile", tile), ("its row", f"{count(report['events'])} events")])
    listing(
        out,
        "Row (effects begin with their event if it is not the instruction's first)",
        (">event", ">takes", "at", "instruction", "effect"),
        [
            (
                str(line["event"]),
                str(line["events"] or ""),
                f"{line['address']:x}",
                line["instruction"],
                "\n".join(line["effects"]),
            )
            for line in report["row"]
        ],
        limit=SHOWN_LINES,
    )
    out.print(Text("Timeline", style="bold"))
    for name in ("sends", "receives"):
        spans = [(item["event"], item["event"] + item["items"]) for item in report[name]]
        out.print(Text(f"{name:9}|{bar(spans, report['events'])}|"))
    out.print(Text(f"{'event':10}0{report['events']:>{BAR - 1}}"))
    out.print()
    moves = [(item["event"], "send", item) for item in report["sends"]]
    moves += [(item["event"], "receive", item) for item in report["receives"]]
    listing(
        out,
        "Sends and receives",
        (">from event", ">to", "", ">items", "address", "partner"),
        [
            (
                str(event),
                str(event + item["items"]),
                what,
                count(item["items"]) + (" x 8 B" if item["item_bytes"] == 8 else ""),
                f"{item['address']:#x}",
                _partners(item["to"]) if what == "send" else f"tile {item['from']}, sent at {item['left']}",
            )
            for event, what, item in sorted(moves, key=lambda move: move[:2])
        ],
        limit=SHOWN_LINES,
    )


def show_replay(out: Console, report: Mapping[str, Any]) -> None:
    """What scheduling saved transfers gave."""
    ratio = "-" if report["ratio"] is None else f"{report['ratio']:.3f}"
    facts(
        out,
        [
            ("transfers", f"{count(report['transfers'])} to {count(report['receivers'])} receivers"),
            ("tiles", count(report["tiles"])),
            ("words", f"{count(report['words_sent'])} sent, {count(report['words_received'])} received"),
            ("messages", count(report["messages"])),
            ("length", f"{count(report['length'])} events"),
            ("bound", f"{count(report['bound'])} events, no schedule is shorter"),
            ("ratio", ratio),
            (
                "row bytes",
                f"{count(report['row_bytes'])}: {report['row_bytes_mean']:,.1f} a tile, "
                f"{count(report['row_bytes_max'])} at most",
            ),
            ("time", f"{report['seconds']:.3f} s"),
        ],
    )


def bar(spans: Sequence[tuple[int, int]], length: int, columns: int = BAR) -> str:
    """Half-open spans of events as one line; darker where more of a column's events are covered."""
    covered = [0.0] * columns
    width = max(length, 1) / columns
    for begin, end in spans:
        for column in range(int(begin / width), min(columns, int((end - 1) / width) + 1)):
            low, high = max(begin, column * width), min(end, (column + 1) * width)
            covered[column] += max(0.0, high - low)
    shades = len(SHADES) - 1
    return "".join(
        SHADES[min(shades, max(1, round(shades * events / width)))] if events else " " for events in covered
    )


def _head_facts(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        ("phase", f"{report['phase']} (step {report['step']})"),
        ("tiles", f"{count(report['active_tiles'])} with a row"),
        ("length", f"{count(report['length'])} events (cycles from the barrier's exit)"),
        ("traffic", f"{count(report['messages'])} messages, {count(report['words'])} words received"),
        ("rows", f"{count(report['row_bytes'])} bytes"),
    ]


def _partners(tiles: Sequence[int]) -> str:
    if not tiles:
        return "nobody"
    shown = ", ".join(map(str, tiles[:SHOWN_TILES]))
    more = f" and {len(tiles) - SHOWN_TILES} more" if len(tiles) > SHOWN_TILES else ""
    return f"tile{'s' if len(tiles) > 1 else ''} {shown}{more}"
