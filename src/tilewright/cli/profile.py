"""`tilewright profile`: ask a cycle profile, show it in a browser, or hand it to Perfetto."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.errors import UsageError

from .console import JsonOption, byte_size, console, note, print_json

if TYPE_CHECKING:
    from tilewright.package import Package
    from tilewright.profiling import ProfileBuilder

ProfileOption = Annotated[
    Path | None,
    typer.Option("--profile", metavar="FILE.twprof", help="Write a cycle profile of the run."),
]
"""Type of a command's `profile` parameter: `profile: ProfileOption = None`."""


class ProfileGranularity(StrEnum):
    """How much of a run a profile keeps; as `tilewright.profiling.Granularity`, which is slow to import."""

    graph = "graph"
    region = "region"
    phase = "phase"
    step = "step"


GranularityOption = Annotated[
    ProfileGranularity,
    typer.Option(
        "--granularity",
        help="What the profile keeps: step is all, phase all but workers, region one interval per operation.",
    ),
]
"""Type of a command's `granularity` parameter."""

ProfileArgument = Annotated[Path, typer.Argument(metavar="FILE.twprof", help="Profile to read.")]

DEFAULT_LIMIT = 20


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)
    group.command("query", no_args_is_help=True)(query_command)
    group.command("html", no_args_is_help=True)(html_command)
    group.command("perfetto", no_args_is_help=True)(perfetto_command)
    group.callback()(profile_group)
    app.add_typer(group, name="profile")


def profile_group() -> None:
    """Where the cycles of a run went: sums, a page for the browser, a Perfetto trace.

    Example: tilewright profile query run.twprof --group-by operation
    """


def query_command(
    file: ProfileArgument,
    group_by: Annotated[
        str,
        typer.Option(
            "--group-by", metavar="KEY", help="kernel, operation, phase, tile, kind, step, run or metadata."
        ),
    ] = "kernel",
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="KEY=VALUE",
            help="Only these: kernel, operation, kind, step (names, * allowed), tile, run, instance "
            "(0,4-7). != excludes. Repeatable.",
        ),
    ] = None,
    sort: Annotated[
        str,
        typer.Option(
            "--sort",
            metavar="KEY",
            help="critical, phase, work, busy, utilisation, share, peak, intervals, first or name.",
        ),
    ] = "critical",
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, help="Most groups shown; 0 for all.")
    ] = DEFAULT_LIMIT,
    json: JsonOption = False,
) -> None:
    """Sum a profile's cycles by group.

    Critical cycles lie on the path that every tile waited for; over all groups
    they add up to the device cycles. Phase cycles are those of the slowest tile
    of each step, work cycles those of all tiles together.

    Example: tilewright profile query run.twprof --group-by step --where kind=exchange
    """
    from tilewright.profiling import load_profile, query
    from tilewright.profiling.summary import group_data

    profile = load_profile(file)
    result = query(profile, group_by, where=where or [], sort=sort, limit=limit)
    if json:
        print_json(
            {
                "device_cycles": result.device_cycles,
                "group_by": group_by,
                "total": group_data(result.total),
                "groups": [group_data(group) for group in result.groups],
                "found": result.found,
            }
        )
        return
    from .profile_report import show_query

    show_query(console(), result, group_by)


def html_command(
    file: ProfileArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="OUT.html", help="Page to write.")],
) -> None:
    """Write a profile as one page for the browser, which needs no network.

    Example: tilewright profile html run.twprof -o run.html
    """
    from tilewright.files import write_whole
    from tilewright.profiling import load_profile
    from tilewright.profiling.page import render

    data = render(load_profile(file))
    write_whole(output, data)
    note(f"wrote {output} ({byte_size(len(data))})")


def perfetto_command(
    file: ProfileArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT.perfetto-trace", help="Trace to write.")
    ],
    tiles: Annotated[
        str | None,
        typer.Option("--tiles", metavar="0,4-7", help="Only these tiles; the critical path is always there."),
    ] = None,
) -> None:
    """Write a profile as a trace that ui.perfetto.dev opens: one track per tile, context and run.

    One nanosecond of the trace is one cycle.

    Example: tilewright profile perfetto run.twprof -o run.perfetto-trace --tiles 0-63
    """
    from tilewright.files import write_whole
    from tilewright.profiling import load_profile
    from tilewright.profiling.perfetto import encode_trace

    data = encode_trace(load_profile(file), tiles)
    write_whole(output, data)
    note(f"wrote {output} ({byte_size(len(data))})")


def inspect_profile(data: bytes, name: str, *, json: bool) -> None:
    """What `tilewright inspect` shows of a profile. Raises ProfileError."""
    from tilewright.profiling import read_profile
    from tilewright.profiling.summary import summarize

    summary = summarize(read_profile(data, name=name))
    summary["file_bytes"] = len(data)
    if json:
        print_json(summary)
        return
    from .profile_report import show_profile

    show_profile(console(), summary)


def profile_builder(
    package: Package,
    name: str,
    device: str,
    path: Path | None,
    granularity: ProfileGranularity = ProfileGranularity.step,
) -> ProfileBuilder | None:
    """A builder if a profile is wanted at `path`, which is checked before anything long begins."""
    if path is None:
        return None
    check_folder(path)
    from tilewright.profiling import Granularity, ProfileBuilder

    return ProfileBuilder(package, name=name, device=device, granularity=Granularity(granularity.value))


def check_folder(path: Path | None) -> None:
    """Raises UsageError, before anything long begins, if the folder of a file to write does not exist."""
    if path is not None and not path.parent.is_dir():
        raise UsageError("cannot write: no such folder", where=str(path))


def write_profile_file(builder: ProfileBuilder, path: Path) -> None:
    """Write what a builder has collected, and say so."""
    from tilewright.profiling import save_profile

    save_profile(builder.profile(), path)
    note(f"wrote {path}")
