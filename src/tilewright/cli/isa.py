"""`tilewright isa probe`: compare the instruction table with an outside assembler."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import JsonOption, console, count, note, print_json

if TYPE_CHECKING:
    from tilewright.ipu21.toolchain.probe import ProbeReport


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        name="isa", help="The instruction table: compare it with an outside assembler.", no_args_is_help=True
    )
    group.callback()(_isa)
    group.command("probe", no_args_is_help=True)(probe_command)
    app.add_typer(group)


def _isa() -> None:
    """The instruction table: compare it with an outside assembler."""


def probe_command(
    assembler: Annotated[
        str,
        typer.Option(
            "--assembler",
            metavar="CMD",
            help="Command with {input} and {output}; else -o OUT IN is appended.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OVERLAY", help="Overlay to write.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="MNEMONIC", help="Probe these alone; repeatable.")
    ] = None,
    batch: Annotated[int, typer.Option("--batch", metavar="N", help="Forms per file at first.")] = 48,
    json: JsonOption = False,
) -> None:
    """Assemble every instruction form and flag name with an outside assembler and compare the words.

    Tells where our table differs, and the numbers of flags that are not public. The overlay brings both into
    our tool chain and simulator where --isa-overlay names it; nothing is used by itself.

    Example: tilewright isa probe --assembler "popc --target ipu21 {input} -o {output}" -o popc.json
    """
    from tilewright.errors import UsageError
    from tilewright.ipu21.isa.forms import FORMS
    from tilewright.ipu21.toolchain.probe import OutsideAssembler, probe

    wanted = set(only or ())
    forms = [form for form in FORMS if not wanted or form.mnemonic in wanted]
    missing = wanted - {form.mnemonic for form in forms}
    if missing:
        raise UsageError(f"there is no instruction {', '.join(sorted(missing))}")
    if batch < 1:
        raise UsageError(f"{batch} forms per file", where="--batch")
    outside = OutsideAssembler(assembler)
    # A command that cannot assemble anything is not worth hundreds of files.
    from tilewright.ipu21.toolchain.probe import Refused

    try:
        outside.assemble("    nop\n")
    except Refused as refusal:
        raise UsageError(f"it cannot assemble a nop: {refusal}", where="--assembler") from None
    report = probe(outside.assemble, assembler=assembler, forms=forms, batch=batch)
    if output is not None:
        report.overlay().save(output)
        note(f"wrote {output}")
    if json:
        print_json(report_value(report))
    else:
        _show(report)


def report_value(report: ProbeReport) -> dict[str, Any]:
    """The report as a JSON value."""
    return {
        "assembler": report.assembler,
        "forms": {
            verdict: report.count(verdict)
            for verdict in ("same", "differs", "partly", "refused", "unexplained")
        },
        "findings": [
            {"form": item.form.text, "verdict": item.verdict, "text": item.text}
            for item in report.findings
            if item.verdict != "same"
        ],
        "flags": report.flags,
        "changed_flags": {name: list(pair) for name, pair in report.changed_flags.items()},
        "refused_flags": report.refused,
        "contradictions": report.contradictions,
    }


def _show(report: ProbeReport) -> None:
    from .tables import facts, listing

    out = console()
    value = report_value(report)
    numbers = sum(len(values) for values in report.flags.values())
    facts(
        out,
        [
            ("forms that agree", count(value["forms"]["same"])),
            ("forms that differ", count(value["forms"]["differs"])),
            ("fields left to the linker", count(value["forms"]["partly"])),
            ("refused", count(value["forms"]["refused"])),
            ("not explained", count(value["forms"]["unexplained"])),
            ("flag numbers found", f"{count(numbers)}, {count(len(report.changed_flags))} unlike ours"),
        ],
    )
    listing(
        out,
        "Forms that do not agree",
        ("form", "verdict", "what"),
        [(item["form"], item["verdict"], item["text"]) for item in value["findings"]],
    )
    listing(
        out,
        "Flag numbers unlike ours",
        ("name", ">ours", ">theirs"),
        [(name, str(ours), str(theirs)) for name, (ours, theirs) in report.changed_flags.items()],
    )
    listing(out, "Flag names refused", ("name", "why"), list(report.refused.items()))
    listing(out, "Contradictions", ("what",), [(text,) for text in report.contradictions])
