"""Profiles and answers about them as tables of at most 80 columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from .console import count
from .tables import facts, listing

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.profiling import Group, Result

COLUMNS = (">critical", ">share", ">phase", ">work", ">used", ">peak")
ALL = 1 << 30
"""Limit of a list that the caller has already cut."""


def show_query(out: Console, result: Result, group_by: str) -> None:
    """Groups of a query, their sums, and what the columns mean."""
    rows = [(group.name, *_cells(group)) for group in result.groups]
    rows.append(("total", *_cells(result.total)))
    listing(out, f"Cycles by {group_by}", (group_by, *COLUMNS), rows, limit=ALL)
    hidden = result.found - len(result.groups)
    if hidden:
        out.print(Text(f"{count(hidden)} more groups are in the total (--limit 0 shows all)"))
    out.print(
        Text(
            f"{count(result.device_cycles)} device cycles. critical: on the path all waited for; "
            "phase: the slowest tile of each step; work: all tiles together; "
            "used: the share of all tiles' phase cycles in which they do not wait; "
            "peak: multiply-adds as a share of what the matrix units of all tiles could do in them."
        )
    )


def show_profile(out: Console, summary: Mapping[str, Any]) -> None:
    """The summary of a profile."""
    runs, cycles = summary["runs"], summary["device_cycles"]
    seconds = cycles / summary["clock_hz"]
    detail = "every part of every step, exact" if summary["exact"] else "whole steps"
    facts(
        out,
        [
            ("profile", f"of {summary['package'] or 'a package'} on {summary['device']}"),
            ("package", summary["package_digest"]),
            ("made by", summary["compiler"] or "unknown"),
            ("runs", f"{count(len(runs))}, {count(summary['steps'])} steps, {count(summary['tiles'])} tiles"),
            (
                "device",
                f"{count(cycles)} cycles ({seconds * 1e6:,.2f} us at {summary['clock_hz'] / 1e9:g} GHz)",
            ),
            (
                "work",
                f"{count(summary['work_cycles'])} cycles of all tiles, "
                f"{summary['busy_cycles'] / max(summary['work_cycles'], 1):.1%} busy",
            ),
            (
                "intervals",
                f"{count(summary['supervisor_intervals'])} of supervisors, "
                f"{count(summary['worker_intervals'])} of workers ({detail})",
            ),
        ],
    )
    for title, key in (("Cycles by kind", "by_kind"), ("Cycles by step", "by_step")):
        rows = [
            (
                group["name"],
                count(group["critical_cycles"]),
                f"{group['share']:.1%}",
                count(group["phase_cycles"]),
                count(group["work_cycles"]),
                f"{group['utilisation']:.1%}",
                f"{group['peak_share']:.1%}" if group["multiply_adds"] else "",
            )
            for group in summary[key]
        ]
        listing(out, title, (key.removeprefix("by_"), *COLUMNS), rows)


def _cells(group: Group) -> tuple[str, ...]:
    return (
        count(group.critical),
        f"{group.share:.1%}",
        count(group.phase),
        count(group.work),
        f"{group.utilisation:.1%}",
        f"{group.peak:.1%}" if group.multiply_adds else "",
    )
