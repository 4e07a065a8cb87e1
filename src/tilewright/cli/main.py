"""The command `tilewright`: global options, and the commands of the modules beside this one."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tilewright import __version__

from . import logs
from .console import settings
from .guard import guarded

COMMAND_MODULES = (
    "demo",
    "embed",
    "compile",
    "plan",
    "package",
    "toolchain",
    "sim",
    "popc",
    "isa",
    "exchange",
    "profile",
    "debug",
    "explain",
    "diff",
    "memory",
    "selftest",
    "cache",
)
"""Modules whose `register(app)` adds commands, in the order that `--help` lists them."""

_GLOBAL_FLAGS = ("--log-json", "--debug", "--quiet")
_GLOBAL_VALUES = ("--log-level",)


class _Root(TyperGroup):
    """The root command: takes global options anywhere, and ends every command by `guarded`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with guarded():
            rest: list[str] = super().parse_args(ctx, global_options_first(args))
            return rest
        raise AssertionError("guarded leaves by an exception")

    def invoke(self, ctx: Any) -> Any:
        with guarded():
            return super().invoke(ctx)


def global_options_first(args: list[str]) -> list[str]:
    """Move global options before the command, so that `tilewright run x --quiet` works as well."""
    moved: list[str] = []
    rest: list[str] = []
    position = 0
    while position < len(args):
        argument = args[position]
        if argument == "--":
            rest += args[position:]
            break
        if argument in _GLOBAL_FLAGS or argument.startswith(tuple(f"{name}=" for name in _GLOBAL_VALUES)):
            moved.append(argument)
        elif argument in _GLOBAL_VALUES and position + 1 < len(args):
            moved += args[position : position + 2]
            position += 1
        else:
            rest.append(argument)
        position += 1
    return moved + rest


app = typer.Typer(
    cls=_Root,
    name="tilewright",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tilewright {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    log_level: Annotated[logs.LogLevel, typer.Option(help="Least severe log record shown.")] = (
        logs.LogLevel.warning
    ),
    log_json: Annotated[bool, typer.Option("--log-json", help="Logs as one JSON object a line.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error arose.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No remarks, no progress.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Compile a neural network into one static program per tile, and run it on a simulated IPU21.

    The options below may stand before or after the command.

    Example: [bold]tilewright demo digits[/bold]
    """
    settings.quiet, settings.debug, settings.log_json = quiet, debug, log_json
    logs.configure(log_level, log_json)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _module in COMMAND_MODULES:
    import_module(f"{__package__}.{_module}").register(app)


def main() -> None:
    """Entry point of the `tilewright` script."""
    app(prog_name="tilewright")
