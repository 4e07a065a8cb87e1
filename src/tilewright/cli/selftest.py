"""`tilewright selftest`: random programs with known results, run on a device and compared word by word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import JsonOption, console, count, print_json, progress
from .guard import DEFECT

if TYPE_CHECKING:
    from tilewright.ipu21.selftest.run import Outcome

DEFAULT_COUNT = 8
DEFAULT_TILES = 16


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("selftest")(selftest_command)


def selftest_command(
    seed: Annotated[int, typer.Option("--seed", min=0, max=1 << 62, help="Seed of the first program.")] = 0,
    number: Annotated[
        int | None,
        typer.Option("--count", min=0, help="Random programs. [default: 8, or 0 with --scenario]"),
    ] = None,
    tiles: Annotated[int, typer.Option("--tiles", help="Tiles that take part, at least 2.")] = DEFAULT_TILES,
    scenario: Annotated[
        list[str] | None,
        typer.Option("--scenario", metavar="NAME", help="Only this scenario; repeatable. [default: all]"),
    ] = None,
    no_scenarios: Annotated[bool, typer.Option("--no-scenarios", help="Random programs only.")] = False,
    device: Annotated[str, typer.Option("--device", help="sim, or ipu:N for a card.")] = "sim",
    json: JsonOption = False,
) -> None:
    """Try a device: random exchanges and sums, and a few scenarios; every word is compared.

    Programs differ by seed only. On the simulator each runs once more with a host that answers late.
    The last line is the verdict; after a failure, so is the command that repeats it alone.

    Example: tilewright selftest --count 100 --tiles 8
    """
    with progress("selftest") as report:
        from tilewright.ipu21.selftest.run import selftest
        from tilewright.ipu21.selftest.scenarios import SCENARIOS

        if number is None:
            number = 0 if scenario else DEFAULT_COUNT
        names = [] if no_scenarios else scenario or list(SCENARIOS)
        outcomes = selftest(device, seed=seed, count=number, tiles=tiles, scenarios=names, progress=report)
    result = summary(outcomes, device, tiles)
    if json:
        print_json(result)
    else:
        _show(outcomes, device, result)
    if result["failed"]:
        raise typer.Exit(DEFECT)


def summary(outcomes: list[Outcome], device: str, tiles: int) -> dict[str, Any]:
    """Verdict and trials as `--json` prints them."""
    failed = sum(bool(outcome.fault) for outcome in outcomes)
    random = sum(not outcome.scenario for outcome in outcomes)
    tried = f"{count(random)} random programs and {len(outcomes) - random} scenarios on {count(tiles)} tiles"
    verdict = f"{count(failed)} of {count(len(outcomes))} FAILED" if failed else "every word is right"
    return {
        "verdict": f"{tried}: {verdict}",
        "device": device,
        "failed": failed,
        "words": sum(outcome.words for outcome in outcomes),
        "seconds": round(sum(outcome.seconds for outcome in outcomes), 3),
        "trials": [
            {
                "name": outcome.name,
                "seed": outcome.seed,
                "tiles": outcome.tiles,
                "cycles": outcome.cycles,
                "words": outcome.words,
                "seconds": round(outcome.seconds, 3),
                "fault": outcome.fault or None,
                "command": outcome.command(device),
            }
            for outcome in outcomes
        ],
    }


def _show(outcomes: list[Outcome], device: str, result: dict[str, Any]) -> None:
    out = console()
    lines = []
    for outcome in outcomes:
        if outcome.fault:
            lines += [f"{outcome.name}: {outcome.fault}", f"  repeat with: {outcome.command(device)}"]
    lines.append(f"{result['verdict']} ({count(result['words'])} words, {result['seconds']:.1f} s)")
    for line in lines:
        out.print(line, markup=False, soft_wrap=True)
