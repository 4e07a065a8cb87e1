"""`tilewright sim`: run one tile's code."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.errors import UsageError

from .console import WIDTH, JsonOption, console, note, print_json
from .options import (
    DefineOption,
    EnginesOption,
    ExternalOption,
    IncludeOption,
    OverlayOption,
    PreprocessorOption,
    definitions,
    named_numbers,
    number,
    use_overlay,
)
from .profile import ProfileOption, check_folder

if TYPE_CHECKING:
    from tilewright.ipu21.simulator.trace import Step
    from tilewright.tile import Checks, RunResult, TileBench
    from tilewright.tile.content import View

TRACE_LINES = 100_000
SHOWN_ELEMENTS = 64
MOST_ISSUES = 10**12
LAST_TILE = 23 * 64 - 1
"""The last physical id, repeated here because importing the machine costs start-up time; a test compares."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sim", no_args_is_help=True)(sim_command)


def sim_command(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="A linked image, or sources, objects and .gp files."),
    ],
    entry: Annotated[
        str | None, typer.Option("--entry", metavar="SYMBOL", help="Function to call; an address works too.")
    ] = None,
    vertex: Annotated[
        str | None,
        typer.Option("--vertex", metavar="NAME", help="Run a vertex, named as in a graph: ns::Type<half>."),
    ] = None,
    worker: Annotated[bool, typer.Option("--worker", help="The entry is worker code.")] = False,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", help="Workers that run it; default one per --state."),
    ] = None,
    states: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="FIELDS",
            help="Vertex state: out,in,u16:64,f32:1.5; repeat for one per worker.",
        ),
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            "--mem",
            metavar="NAME[@PLACE]=CONTENT",
            help="Operand: @x.npy, @x.npy:f16, zeros:f16:64, u32:1,2.",
        ),
    ] = None,
    registers: Annotated[
        list[str] | None,
        typer.Option("--reg", metavar="REG=VALUE", help="Register: a number, operand or symbol+offset."),
    ] = None,
    csrs: Annotated[
        list[str] | None,
        typer.Option(
            "--csr", metavar="NAME=VALUE", help="Control register; those of workers in each worker."
        ),
    ] = None,
    show: Annotated[
        list[str] | None,
        typer.Option("--show", metavar="NAME[:TYPE:SHAPE]", help="Memory to print; repeatable."),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--out", metavar="NAME[:TYPE:SHAPE]=FILE.npy", help="Memory to save; repeatable."),
    ] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Print every issued instruction.")] = False,
    trace_limit: Annotated[
        int, typer.Option("--trace-limit", metavar="N", min=1, help="Lines at most.")
    ] = TRACE_LINES,
    checks: Annotated[
        list[str] | None,
        typer.Option("--check", metavar="NAME", help="Switch a check on: poison, ... or all."),
    ] = None,
    no_checks: Annotated[
        list[str] | None, typer.Option("--no-check", metavar="NAME", help="Switch a check off, or all.")
    ] = None,
    engines: EnginesOption = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", metavar="N", min=1, max=MOST_ISSUES, help="Instructions before it is judged endless."
        ),
    ] = None,
    stack: Annotated[
        int, typer.Option("--stack", metavar="BYTES", min=0, help="Least size of every stack.")
    ] = 0,
    tile: Annotated[
        int, typer.Option("--tile", metavar="N", min=0, max=LAST_TILE, help="Physical id the tile reports.")
    ] = 0,
    defines: DefineOption = None,
    include: IncludeOption = None,
    externals: ExternalOption = None,
    preprocessor: PreprocessorOption = None,
    overlay: OverlayOption = None,
    profile: ProfileOption = None,
    json: JsonOption = False,
) -> None:
    """Run a supervisor function, or a vertex on workers, on one simulated tile.

    Prints cycles, registers and the memory asked for. A function returns by `br $lr`; $m11 is its stack.

    Example: tilewright sim k.S --entry f --mem x=@x.npy --mem y=zeros:f16:64 --reg m2=y --reg m3=x --show y
    """
    use_overlay(overlay)
    from tilewright.ipu21.simulator.choice import REFERENCE, TRANSLATED
    from tilewright.tile import TileBench, TileProgram
    from tilewright.tile.content import place_memory, register_value, vertex_fields, vertex_symbol, view_of

    if (entry is None) == (vertex is None):
        raise UsageError("name what to run", hint="--entry SYMBOL, or --vertex NAME")
    if (states or workers is not None) and not (worker or vertex is not None):
        raise UsageError("only worker code has a vertex state", hint="add --worker, or use --vertex")
    if trace and engines == TRANSLATED:
        raise UsageError("a trace steps through the reference engine", hint="leave --engines out")
    start = vertex_symbol(vertex) if vertex is not None else str(entry)
    program = TileProgram.from_files(
        files,
        roots=[] if start[:1].isdigit() else [start],
        also=_names_in(
            [*(memory or []), *(registers or []), *(states or []), *(show or []), *(outputs or [])]
        ),
        defines=definitions(defines),
        include_dirs=include or (),
        externals=named_numbers(externals),
        preprocessor=preprocessor,
    )
    for warning in program.image.warnings:
        note(f"warning: {warning}")
    chosen = chosen_checks(checks or [], no_checks or [], budget)
    bench = TileBench(program, checks=chosen, physical=tile, stack=stack, engines=engines or REFERENCE)
    for text in memory or []:
        place_memory(bench, text)
    views = [view_of(bench, text) for text in show or []]
    views += [view_of(bench, text, saved=True) for text in outputs or []]
    values: dict[int | str, Any] = dict(register_value(text) for text in registers or [])
    settings: dict[str | int, int] = {
        name: number(value, "--csr") for name, value in map(register_value, csrs or [])
    }
    record = _Recorder(bench, trace_limit, quiet=json) if trace else None
    check_folder(profile)
    began = bench.tile.clock
    bench.tile.note_spans(profile is not None)
    if worker or vertex is not None:
        placed = [bench.vertex_state(*vertex_fields(bench, text)) for text in states or []]
        result = bench.run_vertex(
            start, placed, workers=workers, registers=values, csrs=settings, budget=budget, trace=record
        )
    else:
        result = bench.call(start, values, csrs=settings, budget=budget, trace=record)
    if profile is not None:
        _save_profile(bench, files[0].name, start, began, result.cycles, profile)
    _save(bench, views)
    report = _report(bench, result, views, worker=worker or vertex is not None)
    if json:
        if record is not None:
            report["trace"] = record.lines
        print_json(report)
        return
    _show(report)


def _save_profile(bench: TileBench, name: str, entry: str, began: int, cycles: int, path: Path) -> None:
    """Write the profile of a call that has returned."""
    import hashlib

    from tilewright import __version__
    from tilewright.profiling import save_profile
    from tilewright.profiling.single_tile import single_tile_profile

    code = hashlib.sha256()
    for segment in bench.program.image.segments:
        code.update(segment.address.to_bytes(4, "little") + segment.data)
    made = single_tile_profile(
        name,
        entry,
        code.hexdigest(),
        tile=bench.tile.physical,
        begin=began,
        cycles=cycles,
        workers=bench.tile.take_spans(),
        compiler=f"tilewright {__version__}",
    )
    save_profile(made, path)
    note(f"wrote {path}")


def _names_in(texts: list[str]) -> set[str]:
    """Every word that could be a symbol."""
    return {name for text in texts for name in re.findall(r"[A-Za-z_.$][\w.$]*", text)}


def chosen_checks(on: list[str], off: list[str], budget: int | None) -> Checks:
    """The default checks with some switched. Raises UsageError for an unknown name."""
    import dataclasses

    from tilewright.tile import Checks

    switches = [item.name for item in dataclasses.fields(Checks) if isinstance(item.default, bool)]
    changed: dict[str, Any] = {}
    for names, value in ((on, True), (off, False)):
        for name in names:
            if name != "all" and name not in switches:
                raise UsageError(
                    f"there is no check {name}", hint=f"there are {', '.join(switches)}, and all"
                )
            changed.update(dict.fromkeys(switches if name == "all" else [name], value))
    if budget is not None:
        changed["budget"] = budget
    return Checks(**changed)


class _Recorder:
    """Prints or keeps the lines of a trace."""

    def __init__(self, bench: TileBench, limit: int, *, quiet: bool) -> None:
        self._bench = bench
        self._left = limit
        self._quiet = quiet
        self.lines: list[dict[str, Any]] = []

    def __call__(self, step: Step) -> None:
        if self._left <= 0:
            return
        self._left -= 1
        place = self._bench.program.symbol_at(step.address)
        found = self._bench.program.source_at(step.address)
        source = f"{Path(found[0]).name}:{found[1]}" if found is not None else None
        if not self._quiet:
            typer.echo(step.line(place, source))
            if self._left == 0:
                note("the trace ends here (--trace-limit); the run goes on")
            return
        self.lines.append(
            {
                "cycle": step.cycle,
                "context": "supervisor" if step.context == 0 else f"worker {step.context - 1}",
                "address": step.address,
                "place": place,
                "source": source,
                "instruction": step.text,
                "reads": dict(step.reads),
                "writes": dict(step.writes),
            }
        )


def _save(bench: TileBench, views: list[View]) -> None:
    from .package import save_array

    for view in views:
        if view.path is not None:
            save_array(view.path, bench.array(view.buffer))
            note(f"wrote {view.path}")


def _report(bench: TileBench, result: RunResult, views: list[View], *, worker: bool) -> dict[str, Any]:
    used = [index for index, count in enumerate(result.slots) if count]
    contexts: dict[str, Any] = {}
    if not worker:
        contexts["supervisor"] = {f"m{index}": int(result.m[0, index]) for index in range(12)}
    for index in used:
        contexts[f"worker {index}"] = {
            f"m{place}": int(result.m[1 + index, place]) for place in range(12)
        } | {f"a{place}": int(result.a[index, place]) for place in range(8)}
    return {
        "cycles": result.cycles,
        "instructions": {
            "supervisor": result.instructions,
            "workers": [int(count) for count in result.slots],
        },
        "registers": contexts,
        "memory": {
            view.name: {
                "address": view.buffer.address,
                "dtype": view.buffer.dtype.name,
                "shape": list(view.buffer.shape),
                "values": _values(bench.array(view.buffer).tolist()),
            }
            for view in views
            if view.path is None
        },
    }


def _values(values: Any) -> Any:
    """Nested lists of numbers; JSON has no infinities and NaNs, so these appear by name."""
    if isinstance(values, list):
        return [_values(value) for value in values]
    return values if not isinstance(values, float) or math.isfinite(values) else str(values)


def _show(report: dict[str, Any]) -> None:
    from .tables import facts, listing

    out = console()
    counts = report["instructions"]
    shown = [("cycles", f"{report['cycles']:,}"), ("supervisor instructions", f"{counts['supervisor']:,}")]
    if any(counts["workers"]):
        shown.append(("worker instructions", " ".join(f"{count:,}" for count in counts["workers"])))
    facts(out, shown)
    for context, values in report["registers"].items():
        names = list(values)
        rows = [
            [f"${name} {values[name]:#010x}" for name in names[begin : begin + 4]]
            for begin in range(0, len(names), 4)
        ]
        listing(out, context, ("", "", "", ""), rows)
    for name, item in report["memory"].items():
        typer.echo(f"{name} @ {item['address']:#x}: {item['dtype']} {'x'.join(map(str, item['shape']))}")
        typer.echo(_text(item["values"], item["dtype"]))


def _text(values: Any, dtype: str) -> str:
    import numpy as np

    return np.array2string(np.array(values, dtype), threshold=SHOWN_ELEMENTS, max_line_width=WIDTH - 1)
